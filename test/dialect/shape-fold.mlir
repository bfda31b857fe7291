// Chains of shape operations become one operation, or none.
// RUN: kiln-opt %s --canonicalize | FileCheck %s

// A reshaped splat is a splat, and so is a scalar that is given a shape.
// CHECK-LABEL: @splats
// CHECK-SAME: (%[[X:.*]]: f32)
func.func @splats(%x: f32) -> (tensor<32xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<1x1xf32>, f32) {
  // CHECK-DAG: %[[R:.*]] = tile.splat %[[X]] : f32 -> tensor<32xf32>
  %0 = tile.splat %x : f32 -> tensor<4x8xf32>
  %1 = tile.reshape %0 : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK-DAG: %[[B:.*]] = tile.splat %[[X]] : f32 -> tensor<4x8xf32>
  %2 = tile.splat %x : f32 -> tensor<4x1xf32>
  %3 = tile.broadcast %2 : tensor<4x1xf32> -> tensor<4x8xf32>
  // CHECK-DAG: %[[T:.*]] = tile.splat %[[X]] : f32 -> tensor<8x4xf32>
  %4 = tile.transpose %0 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK-DAG: %[[S:.*]] = tile.splat %[[X]] : f32 -> tensor<1x1xf32>
  %5 = tile.reshape %x : f32 -> tensor<1x1xf32>
  %6 = tile.reshape %5 : tensor<1x1xf32> -> f32
  // CHECK: return %[[R]], %[[B]], %[[T]], %[[S]], %[[X]]
  return %1, %3, %4, %5, %6 : tensor<32xf32>, tensor<4x8xf32>, tensor<8x4xf32>, tensor<1x1xf32>, f32
}

// CHECK-LABEL: @constants
func.func @constants() -> (tensor<4xf32>, tensor<2x2xi32>, tensor<1xi64>, i32, tensor<4x2xi8>, tensor<2x3xi8>) {
  %x = arith.constant 2.0 : f32
  %n = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %s = arith.constant 7 : i64
  %one = arith.constant dense<9> : tensor<1x1xi32>
  %b = arith.constant dense<5> : tensor<4x1xi8>
  %t = arith.constant dense<6> : tensor<3x2xi8>
  %0 = tile.splat %x : f32 -> tensor<4xf32>
  %1 = tile.reshape %n : tensor<4xi32> -> tensor<2x2xi32>
  %2 = tile.reshape %s : i64 -> tensor<1xi64>
  %3 = tile.reshape %one : tensor<1x1xi32> -> i32
  %4 = tile.broadcast %b : tensor<4x1xi8> -> tensor<4x2xi8>
  %5 = tile.transpose %t [1, 0] : tensor<3x2xi8> -> tensor<2x3xi8>
  // CHECK-DAG: arith.constant dense<2.000000e+00> : tensor<4xf32>
  // CHECK-DAG: arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
  // CHECK-DAG: arith.constant dense<7> : tensor<1xi64>
  // CHECK-DAG: arith.constant 9 : i32
  // CHECK-DAG: arith.constant dense<5> : tensor<4x2xi8>
  // CHECK-DAG: arith.constant dense<6> : tensor<2x3xi8>
  // CHECK-NOT: tile.
  return %0, %1, %2, %3, %4, %5
      : tensor<4xf32>, tensor<2x2xi32>, tensor<1xi64>, i32, tensor<4x2xi8>, tensor<2x3xi8>
}

// CHECK-LABEL: @chains
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[C:.*]]: tensor<1x1xf32>)
func.func @chains(%x: tensor<2x3x4xf32>, %c: tensor<1x1xf32>)
    -> (tensor<24xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<4x8xf32>) {
  // CHECK: %[[R:.*]] = tile.reshape %[[X]] : tensor<2x3x4xf32> -> tensor<24xf32>
  %0 = tile.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = tile.reshape %0 : tensor<6x4xf32> -> tensor<24xf32>
  %2 = tile.reshape %0 : tensor<6x4xf32> -> tensor<2x3x4xf32>
  // CHECK: %[[T:.*]] = tile.transpose %[[X]] [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
  %3 = tile.transpose %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %4 = tile.transpose %3 [1, 2, 0] : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  %5 = tile.transpose %4 [1, 2, 0] : tensor<4x2x3xf32> -> tensor<2x3x4xf32>
  // CHECK: %[[B:.*]] = tile.broadcast %[[C]] : tensor<1x1xf32> -> tensor<4x8xf32>
  %6 = tile.broadcast %c : tensor<1x1xf32> -> tensor<4x1xf32>
  %7 = tile.broadcast %6 : tensor<4x1xf32> -> tensor<4x8xf32>
  // CHECK: return %[[R]], %[[X]], %[[T]], %[[X]], %[[B]]
  return %1, %2, %4, %5, %7
      : tensor<24xf32>, tensor<2x3x4xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>, tensor<4x8xf32>
}

