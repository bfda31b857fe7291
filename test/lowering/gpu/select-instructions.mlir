// Tensor cores compute a product if they have the precision that it requires, and if the accumulator fills fragments.
// Other products are outer products in registers.
// RUN: kiln-opt %s --gpu-select-instructions | FileCheck %s

// Products of bf16 and f16 have the layout of mma.sync: two columns in a register, four lanes for eight columns.
// CHECK-LABEL: func @narrow
// CHECK-COUNT-2: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:8 {{.*}}], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d1:8]>, simt.mma}
func.func @narrow(%a: tensor<64x32xbf16>, %b: tensor<32x64xbf16>, %c: tensor<64x32xf16>, %d: tensor<32x64xf16>,
                  %acc: tensor<64x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
  %1 = tile.dot %c, %d, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
  return
}

// If the rows of a product are reduced, as attention's scores are, each stays in one warp, here 16 rows a warp. So do
// those of the next product, so that the weights stay in registers as its operand.
// CHECK-LABEL: func @scores
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, {{.*}}warp [d0:16 d0:32]>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x32, {{.*}}warp [d0:16 d0:32]>, simt.mma}
func.func @scores(%q: tensor<64x32xbf16>, %k: tensor<32x64xbf16>, %v: tensor<64x32xbf16>, %zero: tensor<64x64xf32>,
                  %acc: tensor<64x32xf32>) attributes {tile.kernel} {
  %0 = tile.dot %q, %k, %zero : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
  %1 = math.exp2 %0 : tensor<64x64xf32>
  %2 = tile.reduce sum %1 axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  %3 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
  %4 = tile.dot %3, %v, %acc : tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x32xf32>
  return
}

// The left operand of another product is also distributed by rows, as attention's gradients are, reduced or not. A
// right operand would not stay in registers.
// CHECK-LABEL: func @gradients
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, {{.*}}warp [d0:16 d0:32]>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x32, {{.*}}warp [d0:16 d0:32]>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<32x64, {{.*}}warp [d0:16 d1:8]>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, {{.*}}warp [d0:16 d1:8]>, simt.mma}
func.func @gradients(%g: tensor<64x32xbf16>, %v: tensor<32x64xbf16>, %k: tensor<64x32xbf16>, %w: tensor<32x32xbf16>,
                     %zero: tensor<64x64xf32>, %flat: tensor<32x64xf32>, %acc: tensor<64x32xf32>) attributes {tile.kernel} {
  %0 = tile.dot %g, %v, %zero : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
  %1 = arith.mulf %0, %0 : tensor<64x64xf32>
  %2 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
  %3 = tile.dot %2, %k, %acc : tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x32xf32>
  %4 = tile.dot %w, %v, %flat : tensor<32x32xbf16>, tensor<32x64xbf16>, tensor<32x64xf32>
  %5 = arith.truncf %4 : tensor<32x64xf32> to tensor<32x64xbf16>
  %6 = tile.dot %g, %5, %zero : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
  return
}

// Products of i8, in i32.
// CHECK-LABEL: func @bytes
// CHECK: tile.dot {{.*}}simt.mma
func.func @bytes(%a: tensor<64x32xi8>, %b: tensor<32x64xi8>, %acc: tensor<64x64xi32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc : tensor<64x32xi8>, tensor<32x64xi8>, tensor<64x64xi32>
  return
}

// 8-bit floats are multiplied by an instruction for them, and as bf16 if none fits.
// CHECK-LABEL: func @byteFloats
// CHECK: tile.dot %arg0, %arg1, {{.*}}simt.mma, tile.factors = [f8E4M3FN, f8E5M2]} : tensor<64x32xi8>, tensor<32x64xi8>
// CHECK: arith.mulf {{.*}} : tensor<16x64xf32>
// CHECK: tile.dot {{.*}}simt.mma} : tensor<64x16xbf16>, tensor<16x64xbf16>
// CHECK: return
func.func @byteFloats(%a: tensor<64x32xi8>, %b: tensor<32x64xi8>, %c: tensor<64x16xi8>, %d: tensor<16x64xi8>,
                      %acc: tensor<64x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc {tile.factors = [f8E4M3FN, f8E5M2]} : tensor<64x32xi8>, tensor<32x64xi8>, tensor<64x64xf32>
  %1 = tile.dot %c, %d, %acc {tile.factors = [f8E5M2, f8E4M3FN]} : tensor<64x16xi8>, tensor<16x64xi8>, tensor<64x64xf32>
  return
}

