// Operands of products are copied to slots of shared memory some iterations ahead.
// RUN: kiln-opt %s --split-input-file --gpu-schedule-copies --gpu-expand-pipeline | FileCheck %s
// RUN: kiln-opt %s --split-input-file --gpu-schedule-copies=limit=20000 --gpu-expand-pipeline | FileCheck %s --check-prefix=TWO

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// A and B of two iterations are copied before the loop, in one group for each iteration. The loop waits for a slot,
// refills the slot that was read last, and reads the product's operands: B through its transposition. No row ends
// within a vector, because extents are multiples of 16.
// CHECK-LABEL: func @matmul
// CHECK-DAG: %[[A:.*]] = simt.buffer : memref<12288xi8, 3>
// CHECK-DAG: %[[B:.*]] = simt.buffer : memref<12288xi8, 3>
// CHECK: simt.fetch %arg0[%{{.*}}, %{{.*}}] to %[[A]][%{{.*}}] slot [0, 3] by 8 in <64x32xbf16, {{.*}} if %{{.*}} {layout = #{{.*}}, whole}
// CHECK: simt.fetch %arg1{{.*}} slot [0, 3]
// CHECK-NEXT: simt.commit_copies
// CHECK: simt.fetch %arg0{{.*}} slot [1, 3]
// CHECK: simt.fetch %arg1{{.*}} slot [1, 3]
// CHECK-NEXT: simt.commit_copies
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %[[END:.*]] step %{{.*}} iter_args(%{{.*}} = %{{.*}}, %[[SLOT:.*]] = %c0_i32{{.*}}, %[[FREE:.*]] = %c8192_i32)
// CHECK-NEXT: simt.wait_copies 1
// CHECK: %[[LATER:.*]] = arith.addi %[[K]], %{{.*}} : i64
// CHECK: %[[THERE:.*]] = arith.cmpi slt, %[[LATER]], %[[END]]
// CHECK: simt.fetch %arg0[%{{.*}}, %[[LATER]]] to %[[A]][%[[FREE]]] slot [2, 3] {{.*}} if %[[THERE]]
// CHECK: simt.fetch %arg1[%{{.*}}, %[[LATER]]] {{.*}} slot [2, 3] {{.*}} if %[[THERE]]
// CHECK-NEXT: simt.commit_copies
// CHECK-NOT: tile.load
// CHECK: %[[LEFT:.*]] = simt.read %[[A]][%[[SLOT]]] slot [0, 3] by rows
// CHECK: %[[ROWS:.*]] = simt.read %[[B]][%{{.*}}] slot [0, 3] by rows
// CHECK: %[[RIGHT:.*]] = tile.transpose %[[ROWS]] [1, 0]
// CHECK-NOT: simt.convert
// CHECK: tile.dot %[[LEFT]], %[[RIGHT]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[SLOT]] :
// CHECK: }
// CHECK-NEXT: simt.wait_copies 0
// TWO-LABEL: func @matmul
// TWO: simt.fetch {{.*}} slot [0, 2]
// TWO: scf.for
// TWO-NEXT: simt.wait_copies 0
// TWO: simt.fetch {{.*}} slot [1, 2]
func.func @matmul(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %m: i64, %acc: tensor<64x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  %row = arith.muli %m, %c64 : i64
  %end = tile.dim %a, 1 : memref<?x?xbf16, strided<[?, 1]>>
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%row, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%row, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  return
}

// -----

