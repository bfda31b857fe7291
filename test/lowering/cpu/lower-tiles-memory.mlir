// RUN: kiln-opt %s --cpu-place-tiles --cpu-lower-tiles --canonicalize --cse | FileCheck %s

// A loop nest reads memory in the program's order, not in the order of operands.
// CHECK-LABEL: func @in_order
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{[^,]*, [^,]*}}, %[[Y:[a-z0-9]+]]:
// CHECK: vector.load %[[X]]
// CHECK: vector.load %[[Y]]
// CHECK: arith.subf
func.func @in_order(%x: memref<16xf32, strided<[1]>>, %y: memref<16xf32, strided<[1]>>,
                    %z: memref<16xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<16xf32, strided<[1]>> -> tensor<16xf32>
  %1 = arith.negf %0 : tensor<16xf32>
  %2 = tile.load %y[%c0] {cpu.view} : memref<16xf32, strided<[1]>> -> tensor<16xf32>
  %3 = arith.negf %2 : tensor<16xf32>
  %4 = arith.subf %3, %1 : tensor<16xf32>
  tile.store %4, %z[%c0] : tensor<16xf32>, memref<16xf32, strided<[1]>>
  return
}

// A step of a loop reads four rows of a view in turn, and prefetches those of the next step: one cache line of each row
// in the time of four vectors of bf16, which take two lines.
// CHECK-LABEL: func @rows_in_turn
// CHECK-SAME: %[[ROWS:[a-z0-9]+]]:
// CHECK: scf.for %[[K:.*]] = %c0_i64 to
// CHECK: %[[NEXT:.*]] = arith.addi %[[K]], %c4_i64
// CHECK: %[[AHEAD:.*]] = arith.index_cast %[[NEXT]] : i64 to index
// CHECK: scf.for %[[N:.*]] = %c0 to %c1024 step %c64
// CHECK-COUNT-2: memref.prefetch %[[ROWS]][%[[AHEAD]], %
// CHECK-COUNT-6: memref.prefetch %[[ROWS]]
// CHECK-NOT: memref.prefetch
// CHECK: vector.load %[[ROWS]]
// CHECK: return
func.func @rows_in_turn(%rows: memref<64x1024xbf16, strided<[1024, 1]>>, %sums: memref<64x1024xbf16, strided<[1024, 1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %c4 = arith.constant 4 : i64
  %c64 = arith.constant 64 : i64
  scf.for %k = %c0 to %c64 step %c4 : i64 {
    %k1 = arith.addi %k, %c1 : i64
    %k2 = arith.addi %k, %c2 : i64
    %k3 = arith.addi %k, %c3 : i64
    %0 = tile.load %rows[%k, %c0] {cpu.view} : memref<64x1024xbf16, strided<[1024, 1]>> -> tensor<1x1024xbf16>
    %1 = tile.load %rows[%k1, %c0] {cpu.view} : memref<64x1024xbf16, strided<[1024, 1]>> -> tensor<1x1024xbf16>
    %2 = tile.load %rows[%k2, %c0] {cpu.view} : memref<64x1024xbf16, strided<[1024, 1]>> -> tensor<1x1024xbf16>
    %3 = tile.load %rows[%k3, %c0] {cpu.view} : memref<64x1024xbf16, strided<[1024, 1]>> -> tensor<1x1024xbf16>
    %4 = arith.extf %0 : tensor<1x1024xbf16> to tensor<1x1024xf32>
    %5 = arith.extf %1 : tensor<1x1024xbf16> to tensor<1x1024xf32>
    %6 = arith.extf %2 : tensor<1x1024xbf16> to tensor<1x1024xf32>
    %7 = arith.extf %3 : tensor<1x1024xbf16> to tensor<1x1024xf32>
    %8 = arith.addf %4, %5 : tensor<1x1024xf32>
    %9 = arith.addf %8, %6 : tensor<1x1024xf32>
    %10 = arith.addf %9, %7 : tensor<1x1024xf32>
    %11 = arith.truncf %10 : tensor<1x1024xf32> to tensor<1x1024xbf16>
    tile.store %11, %sums[%k, %c0] : tensor<1x1024xbf16>, memref<64x1024xbf16, strided<[1024, 1]>>
  }
  return
}

// The hardware prefetches two rows at a time itself. Further columns of a row are read sequentially.
// CHECK-LABEL: func @few_rows_or_columns
// CHECK-NOT: memref.prefetch
// CHECK: return
func.func @few_rows_or_columns(%rows: memref<64x4096xf32, strided<[4096, 1]>>,
                               %sums: memref<64x4096xf32, strided<[4096, 1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %c64 = arith.constant 64 : i64
  %c512 = arith.constant 512 : i64
  %c4096 = arith.constant 4096 : i64
  scf.for %k = %c0 to %c64 step %c2 : i64 {
    %k1 = arith.addi %k, %c1 : i64
    %0 = tile.load %rows[%k, %c0] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %1 = tile.load %rows[%k1, %c0] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %2 = arith.addf %0, %1 : tensor<1x512xf32>
    tile.store %2, %sums[%k, %c0] : tensor<1x512xf32>, memref<64x4096xf32, strided<[4096, 1]>>
  }
  scf.for %n = %c0 to %c4096 step %c512 : i64 {
    %0 = tile.load %rows[%c0, %n] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %1 = tile.load %rows[%c1, %n] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %2 = tile.load %rows[%c2, %n] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %3 = tile.load %rows[%c3, %n] {cpu.view} : memref<64x4096xf32, strided<[4096, 1]>> -> tensor<1x512xf32>
    %4 = arith.addf %0, %1 : tensor<1x512xf32>
    %5 = arith.addf %4, %2 : tensor<1x512xf32>
    %6 = arith.addf %5, %3 : tensor<1x512xf32>
    tile.store %6, %sums[%c0, %n] : tensor<1x512xf32>, memref<64x4096xf32, strided<[4096, 1]>>
  }
  return
}

// Positions loaded from memory are tested against the view as a vector, and loaded again as scalars if they are inside.
// Computed positions are extracted from their vector.
// CHECK-LABEL: func @named
// CHECK-SAME: %[[X:[a-z0-9]+]]: {{[^,]*, [^,]*}}, %[[AT:[a-z0-9]+]]:
// CHECK: scf.if
// CHECK-NOT: vector.extract
// CHECK: %[[NUMBER:.*]] = memref.load %[[AT]]
// CHECK: %[[POSITION:.*]] = arith.index_cast %[[NUMBER]] : i32 to index
// CHECK: memref.load {{.*}}[%[[POSITION]]]
// CHECK-COUNT-15: memref.load %[[AT]]
// CHECK: vector.from_elements
// CHECK: scf.if
// CHECK-COUNT-16: vector.extract %{{.*}} : index from vector<16xindex>
// CHECK: vector.from_elements
// CHECK: return
func.func @named(%x: memref<100xf32, strided<[1]>>, %at: memref<16xi32, strided<[1]>>,
                 %y: memref<16xf32, strided<[1]>>, %z: memref<16xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %at[%c0] {cpu.view} : memref<16xi32, strided<[1]>> -> tensor<16xi32>
  %1 = tile.gather %x[%0] {cpu.view} : memref<100xf32, strided<[1]>>, tensor<16xi32> -> tensor<16xf32>
  tile.store %1, %y[%c0] : tensor<16xf32>, memref<16xf32, strided<[1]>>
  %2 = arith.addi %0, %0 : tensor<16xi32>
  %3 = tile.gather %x[%2] {cpu.view} : memref<100xf32, strided<[1]>>, tensor<16xi32> -> tensor<16xf32>
  tile.store %3, %z[%c0] : tensor<16xf32>, memref<16xf32, strided<[1]>>
  return
}
