// RUN: kiln-opt %s --cpu-split-products | FileCheck %s

// A precision that permits the sum of two bf16 for an f32: three products. The small ones are used only if they are
// finite.
// CHECK-LABEL: func @three
// CHECK-DAG: %[[AL:.*]] = arith.truncf %arg0 : tensor<8x16xf32> to tensor<8x16xbf16>
// CHECK-DAG: %[[AW:.*]] = arith.extf %[[AL]] : tensor<8x16xbf16> to tensor<8x16xf32>
// CHECK-DAG: %[[AR:.*]] = arith.subf %arg0, %[[AW]] : tensor<8x16xf32>
// CHECK-DAG: %[[AS:.*]] = arith.truncf %[[AR]] : tensor<8x16xf32> to tensor<8x16xbf16>
// CHECK: %[[TL:.*]] = arith.truncf %arg1 : tensor<32x16xf32> to tensor<32x16xbf16>
// CHECK: %[[TS:.*]] = arith.truncf %{{.*}} : tensor<32x16xf32> to tensor<32x16xbf16>
// CHECK: %[[BL:.*]] = tile.transpose %[[TL]] [1, 0]
// CHECK: %[[BS:.*]] = tile.transpose %[[TS]] [1, 0]
// CHECK: %[[FIRST:.*]] = tile.dot %[[AS]], %[[BL]], %{{.*}} : tensor<8x16xbf16>
// CHECK: %[[SMALL:.*]] = tile.dot %[[AL]], %[[BS]], %[[FIRST]] : tensor<8x16xbf16>
// CHECK: %[[LARGE:.*]] = tile.dot %[[AL]], %[[BL]], %arg2 : tensor<8x16xbf16>
// CHECK: %[[REST:.*]] = arith.select %{{.*}}, %[[SMALL]],
// CHECK: arith.addf %[[LARGE]], %[[REST]]
func.func @three(%a: tensor<8x16xf32>, %b: tensor<32x16xf32>, %c: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %t = tile.transpose %b [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  %0 = tile.dot %a, %t, %c precision bf16x3 : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// Other precisions and types are unchanged, and so are odd depths.
// CHECK-LABEL: func @others
// CHECK-NOT: bf16>
// CHECK: return
func.func @others(%a: tensor<8x8xf32>, %b: tensor<7x7xf32>, %c: tensor<8x8xf64>)
    -> (tensor<8x8xf32>, tensor<7x7xf32>, tensor<8x8xf64>) {
  %0 = tile.dot %a, %a, %a precision tf32x3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  %1 = tile.dot %b, %b, %b precision bf16x3 : tensor<7x7xf32>, tensor<7x7xf32>, tensor<7x7xf32>
  %2 = tile.dot %c, %c, %c precision bf16x3 : tensor<8x8xf64>, tensor<8x8xf64>, tensor<8x8xf64>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<7x7xf32>, tensor<8x8xf64>
}
