// Products from shared memory: the operands' descriptors, and registers in the order of the instruction.
// RUN: kiln-opt %s --split-input-file --gpu-allocate-shared --gpu-distribute --cse | FileCheck %s

#sums = #simt.layout<128x16, reg [d1:1 d0:8 d1:8 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// Rows are 128 bytes along K, and eight rows 1024 bytes: 64 · 2^32. The swizzle is 128 bytes: 2^62. A step of K is 32
// bytes, 64 rows are 8192 bytes, and the right operand begins after the left one's 16384.
// CHECK-LABEL: func @rows
// CHECK: simt.shared_base {bytes = 18432 : i64}
// CHECK: %[[BEGIN:.*]] = arith.addi %{{.*}}, %arg0
// CHECK: %[[PIECE:.*]] = arith.shrui %[[BEGIN]], %c4_i32
// CHECK: %[[WIDE:.*]] = arith.extui %[[PIECE]] : i32 to i64
// CHECK: %[[A:.*]] = arith.addi %[[WIDE]], %c4611686293305360384_i64
// CHECK: %[[B:.*]] = arith.addi %{{.*}}, %c4611686293305360384_i64
// CHECK: %[[FENCED:.*]] = simt.wgmma_fence %{{.*}} : vector<16xf32>
// CHECK: %[[HIGH:.*]] = vector.shuffle %[[FENCED]], %[[FENCED]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: %[[LOW:.*]] = vector.shuffle %[[FENCED]], %[[FENCED]] [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK: %[[FIRST:.*]] = simt.wgmma bf16 %[[A]], %[[B]], %[[HIGH]] : vector<8xf32>
// CHECK: %[[FAR:.*]] = arith.addi %[[A]], %c512_i64
// CHECK: simt.wgmma bf16 %[[FAR]], %[[B]], %[[LOW]] : vector<8xf32>
// CHECK-DAG: %[[A1:.*]] = arith.addi %[[A]], %c2_i64
// CHECK-DAG: %[[B1:.*]] = arith.addi %[[B]], %c2_i64
// CHECK: simt.wgmma bf16 %[[A1]], %[[B1]], %[[FIRST]] : vector<8xf32>
// CHECK-COUNT-5: simt.wgmma bf16
// CHECK-NOT: simt.wgmma bf16
// CHECK: simt.wgmma_commit
// CHECK: simt.wgmma_wait 1,
func.func @rows(%at: i32, %c: memref<128x16xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  %left = simt.buffer : memref<16384xi8, 3>
  %right = simt.buffer : memref<2048xi8, 3>
  %c0 = arith.constant 0 : i64
  %acc = arith.constant dense<0.0> : tensor<128x16xf32, #sums>
  %0 = simt.multiply %left[%at] in <128x64xbf16, d0 [144, 288, 576, 1024, 2048, 4096, 8192], d1 [2, 4, 8, 16, 32, 64]>,
      %right[%at] in <16x64xbf16, d0 [144, 288, 576, 1024], d1 [2, 4, 8, 16, 32, 64]> transposed, %acc slot [0, 4]
      : memref<16384xi8, 3>, memref<2048xi8, 3>, tensor<128x16xf32, #sums>
  %1 = simt.wait_multiply 1, %0 : tensor<128x16xf32, #sums>
  tile.store %1, %c[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<128x16xf32, #sums>, memref<128x16xf32>
  return
}

// -----

#sums = #simt.layout<128x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32 d0:64]>

// Rows are along M and N. The second group's 64 columns of the left tile begin 2048 bytes after the first group's, and
// 8 rows of K are 1024 bytes.
// CHECK-LABEL: func @transposed
// CHECK: %[[THREAD:.*]] = simt.thread {warps = 8 : i64}
// CHECK: %[[GROUP:.*]] = arith.andi %[[THREAD]], %c128_i32
// CHECK: arith.shli %[[GROUP]], %c4_i32
// CHECK: arith.addi %{{.*}}, %c4611686293305360384_i64
// CHECK: simt.wgmma f16 %{{.*}} transposed, %{{.*}} transposed, %{{.*}} : vector<32xf32>
// CHECK-NOT: simt.wgmma f16
// CHECK: simt.wgmma_wait 0,
func.func @transposed(%at: i32, %c: memref<128x64xf32>) attributes {tile.kernel, tile.warps = 8 : i64} {
  %left = simt.buffer : memref<4096xi8, 3>
  %right = simt.buffer : memref<2048xi8, 3>
  %c0 = arith.constant 0 : i64
  %acc = arith.constant dense<0.0> : tensor<128x64xf32, #sums>
  %0 = simt.multiply %left[%at] in <16x128xf16, d0 [144, 288, 576, 1024], d1 [2, 4, 8, 16, 32, 64, 2048]> transposed,
      %right[%at] in <16x64xf16, d0 [144, 288, 576, 1024], d1 [2, 4, 8, 16, 32, 64]>, %acc slot [0, 2]
      : memref<4096xi8, 3>, memref<2048xi8, 3>, tensor<128x64xf32, #sums>
  %1 = simt.wait_multiply 0, %0 : tensor<128x64xf32, #sums>
  tile.store %1, %c[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<128x64xf32, #sums>, memref<128x64xf32>
  return
}

// -----

#sums = #simt.layout<128x16, reg [d1:1 d0:8 d1:8 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#left = #simt.layout<128x32, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The left rows are in registers. A step of K is 2 units of 16 bytes, and the second 64 rows follow the first in both
// vectors.
// CHECK-LABEL: func @held
// CHECK: %[[B:.*]] = arith.addi %{{.*}}, %c-9223371899415756800_i64
// CHECK: simt.wgmma_rows %{{.*}}, %[[B]] steps [0, 2] plus %{{.*}} : vector<16xf32> : vector<32xbf16> -> vector<16xf32>
func.func @held(%at: i32, %a: memref<128x32xbf16>, %c: memref<128x16xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  %right = simt.buffer : memref<1024xi8, 3>
  %c0 = arith.constant 0 : i64
  %left = tile.load %a[%c0, %c0] {simt.layout = #left, simt.vector = 1 : i64} : memref<128x32xbf16> -> tensor<128x32xbf16, #left>
  %acc = tile.load %c[%c0, %c0] {simt.layout = #sums, simt.vector = 1 : i64} : memref<128x16xf32> -> tensor<128x16xf32, #sums>
  %0 = simt.multiply_rows %left, %right[%at] in <16x32xbf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]> transposed
      plus %acc : tensor<128x16xf32, #sums> slot [0, 4]
      : tensor<128x32xbf16, #left>, memref<1024xi8, 3> -> tensor<128x16xf32, #sums>
  tile.store %0, %c[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<128x16xf32, #sums>, memref<128x16xf32>
  return
}

// -----

#sums = #simt.layout<64x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The threads compute with the first product while the second one runs. One step of the second product is issued right
// after the first product, and the others after the wait for the first.
// CHECK-LABEL: func @beside
// CHECK: simt.wgmma_rows %[[ROWS:.*]], %{{.*}} steps [0, 2] : vector<16xbf16> -> vector<8xf32>
// CHECK: %[[HEAD:.*]] = vector.shuffle %[[ROWS]], %[[ROWS]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: %[[T0:.*]] = simt.wgmma_rows %[[HEAD]], %[[B:.*]] steps [0] : vector<8xbf16> -> vector<8xf32>
// CHECK: simt.wgmma_wait 1,
// CHECK: %[[TAIL:.*]] = vector.shuffle %[[ROWS]], %[[ROWS]] [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK: simt.wgmma_rows %[[TAIL]], %[[B]] steps [2] plus %[[T0]] : vector<8xf32> : vector<8xbf16> -> vector<8xf32>
// CHECK: math.exp2
// CHECK: simt.wgmma_wait 0,

// Nothing is computed between the waits.
// CHECK-LABEL: func @at_once
// CHECK-COUNT-2: simt.wgmma_rows {{.*}} steps [0, 2] :
// CHECK-NOT: simt.wgmma_rows
func.func @beside(%at: i32, %a: memref<64x32xbf16>, %c: memref<64x16xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  %right = simt.buffer : memref<1024xi8, 3>
  %c0 = arith.constant 0 : i64
  %left = tile.load %a[%c0, %c0] {simt.layout = #left, simt.vector = 1 : i64} : memref<64x32xbf16> -> tensor<64x32xbf16, #left>
  %0 = simt.multiply_rows %left, %right[%at] in <16x32xbf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]> transposed slot [0, 4]
      : tensor<64x32xbf16, #left>, memref<1024xi8, 3> -> tensor<64x16xf32, #sums>
  %1 = simt.multiply_rows %left, %right[%at] in <16x32xbf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]> transposed slot [0, 4]
      : tensor<64x32xbf16, #left>, memref<1024xi8, 3> -> tensor<64x16xf32, #sums>
  %2 = simt.wait_multiply 1, %0 : tensor<64x16xf32, #sums>
  %3 = math.exp2 %2 : tensor<64x16xf32, #sums>
  %4 = simt.wait_multiply 0, %1 : tensor<64x16xf32, #sums>
  %5 = arith.mulf %3, %4 : tensor<64x16xf32, #sums>
  tile.store %5, %c[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<64x16xf32, #sums>, memref<64x16xf32>
  return
}

func.func @at_once(%at: i32, %a: memref<64x32xbf16>, %c: memref<64x16xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  %right = simt.buffer : memref<1024xi8, 3>
  %c0 = arith.constant 0 : i64
  %left = tile.load %a[%c0, %c0] {simt.layout = #left, simt.vector = 1 : i64} : memref<64x32xbf16> -> tensor<64x32xbf16, #left>
  %0 = simt.multiply_rows %left, %right[%at] in <16x32xbf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]> transposed slot [0, 4]
      : tensor<64x32xbf16, #left>, memref<1024xi8, 3> -> tensor<64x16xf32, #sums>
  %1 = simt.multiply_rows %left, %right[%at] in <16x32xbf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]> transposed slot [0, 4]
      : tensor<64x32xbf16, #left>, memref<1024xi8, 3> -> tensor<64x16xf32, #sums>
  %2 = simt.wait_multiply 1, %0 : tensor<64x16xf32, #sums>
  %3 = simt.wait_multiply 0, %1 : tensor<64x16xf32, #sums>
  %4 = arith.mulf %2, %3 : tensor<64x16xf32, #sums>
  tile.store %4, %c[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<64x16xf32, #sums>, memref<64x16xf32>
  return
}
