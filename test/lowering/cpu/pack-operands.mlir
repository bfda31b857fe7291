// RUN: kiln-opt %s --cpu-pack-operands | FileCheck %s
// RUN: kiln-opt %s --cpu-pack-operands='vector-bits=256 registers=16' | FileCheck %s --check-prefix=AVX2

!t = tensor<16x16xf32>
!v = memref<?x?xf32, strided<[?, 1]>>

// Each placement of a left operand. Eight rows fit vectors of 16 lanes, and six do not fit those of 8.
// CHECK-LABEL: func @left
// CHECK: tile.dot {{.*}} {cpu.left = "view"}
// CHECK: tile.dot {{.*}} {cpu.left = "scratch"}
// CHECK: tile.dot {{.*}} {cpu.left = "panels"}
// CHECK: tile.dot {{.*}} {cpu.left = "copy"}
// CHECK: tile.dot {{.*}} {cpu.left = "scratch"}
// AVX2-LABEL: func @left
// AVX2: tile.dot {{.*}} {cpu.left = "view"}
// AVX2: tile.dot {{.*}} {cpu.left = "scratch"}
// AVX2: tile.dot {{.*}} {cpu.left = "copy"}
func.func @left(%a: !v, %b: !t, %c: !v) {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %y = tile.load %a[%c0, %c0] {cpu.scratch} : !v -> !t
  %transposed = tile.transpose %x [1, 0] : !t -> !t
  %padded = tile.load %a[%c0, %c0] pad neg_inf {cpu.view} : !v -> !t
  %0 = tile.dot %x, %b, %b : !t, !t, !t
  %1 = tile.dot %y, %b, %0 : !t, !t, !t
  %2 = tile.dot %transposed, %b, %1 : !t, !t, !t
  %3 = tile.dot %padded, %b, %2 : !t, !t, !t
  %4 = tile.dot %3, %b, %3 : !t, !t, !t
  tile.store %4, %c[%c0, %c0] : !t, !v
  return
}

// A right operand that is contiguous along k, and one that is transposed twice.
// CHECK-LABEL: func @right
// CHECK: tile.dot {{.*}} cpu.right_transposed
// CHECK-NOT: cpu.right_transposed
// CHECK: return
func.func @right(%a: !v, %b: !t, %c: !v) {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  %transposed = tile.transpose %x [1, 0] : !t -> !t
  %scaled = arith.negf %transposed : !t
  %back = tile.transpose %scaled [1, 0] : !t -> !t
  %0 = tile.dot %b, %scaled, %b : !t, !t, !t
  %1 = tile.dot %b, %back, %0 : !t, !t, !t
  tile.store %1, %c[%c0, %c0] : !t, !v
  return
}

// Operands are packed before the loops that do not change them: two loops, one, none.
// CHECK-LABEL: func @before
// CHECK: tile.dot {{.*}} cpu.right_before = 2
// CHECK: tile.dot {{.*}} cpu.right_before = 1
// CHECK: tile.dot {{.*}} {cpu.left = "view"}
func.func @before(%a: !v, %c: !v, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i64
  %zero = arith.constant dense<0.0> : !t
  %same = tile.load %a[%c0, %c0] {cpu.view} : !v -> !t
  scf.for %i = %c0 to %n step %c16 : i64 {
    %row = tile.load %a[%i, %c0] {cpu.view} : !v -> !t
    scf.for %j = %c0 to %n step %c16 : i64 {
      %x = tile.load %a[%i, %j] {cpu.view} : !v -> !t
      %0 = tile.dot %x, %same, %zero : !t, !t, !t
      %1 = tile.dot %x, %row, %0 : !t, !t, !t
      %2 = tile.dot %x, %x, %1 : !t, !t, !t
      tile.store %2, %c[%i, %j] : !t, !v
    }
  }
  return
}

// A left operand of words is read in its view if it is stored by rows. If it is stored by columns, it is packed into
// panels. If a row's elements are strided, it is copied.
// CHECK-LABEL: func @words
// CHECK: tile.dot {{.*}} {cpu.left = "view", cpu.unit
// CHECK: tile.dot {{.*}} {cpu.left = "panels", cpu.unit
// CHECK: tile.dot {{.*}} {cpu.left = "panels", cpu.unit
// CHECK: tile.dot {{.*}} {cpu.left = "copy", cpu.unit
func.func @words(%a: memref<?x?xbf16, strided<[?, 1]>>, %apart: memref<?x?xbf16, strided<[?, 2]>>,
                 %b: tensor<16x16xbf16>, %c: !v) {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : !t
  %x = tile.load %a[%c0, %c0] {cpu.view} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<16x16xbf16>
  %y = tile.load %a[%c0, %c0] {cpu.scratch} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<16x16xbf16>
  %z = tile.load %apart[%c0, %c0] {cpu.view} : memref<?x?xbf16, strided<[?, 2]>> -> tensor<16x16xbf16>
  %xt = tile.transpose %x [1, 0] : tensor<16x16xbf16> -> tensor<16x16xbf16>
  %yt = tile.transpose %y [1, 0] : tensor<16x16xbf16> -> tensor<16x16xbf16>
  %0 = tile.dot %x, %b, %zero {cpu.unit = "bf16_pairs"} : tensor<16x16xbf16>, tensor<16x16xbf16>, !t
  %1 = tile.dot %xt, %b, %0 {cpu.unit = "bf16_pairs"} : tensor<16x16xbf16>, tensor<16x16xbf16>, !t
  %2 = tile.dot %yt, %b, %1 {cpu.unit = "bf16_pairs"} : tensor<16x16xbf16>, tensor<16x16xbf16>, !t
  %3 = tile.dot %z, %b, %2 {cpu.unit = "bf16_pairs"} : tensor<16x16xbf16>, tensor<16x16xbf16>, !t
  tile.store %3, %c[%c0, %c0] : !t, !v
  return
}

// A left operand of AMX tiles is read in place if it consists of whole blocks.
// CHECK-LABEL: func @blocks
// CHECK: tile.dot {{.*}} {cpu.left = "view", cpu.unit
// CHECK: tile.dot {{.*}} {cpu.left = "copy", cpu.unit
// CHECK: tile.dot {{.*}} {cpu.left = "copy", cpu.unit
func.func @blocks(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: tensor<32x16xbf16>, %c: tensor<48x16xbf16>) -> tensor<32x16xf32> {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %fewer = arith.constant dense<0.0> : tensor<24x16xf32>
  %x = tile.load %a[%c0, %c0] {cpu.view} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<32x32xbf16>
  %y = tile.load %a[%c0, %c0] {cpu.view} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<32x48xbf16>
  %z = tile.load %a[%c0, %c0] {cpu.view} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<24x32xbf16>
  %0 = tile.dot %x, %b, %zero {cpu.unit = "bf16_tiles"} : tensor<32x32xbf16>, tensor<32x16xbf16>, tensor<32x16xf32>
  %1 = tile.dot %y, %c, %0 {cpu.unit = "bf16_tiles"} : tensor<32x48xbf16>, tensor<48x16xbf16>, tensor<32x16xf32>
  %2 = tile.dot %z, %b, %fewer {cpu.unit = "bf16_tiles"} : tensor<24x32xbf16>, tensor<32x16xbf16>, tensor<24x16xf32>
  return %1 : tensor<32x16xf32>
}
