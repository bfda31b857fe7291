// Sorts become sorts of integers: an element's key, with its position in the low bits if that is needed.
// RUN: kiln-opt %s --tile-expand-ops | FileCheck %s

// A sort without positions has keys of the elements' width.
// CHECK-LABEL: @values
// CHECK: arith.bitcast %arg0 : tensor<64xf32> to tensor<64xi32>
// CHECK: tile.sort %{{.*}} axis 0 : tensor<64xi32> -> tensor<8xi32>, tensor<8xi32>
// CHECK: arith.bitcast %{{.*}} : tensor<8xi32> to tensor<8xf32>
func.func @values(%x: tensor<64xf32>) -> tensor<8xf32> {
  %0:2 = tile.sort %x axis 0 descending : tensor<64xf32> -> tensor<8xf32>, tensor<8xi32>
  return %0#0 : tensor<8xf32>
}

// The positions of f32 fill the low half of an i64.
// CHECK-LABEL: @positions
// CHECK: tile.sort %{{.*}} axis 0 : tensor<64xi64> -> tensor<64xi64>, tensor<64xi32>
func.func @positions(%x: tensor<64xf32>) -> tensor<64xi32> {
  %0:2 = tile.sort %x axis 0 : tensor<64xf32> -> tensor<64xf32>, tensor<64xi32>
  return %0#1 : tensor<64xi32>
}

// Narrow elements leave room for positions in an i32.
// CHECK-LABEL: @narrow
// CHECK: tile.sort %{{.*}} axis 1 : tensor<4x1000xi32> -> tensor<4x1000xi32>, tensor<4x1000xi32>
// CHECK: tile.sort %{{.*}} axis 0 : tensor<100xi32> -> tensor<100xi32>, tensor<100xi32>
func.func @narrow(%x: tensor<4x1000xbf16>, %y: tensor<100xi8>) -> (tensor<4x1000xi32>, tensor<100xi32>) {
  %0:2 = tile.sort %x axis 1 : tensor<4x1000xbf16> -> tensor<4x1000xbf16>, tensor<4x1000xi32>
  %1:2 = tile.sort %y axis 0 : tensor<100xi8> -> tensor<100xi8>, tensor<100xi32>
  return %0#1, %1#1 : tensor<4x1000xi32>, tensor<100xi32>
}

// 64-bit elements have their positions as a second operand.
// CHECK-LABEL: @wide
// CHECK: tile.sort %{{.*}} by %{{.*}} axis 0 : tensor<64xi64>, tensor<64xi32> -> tensor<64xi64>, tensor<64xi32>
func.func @wide(%x: tensor<64xf64>) -> (tensor<64xf64>, tensor<64xi32>) {
  %0:2 = tile.sort %x axis 0 : tensor<64xf64> -> tensor<64xf64>, tensor<64xi32>
  return %0#0, %0#1 : tensor<64xf64>, tensor<64xi32>
}
