// A product of warpgroups reads the slots of its operands' rings directly.
// RUN: kiln-opt %s --gpu-schedule-copies --gpu-expand-pipeline | FileCheck %s
// RUN: sed 's/tile.stages = 4/tile.stages = 3/' %s | kiln-opt --gpu-schedule-copies --gpu-expand-pipeline | FileCheck %s --check-prefix=AT-ONCE
// RUN: sed 's/tile.stages = 4/tile.stages = 2/' %s | kiln-opt --gpu-schedule-copies --gpu-expand-pipeline | FileCheck %s --check-prefix=TWO

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// Of four slots one is read, one may still be read by the previous product, and two are filled. An iteration starts its
// product before it fetches, and waits for the previous iteration's product. B's slot holds its transpose.
// CHECK-LABEL: func @matmul
// CHECK-DAG: %[[A:.*]] = simt.buffer : memref<16384xi8, 3>
// CHECK-DAG: %[[B:.*]] = simt.buffer : memref<16384xi8, 3>
// CHECK: simt.fetch %arg0{{.*}} slot [0, 4, 2]
// CHECK: simt.fetch %arg0{{.*}} slot [1, 4, 2]
// CHECK-NOT: simt.fetch %arg0
// CHECK: %[[LOOP:.*]]:4 = scf.for %[[K:.*]] = %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[SLOT:.*]] = %c0_i32{{.*}}, %[[LAST:.*]] = %c12288_i32, %[[FREE:.*]] = %c8192_i32)
// CHECK-NEXT: simt.wait_copies 1 shown
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: %[[PRODUCT:.*]] = simt.multiply %[[A]][%[[SLOT]]] in <64x32xbf16, {{.*}}>, %[[B]][%[[SLOT]]] in <64x32xbf16, {{.*}}> transposed, %[[SUM]] slot [0, 4]
// CHECK: simt.fetch %arg0[%{{.*}}, %{{.*}}] to %[[A]][%[[FREE]]] slot [2, 4, 2]
// CHECK: simt.fetch %arg1{{.*}} slot [2, 4, 2]
// CHECK-NEXT: simt.commit_copies
// CHECK-NEXT: %[[WAITED:.*]] = simt.wait_multiply 1, %[[PRODUCT]]
// CHECK-NOT: simt.read
// CHECK: scf.yield %[[WAITED]], %{{.*}}, %[[SLOT]], %[[LAST]] :
// CHECK: simt.wait_copies 0
// CHECK-NEXT: %[[ALL:.*]] = simt.wait_multiply 0, %[[LOOP]]#0
// CHECK: return %[[ALL]]
// AT-ONCE-LABEL: func @matmul
// AT-ONCE: scf.for
// AT-ONCE-NEXT: simt.wait_copies 1 shown
// AT-ONCE: simt.multiply {{.*}} slot [0, 3]
// AT-ONCE: simt.fetch %arg1{{.*}} slot [2, 3] by
// AT-ONCE: simt.wait_multiply 0
// AT-ONCE: }
// AT-ONCE-NEXT: simt.wait_copies 0
// AT-ONCE-NEXT: return
func.func @matmul(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %m: i64, %acc: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc>
    attributes {tile.kernel, tile.stages = 4 : i64} {
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
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  return %0 : tensor<64x64xf32, #acc>
}

// A product without warpgroups reads fragments from the same rings.
// CHECK-LABEL: func @fragments
// CHECK-NOT: simt.multiply
// CHECK: tile.dot
func.func @fragments(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                     %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16},
                     %m: i64, %acc: tensor<64x64xf32, #acc>) -> tensor<64x64xf32, #acc>
    attributes {tile.kernel, tile.stages = 4 : i64} {
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
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  return %0 : tensor<64x64xf32, #acc>
}

// A product of rows in registers reads its right operand from the ring in place. A fence makes the copied data visible
// to it. Accumulators that begin at 0 are not passed to it. The first product begins before the fetches. The wait for
// it comes before its first use, together with the second product of the iteration before. That one reads a slot until
// then, so a tile is fetched two iterations ahead of four.
// CHECK-LABEL: func @rows
// CHECK: %[[RING:.*]] = simt.buffer : memref<16384xi8, 3>
// CHECK: %[[LOOP:.*]]:4 = scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %arg2, %[[SLOT:[^ ]*]] =
// CHECK-NEXT: simt.wait_copies 1 shown
// CHECK-NEXT: %[[S:.*]] = simt.multiply_rows %arg1, %[[RING]][%[[SLOT]]] in <64x32xbf16, {{.*}}> transposed slot [0, 4]
// CHECK: simt.fetch %arg0{{.*}} slot [2, 4, 2]
// CHECK-NOT: simt.read
// CHECK-NOT: simt.convert
// CHECK: %[[DONE:.*]]:2 = simt.wait_multiply 0, %[[S]], %[[BEFORE]]
// CHECK-DAG: arith.truncf %[[DONE]]#0
// CHECK-DAG: arith.addf %[[DONE]]#1
// CHECK: %[[NEXT:.*]] = simt.multiply_rows %{{.*}}, %[[RING]][%[[SLOT]]] in <64x32xbf16, {{.*}}> plus %{{.*}} slot [0, 4]
// CHECK-NOT: simt.wait_multiply
// CHECK-NOT: tile.dot
// CHECK: scf.yield %[[NEXT]],
// CHECK: simt.wait_copies 0
// CHECK: %[[ALL:.*]] = simt.wait_multiply 0, %[[LOOP]]#0
// CHECK: return %[[ALL]]

// With two stages there is no slot for a product of the iteration before.
// TWO-LABEL: func @rows
// TWO: simt.multiply_rows
// TWO: simt.wait_multiply 0
// TWO: simt.multiply_rows
// TWO: simt.wait_multiply 0
// TWO: scf.yield
#narrow = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#wide = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#value = #simt.layout<64x32, reg [d0:1 d0:8 d0:16 d0:32 d1:8 d1:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
func.func @rows(%k: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                %q: tensor<64x32xbf16, #left>, %acc: tensor<64x32xf32, #narrow>) -> tensor<64x32xf32, #narrow>
    attributes {tile.kernel, tile.stages = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %none = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %end = tile.dim %k, 0 : memref<?x?xbf16, strided<[?, 1]>>
  %0 = scf.for %n = %c0 to %end step %c64 iter_args(%sum = %acc) -> (tensor<64x32xf32, #narrow>) : i64 {
    %1 = tile.load %k[%n, %c0] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.transpose %1 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %3 = simt.convert %2 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %4 = tile.dot %q, %3, %none {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %5 = arith.truncf %4 : tensor<64x64xf32, #acc> to tensor<64x64xbf16, #wide>
    %6 = arith.addf %sum, %sum : tensor<64x32xf32, #narrow>
    %7 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #value>
    %8 = tile.dot %5, %7, %6 {simt.layout = #narrow, simt.mma, simt.wgmma}
        : tensor<64x64xbf16, #wide>, tensor<64x32xbf16, #value>, tensor<64x32xf32, #narrow>
    scf.yield %8 : tensor<64x32xf32, #narrow>
  }
  return %0 : tensor<64x32xf32, #narrow>
}

// Two products of rows from before the loop begin one after the other. The wait for the first one leaves the second one
// running. The third product begins as soon as its rows are known, before the wait for the second one.
// CHECK-LABEL: func @beside
// CHECK: scf.for
// CHECK: %[[S:.*]] = simt.multiply_rows %arg1,
// CHECK: %[[T:.*]] = simt.multiply_rows %arg1,
// CHECK: simt.fetch
// CHECK: %[[S1:.*]]:2 = simt.wait_multiply 1, %[[S]], %{{.*}} :
// CHECK: %[[P:.*]] = arith.truncf %[[S1]]#0
// CHECK: %[[ACC:.*]] = simt.multiply_rows %[[P]], {{.*}} plus %[[S1]]#1
// CHECK: %[[T1:.*]] = simt.wait_multiply 1, %[[T]] :
// CHECK: arith.mulf %{{.*}}, %[[T1]]
// CHECK: scf.yield %[[ACC]],
func.func @beside(%k: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %q: tensor<64x32xbf16, #left>, %acc: tensor<64x32xf32, #narrow>, %most: tensor<64x64xf32, #acc>)
    -> (tensor<64x32xf32, #narrow>, tensor<64x64xf32, #acc>) attributes {tile.kernel, tile.stages = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %none = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %end = tile.dim %k, 0 : memref<?x?xbf16, strided<[?, 1]>>
  %0:2 = scf.for %n = %c0 to %end step %c64 iter_args(%sum = %acc, %last = %most)
      -> (tensor<64x32xf32, #narrow>, tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %k[%n, %c0] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.transpose %1 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %3 = simt.convert %2 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %4 = tile.dot %q, %3, %none {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %5 = tile.dot %q, %3, %none {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %6 = arith.mulf %4, %5 : tensor<64x64xf32, #acc>
    %7 = arith.truncf %4 : tensor<64x64xf32, #acc> to tensor<64x64xbf16, #wide>
    %8 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #value>
    %9 = tile.dot %7, %8, %sum {simt.layout = #narrow, simt.mma, simt.wgmma}
        : tensor<64x64xbf16, #wide>, tensor<64x32xbf16, #value>, tensor<64x32xf32, #narrow>
    scf.yield %9, %6 : tensor<64x32xf32, #narrow>, tensor<64x64xf32, #acc>
  }
  return %0#0, %0#1 : tensor<64x32xf32, #narrow>, tensor<64x64xf32, #acc>
}
