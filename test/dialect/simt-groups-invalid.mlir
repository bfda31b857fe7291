// Products that groups of four warps would compute from shared memory, and cannot.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

#sums = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

func.func @multiply_extents(%left: memref<2048xi8, 3>, %right: memref<256xi8, 3>, %at: i32, %acc: tensor<64x8xf32, #sums>) {
  // expected-error@+1 {{'simt.multiply' op expected matrices whose product is 'tensor<64x8xf32}}
  %0 = simt.multiply %left[%at] in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]>,
      %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]>, %acc slot [0, 1]
      : memref<2048xi8, 3>, memref<256xi8, 3>, tensor<64x8xf32, #sums>
  return
}

// -----

#sums = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The left image's rows are not swizzled.
func.func @multiply_images(%left: memref<2048xi8, 3>, %right: memref<256xi8, 3>, %at: i32, %acc: tensor<64x8xf32, #sums>) {
  // expected-error@+1 {{'simt.multiply' op expected images that tensor cores can read, but got}}
  %0 = simt.multiply %left[%at] in <64x16xbf16, d0 [32, 64, 128, 256, 512, 1024], d1 [2, 4, 8, 16]>,
      %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> turned, %acc slot [0, 1]
      : memref<2048xi8, 3>, memref<256xi8, 3>, tensor<64x8xf32, #sums>
  return
}

// -----

#sums = #simt.layout<64x16, reg [d1:1 d0:8 d0:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d1:8]>

func.func @multiply_sums(%left: memref<2048xi8, 3>, %right: memref<512xi8, 3>, %at: i32, %acc: tensor<64x16xf32, #sums>) {
  // expected-error@+1 {{'simt.multiply' op expected sums of 64 rows a group of four warps, but got}}
  %0 = simt.multiply %left[%at] in <64x16xbf16, d0 [32, 64, 144, 256, 512, 1024], d1 [2, 4, 8, 16]>,
      %right[%at] in <16x16xbf16, d0 [32, 64, 144, 256], d1 [2, 4, 8, 16]> turned, %acc slot [0, 1]
      : memref<2048xi8, 3>, memref<512xi8, 3>, tensor<64x16xf32, #sums>
  return
}

// -----

func.func @wgmma_element(%a: i64, %b: i64, %sums: vector<4xf32>) {
  // expected-error@+1 {{'simt.wgmma' op expected bf16 or f16, and sums of 8 to 256 columns, but got 'f32'}}
  %0 = simt.wgmma f32 %a, %b, %sums : vector<4xf32>
  return
}

// -----

func.func @wgmma_columns(%a: i64, %b: i64, %sums: vector<6xf32>) {
  // expected-error@+1 {{'simt.wgmma' op expected bf16 or f16, and sums of 8 to 256 columns, but got 'bf16' and 'vector<6xf32>'}}
  %0 = simt.wgmma bf16 %a, %b, %sums : vector<6xf32>
  return
}

// -----

#sums = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#other = #simt.layout<64x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:32 d0:16]>

func.func @rows_layout(%left: tensor<64x16xbf16, #other>, %right: memref<256xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.multiply_rows' op expected the left operand of these sums, but got}}
  %0 = simt.multiply_rows %left, %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> turned slot [0, 1]
      : tensor<64x16xbf16, #other>, memref<256xi8, 3> -> tensor<64x8xf32, #sums>
  return
}

// -----

#sums = #simt.layout<64x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#left = #simt.layout<64x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

func.func @rows_extents(%left: tensor<64x16xbf16, #left>, %right: memref<256xi8, 3>, %at: i32) {
  // expected-error@+1 {{'simt.multiply_rows' op expected matrices whose product is}}
  %0 = simt.multiply_rows %left, %right[%at] in <8x16xbf16, d0 [32, 64, 144], d1 [2, 4, 8, 16]> slot [0, 1]
      : tensor<64x16xbf16, #left>, memref<256xi8, 3> -> tensor<64x8xf32, #sums>
  return
}

// -----

func.func @wgmma_rows_steps(%a: vector<16xbf16>, %b: i64) {
  // expected-error@+1 {{'simt.wgmma_rows' op expected fragments for each of the steps}}
  %0 = simt.wgmma_rows %a, %b steps [0, 2, 4] : vector<16xbf16> -> vector<4xf32>
  return
}
