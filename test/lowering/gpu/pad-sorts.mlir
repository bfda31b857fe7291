// Sorts are whole, and of powers of two: the greatest number stands behind the elements, and the first are taken.
// RUN: kiln-opt %s --split-input-file --gpu-pad-sorts | FileCheck %s

// CHECK-LABEL: func @few
// CHECK-DAG: arith.constant dense<2147483647> : tensor<1x128x1xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x128x1xi1>, tensor<1x128x1xi32>
// CHECK: %[[SORTED:.*]], %{{.*}} = tile.sort %{{.*}} axis 0 : tensor<128xi32> -> tensor<128xi32>, tensor<128xi32>
// CHECK: tile.extract %[[SORTED]] begin [0] steps [1] : tensor<128xi32> -> tensor<8xi32>
func.func @few(%x: tensor<100xi32>) -> tensor<8xi32> {
  %0:2 = tile.sort %x axis 0 : tensor<100xi32> -> tensor<8xi32>, tensor<8xi32>
  return %0#0 : tensor<8xi32>
}

// -----

// What goes with the elements is padded, too.
// CHECK-LABEL: func @ties
// CHECK: tile.sort %{{.*}} by %{{.*}} axis 1 : tensor<2x4x5xi64>, tensor<2x4x5xi32> -> tensor<2x4x5xi64>, tensor<2x4x5xi32>
// CHECK: tile.extract %{{.*}} begin [0, 0, 0] steps [1, 1, 1] : tensor<2x4x5xi32> -> tensor<2x3x5xi32>
func.func @ties(%x: tensor<2x3x5xi64>, %y: tensor<2x3x5xi32>) -> tensor<2x3x5xi32> {
  %0:2 = tile.sort %x by %y axis 1 : tensor<2x3x5xi64>, tensor<2x3x5xi32> -> tensor<2x3x5xi64>, tensor<2x3x5xi32>
  return %0#1 : tensor<2x3x5xi32>
}

// -----

// CHECK-LABEL: func @whole
// CHECK-NEXT: tile.sort
// CHECK-NEXT: return
func.func @whole(%x: tensor<64xi32>) -> tensor<64xi32> {
  %0:2 = tile.sort %x axis 0 : tensor<64xi32> -> tensor<64xi32>, tensor<64xi32>
  return %0#0 : tensor<64xi32>
}
