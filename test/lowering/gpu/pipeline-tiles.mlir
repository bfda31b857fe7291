// The first operands of the next tile are copied as soon as a tile's loop has ended.
// RUN: kiln-opt %s --gpu-schedule-copies --gpu-expand-pipeline | FileCheck %s

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The rows of the next tile follow from the outer position plus its step, if there is such a tile. Copies beyond the last tile are off. The ring
// of three slots is outside of both loops; the last slot is empty outside of the inner loop.
// CHECK-LABEL: func @tiles
// CHECK: %[[RING:.*]] = simt.buffer {idle = 8192 : i64} : memref<12288xi8, 3>
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %arg2, %arg3 : i64
// CHECK: arith.andi %{{.*}}, %[[ANY]]
// CHECK: %[[ROW:.*]] = arith.muli %arg2, %c64_i64
// CHECK: simt.fetch %arg0[%[[ROW]], %{{.*}}] to %[[RING]][%c0_i32{{.*}}] slot [0, 3]
// CHECK: simt.fetch %arg0{{.*}} slot [1, 3]
// CHECK: scf.for %[[TILE:.*]] = %arg2 to %arg3 step %arg4
// CHECK-NOT: simt.fetch
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 1
// CHECK: simt.fetch %arg0{{.*}} slot [2, 3]
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: %[[LEFT:.*]] = arith.subi %arg3, %[[TILE]] : i64
// CHECK-DAG: %[[NEXT:.*]] = arith.addi %[[TILE]], %arg4
// CHECK-DAG: %[[THERE:.*]] = arith.cmpi ult, %arg4, %[[LEFT]] : i64
// CHECK: arith.andi %{{.*}}, %[[THERE]]
// CHECK: %[[ROW:.*]] = arith.muli %[[NEXT]], %c64_i64
// CHECK: simt.fetch %arg0[%[[ROW]], %{{.*}}] to %[[RING]][%c0_i32{{.*}}] slot [0, 3]
// CHECK: simt.fetch %arg0{{.*}} slot [1, 3]
// CHECK: tile.store {{.*}} memref<?x?xf32, strided<[?, 1]>>
// CHECK-NEXT: }
// CHECK-NEXT: simt.wait_copies 0
func.func @tiles(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                 %c: memref<?x?xf32, strided<[?, 1]>>, %first: i64, %count: i64, %programs: i64, %k: i64,
                 %b: tensor<32x64xbf16, #right>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  scf.for %tile = %first to %count step %programs : i64 {
    %row = arith.muli %tile, %c64 : i64
    %0 = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
    tile.store %0, %c[%row, %c0] {simt.layout = #acc} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
  }
  return
}

// A carried row does not follow from the position, so each tile's first copies are inside the outer loop.
// CHECK-LABEL: func @carried
// CHECK-NOT: simt.fetch
// CHECK: scf.for
// CHECK: simt.buffer : memref<12288xi8, 3>
// CHECK: simt.fetch
func.func @carried(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                   %c: memref<?x?xf32, strided<[?, 1]>>, %first: i64, %count: i64, %programs: i64, %k: i64,
                   %b: tensor<32x64xbf16, #right>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  %last = scf.for %tile = %first to %count step %programs iter_args(%row = %c0) -> (i64) : i64 {
    %0 = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
    tile.store %0, %c[%row, %c0] {simt.layout = #acc} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
    %next = arith.addi %row, %c64 : i64
    scf.yield %next : i64
  }
  return
}
