// A tile copied from a view with fewer columns: the mask of its loads is constant, and it compiles for every CPU.
// RUN: kilnc %s --target=x86-64-v3 --emit=asm | FileCheck %s
// RUN: kilnc %s --target=x86-64-v4 --emit=asm | FileCheck %s
// CHECK-LABEL: copy:
// CHECK: retq
func.func @copy(%x: memref<?x4xi64, strided<[?, 1]>>, %y: memref<15xi64, strided<[1]>>) attributes {tile.disjoint = [array<i64: 0, 1>], tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] : memref<?x4xi64, strided<[?, 1]>> -> tensor<1x15xi64>
  %1 = tile.reshape %0 : tensor<1x15xi64> -> tensor<15xi64>
  tile.store %1, %y[%c0] : tensor<15xi64>, memref<15xi64, strided<[1]>>
  return
}
