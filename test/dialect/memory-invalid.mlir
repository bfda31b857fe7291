// Errors of the verifiers of memory operations.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @dim_axis(%v: memref<?x?xf32>) {
  // expected-error@+1 {{'tile.dim' op expected an axis from 0 to 1, but got 2}}
  %0 = tile.dim %v, 2 : memref<?x?xf32>
  return
}

// -----

func.func @dim_negative(%v: memref<?x?xf32>) {
  // expected-error@+1 {{'tile.dim' op expected an axis from 0 to 1, but got -1}}
  %0 = tile.dim %v, -1 : memref<?x?xf32>
  return
}

// -----

func.func @load_type(%v: memref<?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected a tile of the view's element type 'f32', but got 'bf16'}}
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<8xbf16>
  return
}

// -----

func.func @load_rank(%v: memref<?x?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected a tile of the view's rank 2, but got 1}}
  %0 = tile.load %v[%n, %n] : memref<?x?xf32> -> tensor<8xf32>
  return
}

// -----

func.func @load_offsets(%v: memref<?x?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected 2 subscripts for a view of rank 2, but got 1}}
  %0 = tile.load %v[%n] : memref<?x?xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @load_padding(%v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected padding 'zero' on a tile of integers or floats of 8 bits, but got 'neg_inf'}}
  %0 = tile.load %v[%n] pad neg_inf : memref<?xi32> -> tensor<8xi32>
  return
}

// -----

func.func @store_type(%x: tensor<8xi1>, %v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.store' op expected a tile of the view's element type 'i32', but got 'i1'}}
  tile.store %x, %v[%n] : tensor<8xi1>, memref<?xi32>
  return
}

// -----

func.func @store_offsets(%x: tensor<8xf32>, %v: memref<?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.store' op expected 1 subscripts for a view of rank 1, but got 2}}
  tile.store %x, %v[%n, %n] : tensor<8xf32>, memref<?xf32>
  return
}

// -----

func.func @gather_shapes(%v: memref<?x?xf32>, %r: tensor<4xi32>, %c: tensor<2x2xi32>) {
  // expected-error@+1 {{'tile.gather' op expected index tiles of one shape, but got 4 and 2x2}}
  %0 = tile.gather %v[%r, %c] : memref<?x?xf32>, tensor<4xi32>, tensor<2x2xi32> -> tensor<4xf32>
  return
}

// -----

func.func @gather_begin(%v: memref<?x?xf32>, %r: tensor<3xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected a tile that begins with the index tiles' shape 3, but got shape 4x8}}
  %0 = tile.gather %v[%r, %n] : memref<?x?xf32>, tensor<3xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @gather_rank(%v: memref<?x?xf32>, %r: tensor<4x2xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected a tile of rank 3, that of the index tiles and one for each other subscript, but got 2}}
  %0 = tile.gather %v[%r, %n] : memref<?x?xf32>, tensor<4x2xi32> -> tensor<4x2xf32>
  return
}

// -----

func.func @gather_count(%v: memref<?x?xf32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected 2 subscripts for a view of rank 2, but got 3}}
  %0 = tile.gather %v[%r, %n, %n] : memref<?x?xf32>, tensor<4xi32> -> tensor<4x8x8xf32>
  return
}

// -----

func.func @gather_index(%v: memref<?xf32>, %r: tensor<4xi8>) {
  // expected-error@+1 {{'tile.gather' op operand #1 must be variadic of i64, or a tile of i32 or i64, but got 'tensor<4xi8>'}}
  %0 = tile.gather %v[%r] : memref<?xf32>, tensor<4xi8> -> tensor<4xf32>
  return
}

// -----

func.func @gather_mask(%v: memref<?xf32>, %n: i64, %m: tensor<4xi1>) {
  // expected-note@-1 {{prior use here}}
  // expected-error@+1 {{use of value '%m' expects different type than prior uses: 'tensor<8xi1>' vs 'tensor<4xi1>'}}
  %0 = tile.gather %v[%n] if %m : memref<?xf32> -> tensor<8xf32>
  return
}

