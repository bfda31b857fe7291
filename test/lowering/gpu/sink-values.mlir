// One element is computed and stored before the next begins. A thread holds two, and stores the first before it
// computes anything of the second.
// RUN: kilnc %s --target=sm_80 --emit=ptx | FileCheck %s

// CHECK-LABEL: .entry chain
// CHECK: ld.global
// CHECK: ld.global
// CHECK: mul.rn.f32
// CHECK-NOT: mul.rn.f32
// CHECK: sqrt.rn.f32
// CHECK-NOT: mul.rn.f32
// CHECK: st.global
// CHECK: mul.rn.f32
// CHECK: sqrt.rn.f32
// CHECK: st.global
func.func @chain(%x: memref<256xf32, strided<[2]>>, %y: memref<256xf32, strided<[2]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %a = tile.load %x[%c0] : memref<256xf32, strided<[2]>> -> tensor<256xf32>
  %0 = arith.mulf %a, %a : tensor<256xf32>
  %1 = math.sqrt %0 : tensor<256xf32>
  tile.store %1, %y[%c0] : tensor<256xf32>, memref<256xf32, strided<[2]>>
  return
}

// A product reads its operands from shared memory step by step, between its instructions. No read moves across a
// barrier.
// CHECK-LABEL: .entry product
// CHECK: bar
// CHECK: ld.shared
// CHECK: mma.sync
// CHECK: ld.shared
// CHECK: mma.sync
func.func @product(%a: memref<64x64xbf16>, %b: memref<64x64xbf16>, %c: memref<64x64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %x = tile.load %a[%c0, %c0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %y = tile.load %b[%c0, %c0] : memref<64x64xbf16> -> tensor<64x64xbf16>
  %0 = tile.dot %x, %y, %zero : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %0, %c[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32>
  return
}
