// Unnecessary conversions are removed: those to the layout that a tile has already, and chains of two.
// RUN: kiln-opt %s --canonicalize | FileCheck %s

#row = #simt.layout<64, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// CHECK-LABEL: @same_layout
// CHECK-SAME: %[[X:.*]]: tensor<64xf32
// CHECK-NOT: simt.convert
// CHECK: return %[[X]]
func.func @same_layout(%x: tensor<64xf32, #row>) -> tensor<64xf32, #row> {
  %0 = simt.convert %x : tensor<64xf32, #row> -> tensor<64xf32, #row>
  return %0 : tensor<64xf32, #row>
}

#pairs = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
#permuted = #simt.layout<64, reg [d0:1], lane [d0:32 d0:16 d0:8 d0:4 d0:2], warp []>

// Two conversions are one, from the first layout to the last.
// CHECK-LABEL: @twice
// CHECK-SAME: %[[X:.*]]: tensor<64xf32
// CHECK: %[[Y:.*]] = simt.convert %[[X]] : tensor<64xf32, {{.*}}lane [d0:1 d0:2 {{.*}} -> tensor<64xf32, {{.*}}lane [d0:32 d0:16
// CHECK-NOT: simt.convert
// CHECK: return %[[Y]]
func.func @twice(%x: tensor<64xf32, #row>) -> tensor<64xf32, #permuted> {
  %0 = simt.convert %x : tensor<64xf32, #row> -> tensor<64xf32, #pairs>
  %1 = simt.convert %0 : tensor<64xf32, #pairs> -> tensor<64xf32, #permuted>
  return %1 : tensor<64xf32, #permuted>
}

// A conversion to another layout and back is the tile itself.
// CHECK-LABEL: @there_and_back
// CHECK-SAME: %[[X:.*]]: tensor<64xf32
// CHECK-NOT: simt.convert
// CHECK: return %[[X]]
func.func @there_and_back(%x: tensor<64xf32, #row>) -> tensor<64xf32, #row> {
  %0 = simt.convert %x : tensor<64xf32, #row> -> tensor<64xf32, #pairs>
  %1 = simt.convert %0 : tensor<64xf32, #pairs> -> tensor<64xf32, #row>
  return %1 : tensor<64xf32, #row>
}

// A conversion that moves elements stays.
// CHECK-LABEL: @other_layout
// CHECK: simt.convert
func.func @other_layout(%x: tensor<64xf32, #row>) -> tensor<64xf32, #pairs> {
  %0 = simt.convert %x : tensor<64xf32, #row> -> tensor<64xf32, #pairs>
  return %0 : tensor<64xf32, #pairs>
}
