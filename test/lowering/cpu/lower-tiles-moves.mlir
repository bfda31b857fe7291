// RUN: kiln-opt %s --tile-declare-console --cpu-place-tiles --cpu-lower-tiles --canonicalize --cse | FileCheck %s
// RUN: kiln-opt %s --tile-declare-console --cpu-place-tiles='vector-bits=256' --cpu-lower-tiles='vector-bits=256 registers=16' --canonicalize --cse | FileCheck %s --check-prefix=AVX2

// Merged rows are read by whole vectors. The row number is divided once, outside of the loop over the row.
// CHECK-LABEL: func @merged
// CHECK-NOT: memref.alloca
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c64 step %c1 {
// CHECK-DAG: %[[OUTER:.*]] = arith.divui %[[ROW]], %c16
// CHECK-DAG: %[[INNER:.*]] = arith.remui %[[ROW]], %c16
// CHECK: scf.for %[[COLUMN:.*]] = %c0 to %c256 step %c64 {
// CHECK-NOT: remui
// CHECK-NOT: divui
// CHECK: vector.load %{{.*}}[%[[OUTER]], %[[INNER]], %[[COLUMN]]]
// CHECK-NOT: vector.insert
// CHECK: return
func.func @merged(%x: memref<4x16x256xf32, strided<[4096, 256, 1]>>, %y: memref<64x256xf32, strided<[256, 1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0, %c0] {cpu.view} : memref<4x16x256xf32, strided<[4096, 256, 1]>> -> tensor<4x16x256xf32>
  %1 = tile.reshape %0 : tensor<4x16x256xf32> -> tensor<64x256xf32>
  %2 = arith.addf %1, %1 : tensor<64x256xf32>
  tile.store %2, %y[%c0, %c0] : tensor<64x256xf32>, memref<64x256xf32, strided<[256, 1]>>
  return
}

// A row that is split is one position in the source's row, so no index is divided.
// CHECK-LABEL: func @split
// CHECK-NOT: memref.alloca
// CHECK-NOT: remui
// CHECK-NOT: divui
// CHECK: vector.load
// CHECK-NOT: vector.insert
// CHECK: return
func.func @split(%x: memref<2048xf32, strided<[1]>>, %y: memref<64x32xf32, strided<[32, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<2048xf32, strided<[1]>> -> tensor<2048xf32>
  %1 = tile.reshape %0 : tensor<2048xf32> -> tensor<64x32xf32>
  tile.store %1, %y[%c0, %c0] : tensor<64x32xf32>, memref<64x32xf32, strided<[32, 1]>>
  return
}

// If the vectors of a row are no multiple of the merged ones, a copy holds the rows contiguously. The part of a vector
// beyond a row's end is not written.
// CHECK-LABEL: func @ragged
// CHECK: %[[COPY:.*]] = memref.alloca() {alignment = 64 : i64} : memref<416xf32>
// CHECK: scf.for
// CHECK: vector.store %{{.*}}, %[[COPY]]
// CHECK: vector.maskedstore %[[COPY]][%{{.*}}], %{{.*}} : memref<416xf32>
// CHECK: vector.load %[[COPY]][%{{.*}}] : memref<416xf32>, vector<16xf32>
// CHECK-NOT: vector.insert
// CHECK: return
func.func @ragged(%x: memref<4x100xf32, strided<[100, 1]>>, %y: memref<400xf32, strided<[1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<4x100xf32, strided<[100, 1]>> -> tensor<4x100xf32>
  %1 = tile.reshape %0 : tensor<4x100xf32> -> tensor<400xf32>
  %2 = arith.addf %1, %1 : tensor<400xf32>
  tile.store %2, %y[%c0] : tensor<400xf32>, memref<400xf32, strided<[1]>>
  return
}

// If merged rows are only stored, there is no copy. Each is stored at its position in the longer row.
// CHECK-LABEL: func @stored_merged
// CHECK-NOT: memref.alloca
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c6 step %c1 {
// CHECK-DAG: %[[LONGER:.*]] = arith.divui %[[ROW]], %c2
// CHECK-DAG: %[[PART:.*]] = arith.remui %[[ROW]], %c2
// CHECK-DAG: %[[FIRST:.*]] = arith.muli %[[PART]], %c100
// CHECK: vector.load %{{.*}}[%[[ROW]], %c64]
// CHECK: %[[PLACE:.*]] = arith.addi %[[FIRST]], %c64
// CHECK: vector.store %{{.*}}, %{{.*}}[%[[LONGER]], %[[PLACE]]]
// CHECK: return
func.func @stored_merged(%x: memref<6x100xf32, strided<[100, 1]>>, %y: memref<3x200xf32, strided<[200, 1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<6x100xf32, strided<[100, 1]>> -> tensor<6x100xf32>
  %1 = tile.reshape %0 : tensor<6x100xf32> -> tensor<3x200xf32>
  tile.store %1, %y[%c0, %c0] : tensor<3x200xf32>, memref<3x200xf32, strided<[200, 1]>>
  return
}

// Joined pairs that are stored are computed each along its own row. Shuffles interleave their vectors.
// CHECK-LABEL: func @pairs
// CHECK: %[[A:.*]] = vector.load {{.*}} vector<16xf32>
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[A]]
// CHECK: %[[FIRST:.*]] = vector.shuffle %[[A]], %[[B]] [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23]
// CHECK: vector.store %[[FIRST]], %{{.*}}[%c0]
// CHECK: %[[SECOND:.*]] = vector.shuffle %[[A]], %[[B]] [8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31]
// CHECK: vector.store %[[SECOND]], %{{.*}}[%c16]
// CHECK-NOT: arith.select
// CHECK: return
func.func @pairs(%x: memref<64xf32, strided<[1]>>, %y: memref<128xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0> : tensor<64x2xi32>
  %0 = tile.load %x[%c0] {cpu.view} : memref<64xf32, strided<[1]>> -> tensor<64xf32>
  %1 = arith.addf %0, %0 : tensor<64xf32>
  %2 = tile.reshape %0 : tensor<64xf32> -> tensor<64x1xf32>
  %3 = tile.reshape %1 : tensor<64xf32> -> tensor<64x1xf32>
  %4 = tile.broadcast %2 : tensor<64x1xf32> -> tensor<64x2xf32>
  %5 = tile.broadcast %3 : tensor<64x1xf32> -> tensor<64x2xf32>
  %6 = tile.iota : tensor<2xi32>
  %7 = tile.reshape %6 : tensor<2xi32> -> tensor<1x2xi32>
  %8 = tile.broadcast %7 : tensor<1x2xi32> -> tensor<64x2xi32>
  %9 = arith.cmpi eq, %8, %zero : tensor<64x2xi32>
  %10 = arith.select %9, %4, %5 : tensor<64x2xi1>, tensor<64x2xf32>
  %11 = tile.reshape %10 : tensor<64x2xf32> -> tensor<128xf32>
  tile.store %11, %y[%c0] : tensor<128xf32>, memref<128xf32, strided<[1]>>
  return
}

// The even and the odd elements of a row are taken from vectors that hold both. If a row is inside its view, so is the
// element after its last even one.
// AVX2-LABEL: func @halves
// AVX2: scf.for
// AVX2: %[[PAIRS:.*]] = vector.load {{.*}} vector<8xf32>
// AVX2-DAG: vector.shuffle %{{.*}}, %[[PAIRS]] [8, 8, 10, 10, 12, 12, 14, 14]
// AVX2-DAG: vector.shuffle %{{.*}}, %[[PAIRS]] [9, 9, 11, 11, 13, 13, 15, 15]
// AVX2-NOT: vector<4xf32>
// AVX2: return
func.func @halves(%x: memref<128xf32, strided<[1]>>, %y: memref<128xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<128xf32, strided<[1]>> -> tensor<128xf32>
  %1 = tile.reshape %0 : tensor<128xf32> -> tensor<64x2xf32>
  %2 = tile.extract %1 begin [0, 0] steps [1, 1] : tensor<64x2xf32> -> tensor<64x1xf32>
  %3 = tile.extract %1 begin [0, 1] steps [1, 1] : tensor<64x2xf32> -> tensor<64x1xf32>
  %4 = arith.subf %2, %3 : tensor<64x1xf32>
  %5 = tile.broadcast %4 : tensor<64x1xf32> -> tensor<64x2xf32>
  %6 = tile.reshape %5 : tensor<64x2xf32> -> tensor<128xf32>
  tile.store %6, %y[%c0] : tensor<128xf32>, memref<128xf32, strided<[1]>>
  return
}

// Pages that a gather selects are read like rows.
// CHECK-LABEL: func @pages
// CHECK: scf.for %[[ROW:.*]] = %c0 to %c64 step %c4 {
// CHECK: %[[NUMBER:.*]] = arith.divui %[[ROW]], %c16
// CHECK: memref.load %{{.*}}[%[[NUMBER]]]
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c16 {
// CHECK-NOT: remui
// CHECK-COUNT-4: vector.load
// CHECK-COUNT-4: vector.store
// CHECK-NOT: vector.insert
// CHECK: return
func.func @pages(%x: memref<?x16x64xf32, strided<[1024, 64, 1]>>, %i: memref<4xi32, strided<[1]>>,
                 %y: memref<64x64xf32, strided<[64, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %i[%c0] {cpu.view} : memref<4xi32, strided<[1]>> -> tensor<4xi32>
  %1 = tile.gather %x[%0, %c0, %c0] {cpu.view} : memref<?x16x64xf32, strided<[1024, 64, 1]>>, tensor<4xi32> -> tensor<4x16x64xf32>
  %2 = tile.reshape %1 : tensor<4x16x64xf32> -> tensor<64x64xf32>
  %3 = arith.addf %2, %2 : tensor<64x64xf32>
  tile.store %3, %y[%c0, %c0] : tensor<64x64xf32>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// If every second element is written, whole vectors are stored with masks that skip the others. AVX2 stores elements
// one by one, because a mask costs as much as all of them.
// CHECK-LABEL: func @every_second
// CHECK: %[[EVEN:.*]] = arith.constant dense<[true, false, true, false, true, false, true, false, true, false, true, false, true, false, true, false]> : vector<16xi1>
// CHECK: vector.shuffle %[[X:.*]], %[[X]] [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0]
// CHECK-NEXT: vector.maskedstore %{{.*}}, %[[EVEN]]
// CHECK: vector.shuffle %[[X]], %[[X]] [8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15, 0]
// CHECK-NEXT: vector.maskedstore %{{.*}}, %[[EVEN]]
// CHECK: return
// AVX2-LABEL: func @every_second
// AVX2-NOT: vector.maskedstore
// AVX2-COUNT-8: memref.store
// AVX2: return
func.func @every_second(%x: memref<64xf32, strided<[1]>>, %y: memref<64xf32, strided<[2]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<64xf32, strided<[1]>> -> tensor<64xf32>
  tile.store %0, %y[%c0] : tensor<64xf32>, memref<64xf32, strided<[2]>>
  return
}

// A stored column is a vector of strided elements, stored without a branch.
// CHECK-LABEL: func @column
// CHECK: vector.load
// CHECK-NOT: scf.if
// CHECK-COUNT-16: memref.store
// CHECK: vector.load
// CHECK-NOT: scf.if
// CHECK-COUNT-16: memref.store
// CHECK: return
func.func @column(%x: memref<32xf32, strided<[1]>>, %y: memref<32x2xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<32xf32, strided<[1]>> -> tensor<32xf32>
  %1 = tile.reshape %0 : tensor<32xf32> -> tensor<32x1xf32>
  tile.store %1, %y[%c0, %c1] : tensor<32x1xf32>, memref<32x2xf32, strided<[?, 1]>>
  return
}

// A check compares vectors in the loop nest of the store, and its rows carry the conjunction so far. One test follows.
// Elements are searched only if a tile fails. AVX2 has no mask registers, so words are carried.
// AVX2-LABEL: func @checked
// AVX2: iter_args({{.*}}) -> (vector<8xi32>) {
// AVX2: %[[SMALL:.*]] = arith.cmpf olt, {{.*}} : vector<8xf32>
// AVX2: arith.extsi %[[SMALL]] : vector<8xi1> to vector<8xi32>
// AVX2: arith.andi {{.*}} : vector<8xi32>
// AVX2: %[[HOLDS:.*]] = arith.cmpi slt, {{.*}} : vector<8xi32>
// AVX2: vector.reduction <and>, %[[HOLDS]] : vector<8xi1> into i1
// CHECK-LABEL: func @checked
// CHECK-NOT: memref.alloca
// CHECK: %[[ALL:.*]] = scf.for %[[ROW:.*]] = %c0 to %c8 step %c1 iter_args(%[[HELD:.*]] = %{{.*}}) -> (vector<16xi1>) {
// CHECK: scf.for
// CHECK: arith.cmpf olt, {{.*}} : vector<16xf32>
// CHECK-NOT: scf.if
// CHECK: vector.store
// CHECK: %[[HOLDS:.*]] = arith.andi %[[HELD]], %{{.*}} : vector<16xi1>
// CHECK: scf.yield %[[HOLDS]]
// CHECK: %[[HOLD:.*]] = vector.reduction <and>, %[[ALL]] : vector<16xi1> into i1
// CHECK: %[[FAILS:.*]] = arith.xori %[[HOLD]], %true
// CHECK-NEXT: scf.if %[[FAILS]] {
// CHECK: scf.for %{{.*}} = %c0 to %c8 step %c1 {
// CHECK: scf.for %{{.*}} = %c0 to %c128 step %c1 {
// CHECK: arith.cmpf olt, {{.*}} : f32
// CHECK: scf.if
// CHECK: call @kiln_check_failed
// CHECK: return
func.func @checked(%x: memref<8x128xf32, strided<[128, 1]>>, %y: memref<8x128xf32, strided<[128, 1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %most = arith.constant dense<1000.0> : tensor<8x128xf32>
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<8x128xf32, strided<[128, 1]>> -> tensor<8x128xf32>
  %1 = arith.cmpf olt, %0, %most : tensor<8x128xf32>
  tile.check %1, "small" : tensor<8x128xi1>
  tile.store %0, %y[%c0, %c0] : tensor<8x128xf32>, memref<8x128xf32, strided<[128, 1]>>
  return
}

// If a store overwrites the operand of a check, each has its own loop nest, because a tile that failed is read again.
// CHECK-LABEL: func @checked_in_place
// CHECK: call @kiln_check_failed
// CHECK: scf.for
// CHECK: vector.store
// CHECK: return
func.func @checked_in_place(%x: memref<8x128xf32, strided<[128, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %most = arith.constant dense<1000.0> : tensor<8x128xf32>
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<8x128xf32, strided<[128, 1]>> -> tensor<8x128xf32>
  %1 = arith.cmpf olt, %0, %most : tensor<8x128xf32>
  %2 = arith.addf %0, %0 : tensor<8x128xf32>
  tile.check %1, "small" : tensor<8x128xi1>
  tile.store %2, %x[%c0, %c0] : tensor<8x128xf32>, memref<8x128xf32, strided<[128, 1]>>
  return
}
