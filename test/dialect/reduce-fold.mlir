// A reduction along an axis of extent 1 is removed.
// RUN: kiln-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @one_element
// CHECK-SAME: (%[[X:.*]]: tensor<4x1xf32>, %[[Y:.*]]: tensor<1xi32>)
func.func @one_element(%x: tensor<4x1xf32>, %y: tensor<1xi32>) -> (tensor<4xf32>, i32, tensor<4xi32>) {
  // CHECK-DAG: %[[INDEX:.*]] = arith.constant dense<0> : tensor<4xi32>
  // CHECK-DAG: %[[SUM:.*]] = tile.reshape %[[X]] : tensor<4x1xf32> -> tensor<4xf32>
  %0 = tile.reduce sum %x axis 1 : tensor<4x1xf32> -> tensor<4xf32>
  // CHECK-DAG: %[[MAX:.*]] = tile.reshape %[[Y]] : tensor<1xi32> -> i32
  %1 = tile.reduce max %y axis 0 : tensor<1xi32> -> i32
  %2 = tile.reduce argmax %x axis 1 : tensor<4x1xf32> -> tensor<4xi32>
  // CHECK: return %[[SUM]], %[[MAX]], %[[INDEX]]
  return %0, %1, %2 : tensor<4xf32>, i32, tensor<4xi32>
}

// CHECK-LABEL: @several_elements
func.func @several_elements(%x: tensor<1x4xf32>) -> tensor<1xf32> {
  // CHECK: tile.reduce sum
  %0 = tile.reduce sum %x axis 1 : tensor<1x4xf32> -> tensor<1xf32>
  return %0 : tensor<1xf32>
}

// CHECK-LABEL: @scan_one_element
// CHECK-SAME: (%[[X:.*]]: tensor<4x1xf32>)
func.func @scan_one_element(%x: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %0 = tile.scan sum %x axis 1 reverse : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // CHECK: return %[[X]]
  return %0 : tensor<4x1xf32>
}

// CHECK-LABEL: @scan_several_elements
func.func @scan_several_elements(%x: tensor<4x1xf32>) -> tensor<4x1xf32> {
  // CHECK: tile.scan sum
  %0 = tile.scan sum %x axis 0 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  return %0 : tensor<4x1xf32>
}