// A transposition that swaps only dimensions of extent 1 moves no element.
// CHECK-LABEL: @column_to_row
func.func @column_to_row(%x: tensor<8x1xf32>, %y: tensor<2x1x3xf32>) -> (tensor<1x8xf32>, tensor<1x3x2xf32>) {
  // CHECK: tile.reshape %{{.*}} : tensor<8x1xf32> -> tensor<1x8xf32>
  %0 = tile.transpose %x [1, 0] : tensor<8x1xf32> -> tensor<1x8xf32>
  // CHECK: tile.transpose %{{.*}} [1, 2, 0]
  %1 = tile.transpose %y [1, 2, 0] : tensor<2x1x3xf32> -> tensor<1x3x2xf32>
  return %0, %1 : tensor<1x8xf32>, tensor<1x3x2xf32>
}

// Rotations along one axis add up. A rotation by 0, or of equal elements, is removed.
// CHECK-LABEL: @rotations
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: f32)
func.func @rotations(%x: tensor<4x8xf32>, %s: f32) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[ONCE:.*]] = tile.rotate %[[X]] by 3 axis 1
  %0 = tile.rotate %x by 5 axis 1 : tensor<4x8xf32>
  %1 = tile.rotate %0 by 6 axis 1 : tensor<4x8xf32>
  // CHECK: %[[OTHER:.*]] = tile.rotate %[[ONCE]] by 1 axis 0
  %2 = tile.rotate %1 by 1 axis 0 : tensor<4x8xf32>
  %3 = tile.rotate %x by 2 axis 0 : tensor<4x8xf32>
  %4 = tile.rotate %3 by 2 axis 0 : tensor<4x8xf32>
  // CHECK: %[[SPLAT:.*]] = tile.splat %[[S]]
  %5 = tile.splat %s : f32 -> tensor<4x8xf32>
  %6 = tile.rotate %5 by 2 axis 0 : tensor<4x8xf32>
  // CHECK: return %[[ONCE]], %[[OTHER]], %[[X]], %[[SPLAT]]
  return %1, %2, %4, %6 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A part of a part is a part of the whole tile. The whole tile is the tile itself, and a part of a splat is a splat.
// CHECK-LABEL: @extractions
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: f32)
func.func @extractions(%x: tensor<4x8xf32>, %s: f32) -> (tensor<2x2xf32>, tensor<4x8xf32>, tensor<1x4xf32>, tensor<2x2xf32>) {
  // CHECK-DAG: %[[PART:.*]] = tile.extract %[[X]] begin [3, 5] steps [-2, -4] : tensor<4x8xf32> -> tensor<2x2xf32>
  %0 = tile.extract %x begin [3, 1] steps [-2, 2] : tensor<4x8xf32> -> tensor<2x4xf32>
  %1 = tile.extract %0 begin [0, 2] steps [1, -2] : tensor<2x4xf32> -> tensor<2x2xf32>
  %2 = tile.extract %x begin [0, 0] steps [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  // CHECK-DAG: %[[SPLAT:.*]] = tile.splat %[[S]] : f32 -> tensor<1x4xf32>
  %3 = tile.splat %s : f32 -> tensor<4x8xf32>
  %4 = tile.extract %3 begin [3, 7] steps [1, -1] : tensor<4x8xf32> -> tensor<1x4xf32>
  // CHECK-DAG: %[[CONSTANT:.*]] = arith.constant dense<1.000000e+00> : tensor<2x2xf32>
  %5 = arith.constant dense<1.0> : tensor<4x8xf32>
  %6 = tile.extract %5 begin [0, 0] steps [1, 1] : tensor<4x8xf32> -> tensor<2x2xf32>
  // CHECK: return %[[PART]], %[[X]], %[[SPLAT]], %[[CONSTANT]]
  return %1, %2, %4, %6 : tensor<2x2xf32>, tensor<4x8xf32>, tensor<1x4xf32>, tensor<2x2xf32>
}
