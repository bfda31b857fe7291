// RUN: kiln-opt %s --cpu-widen-dots | FileCheck %s

// CHECK-LABEL: func @narrow
// CHECK: %[[A:.*]] = arith.extf %{{.*}} : tensor<8x16xbf16> to tensor<8x16xf32>
// CHECK: %[[B:.*]] = arith.extf %{{.*}} : tensor<16x32xbf16> to tensor<16x32xf32>
// CHECK: tile.dot %[[A]], %[[B]], %{{.*}} : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
func.func @narrow(%a: tensor<8x16xbf16>, %b: tensor<16x32xbf16>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %0 = tile.dot %a, %b, %c : tensor<8x16xbf16>, tensor<16x32xbf16>, tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// CHECK-LABEL: func @integers
// CHECK-COUNT-2: arith.extsi {{.*}} to tensor<8x8xi32>
// CHECK: tile.dot {{.*}} : tensor<8x8xi32>, tensor<8x8xi32>, tensor<8x8xi32>
func.func @integers(%a: tensor<8x8xi8>, %c: tensor<8x8xi32>) -> tensor<8x8xi32> {
  %0 = tile.dot %a, %a, %c : tensor<8x8xi8>, tensor<8x8xi8>, tensor<8x8xi32>
  return %0 : tensor<8x8xi32>
}

// Operands of the sums' own type stay.
// CHECK-LABEL: func @wide
// CHECK-NOT: arith.ext
// CHECK: return
func.func @wide(%a: tensor<8x8xf64>) -> tensor<8x8xf64> {
  %0 = tile.dot %a, %a, %a : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>
  return %0 : tensor<8x8xf64>
}
