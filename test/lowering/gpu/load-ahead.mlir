// The tile that the code after a loop of warpgroup products reads is loaded in front of the loop, after the first copies.
// DEFINE: %{pass} = kiln-opt --gpu-schedule-copies=limit=32768 --gpu-expand-pipeline
// RUN: %{pass} %s | FileCheck %s

// Threads hold 32 sums and 32 elements of the residual. Four programs of 128 threads leave 128 registers for each thread, five
// programs 102. Five programs also fit if shared memory has room for five rings of 32768 bytes.
// RUN: sed 's/tile.programs = 4/tile.programs = 5/' %s | %{pass} | FileCheck %s --check-prefix=STAYS
// RUN: kiln-opt %s --gpu-schedule-copies=limit=163840 --gpu-expand-pipeline | FileCheck %s --check-prefix=STAYS

// 32 registers of another tile are in use during the loop.
// RUN: sed 's|// HELD: ||' %s | %{pass} | FileCheck %s --check-prefix=STAYS

// A write in the loop or after it may overlap the residual. It does not if the views are known to be disjoint.
// DEFINE: %{written} = sed 's|// WRITES: ||; s|// WRITES-IN-LOOP: ||; s/tile.programs = 4/tile.programs = 2/' %s
// DEFINE: %{disjoint} = sed 's/i64: 1, 7>/i64: 1, 7>, array<i64: 6, 7>/'
// RUN: sed 's|// WRITES: ||' %s | %{pass} | FileCheck %s --check-prefix=STAYS
// RUN: sed 's|// WRITES-IN-LOOP: ||; s/tile.programs = 4/tile.programs = 2/' %s | %{pass} | FileCheck %s --check-prefix=STAYS
// RUN: %{written} | %{disjoint} | %{pass} | FileCheck %s

// A load does not pass a branch.
// RUN: sed 's|// BRANCHES: ||' %s | %{disjoint} | %{pass} | FileCheck %s --check-prefix=STAYS

// The position of the tile is computed after the loop.
// RUN: sed 's|// LATE: ||; s/residual\[%m/residual[%late/' %s | %{pass} | FileCheck %s --check-prefix=STAYS

// Without wgmma, threads need registers for fragments.
// RUN: sed 's/, simt.wgmma//' %s | %{pass} | FileCheck %s --check-prefix=STAYS

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// CHECK-LABEL: func @epilogue
// CHECK-COUNT-2: simt.commit_copies
// CHECK-NOT: scf.for
// CHECK: %[[R:.*]] = tile.load %{{.*}}[{{.*}}] {simt.ahead, simt.vector = 2 : i64}
// CHECK: scf.for
// CHECK: %[[SUM:.*]] = simt.wait_multiply 0
// CHECK: arith.addf %[[SUM]], %[[R]]
// STAYS-LABEL: func @epilogue
// STAYS-NOT: simt.ahead
// STAYS: simt.fetch
// STAYS: scf.for
// STAYS: {{^ *}}%[[R:.*]] = tile.load %{{.*}}[{{.*}}] {simt.vector = 2 : i64}
// STAYS: arith.addf %{{.*}}, %[[R]]
func.func @epilogue(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                    %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                    %m: i64, %acc: tensor<64x64xf32, #acc>, %held: tensor<64x64xf32, #acc>, %branches: i1,
                    %residual: memref<?x?xf32, strided<[?, 1]>>, %other: memref<?x?xf32, strided<[?, 1]>>)
    -> tensor<64x64xf32, #acc>
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 7>, array<i64: 1, 7>], tile.stages = 4 : i64, tile.programs = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %end = tile.dim %a, 1 : memref<?x?xbf16, strided<[?, 1]>>
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%m, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%m, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    // WRITES-IN-LOOP: tile.store %held, %other[%m, %k] {simt.vector = 2 : i64} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  // WRITES: tile.store %0, %other[%m, %c0] {simt.vector = 2 : i64} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
  // BRANCHES: scf.if %branches {
  // BRANCHES:   tile.store %0, %other[%m, %c0] {simt.vector = 2 : i64} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
  // BRANCHES: }
  // LATE: %late = arith.addi %m, %c32 : i64
  %1 = tile.load %residual[%m, %c0] {simt.vector = 2 : i64} : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32, #acc>
  %2 = arith.addf %0, %1 : tensor<64x64xf32, #acc>
  // HELD: %3 = arith.addf %2, %held : tensor<64x64xf32, #acc>
  return %2 : tensor<64x64xf32, #acc>
}
