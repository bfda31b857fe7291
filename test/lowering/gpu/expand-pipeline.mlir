// The pipeline follows from the attributes alone, also from those that gpu-schedule-copies would not choose.
// RUN: kiln-opt %s --gpu-expand-pipeline | FileCheck %s --implicit-check-not=simt.engine --implicit-check-not=simt.slots

#copies = #simt.layout<64x32, reg [d1:1 d1:2 d0:16 d0:32], lane [d1:4 d1:8 d1:16 d0:1 d0:2], warp [d0:4 d0:8]>
#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#slot = #simt.shared_layout<64x32xbf16, d0 [64, 144, 288, 512, 1024, 2048], d1 [2, 4, 8, 16, 32]>

// One of five slots is filled ahead: one group before the loop, and the slot that was read four iterations before. The
// second load is not copied. The copies move 8 bytes and may be partly in bounds.
// CHECK-LABEL: func @distance
// CHECK: %[[RING:.*]] = simt.buffer : memref<20480xi8, 3>
// CHECK: simt.fetch %arg0{{.*}} to %[[RING]][%c0_i32{{.*}}] slot [0, 5, 1] by 4 in <64x32xbf16, {{.*}} {layout = #simt.layout<{{[^>]*}}>} :
// CHECK-NEXT: simt.commit_copies
// CHECK-NOT: simt.fetch
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %c0_i32{{.*}}, %[[A:.*]] = %c16384_i32, %[[B:.*]] = %c12288_i32, %[[C:.*]] = %c8192_i32, %[[FREE:.*]] = %c4096_i32{{.*}})
// CHECK-NEXT: simt.wait_copies 0{{$}}
// CHECK: simt.fetch %arg0{{.*}} to %[[RING]][%[[FREE]]] slot [1, 5, 1] by 4
// CHECK-NEXT: simt.commit_copies
// CHECK: tile.load %arg1
// CHECK: simt.read %[[RING]][%[[SLOT]]] slot [0, 5] by rows
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[SLOT]], %[[A]], %[[B]], %[[C]] :
func.func @distance(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>, %end: i64,
                    %acc: tensor<64x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%c0, %k] {simt.engine = "cp.async", simt.slot = #slot, simt.copy_layout = #copies, simt.copy_vector = 4 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%c0, %k] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  } {simt.slots = 5 : i64, simt.distance = 1 : i64}
  return
}

// Five slots, of which two are filled ahead, also allow a product to run on, but this one is waited for at once. The
// load moves in front of the loop, because it is marked.
// CHECK-LABEL: func @waits
// CHECK-COUNT-2: simt.commit_copies
// CHECK: tile.load %arg4{{.*}} {simt.ahead}
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 1 shown
// CHECK: simt.multiply {{.*}} slot [0, 5]
// CHECK: simt.fetch %arg1{{.*}} slot [2, 5, 2]
// CHECK: simt.wait_multiply 0
// CHECK: scf.yield
// CHECK: simt.wait_copies 0
// CHECK-NOT: simt.wait_multiply
// CHECK: return
func.func @waits(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<?x?xbf16, strided<[?, 1]>>, %end: i64,
                 %acc: tensor<64x64xf32, #acc>, %residual: memref<?x?xf32, strided<[?, 1]>>)
    -> tensor<64x64xf32, #acc> attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%c0, %k] {simt.engine = "cp.async", simt.slot = #slot, simt.copy_layout = #copies, simt.copy_vector = 4 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%c0, %k] {simt.engine = "cp.async", simt.slot = #slot, simt.copy_layout = #copies, simt.copy_vector = 4 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma, simt.wgmma, simt.from_slots = "both"}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  } {simt.slots = 5 : i64, simt.distance = 2 : i64}
  %7 = tile.load %residual[%c0, %c0] {simt.ahead} : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32, #acc>
  %8 = arith.addf %0, %7 : tensor<64x64xf32, #acc>
  return %8 : tensor<64x64xf32, #acc>
}
