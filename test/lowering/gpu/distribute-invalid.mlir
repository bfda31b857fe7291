// Operations that one thread cannot do alone are errors: an earlier pass should have expanded them.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics --gpu-distribute

#pairs = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>
#line = #simt.layout<64, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>
#column = #simt.layout<64x1, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>
#rows = #simt.layout<64x2, reg [d0:32 d1:1], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>

func.func @broadcast(%s: f32) attributes {tile.kernel} {
  %x = tile.splat %s : f32 -> tensor<64x1xf32, #column>
  // expected-error@+1 {{'tile.broadcast' op expected layouts in which a thread holds what it needs, but got 'tensor<64x1xf32, #simt.layout<64x1, reg [d0:1]}}
  %0 = tile.broadcast %x : tensor<64x1xf32, #column> -> tensor<64x2xf32, #rows>
  return
}

// -----

#pairs = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>
#square = #simt.layout<8x8, reg [d0:1], lane [d1:1 d1:2 d1:4 d0:2 d0:4], warp [* *]>

func.func @reshape(%s: f32) attributes {tile.kernel} {
  %x = tile.splat %s : f32 -> tensor<64xf32, #pairs>
  // expected-error@+1 {{'tile.reshape' op expected layouts in which a thread holds what it needs}}
  %0 = tile.reshape %x : tensor<64xf32, #pairs> -> tensor<8x8xf32, #square>
  return
}

// -----

#pairs = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>

func.func @operation(%s: f32) attributes {tile.kernel} {
  %x = tile.splat %s : f32 -> tensor<64xf32, #pairs>
  // expected-error@+1 {{'tile.cast' op expected an operation that threads can do}}
  %0 = tile.cast %x : tensor<64xf32, #pairs> to tensor<64xi32, #pairs>
  return
}

// -----

#two = #simt.layout<2, reg [d0:1], lane [* * * * *], warp [* *]>

func.func @constant() attributes {tile.kernel} {
  // expected-error@+1 {{expected a constant tile of one value}}
  %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32, #two>
  return
}
