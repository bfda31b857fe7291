// The schedule of a software pipeline is attributes on the loop, its loads and its products. No operation changes.
// RUN: kiln-opt %s --gpu-schedule-copies=limit=131072 | FileCheck %s --implicit-check-not=simt.fetch
// RUN: kiln-opt %s --gpu-schedule-copies=limit=20000 | FileCheck %s --check-prefix=TWO
// RUN: kiln-opt %s --gpu-schedule-copies=limit=10000 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/tile.stages = 4/tile.stages = 3/' %s | kiln-opt --gpu-schedule-copies | FileCheck %s --check-prefix=THREE
// RUN: sed 's/tile.stages = 4/tile.stages = 2/' %s | kiln-opt --gpu-schedule-copies | FileCheck %s --check-prefix=WAITS

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#value = #simt.layout<64x32, reg [d0:1 d0:8 d0:16 d0:32 d1:8 d1:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#narrow = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// Without a number of stages there are three slots, or as many as fit. Copies move vectors of 16 bytes. They are whole if
// extents are multiples of 16. An operand without a load in the loop is not copied.
// CHECK-LABEL: func @matmul
// CHECK: tile.load %arg0{{.*}} {simt.copy_layout = #[[COPIES:.*]], simt.copy_vector = 8 : i64, simt.copy_whole, simt.engine = "cp.async", {{.*}}, simt.slot = #simt.shared_layout<64x32xbf16, 
// CHECK: tile.load %arg1{{.*}} {simt.copy_layout = #[[COPIES]], simt.copy_vector = 8 : i64, simt.engine = "cp.async"
// CHECK: tile.dot {{.*}} {{.*}}, simt.mma}
// CHECK: } {simt.distance = 2 : i64, simt.slots = 3 : i64}
// TWO-LABEL: func @matmul
// TWO: } {simt.distance = 1 : i64, simt.slots = 2 : i64}
// NONE-LABEL: func @matmul
// NONE: tile.load {{.*}} {{.*}}simt.vector = 8 : i64, simt.why = "two stages of 8192 bytes do not fit shared memory"}
// NONE-NOT: simt.slots
// NONE-LABEL: func @multiply
func.func @matmul(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16},
                  %end: i64, %acc: tensor<64x64xf32, #acc>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
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

// A product of warpgroups reads both operands from their slots. With four slots it runs on while the next iteration
// begins, so tiles are copied two iterations ahead. The residual moves in front of the loop.
// CHECK-LABEL: func @multiply
// CHECK: tile.dot {{.*}} {simt.from_slots = "both", {{.*}}, simt.mma, simt.runs_on, simt.wgmma}
// CHECK: } {simt.distance = 2 : i64, simt.slots = 4 : i64}
// CHECK-NEXT: tile.load {{.*}} {simt.ahead, simt.vector = 2 : i64}
// THREE-LABEL: func @multiply
// THREE: tile.dot {{.*}} {simt.from_slots = "both", {{.*}}, simt.mma, simt.wgmma}
// THREE: } {simt.distance = 2 : i64, simt.slots = 3 : i64}
func.func @multiply(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                    %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                    %end: i64, %acc: tensor<64x64xf32, #acc>, %residual: memref<?x?xf32, strided<[?, 1]>>)
    -> tensor<64x64xf32, #acc> attributes {tile.kernel, tile.stages = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  %7 = tile.load %residual[%c0, %c0] {simt.vector = 2 : i64} : memref<?x?xf32, strided<[?, 1]>> -> tensor<64x64xf32, #acc>
  %8 = arith.addf %0, %7 : tensor<64x64xf32, #acc>
  return %8 : tensor<64x64xf32, #acc>
}

