// RUN: kilnc %s --target=x86-64-v3 --emit=llvm | FileCheck %s

// The rest of a row is accessed by shorter vectors on a CPU where a mask takes longer than these. Stores of f32 are
// such accesses. Bytes, for which AVX2 has no masks, are loaded so, too.
// CHECK-NOT: masked.store
// CHECK: store <2 x float>
// CHECK: store float
// CHECK-NOT: masked.
// CHECK: load <4 x i8>
// CHECK: store <4 x i8>
// CHECK-NOT: call {{.*}}masked.
func.func @rests(%x: memref<8x59xf32, strided<[64, 1]>>, %y: memref<8x59xf32, strided<[64, 1]>>,
                 %a: memref<8x61xi8, strided<[64, 1]>>, %b: memref<8x61xi8, strided<[64, 1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 2, 3>, array<i64: 1, 2>]} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] : memref<8x59xf32, strided<[64, 1]>> -> tensor<8x59xf32>
  tile.store %0, %y[%c0, %c0] : tensor<8x59xf32>, memref<8x59xf32, strided<[64, 1]>>
  %1 = tile.load %a[%c0, %c0] : memref<8x61xi8, strided<[64, 1]>> -> tensor<8x61xi8>
  tile.store %1, %b[%c0, %c0] : tensor<8x61xi8>, memref<8x61xi8, strided<[64, 1]>>
  return
}
