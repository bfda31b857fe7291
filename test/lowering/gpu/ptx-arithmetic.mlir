// Operations whose rounding the language defines are unchanged in PTX. A product and a sum are two instructions, a
// fused multiply-add is one, and quotients and roots are rounded to nearest.
// RUN: kilnc %s --target=sm_80 --emit=ptx | FileCheck %s --implicit-check-not='{{(add|sub|mul|fma)(.ftz)?.b?f(16|32)}}' --implicit-check-not=.approx

// CHECK: mul.rn.f32 %[[PRODUCT:r[0-9]+]],
// CHECK: add.rn.f32 %{{r[0-9]+}}, {{.*}}%[[PRODUCT]]
// CHECK: fma.rn.f32
// CHECK: div.rn.f32
// CHECK: sqrt.rn.f32
// CHECK-NOT: {{.*}}.rn.f32
func.func @arithmetic(%x: memref<128xf32>, %y: memref<128xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %a = tile.load %x[%c0] : memref<128xf32> -> tensor<128xf32>
  %b = tile.load %y[%c0] : memref<128xf32> -> tensor<128xf32>
  %0 = arith.mulf %a, %b : tensor<128xf32>
  %1 = arith.addf %0, %a : tensor<128xf32>
  %2 = math.fma %1, %b, %a : tensor<128xf32>
  %3 = arith.divf %2, %b : tensor<128xf32>
  %4 = math.sqrt %3 : tensor<128xf32>
  tile.store %4, %x[%c0] : tensor<128xf32>, memref<128xf32>
  return
}

// Narrow floats have instructions that round once. On sm_80, a sum of bf16 is an FMA with 1.
// CHECK-LABEL: .entry narrow
// CHECK: add.rn.f16
// CHECK: fma.rn.f16
// CHECK: fma.rn.bf16
// CHECK: fma.rn.bf16
// CHECK-NOT: {{.*}}.rn.{{f32|f64}}
func.func @narrow(%x: memref<128xf16>, %y: memref<128xbf16>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %a = tile.load %x[%c0] : memref<128xf16> -> tensor<128xf16>
  %b = tile.load %y[%c0] : memref<128xbf16> -> tensor<128xbf16>
  %0 = arith.addf %a, %a : tensor<128xf16>
  %1 = math.fma %0, %a, %a : tensor<128xf16>
  %2 = arith.addf %b, %b : tensor<128xbf16>
  %3 = math.fma %2, %b, %b : tensor<128xbf16>
  tile.store %1, %x[%c0] : tensor<128xf16>, memref<128xf16>
  tile.store %3, %y[%c0] : tensor<128xbf16>, memref<128xbf16>
  return
}

// Numbers that are stored and used further are rounded in pairs, as those that are only stored.
// CHECK-LABEL: .entry rounded
// CHECK: cvt.rn.bf16x2.f32
// CHECK-NOT: cvt.rn.{{b?}}f16.f32
// CHECK: cvt.rn.f16x2.f32
// CHECK-NOT: cvt.rn.{{b?}}f16.f32
func.func @rounded(%x: memref<256xf32> {tile.align = 8 : i64}, %y: memref<256xbf16> {tile.align = 4 : i64},
                  %z: memref<256xf16> {tile.align = 4 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<256xf32> -> tensor<256xf32>
  %1 = arith.truncf %0 : tensor<256xf32> to tensor<256xbf16>
  tile.store %1, %y[%c0] : tensor<256xbf16>, memref<256xbf16>
  %2 = arith.extf %1 : tensor<256xbf16> to tensor<256xf32>
  %3 = math.sqrt %2 : tensor<256xf32>
  %4 = arith.truncf %3 : tensor<256xf32> to tensor<256xf16>
  tile.store %4, %z[%c0] : tensor<256xf16>, memref<256xf16>
  %5 = arith.extf %4 : tensor<256xf16> to tensor<256xf32>
  tile.store %5, %x[%c0] : tensor<256xf32>, memref<256xf32>
  return
}