// f32 operands are rounded for tensor cores only if the product permits it. The default, `ieee`, uses outer products,
// up to 8 rows by 4 columns a thread.
// CHECK-LABEL: func @precision
// CHECK: tile.dot {{.*}} precision tf32 {{.*}}simt.mma
// CHECK-NOT: simt.mma
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d1:2 d0:1 d0:2 d0:4], lane [d1:4 d1:8 d1:16 d1:32 d0:8], warp [d0:16 d0:32]>} :
// CHECK: return
func.func @precision(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %acc: tensor<64x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  %1 = tile.dot %a, %b, %acc : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  return
}

// Operands that are sums of two tf32 or bf16 numbers have the layout of instructions for these.
// CHECK-LABEL: func @split
// CHECK: tile.dot {{.*}} precision tf32x3 {{.*}}simt.mma
// CHECK: tile.dot {{.*}} precision bf16x3 {{.*}}simt.mma
// CHECK: return
func.func @split(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %acc: tensor<64x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc precision tf32x3 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  %1 = tile.dot %a, %b, %acc precision bf16x3 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  return
}
// A sum of 8 terms is too short for instructions that multiply bf16, and is computed as `ieee`.
// CHECK-LABEL: func @short
// CHECK-NOT: simt.mma
// CHECK: return
func.func @short(%a: tensor<64x8xf32>, %b: tensor<8x64xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32>
    attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc precision bf16x3 : tensor<64x8xf32>, tensor<8x64xf32>, tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// Tensor cores are not used for f64.
// CHECK-LABEL: func @wide
// CHECK-NOT: simt.mma
// CHECK: return
func.func @wide(%a: tensor<64x32xf64>, %b: tensor<32x64xf64>, %acc: tensor<64x64xf64>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc : tensor<64x32xf64>, tensor<32x64xf64>, tensor<64x64xf64>
  return
}

// A lane holds adjacent columns of B: an instruction has every fourth column of f32 and every second of i8. So it is
// with the rows of a transposed A, as far as a warp has them. Along K, and for 16 bits, ldmatrix reads operands
// unpermuted. Operands split into bf16 are read one by one.
// CHECK-LABEL: func @neighbours
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:4 d0:8 d1:1 d1:2 {{.*}}], lane [d1:8 d1:16 {{.*}}>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:16 {{.*}}d0:1], lane [d1:2 d1:4 d0:2 d0:4 d0:8], {{.*}}>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:2 d0:8 d1:1 {{.*}}], lane [d1:4 d1:8 {{.*}}>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:8 {{.*}}], lane [d1:2 d1:4 {{.*}}>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:8 {{.*}}], lane [d1:2 d1:4 {{.*}}>, simt.mma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:8 {{.*}}], lane [d1:2 d1:4 {{.*}}>, simt.mma}
func.func @neighbours(%a: memref<?x?xf32, strided<[?, 1]>>, %b: memref<?x?xi8, strided<[?, 1]>>,
                      %c: memref<?x?xbf16, strided<[?, 1]>>, %k: i64, %acc: tensor<64x64xf32>,
                      %sums: tensor<64x64xi32>) attributes {tile.kernel} {
  %0 = tile.load %a[%k, %k] : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32>
  %1 = tile.load %b[%k, %k] : memref<?x?xi8, strided<[?, 1]>> -> tensor<64x64xi8>
  %2 = tile.load %c[%k, %k] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x64xbf16>
  %3 = tile.transpose %0 [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %4 = tile.dot %0, %0, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %5 = tile.dot %3, %3, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %6 = tile.dot %1, %1, %sums : tensor<64x64xi8>, tensor<64x64xi8>, tensor<64x64xi32>
  %7 = tile.dot %0, %3, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %8 = tile.dot %2, %2, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  %9 = tile.dot %0, %0, %acc precision bf16x3 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  return
}

// Adjacent bytes of B that belong to different instructions are permuted in registers. Of distributions with equal
// reads, warps use the one with fewer columns each, unless A is permuted, too. Along K neither is.
// CHECK-LABEL: func @permutedBytes
// CHECK: tile.dot {{.*}}warp [d0:16 d1:16]>, simt.mma}
// CHECK: tile.dot {{.*}}warp [d0:16 d0:32]>, simt.mma}
// CHECK: tile.dot {{.*}}warp [d0:32 d0:64]>, simt.mma}
func.func @permutedBytes(%a: memref<?x?xi8, strided<[?, 1]>>, %k: i64, %acc: tensor<128x64xi32>) attributes {tile.kernel} {
  %0 = tile.load %a[%k, %k] : memref<?x?xi8, strided<[?, 1]>> -> tensor<128x64xi8>
  %1 = tile.load %a[%k, %k] : memref<?x?xi8, strided<[?, 1]>> -> tensor<64x64xi8>
  %2 = tile.load %a[%k, %k] : memref<?x?xi8, strided<[?, 1]>> -> tensor<64x128xi8>
  %3 = tile.transpose %1 [1, 0] : tensor<64x64xi8> -> tensor<64x64xi8>
  %4 = tile.transpose %2 [1, 0] : tensor<64x128xi8> -> tensor<128x64xi8>
  %5 = tile.dot %0, %1, %acc : tensor<128x64xi8>, tensor<64x64xi8>, tensor<128x64xi32>
  %6 = tile.dot %0, %3, %acc : tensor<128x64xi8>, tensor<64x64xi8>, tensor<128x64xi32>
  %7 = tile.dot %4, %1, %acc : tensor<128x64xi8>, tensor<64x64xi8>, tensor<128x64xi32>
  return
}

// If an f32 left operand is another product's accumulator, its terms keep that order. 16-bit operands always fit.
// CHECK-LABEL: func @chained
// CHECK: tile.dot {{.*}} simt.mma}
// CHECK: tile.dot {{.*}} {simt.chained, {{.*}} simt.mma}
// CHECK-NOT: simt.chained
// CHECK: return
func.func @chained(%q: tensor<64x64xf32>, %v: tensor<64x64xf32>, %w: tensor<64x64xbf16>,
                   %acc: tensor<64x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %q, %v, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %1 = math.exp2 %0 : tensor<64x64xf32>
  %2 = tile.dot %1, %v, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %3 = tile.dot %v, %1, %acc precision tf32 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  %4 = arith.truncf %1 : tensor<64x64xf32> to tensor<64x64xbf16>
  %5 = tile.dot %4, %w, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  return
}

// Products with fewer rows, columns or terms than a fragment has: 16, 8, and 16 of bf16 or 32 of i8.
// CHECK-LABEL: func @small
// CHECK-COUNT-4: tile.dot {{.*}} {simt.layout = {{[^}]*}}>} :
// CHECK-NOT: simt.mma
// CHECK: return
func.func @small(%a: tensor<8x32xbf16>, %b: tensor<32x64xbf16>, %fewRows: tensor<8x64xf32>,
                 %c: tensor<64x32xbf16>, %d: tensor<32x4xbf16>, %fewColumns: tensor<64x4xf32>,
                 %e: tensor<64x8xbf16>, %f: tensor<8x64xbf16>, %acc: tensor<64x64xf32>,
                 %g: tensor<64x16xi8>, %h: tensor<16x64xi8>, %sums: tensor<64x64xi32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %fewRows : tensor<8x32xbf16>, tensor<32x64xbf16>, tensor<8x64xf32>
  %1 = tile.dot %c, %d, %fewColumns : tensor<64x32xbf16>, tensor<32x4xbf16>, tensor<64x4xf32>
  %2 = tile.dot %e, %f, %acc : tensor<64x8xbf16>, tensor<8x64xbf16>, tensor<64x64xf32>
  %3 = tile.dot %g, %h, %sums : tensor<64x16xi8>, tensor<16x64xi8>, tensor<64x64xi32>
  return
}

// If an extent is an odd number of fragments, the layout repeats.
// CHECK-LABEL: func @odd
// CHECK: tile.dot {{.*}}<48x64, rep 3x1, {{.*}}simt.mma
func.func @odd(%a: tensor<48x48xbf16>, %b: tensor<48x64xbf16>, %acc: tensor<48x64xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc : tensor<48x48xbf16>, tensor<48x64xbf16>, tensor<48x64xf32>
  return
}

// If there are fewer fragments than warps, several warps compute equal fragments.
// CHECK-LABEL: func @few_fragments
// CHECK: tile.dot {{.*}} warp [d1:8 *]>, simt.mma
func.func @few_fragments(%a: tensor<16x16xbf16>, %b: tensor<16x16xbf16>, %acc: tensor<16x16xf32>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %acc : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>
  return
}

// A function that is not a kernel stays unchanged.
// CHECK-LABEL: func @other
// CHECK-NOT: simt
// CHECK: return
func.func @other(%a: tensor<64x64xf32>) {
  %0 = tile.dot %a, %a, %a : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
  return
}