// -----

func.func @gather_mask_type(%v: memref<?xf32>, %n: i64, %m: tensor<4xi1>) {
  // expected-error@+1 {{'tile.gather' op failed to verify that the mask is a tile of i1 of the tile's shape}}
  %0 = "tile.gather"(%v, %n, %m) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<?xf32>, i64, tensor<4xi1>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_padding(%v: memref<?x?xi32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected padding 'zero' on a tile of integers or floats of 8 bits, but got 'nan'}}
  %0 = tile.gather %v[%r, %n] pad nan : memref<?x?xi32>, tensor<4xi32> -> tensor<4x8xi32>
  return
}

// -----

func.func @scatter_begin(%x: tensor<4x8xf32>, %v: memref<?x?xf32>, %r: tensor<5xi32>, %n: i64) {
  // expected-error@+1 {{'tile.scatter' op expected a tile that begins with the index tiles' shape 5, but got shape 4x8}}
  tile.scatter %x, %v[%r, %n] : tensor<4x8xf32>, memref<?x?xf32>, tensor<5xi32>
  return
}

// -----

func.func @scatter_rank(%x: tensor<4xf32>, %v: memref<?x?xf32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.scatter' op expected a tile of rank 2, that of the index tiles and one for each other subscript, but got 1}}
  tile.scatter %x, %v[%r, %n] : tensor<4xf32>, memref<?x?xf32>, tensor<4xi32>
  return
}

// -----

func.func @atomic_add_type(%x: tensor<4xi8>, %v: memref<?xi8>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_rmw' op expected elements of type i32, u32, i64, u64, bf16, f16, f32 or f64, but got 'i8'}}
  %0 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<4xi8>, memref<?xi8>
  return
}

// -----

func.func @atomic_max_type(%x: tensor<4xbf16>, %v: memref<?xbf16>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_rmw' op expected elements of type i32, u32, i64, u64, f32 or f64, but got 'bf16'}}
  %0 = tile.atomic_rmw max relaxed %x, %v[%n] : tensor<4xbf16>, memref<?xbf16>
  return
}

// -----

func.func @atomic_xor_type(%x: tensor<4xf32>, %v: memref<?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_rmw' op expected elements of type i32, u32, i64 or u64, but got 'f32'}}
  %0 = tile.atomic_rmw xor relaxed %x, %v[%n] : tensor<4xf32>, memref<?xf32>
  return
}

// -----

func.func @atomic_cas_type(%x: tensor<4xi1>, %v: memref<?xi8>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_cas' op expected elements of type i16, u16, i32, u32, i64, u64, bf16, f16, f32 or f64, but got 'i1'}}
  %0 = tile.atomic_cas relaxed %x to %x, %v[%n] : tensor<4xi1>, memref<?xi8>
  return
}

// -----

func.func @atomic_load_order(%v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_load' op expected order 'relaxed' or 'acquire', but got 'release'}}
  %0 = tile.atomic_load release %v[%n] : memref<?xi32> -> tensor<4xi32>
  return
}

// -----

func.func @atomic_store_order(%x: tensor<4xi32>, %v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_store' op expected order 'relaxed' or 'release', but got 'acq_rel'}}
  tile.atomic_store acq_rel %x, %v[%n] : tensor<4xi32>, memref<?xi32>
  return
}

// -----

func.func @atomic_view(%x: tensor<4xf32>, %v: memref<?xf64>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_rmw' op expected a tile of the view's element type 'f64', but got 'f32'}}
  %0 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<4xf32>, memref<?xf64>
  return
}

// -----

func.func @check_type(%x: tensor<4xi8>) {
  // expected-error@+1 {{'tile.check' op operand #0 must be boolean tile or scalar, but got 'tensor<4xi8>'}}
  tile.check %x, "expected 1" : tensor<4xi8>
  return
}
