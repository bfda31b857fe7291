// Small tiles are loaded again in a requested layout, and stored in the layout that they have.
// RUN: kiln-opt %s --split-input-file --gpu-adopt-layouts | FileCheck %s

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>
#row = #simt.layout<256, reg [d0:1 d0:2 d0:4], lane [d0:8 d0:16 d0:32 d0:64 d0:128], warp [* *]>

// The operations from a load to a conversion are done in the requested layout; the first load has no reader left.
// CHECK-LABEL: func @load
// CHECK: %[[X:.*]] = tile.load %arg0{{.*}}reg [d0:1 d0:2 d0:4]{{.*}}simt.vector = 4 : i64
// CHECK: %[[Y:.*]] = arith.extf %[[X]]{{.*}}reg [d0:1 d0:2 d0:4]
// CHECK-NOT: simt.convert
// CHECK: math.absf %[[Y]]
// CHECK-NOT: tile.load
func.func @load(%x: memref<256xbf16> {tile.align = 8 : i64}, %y: memref<256xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xbf16> -> tensor<256xbf16, #pairs>
  %1 = arith.extf %0 : tensor<256xbf16, #pairs> to tensor<256xf32, #pairs>
  %2 = simt.convert %1 : tensor<256xf32, #pairs> -> tensor<256xf32, #row>
  %3 = math.absf %2 : tensor<256xf32, #row>
  tile.store %3, %y[%c0] {simt.layout = #row, simt.vector = 4 : i64} : tensor<256xf32, #row>, memref<256xf32>
  return
}

#rows = #simt.layout<4, reg [], lane [* * * * *], warp [d0:1 d0:2]>
#lanes = #simt.layout<4, reg [], lane [d0:1 d0:2 * * *], warp [* *]>

// A tile that is only stored is stored in the layout that it has.
// CHECK-LABEL: func @store
// CHECK-NOT: simt.convert
// CHECK: tile.store %{{.*}} {simt.layout = #simt.layout<4, reg [], lane [* * * * *], warp [d0:1 d0:2]>
func.func @store(%y: memref<4xf32>, %s: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.splat %s : f32 -> tensor<4xf32, #rows>
  %1 = math.sqrt %0 : tensor<4xf32, #rows>
  %2 = simt.convert %1 : tensor<4xf32, #rows> -> tensor<4xf32, #lanes>
  tile.store %2, %y[%c0] {simt.layout = #lanes, simt.vector = 1 : i64} : tensor<4xf32, #lanes>, memref<4xf32>
  return
}

// -----

#rows = #simt.layout<64x64, reg [d1:1 d1:2 d0:16 d0:32 d1:4], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp [d0:4 d0:8]>
#columns = #simt.layout<64x64, reg [d0:1 d0:2 d1:16 d1:32 d0:4], lane [d0:8 d0:16 d0:32 d1:1 d1:2], warp [d1:4 d1:8]>

// A tile of 16 KB, whose lanes would load elements far apart, is converted.
// CHECK-LABEL: func @large
// CHECK: simt.convert
func.func @large(%x: memref<64x64xf32>, %y: memref<64x64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<64x64xf32> -> tensor<64x64xf32, #rows>
  %1 = simt.convert %0 : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>
  %2 = math.absf %1 : tensor<64x64xf32, #columns>
  tile.store %2, %y[%c0, %c0] {simt.layout = #columns, simt.vector = 1 : i64} : tensor<64x64xf32, #columns>, memref<64x64xf32>
  return
}

// If a tile is computed from a narrower one, that one is converted, and the operations follow in the other layout.
// CHECK-LABEL: func @narrower
// CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64x64xf32, #simt.layout<64x64, reg [d0:1
// CHECK: %[[X:.*]] = tile.load
// CHECK-NEXT: %[[NARROW:.*]] = simt.convert %[[X]] : tensor<64x64xbf16
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[NARROW]]{{.*}}reg [d0:1
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[SQUARE]], %[[ONE]]
// CHECK-NEXT: tile.store %[[SUM]]
func.func @narrower(%x: memref<64x64xbf16>, %y: memref<64x64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<64x64xf32, #rows>
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<64x64xbf16> -> tensor<64x64xbf16, #rows>
  %1 = arith.extf %0 : tensor<64x64xbf16, #rows> to tensor<64x64xf32, #rows>
  %2 = arith.mulf %1, %1 : tensor<64x64xf32, #rows>
  %3 = arith.addf %2, %one : tensor<64x64xf32, #rows>
  %4 = simt.convert %3 : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>
  tile.store %4, %y[%c0, %c0] {simt.layout = #columns, simt.vector = 1 : i64} : tensor<64x64xf32, #columns>, memref<64x64xf32>
  return
}

// A tile that has other readers, or that two narrower tiles are needed for, is converted itself.
// CHECK-LABEL: func @as_wide
// CHECK-NOT: simt.convert {{.*}}bf16
// CHECK: simt.convert {{.*}}xf32
// CHECK: simt.convert {{.*}}xf32
// CHECK-NOT: simt.convert
func.func @as_wide(%x: memref<64x64xbf16>, %y: memref<64x64xf32>, %s: memref<64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<64x64xbf16> -> tensor<64x64xbf16, #rows>
  %1 = arith.extf %0 : tensor<64x64xbf16, #rows> to tensor<64x64xf32, #rows>
  %2 = simt.convert %1 : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>
  tile.store %2, %y[%c0, %c0] {simt.layout = #columns, simt.vector = 1 : i64} : tensor<64x64xf32, #columns>, memref<64x64xf32>
  %3 = tile.reduce sum %1 axis 1 : tensor<64x64xf32, #rows> -> tensor<64xf32, #simt.layout<64, reg [d0:16 d0:32], lane [* * * d0:1 d0:2], warp [d0:4 d0:8]>>
  tile.store %3, %s[%c0] {simt.layout = #simt.layout<64, reg [d0:16 d0:32], lane [* * * d0:1 d0:2], warp [d0:4 d0:8]>, simt.vector = 1 : i64} : tensor<64xf32, #simt.layout<64, reg [d0:16 d0:32], lane [* * * d0:1 d0:2], warp [d0:4 d0:8]>>, memref<64xf32>
  %4 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<64x64xbf16> -> tensor<64x64xbf16, #rows>
  %5 = tile.load %y[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<64x64xf32> -> tensor<64x64xf32, #rows>
  %6 = arith.extf %4 : tensor<64x64xbf16, #rows> to tensor<64x64xf32, #rows>
  %7 = arith.addf %5, %6 : tensor<64x64xf32, #rows>
  %8 = simt.convert %7 : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #columns>
  tile.store %8, %y[%c0, %c0] {simt.layout = #columns, simt.vector = 1 : i64} : tensor<64x64xf32, #columns>, memref<64x64xf32>
  return
}

#pairs = #simt.layout<32x32, reg [d1:1 d0:8 d0:16], lane [d1:2 d1:4 d1:8 d1:16 d0:1], warp [d0:2 d0:4]>
#a = #simt.layout<32x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 *]>
#b = #simt.layout<32x32, reg [d0:1 d0:8 d0:16 d1:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* d1:8]>
#sums = #simt.layout<32x32, reg [d1:1 d0:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d1:8]>

// Operands of products are left to gpu-schedule-copies.
// CHECK-LABEL: func @product
// CHECK-COUNT-2: simt.convert
func.func @product(%x: memref<32x32xbf16>, %y: memref<32x32xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #sums>
  %0 = tile.load %x[%c0, %c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<32x32xbf16> -> tensor<32x32xbf16, #pairs>
  %1 = simt.convert %0 : tensor<32x32xbf16, #pairs> -> tensor<32x32xbf16, #a>
  %2 = simt.convert %0 : tensor<32x32xbf16, #pairs> -> tensor<32x32xbf16, #b>
  %3 = tile.dot %1, %2, %zero {simt.layout = #sums, simt.mma} : tensor<32x32xbf16, #a>, tensor<32x32xbf16, #b>, tensor<32x32xf32, #sums>
  tile.store %3, %y[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<32x32xf32, #sums>, memref<32x32xf32>
  return
}

#one = #simt.layout<256, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64 d0:128]>
#all = #simt.layout<256, reg [d0:1 d0:2 d0:4 d0:8 d0:16 d0:32 d0:64 d0:128], lane [* * * * *], warp [* * *]>

// Each thread would compute all 256 elements instead of one, so the tile is converted.
// CHECK-LABEL: func @everywhere
// CHECK: simt.convert
func.func @everywhere(%x: memref<256xi32> {tile.align = 16 : i64}, %y: memref<256xi32>) attributes {tile.kernel, tile.warps = 8 : i64} {
  %c0 = arith.constant 0 : i64
  %limit = arith.constant dense<7> : tensor<256xi32, #one>
  %one = arith.constant dense<1> : tensor<256xi32, #all>
  %0 = tile.load %x[%c0] {simt.layout = #one, simt.vector = 1 : i64} : memref<256xi32> -> tensor<256xi32, #one>
  %1 = arith.minsi %0, %limit : tensor<256xi32, #one>
  %2 = simt.convert %1 : tensor<256xi32, #one> -> tensor<256xi32, #all>
  %3 = arith.addi %2, %one : tensor<256xi32, #all>
  tile.store %3, %y[%c0] {simt.layout = #all, simt.vector = 4 : i64} : tensor<256xi32, #all>, memref<256xi32>
  return
}
