// RUN: kilnc %s --target=znver4 --emit=llvm | FileCheck %s --check-prefix=WORDS
// RUN: kilnc %s --target=znver4 --emit=asm | FileCheck %s --check-prefix=ASM
// RUN: kilnc %s --target=skylake-avx512 --emit=llvm | FileCheck %s --check-prefix=SHIFT
// RUN: kilnc %s --target=x86-64-v3 --emit=llvm | FileCheck %s --check-prefix=BYTES

// bf16 becomes f32 by one permutation. The second value is not loaded from memory, and AVX2 needs several instructions.
// WORDS-NOT: shl {{.*}}<16 x i32>
// WORDS-COUNT-2: call <32 x i16> @llvm.x86.avx512.permvar.hi.512
// WORDS-NOT: shl {{.*}}<16 x i32>
// ASM-COUNT-2: vpermw {{.*}} {z}
// SHIFT-NOT: permvar
// SHIFT-COUNT-2: shl {{.*}}<16 x i32>
// BYTES: %[[PAIR:.*]] = load <2 x i64>
// BYTES: %[[TWICE:.*]] = shufflevector <2 x i64> %[[PAIR]], <2 x i64> poison, <4 x i32> <i32 0, i32 1, i32 0, i32 1>
// BYTES: call <32 x i8> @llvm.x86.avx2.pshuf.b
// BYTES: shl {{.*}}<8 x i32> {{.*}} splat (i32 16)
func.func @squares(%x: memref<64xbf16>, %y: memref<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<64xbf16> -> tensor<64xbf16>
  %1 = arith.extf %0 : tensor<64xbf16> to tensor<64xf32>
  %2 = arith.mulf %1, %1 : tensor<64xf32>
  %3 = arith.truncf %2 : tensor<64xf32> to tensor<64xbf16>
  %4 = arith.extf %3 : tensor<64xbf16> to tensor<64xf32>
  tile.store %4, %y[%c0] : tensor<64xf32>, memref<64xf32>
  return
}
