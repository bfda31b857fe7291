// A sort along an axis of extent 1 is removed.
// RUN: kiln-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @one_element
// CHECK-SAME: (%[[X:.*]]: tensor<4x1xf32>, %[[Y:.*]]: tensor<1xi64>, %[[Z:.*]]: tensor<1xi32>)
func.func @one_element(%x: tensor<4x1xf32>, %y: tensor<1xi64>, %z: tensor<1xi32>)
    -> (tensor<4x1xf32>, tensor<4x1xi32>, tensor<1xi64>, tensor<1xi32>) {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0> : tensor<4x1xi32>
  %0:2 = tile.sort %x axis 1 descending : tensor<4x1xf32> -> tensor<4x1xf32>, tensor<4x1xi32>
  %1:2 = tile.sort %y by %z axis 0 : tensor<1xi64>, tensor<1xi32> -> tensor<1xi64>, tensor<1xi32>
  // CHECK: return %[[X]], %[[ZERO]], %[[Y]], %[[Z]]
  return %0#0, %0#1, %1#0, %1#1 : tensor<4x1xf32>, tensor<4x1xi32>, tensor<1xi64>, tensor<1xi32>
}

// CHECK-LABEL: @several_elements
func.func @several_elements(%x: tensor<1x4xf32>) -> tensor<1x4xf32> {
  // CHECK: tile.sort
  %0:2 = tile.sort %x axis 1 : tensor<1x4xf32> -> tensor<1x4xf32>, tensor<1x4xi32>
  return %0#0 : tensor<1x4xf32>
}