// Products with rows in registers read the right operand from its slot. The second one runs on if there are three slots.
// CHECK-LABEL: func @rows
// CHECK: tile.dot {{.*}} {simt.from_slots = "right", {{.*}}, simt.mma, simt.wgmma}
// CHECK: tile.dot {{.*}} {simt.from_slots = "right", {{.*}}, simt.mma, simt.runs_on, simt.wgmma}
// CHECK: } {simt.distance = 2 : i64, simt.slots = 4 : i64}
// THREE-LABEL: func @rows
// THREE: simt.runs_on
// THREE: } {simt.distance = 1 : i64, simt.slots = 3 : i64}
// WAITS-LABEL: func @rows
// WAITS: simt.from_slots = "right"
// WAITS-NOT: simt.runs_on
// WAITS: } {simt.distance = 1 : i64, simt.slots = 2 : i64}
func.func @rows(%k: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                %end: i64, %q: tensor<64x32xbf16, #left>, %acc: tensor<64x32xf32, #narrow>) -> tensor<64x32xf32, #narrow>
    attributes {tile.kernel, tile.stages = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %none = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %0 = scf.for %n = %c0 to %end step %c64 iter_args(%sum = %acc) -> (tensor<64x32xf32, #narrow>) : i64 {
    %1 = tile.load %k[%n, %c0] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.transpose %1 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %3 = simt.convert %2 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %4 = tile.dot %q, %3, %none {simt.layout = #acc, simt.mma, simt.wgmma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %5 = arith.truncf %4 : tensor<64x64xf32, #acc> to tensor<64x64xbf16, #acc>
    %6 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #value>
    %7 = tile.dot %5, %6, %sum {simt.layout = #narrow, simt.mma, simt.wgmma}
        : tensor<64x64xbf16, #acc>, tensor<64x32xbf16, #value>, tensor<64x32xf32, #narrow>
    scf.yield %7 : tensor<64x32xf32, #narrow>
  }
  return %0 : tensor<64x32xf32, #narrow>
}

// The places of the next tile follow from the position in the loop over tiles, so its first copies can begin early.
// CHECK-LABEL: func @tiles
// CHECK: } {simt.distance = 2 : i64, simt.next_tile, simt.slots = 3 : i64}
func.func @tiles(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                 %first: i64, %count: i64, %programs: i64, %end: i64, %b: tensor<32x64xbf16, #right>)
    attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  scf.for %tile = %first to %count step %programs : i64 {
    %row = arith.muli %tile, %c64 : i64
    %0 = scf.for %at = %c0 to %end step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
  }
  return
}

// Not copied: a tile of a view that the kernel writes, one whose padding is not zero, and one whose rows are not known
// to be aligned to 4 bytes.
// CHECK-LABEL: func @refused
// CHECK: tile.load {{.*}} simt.why = "the kernel writes memory that may overlap"
// CHECK: tile.load {{.*}} simt.why = "its padding is not 0, which copies put outside the view"
// CHECK: tile.load {{.*}} simt.why = "its rows are not known to begin at multiples of 4 bytes"
// CHECK-NOT: simt.slots
func.func @refused(%written: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16},
                   %a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16},
                   %odd: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64}, %n: i64,
                   %b: tensor<32x64xbf16, #right>, %acc: tensor<64x64xf32, #acc>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>]} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  scf.for %k = %c0 to %n step %c32 : i64 {
    %1 = tile.load %written[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %3 = tile.dot %2, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    tile.store %1, %written[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : tensor<64x32xbf16, #loaded>, memref<?x?xbf16, strided<[?, 1]>>
    %4 = tile.load %a[%c0, %k] pad inf {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %5 = simt.convert %4 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %6 = tile.dot %5, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %11 = tile.load %odd[%c0, %k] {simt.layout = #loaded, simt.vector = 1 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %12 = simt.convert %11 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %13 = tile.dot %12, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
  }
  return
}

// One stage means no copies ahead.
// CHECK-LABEL: func @one_stage
// CHECK-NOT: simt.slots
func.func @one_stage(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16}, %n: i64,
                     %b: tensor<32x64xbf16, #right>, %acc: tensor<64x64xf32, #acc>)
    attributes {tile.kernel, tile.stages = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  scf.for %k = %c0 to %n step %c32 : i64 {
    %1 = tile.load %a[%c0, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %3 = tile.dot %2, %b, %acc {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
  }
  return
}
