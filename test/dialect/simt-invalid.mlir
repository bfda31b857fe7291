// Errors of the verifiers of the simt dialect. The tests of layouts have the errors of a layout's text.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{expected each unit once, but got 'd0:1' twice}}
func.func @layout_text(%x: tensor<32xf32, #simt.layout<32, reg [d0:1], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>>) {
  return
}

// -----

// expected-error@+1 {{expected a layout of the tile's extents 64, but got one of 32}}
func.func @layout_extents(%x: tensor<64xf32, #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>>) {
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @no_layout(%x: tensor<32xf32>) {
  // expected-error@+1 {{'simt.convert' op operand #0 must be tile with a layout, but got 'tensor<32xf32>'}}
  %0 = simt.convert %x : tensor<32xf32> -> tensor<32xf32, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @convert_type(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.convert' op expected the same tile in another layout, but got 'tensor<32xf32, #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>>' and 'tensor<32xi32, #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>>'}}
  %0 = simt.convert %x : tensor<32xf32, #row> -> tensor<32xi32, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#half = #simt.layout<16, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp []>

func.func @convert_extents(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.convert' op expected the same tile in another layout}}
  %0 = simt.convert %x : tensor<32xf32, #row> -> tensor<16xf32, #half>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_kind(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{expected sum, max, min, argmax, product, and, or or xor, but got 'mean'}}
  %0 = simt.reduce mean %x axis 0 : (tensor<32xf32, #row>) -> tensor<1xf32, #one>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_pair(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.reduce' op expected 2 sources and results, but got 1 and 1}}
  %0 = simt.reduce argmax %x axis 0 : (tensor<32xf32, #row>) -> tensor<1xf32, #one>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_several(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.reduce' op expected 1 sources and results, but got 2 and 1}}
  %0 = simt.reduce sum %x, %x axis 0 : (tensor<32xf32, #row>, tensor<32xf32, #row>) -> tensor<1xf32, #one>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_result(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.reduce' op expected a result like its source but for the axis}}
  %0 = simt.reduce sum %x axis 0 : (tensor<32xf32, #row>) -> tensor<1xi32, #one>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_axis(%x: tensor<32xf32, #row>) {
  // expected-error@+1 {{'simt.reduce' op expected an axis from 0 to 0, but got 1}}
  %0 = simt.reduce sum %x axis 1 : (tensor<32xf32, #row>) -> tensor<1xf32, #one>
  return
}

// -----

func.func @buffer_space() {
  // expected-error@+1 {{'simt.buffer' op result #0 must be buffer in shared memory, but got 'memref<64xi8>'}}
  %0 = simt.buffer : memref<64xi8>
  return
}

// -----

func.func @buffer_size() {
  // expected-error@+1 {{'simt.buffer' op expected a buffer of a known number of bytes, but got 'memref<?xi8, 3>'}}
  %0 = simt.buffer : memref<?xi8, 3>
  return
}

// -----

func.func @buffer_layout() {
  // expected-error@+1 {{'simt.buffer' op expected a buffer of a known number of bytes, but got 'memref<64xi8, strided<[2]>, 3>'}}
  %0 = simt.buffer : memref<64xi8, strided<[2]>, 3>
  return
}

// -----

func.func @buffer_offset() {
  // expected-error@+1 {{'simt.buffer' op expected an offset from 0, but got -128}}
  %0 = simt.buffer {offset = -128 : i64} : memref<64xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @write_strides(%x: tensor<32xf32, #row>, %buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.write' op expected a stride for each of 1 dimensions, but got 2}}
  simt.write %x, %buffer strides [128, 4] : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @write_unaligned(%x: tensor<32xf32, #row>, %buffer: memref<256xi8, 3>) {
  // expected-error@+1 {{'simt.write' op expected strides that are multiples of 4 bytes, but got 6}}
  simt.write %x, %buffer strides [6] : tensor<32xf32, #row>, memref<256xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @write_backwards(%x: tensor<32xf32, #row>, %buffer: memref<256xi8, 3>) {
  // expected-error@+1 {{'simt.write' op expected strides that are multiples of 4 bytes, but got -4}}
  simt.write %x, %buffer strides [-4] : tensor<32xf32, #row>, memref<256xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @read_past_the_end(%buffer: memref<127xi8, 3>) {
  // expected-error@+1 {{'simt.read' op expected a buffer of at least 128 bytes, but got 127}}
  %0 = simt.read %buffer strides [4] : memref<127xi8, 3> -> tensor<32xf32, #row>
  return
}

// -----

func.func @packet(%address: i64) {
  // expected-error@+1 {{'simt.ld' op expected a vector of 1, 2, 4, 8 or 16 bytes, but got 'vector<3xf32>'}}
  %0 = simt.ld global %address + 0 : i64, vector<3xf32>
  return
}

// -----

func.func @wide_packet(%x: vector<8xf32>, %address: i64) {
  // expected-error@+1 {{'simt.st' op expected a vector of 1, 2, 4, 8 or 16 bytes, but got 'vector<8xf32>'}}
  simt.st global %x, %address + 0 : vector<8xf32>, i64
  return
}

// -----

func.func @global_address(%address: i32) {
  // expected-error@+1 {{'simt.ld' op expected an address of i64 in global memory, but got 'i32'}}
  %0 = simt.ld global %address + 0 : i32, vector<4xf32>
  return
}

// -----

func.func @shared_address(%x: vector<4xf32>, %address: i64) {
  // expected-error@+1 {{'simt.st' op expected an address of i32 in shared memory, but got 'i64'}}
  simt.st shared %x, %address + 0 : vector<4xf32>, i64
  return
}

// -----

func.func @displacement(%address: i64) {
  // expected-error@+1 {{'simt.ld' op expected a displacement of 32 bits, but got 2147483648}}
  %0 = simt.ld global %address + 2147483648 : i64, vector<4xf32>
  return
}

// -----

func.func @cache_of_what_is_shared(%address: i32) {
  // expected-error@+1 {{'simt.ld' op expected 'tile.cache' on an access of global memory alone that orders no other}}
  %0 = simt.ld shared %address + 0 {tile.cache = "keep"} : i32, vector<4xf32>
  return
}

// -----

func.func @cache_of_what_orders(%x: vector<1xf32>, %address: i64) {
  // expected-error@+1 {{'simt.st' op expected 'tile.cache' on an access of global memory alone that orders no other}}
  simt.st global %x, %address + 0 {strong, simt.order = "release", tile.cache = "stream"} : vector<1xf32>, i64
  return
}

// -----

func.func @load_order(%address: i64) {
  // expected-error@+1 {{expected 'simt.order' to be acquire on a strong load, release on a strong store, or acquire, release or acq_rel on an atomic, but got "acq_rel"}}
  %0 = simt.ld global %address + 0 {simt.order = "acq_rel", strong} : i64, vector<4xf32>
  return
}

// -----

func.func @store_order(%x: vector<4xf32>, %address: i64) {
  // expected-error@+1 {{expected 'simt.order' to be acquire on a strong load, release on a strong store, or acquire, release or acq_rel on an atomic, but got "acquire"}}
  simt.st global %x, %address + 0 {simt.order = "acquire", strong} : vector<4xf32>, i64
  return
}

// -----

func.func @order_of_what_is_weak(%x: vector<4xf32>, %address: i64) {
  // expected-error@+1 {{expected 'simt.order' to be acquire on a strong load, release on a strong store, or acquire, release or acq_rel on an atomic, but got "release"}}
  simt.st global %x, %address + 0 {simt.order = "release"} : vector<4xf32>, i64
  return
}

// -----

func.func @update_order(%x: i32, %address: i64) {
  // expected-error@+1 {{expected 'simt.order' to be acquire on a strong load, release on a strong store, or acquire, release or acq_rel on an atomic, but got "consume"}}
  %0 = simt.atomic_rmw add %x, %address + 0 {simt.order = "consume"} : i32
  return
}

// -----

func.func @fenced(%x: i32, %address: i64) {
  // expected-error@+1 {{expected 'simt.fenced' to be a unit on a 'simt.atomic_rmw', but got unit}}
  %0 = simt.atomic_cas %x to %x, %address + 0 {simt.fenced} : i32
  return
}

// -----

func.func @other(%address: i64, %p: i1, %other: vector<2xf32>) {
  // expected-error@+1 {{'simt.ld' op expected 'else' to be of the result's type 'vector<4xf32>', but got 'vector<2xf32>'}}
  %0 = simt.ld global %address + 0 if %p else %other : vector<2xf32> : i64, vector<4xf32>
  return
}

// -----

func.func @attribute_layout(%x: f32) {
  // expected-error@+1 {{expected 'simt.layout' to be a layout, but got "rows"}}
  %0 = arith.negf %x {simt.layout = "rows"} : f32
  return
}

// -----

func.func @attribute_vector(%x: f32) {
  // expected-error@+1 {{expected 'simt.vector' to be an i64 from 1, but got 0}}
  %0 = arith.negf %x {simt.vector = 0 : i64} : f32
  return
}

// -----

func.func @attribute_why(%x: f32) {
  // expected-error@+1 {{expected 'simt.why' to be a string on a 'tile.load', but got "it is no load"}}
  %0 = arith.negf %x {simt.why = "it is no load"} : f32
  return
}

// -----

func.func @attribute_mma(%x: f32) {
  // expected-error@+1 {{expected 'simt.mma' to be a unit on a 'tile.dot', but got unit}}
  %0 = arith.negf %x {simt.mma} : f32
  return
}

// -----

// expected-error@+1 {{expected 'simt.shared_parts' to be strings on a function, but got [128]}}
func.func @attribute_parts() attributes {simt.shared_parts = [128]} {
  return
}

// -----

// expected-error@+1 {{expected 'simt.shared_bytes' to be an i64 from 0 on a function, but got -1}}
func.func @attribute_bytes() attributes {simt.shared_bytes = -1 : i64} {
  return
}

// -----

// expected-error@+1 {{expected an attribute that the 'simt' dialect has, but got 'simt.stages'}}
func.func @attribute_unknown() attributes {simt.stages = 3 : i64} {
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

func.func @reduce_keys(%x: tensor<32xf32, #row>, %n: tensor<32xi32, #row>) {
  // expected-error@+1 {{'simt.reduce' op expected integers that order as the elements do, but got 'f32'}}
  %0:2 = simt.reduce argmax %x, %n axis 0 : (tensor<32xf32, #row>, tensor<32xi32, #row>) -> (tensor<1xf32, #one>, tensor<1xi32, #one>)
  return
}

// -----

// expected-error@+1 {{expected 5 offsets, one for each bit of a position, but got 4}}
func.func @image_count() attributes {image = #simt.image<8x4xf32, d0 [16, 32, 64], d1 [4]>} {
  return
}

// -----

// expected-error@+1 {{expected offsets below 2^31 that are multiples of 4 bytes, but got 6}}
func.func @image_unaligned() attributes {image = #simt.image<4xf32, d0 [4, 6]>} {
  return
}

// -----

// expected-error@+1 {{expected a place of its own for each element, but got offsets that depend on each other}}
func.func @image_overlap() attributes {image = #simt.image<4x2xf32, d0 [4, 8], d1 [12]>} {
  return
}

// -----

// expected-error@+1 {{expected extents from 1, but got 0}}
func.func @image_empty() attributes {image = #simt.image<0xf32, d0 []>} {
  return
}

// -----

// expected-error@+1 {{expected the type of an element, but got 'index'}}
func.func @image_element() attributes {image = #simt.image<2xindex, d0 [8]>} {
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @fetch_map(%buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.pick' op expected a map from 1 dimensions to a byte, but got affine_map<(d0, d1) -> (d0)>}}
  %0 = simt.pick %buffer at affine_map<(d0, d1) -> (d0)> : memref<128xi8, 3> -> tensor<32xf32, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @image_of_another(%x: tensor<32xf32, #row>, %buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.write' op expected an image of 'tensor<32xf32}}
  simt.write %x, %buffer by vectors in <32xi32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @image_size(%x: tensor<32xf32, #row>, %buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.write' op expected a buffer of at least 256 bytes, but got 128}}
  simt.write %x, %buffer by vectors in <32xf32, d0 [4, 8, 16, 32, 128]> : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @image_rows(%buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.read' op expected an image whose rows matrices fit the layout's lanes}}
  %0 = simt.read %buffer by rows in <32xf16, d0 [2, 4, 8, 16, 32]> : memref<128xi8, 3> -> tensor<32xf16, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @neither_strides_nor_image(%buffer: memref<128xi8, 3>) {
  // expected-error@+1 {{'simt.read' op expected either strides or an image}}
  %0 = simt.read %buffer : memref<128xi8, 3> -> tensor<32xf32, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @slot(%buffer: memref<384xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.read' op expected a slot [n, s] with n from 0 to s - 1, but got [3, 3]}}
  %0 = simt.read %buffer[%at] slot [3, 3] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
      : memref<384xi8, 3> -> tensor<32xf32, #row>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @fetch_slot(%x: memref<?xf32>, %n: i64, %buffer: memref<384xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.fetch' op expected a slot [n, s] with n from 0 to s - 1, but got [2]}}
  simt.fetch %x[%n] to %buffer[%at] slot [2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @fetch_packet(%x: memref<?xf32>, %n: i64, %buffer: memref<384xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.fetch' op expected 4, 8 or 16 bytes that lie together in a thread and in the image, but got 8}}
  simt.fetch %x[%n] to %buffer[%at] slot [0, 3] by 2 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  return
}

// -----

#row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>

func.func @fetch_layout(%x: memref<?xf32>, %n: i64, %buffer: memref<384xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.fetch' op expected a layout of #simt.image<32xf32}}
  simt.fetch %x[%n] to %buffer[%at] slot [0, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

func.func @fetch_offsets(%x: memref<?xf32>, %n: i64, %buffer: memref<384xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.fetch' op expected an offset for each of 1 dimensions, but got 2}}
  simt.fetch %x[%n, %n] to %buffer[%at] slot [0, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @scan_kind(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{'simt.scan' op expected either a kind or a function}}
  %0 = simt.scan %x axis 0 : (tensor<64xf32, #row>) -> tensor<64xf32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @scan_axis(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{'simt.scan' op expected an axis from 0 to 0, but got 1}}
  %0 = simt.scan sum %x axis 1 : (tensor<64xf32, #row>) -> tensor<64xf32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @scan_word(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{expected a kind of reduction, but got 'total'}}
  %0 = simt.scan total %x axis 0 : (tensor<64xf32, #row>) -> tensor<64xf32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @scan_results(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{'simt.scan' op expected results of the types of its tiles, at least one}}
  %0 = simt.scan sum %x axis 0 : (tensor<64xf32, #row>) -> tensor<64xi32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>
#other = #simt.layout<64, reg [], lane [d0:2 d0:1 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @scan_layouts(%x: tensor<64xf32, #row>, %y: tensor<64xf32, #other>) {
  // expected-error@+1 {{'simt.scan' op expected tiles of one layout, but got}}
  %0:2 = simt.scan sum %x, %y axis 0
      : (tensor<64xf32, #row>, tensor<64xf32, #other>) -> (tensor<64xf32, #row>, tensor<64xf32, #other>)
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:32], warp [d0:16]>

func.func @scan_layout(%x: tensor<64xf32, #row>) {
  // expected-error@+1 {{'simt.scan' op expected a layout whose warps hold neighbours along the axis, but got}}
  %0 = simt.scan sum %x axis 0 : (tensor<64xf32, #row>) -> tensor<64xf32, #row>
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

func.func @carry_buffer(%x: tensor<64xf32, #row>, %buffer: memref<8xi8, 3>) {
  // expected-error@+1 {{'simt.carry' op expected a buffer of at least 16 bytes, but got 8}}
  %0 = simt.carry sum %x axis 0 from %buffer : (tensor<64xf32, #row>) -> tensor<64xf32, #row>, memref<8xi8, 3>
  return
}