#loaded = #simt.layout<1x32x32, reg [d2:1 d2:2 d2:4], lane [d2:8 d2:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#flat = #simt.layout<32x32, reg [d1:1 d1:2 d1:4], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#transposed = #simt.layout<32x32, reg [d0:1 d0:2 d0:4], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#right = #simt.layout<32x32, reg [d0:1 d0:8 d0:16 d1:8 d1:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// One product uses the tile as it is, another one transposed: each reads the slot in its own way. The bounds of an
// iteration's tile are tested when it is copied.
// CHECK-LABEL: func @two_products
// CHECK: simt.fetch {{.*}} tile.inside = array<i64: 1>
// CHECK: scf.for
// CHECK: simt.fetch {{.*}} tile.inside = array<i64: 1>
// CHECK-NOT: {{tile.load|simt.convert}}
// CHECK: simt.read {{.*}} by rows
// CHECK-NOT: {{tile.load|simt.convert}}
// CHECK: tile.transpose
// CHECK: tile.dot
// CHECK: simt.read {{.*}} by columns
// CHECK-NOT: {{tile.load|simt.convert|tile.transpose}}
// CHECK: tile.dot
// CHECK: scf.yield
func.func @two_products(%k: memref<?x?x32xbf16, strided<[?, ?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                        %h: i64, %q: tensor<64x32xbf16, #left>, %acc: tensor<64x32xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %end = tile.dim %k, 1 : memref<?x?x32xbf16, strided<[?, ?, 1]>>
  %0:2 = scf.for %n = %c0 to %end step %c32 iter_args(%s = %acc, %t = %acc)
      -> (tensor<64x32xf32, #acc>, tensor<64x32xf32, #acc>) : i64 {
    %1 = tile.load %k[%h, %n, %c0] {simt.layout = #loaded, simt.vector = 8 : i64, tile.inside = array<i64: 1>}
        : memref<?x?x32xbf16, strided<[?, ?, 1]>> -> tensor<1x32x32xbf16, #loaded>
    %2 = tile.reshape %1 : tensor<1x32x32xbf16, #loaded> -> tensor<32x32xbf16, #flat>
    %3 = tile.transpose %2 [1, 0] : tensor<32x32xbf16, #flat> -> tensor<32x32xbf16, #transposed>
    %4 = simt.convert %3 : tensor<32x32xbf16, #transposed> -> tensor<32x32xbf16, #right>
    %5 = tile.dot %q, %4, %s {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x32xbf16, #right>, tensor<64x32xf32, #acc>
    %6 = simt.convert %2 : tensor<32x32xbf16, #flat> -> tensor<32x32xbf16, #right>
    %7 = tile.dot %q, %6, %t {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x32xbf16, #right>, tensor<64x32xf32, #acc>
    scf.yield %5, %7 : tensor<64x32xf32, #acc>, tensor<64x32xf32, #acc>
  }
  return
}

// -----

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// The kernel sets the number of stages. A row that may end within a vector is copied with a byte count. Other readers
// of the tile read it in the load's own layout.
// CHECK-LABEL: func @ragged
// CHECK: simt.buffer : memref<8192xi8, 3>
// CHECK: simt.fetch {{.*}} slot [0, 2] by 8 in {{.*}} {layout = #simt.layout<{{[^>]*}}>} :
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 0
// CHECK: %[[OWN:.*]] = simt.read {{.*}} by vectors
// CHECK: simt.read {{.*}} by rows
// CHECK: arith.addf %[[OWN]], %[[OWN]]
func.func @ragged(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16}, %n: i64,
                  %b: tensor<32x64xbf16, #right>, %acc: tensor<64x64xf32, #acc>)
    attributes {tile.kernel, tile.stages = 2 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  scf.for %k = %c0 to %n step %c32 : i64 {
    %1 = tile.load %a[%c0, %k] {simt.layout = #loaded, simt.vector = 1 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %3 = tile.dot %2, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %4 = arith.addf %1, %1 : tensor<64x32xbf16, #loaded>
  }
  return
}

// A tile that is cast is still prefetched: it is read in the load's layout, cast, and converted as before.
// CHECK-LABEL: func @cast
// CHECK: simt.fetch %arg0{{.*}} slot [0, 3] by 16 in <64x32xi8
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 1
// CHECK: %[[NARROW:.*]] = simt.read {{.*}} slot [0, 3] by vectors {{.*}} -> tensor<64x32xi8
// CHECK: %[[WIDE:.*]] = arith.sitofp %[[NARROW]]
// CHECK: %[[OPERAND:.*]] = simt.convert %[[WIDE]]
// CHECK: tile.dot %[[OPERAND]]
func.func @cast(%a: memref<?x?xi8, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                %n: i64, %b: tensor<32x64xbf16, #right>, %acc: tensor<64x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  scf.for %k = %c0 to %n step %c32 : i64 {
    %1 = tile.load %a[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xi8, strided<[?, 1]>> -> tensor<64x32xi8, #loaded>
    %2 = arith.sitofp %1 : tensor<64x32xi8, #loaded> to tensor<64x32xbf16, #loaded>
    %3 = simt.convert %2 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %4 = tile.dot %3, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
  }
  return
}

// -----

#loaded = #simt.layout<32x64, reg [d1:1 d1:2 d0:8 d0:16], lane [d1:4 d1:8 d1:16 d1:32 d0:1], warp [d0:2 d0:4]>
#left = #simt.layout<64x32, reg [d0:8 d1:4 d1:8 d1:16], lane [d1:1 d1:2 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#right = #simt.layout<32x64, reg [d0:4 d0:8 d0:16 d1:1 d1:2 d1:32], lane [d0:1 d0:2 d1:4 d1:8 d1:16], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:4 d0:8 d1:1 d1:2 d1:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// Pieces of 16 bytes are placed so that their reads have no bank conflicts: here lanes read two of four rows, whose
// lowest bits therefore permute the pieces by two and four.
// CHECK-LABEL: func @pieces
// CHECK: simt.read {{.*}} by vectors in <32x64xf32, d0 [160, 320, 528, 1024, 2048], d1 [4, 8, 16, 32, 64, 4096]> : {{.*}} -> tensor<32x64xf32
func.func @pieces(%b: memref<?x?xf32, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %left: tensor<64x32xf32, #left>, %end: i64, %acc: tensor<64x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %b[%k, %c0] {simt.layout = #loaded, simt.vector = 4 : i64}
        : memref<?x?xf32, strided<[?, 1]>> -> tensor<32x64xf32, #loaded>
    %2 = simt.convert %1 : tensor<32x64xf32, #loaded> -> tensor<32x64xf32, #right>
    %3 = tile.dot %left, %2, %sum precision tf32 {simt.layout = #acc, simt.mma}
        : tensor<64x32xf32, #left>, tensor<32x64xf32, #right>, tensor<64x64xf32, #acc>
    scf.yield %3 : tensor<64x64xf32, #acc>
  }
  return
}
