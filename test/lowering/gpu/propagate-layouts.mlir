// Layouts of accesses and products are propagated forwards, then backwards. Where two differ, there is a conversion.
// RUN: kiln-opt %s --split-input-file --gpu-propagate-layouts | FileCheck %s

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>

// A tile that is computed from a load has the load's layout, and so has a constant operand.
// CHECK-LABEL: func @forwards
// CHECK: arith.constant dense<1.000000e+00> : tensor<256xf32, [[PAIRS:#simt.layout<256, reg \[d0:1\].*>]]>
// CHECK: tile.load {{.*}} -> tensor<256xf32, [[PAIRS]]>
// CHECK-NOT: simt.convert
// CHECK: arith.addf {{.*}} : tensor<256xf32, [[PAIRS]]>
// CHECK: tile.store {{.*}} : tensor<256xf32, [[PAIRS]]>
func.func @forwards(%x: memref<256xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %one = arith.constant dense<1.0> : tensor<256xf32>
  %0 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xf32> -> tensor<256xf32>
  %1 = arith.addf %one, %0 : tensor<256xf32>
  tile.store %1, %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : tensor<256xf32>, memref<256xf32>
  return
}

// A tile whose operands request no layout gets that of its store.
// CHECK-LABEL: func @backwards
// CHECK: tile.splat {{.*}} -> tensor<256xf32, #simt.layout<256, reg [d0:1]
// CHECK: math.absf {{.*}} tensor<256xf32, #simt.layout<256, reg [d0:1]
// CHECK-NOT: simt.convert
// CHECK: return
func.func @backwards(%x: memref<256xf32>, %s: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.splat %s : f32 -> tensor<256xf32>
  %1 = math.absf %0 : tensor<256xf32>
  tile.store %1, %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : tensor<256xf32>, memref<256xf32>
  return
}

// A tile for which no operation requests a layout is blocked along the last dimension.
// CHECK-LABEL: func @blocked
// CHECK: arith.constant dense<1.000000e+00> : tensor<16x32xf32, #simt.layout<16x32, reg [d0:4 d0:8], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1 d0:2]>>
func.func @blocked() attributes {tile.kernel} {
  %0 = arith.constant dense<1.0> : tensor<16x32xf32>
  tile.print "x", %0 : tensor<16x32xf32>
  return
}

#singles = #simt.layout<256, reg [d0:128], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// If layouts differ, one operand is converted right after its definition, once for all its readers.
// CHECK-LABEL: func @meeting
// CHECK: tile.load %arg0{{.*}} -> tensor<256xf32, [[PAIRS:#simt.layout<256, reg \[d0:1\].*>]]>
// CHECK: %[[Y:.*]] = tile.load %arg1{{.*}} -> tensor<256xf32, [[SINGLES:#simt.layout<256, reg \[d0:128\].*>]]>
// CHECK-NEXT: %[[CONVERTED:.*]] = simt.convert %[[Y]] : tensor<256xf32, [[SINGLES]]> -> tensor<256xf32, [[PAIRS]]>
// CHECK-NOT: simt.convert
// CHECK: arith.addf %{{.*}}, %[[CONVERTED]] : tensor<256xf32, [[PAIRS]]>
// CHECK-NOT: simt.convert
// CHECK: arith.mulf %{{.*}}, %[[CONVERTED]] : tensor<256xf32, [[PAIRS]]>
// CHECK-NOT: simt.convert
// CHECK: return
func.func @meeting(%x: memref<256xf32>, %y: memref<256xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xf32> -> tensor<256xf32>
  %1 = tile.load %y[%c0] {simt.layout = #singles, simt.vector = 1 : i64} : memref<256xf32> -> tensor<256xf32>
  %2 = arith.addf %0, %1 : tensor<256xf32>
  %3 = arith.mulf %2, %1 : tensor<256xf32>
  tile.store %3, %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : tensor<256xf32>, memref<256xf32>
  return
}

// Positions, constants and scalars are computed once for each layout, not converted.
// CHECK-LABEL: func @free
// CHECK-COUNT-2: tile.iota
// CHECK-COUNT-2: tile.splat
// CHECK-COUNT-2: arith.addi {{.*}} : tensor<256xi32
// CHECK-NOT: simt.convert
// CHECK: return
func.func @free(%x: memref<256xi32>, %y: memref<256xi32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.iota : tensor<256xi32>
  %1 = tile.splat %n : i32 -> tensor<256xi32>
  %2 = arith.addi %0, %1 : tensor<256xi32>
  tile.store %2, %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : tensor<256xi32>, memref<256xi32>
  tile.store %2, %y[%c0] {simt.layout = #singles, simt.vector = 1 : i64} : tensor<256xi32>, memref<256xi32>
  return
}

#rows = #simt.layout<32x32, reg [d1:1 d1:2 d0:16], lane [d1:4 d1:8 d1:16 d0:1 d0:2], warp [d0:4 d0:8]>
#sums = #simt.layout<32x32, reg [d1:1 d0:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d1:8]>

// Tensor cores read their operands as fragments. A loop carries the accumulator in the product's layout from its
// initial value on. Only the operands are converted, and the result once, after the loop.
// CHECK-LABEL: func @product
// CHECK: arith.constant dense<0.000000e+00> : tensor<32x32xf32, [[SUMS:#simt.layout<32x32, reg \[d1:1 d0:8 d1:16\].*>]]>
// CHECK: scf.for {{.*}} -> (tensor<32x32xf32, [[SUMS]]>)
// CHECK: simt.convert {{.*}} -> tensor<32x32xbf16, [[A:#simt.layout<32x32, reg \[d1:1 d0:8 d1:8 d1:16\], lane \[d1:2 d1:4 d0:1 d0:2 d0:4\], warp \[d0:16 \*\]>]]>
// CHECK: simt.convert {{.*}} -> tensor<32x32xbf16, [[B:#simt.layout<32x32, reg \[d0:1 d0:8 d0:16 d1:16\], lane \[d0:2 d0:4 d1:1 d1:2 d1:4\], warp \[\* d1:8\]>]]>
// CHECK-NOT: simt.convert
// CHECK: tile.dot {{.*}} : tensor<32x32xbf16, [[A]]>, tensor<32x32xbf16, [[B]]>, tensor<32x32xf32, [[SUMS]]>
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: simt.convert
// CHECK-NEXT: tile.store
func.func @product(%x: memref<32x32xbf16>, %y: memref<32x32xbf16>, %z: memref<32x32xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x32xf32>) : i64 {
    %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<32x32xbf16> -> tensor<32x32xbf16>
    %1 = tile.load %y[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<32x32xbf16> -> tensor<32x32xbf16>
    %2 = tile.dot %0, %1, %acc {simt.layout = #sums, simt.mma} : tensor<32x32xbf16>, tensor<32x32xbf16>, tensor<32x32xf32>
    scf.yield %2 : tensor<32x32xf32>
  }
  tile.store %r, %z[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : tensor<32x32xf32>, memref<32x32xf32>
  return
}

// -----

#rows = #simt.layout<32x32, reg [d1:1 d1:2 d0:16], lane [d1:4 d1:8 d1:16 d0:1 d0:2], warp [d0:4 d0:8]>
#sums = #simt.layout<32x32, reg [d1:1 d1:2 d0:1], lane [d1:4 d1:8 d1:16 d0:2 d0:4], warp [d0:8 d0:16]>

// Outer products read their operands from shared memory, in any layout.
// CHECK-LABEL: func @outer_product
// CHECK-NOT: simt.convert
// CHECK: return
func.func @outer_product(%x: memref<32x32xf32>, %y: memref<32x32xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<32x32xf32> -> tensor<32x32xf32>
  %1 = tile.dot %0, %0, %zero {simt.layout = #sums} : tensor<32x32xf32>, tensor<32x32xf32>, tensor<32x32xf32>
  tile.store %1, %y[%c0, %c0] {simt.layout = #sums, simt.vector = 4 : i64} : tensor<32x32xf32>, memref<32x32xf32>
  return
}

// A reduction keeps the layout of the other dimension. Its results broadcast to the rows without moving elements.
// CHECK-LABEL: func @reduction
// CHECK: tile.reduce max {{.*}} -> tensor<32xf32, #simt.layout<32, reg [d0:16], lane [* * * d0:1 d0:2], warp [d0:4 d0:8]>>
// CHECK-NOT: simt.convert
// CHECK: tile.broadcast {{.*}} -> tensor<32x32xf32, #simt.layout<32x32, reg [d1:1 d1:2 d0:16]
// CHECK-NOT: simt.convert
// CHECK: return
func.func @reduction(%x: memref<32x32xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<32x32xf32> -> tensor<32x32xf32>
  %1 = tile.reduce max %0 axis 1 : tensor<32x32xf32> -> tensor<32xf32>
  %2 = tile.reshape %1 : tensor<32xf32> -> tensor<32x1xf32>
  %3 = tile.broadcast %2 : tensor<32x1xf32> -> tensor<32x32xf32>
  %4 = arith.subf %0, %3 : tensor<32x32xf32>
  tile.store %4, %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : tensor<32x32xf32>, memref<32x32xf32>
  return
}

// -----

#rows = #simt.layout<16x32, reg [d1:1 d0:8], lane [d1:2 d1:4 d1:8 d1:16 d0:1], warp [d0:2 d0:4]>

// A transposition permutes the layout and moves nothing; neither does a reshape that splits a dimension.
// CHECK-LABEL: func @moves
// CHECK: tile.transpose {{.*}} -> tensor<32x16xf32, #simt.layout<32x16, reg [d0:1 d1:8], lane [d0:2 d0:4 d0:8 d0:16 d1:1], warp [d1:2 d1:4]>>
// CHECK: tile.reshape {{.*}} -> tensor<4x8x16xf32, #simt.layout<4x8x16, reg [d1:1 d2:8], lane [d1:2 d1:4 d0:1 d0:2 d2:1], warp [d2:2 d2:4]>>
// CHECK-NOT: simt.convert
// CHECK: return
func.func @moves(%x: memref<16x32xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 2 : i64} : memref<16x32xf32> -> tensor<16x32xf32>
  %1 = tile.transpose %0 [1, 0] : tensor<16x32xf32> -> tensor<32x16xf32>
  %2 = tile.reshape %1 : tensor<32x16xf32> -> tensor<4x8x16xf32>
  tile.print "x", %2 : tensor<4x8x16xf32>
  return
}

// Every thread has the indices of the rows that it gathers.
// CHECK-LABEL: func @gather
// CHECK: tile.iota : tensor<16xi32, #simt.layout<16, reg [d0:8], lane [* * * * d0:1], warp [d0:2 d0:4]>>
func.func @gather(%x: memref<?x32xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.iota : tensor<16xi32>
  %1 = tile.gather %x[%0, %c0] {simt.layout = #rows, simt.vector = 2 : i64} : memref<?x32xf32>, tensor<16xi32> -> tensor<16x32xf32>
  tile.print "x", %1 : tensor<16x32xf32>
  return
}

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>
#singles = #simt.layout<256, reg [d0:128], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// Both sides of a branch yield one layout.
// CHECK-LABEL: func @branch
// CHECK: scf.if {{.*}} -> (tensor<256xf32, [[ONE:#simt.layout<.*>]]>) {
// CHECK: scf.yield {{.*}} : tensor<256xf32, [[ONE]]>
// CHECK: } else {
// CHECK: scf.yield {{.*}} : tensor<256xf32, [[ONE]]>
func.func @branch(%x: memref<256xf32>, %y: memref<256xf32>, %p: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = scf.if %p -> tensor<256xf32> {
    %1 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xf32> -> tensor<256xf32>
    scf.yield %1 : tensor<256xf32>
  } else {
    %1 = tile.load %y[%c0] {simt.layout = #singles, simt.vector = 1 : i64} : memref<256xf32> -> tensor<256xf32>
    scf.yield %1 : tensor<256xf32>
  }
  tile.print "x", %0 : tensor<256xf32>
  return
}

// A loop-carried tile keeps its initial layout. Tiles that are swapped are converted at the yield.
// CHECK-LABEL: func @exchanging_loop
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = {{.*}}, %[[B:.*]] = {{.*}}) -> (tensor<256xf32, #simt.layout<256, reg [d0:1], {{.*}}>>, tensor<256xf32, #simt.layout<256, reg [d0:128], {{.*}}>>)
// CHECK-DAG: %[[Y:.*]] = simt.convert %[[A]] : {{.*}} -> tensor<256xf32, #simt.layout<256, reg [d0:128]
// CHECK-DAG: %[[X:.*]] = simt.convert %[[B]] : {{.*}} -> tensor<256xf32, #simt.layout<256, reg [d0:1]
// CHECK: scf.yield %[[X]], %[[Y]] :
func.func @exchanging_loop(%x: memref<256xf32>, %y: memref<256xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xf32> -> tensor<256xf32>
  %1 = tile.load %y[%c0] {simt.layout = #singles, simt.vector = 1 : i64} : memref<256xf32> -> tensor<256xf32>
  %2:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0, %b = %1) -> (tensor<256xf32>, tensor<256xf32>) : i64 {
    scf.yield %b, %a : tensor<256xf32>, tensor<256xf32>
  }
  tile.print "x", %2#0 : tensor<256xf32>
  return
}

#apart = #simt.layout<256, reg [d0:128], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// A conversion is placed before its first use, not after its operand.
// CHECK-LABEL: func @late
// CHECK: tile.load
// CHECK: tile.store
// CHECK-NEXT: simt.convert
// CHECK-NEXT: tile.store
func.func @late(%x: memref<256xf32>, %y: memref<256xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : memref<256xf32> -> tensor<256xf32>
  tile.store %0, %x[%c0] {simt.layout = #pairs, simt.vector = 2 : i64} : tensor<256xf32>, memref<256xf32>
  tile.store %0, %y[%c0] {simt.layout = #apart, simt.vector = 1 : i64} : tensor<256xf32>, memref<256xf32>
  return
}

// -----

#rows = #simt.layout<64x64, reg [d1:1 d1:2 d1:4 d1:8 d1:16], lane [d1:32 d0:1 d0:2 d0:4 d0:8], warp [d0:16 d0:32]>
#lines = #simt.layout<64x64, reg [d1:1 d1:2 d1:4 d0:16 d0:32], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp [d0:4 d0:8]>

// A small loop-invariant tile is computed and converted before the loop. A large one is not.
// CHECK-LABEL: func @same_in_all_iterations
// CHECK: tile.load
// CHECK: tile.reduce
// CHECK: tile.reshape
// CHECK: simt.convert {{.*}} tensor<64x1xf32
// CHECK: scf.for
// CHECK-NOT: simt.convert
// CHECK: tile.broadcast
// CHECK-NOT: simt.convert
// CHECK: return
func.func @same_in_all_iterations(%x: memref<?x64xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #rows, simt.vector = 4 : i64} : memref<?x64xf32> -> tensor<64x64xf32>
  %1 = tile.reduce max %0 axis 1 : tensor<64x64xf32> -> tensor<64xf32>
  scf.for %i = %c0 to %n step %c1 : i64 {
    %2 = tile.reshape %1 : tensor<64xf32> -> tensor<64x1xf32>
    %3 = arith.negf %2 : tensor<64x1xf32>
    %4 = tile.broadcast %3 : tensor<64x1xf32> -> tensor<64x64xf32>
    %5 = tile.load %x[%i, %c0] {simt.layout = #lines, simt.vector = 8 : i64} : memref<?x64xf32> -> tensor<64x64xf32>
    %6 = arith.addf %5, %4 : tensor<64x64xf32>
    tile.store %6, %x[%i, %c0] {simt.layout = #lines, simt.vector = 8 : i64} : tensor<64x64xf32>, memref<?x64xf32>
  }
  return
}

#line = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 *]>
#sums = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>

// If several threads need a few numbers, each loads them, two at a time if they are contiguous. They are not exchanged
// through shared memory.
// CHECK-LABEL: func @again
// CHECK-NOT: simt.convert
// CHECK: tile.load {{.*}}simt.layout = #simt.layout<64, reg [d0:1 d0:8 d0:16 d0:32], lane [d0:2 d0:4 * * *], warp [* *]>, simt.vector = 2 : i64
// CHECK-NOT: tile.load
// CHECK-NOT: simt.convert
// CHECK: tile.store
func.func @again(%x: memref<64xf32> {tile.align = 16 : i64}, %y: memref<64x64xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {simt.layout = #line, simt.vector = 1 : i64} : memref<64xf32> -> tensor<64xf32>
  %1 = arith.negf %0 : tensor<64xf32>
  %2 = tile.reshape %1 : tensor<64xf32> -> tensor<1x64xf32>
  %3 = tile.broadcast %2 : tensor<1x64xf32> -> tensor<64x64xf32>
  tile.store %3, %y[%c0, %c0] {simt.layout = #sums, simt.vector = 2 : i64} : tensor<64x64xf32>, memref<64x64xf32>
  return
}

#row = #simt.layout<16x16, reg [d1:1], lane [d1:2 d1:4 d1:8 d0:1 d0:2], warp [d0:4 d0:8]>
#apart = #simt.layout<16, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>

// A rotation moves elements between threads. Its result has its operand's layout.
// CHECK-LABEL: func @rotated
// CHECK: %[[MAX:.*]] = tile.reduce
// CHECK: %[[MOVED:.*]] = tile.rotate %[[MAX]] by 5 axis 0 : tensor<16xf32, #simt.layout<16, reg [], lane [* * * d0:1 d0:2], warp [d0:4 d0:8]>>
// CHECK: simt.convert %[[MOVED]]
func.func @rotated(%x: memref<?x16xf32>, %y: memref<16xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #row, simt.vector = 2 : i64} : memref<?x16xf32> -> tensor<16x16xf32>
  %1 = tile.reduce max %0 axis 1 : tensor<16x16xf32> -> tensor<16xf32>
  %2 = tile.rotate %1 by 5 axis 0 : tensor<16xf32>
  tile.store %2, %y[%c0] {simt.layout = #apart, simt.vector = 1 : i64} : tensor<16xf32>, memref<16xf32>
  return
}

// -----

#row = #simt.layout<1x64, reg [d1:1], lane [d1:2 d1:4 d1:8 d1:16 d1:32], warp []>

// If a reduction leaves its result in both of two lanes, a broadcast uses both again: the next iteration of a sorting
// network has the layout of the last one.
// CHECK-LABEL: func @network
// CHECK: tile.reduce min {{.*}} -> tensor<8x4xf32, #simt.layout<8x4, reg [d1:1], lane [d1:2 * d0:1 d0:2 d0:4], warp []>>
// CHECK: tile.broadcast {{.*}} -> tensor<8x2x4xf32, #simt.layout<8x2x4, reg [d2:1], lane [d2:2 d1:1 d0:1 d0:2 d0:4], warp []>>
// CHECK-NOT: simt.convert
// CHECK: return
func.func @network(%x: memref<?x64xf32>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {simt.layout = #row, simt.vector = 2 : i64} : memref<?x64xf32> -> tensor<1x64xf32>
  %1 = tile.reshape %0 : tensor<1x64xf32> -> tensor<8x2x4xf32>
  %2 = tile.reduce min %1 axis 1 : tensor<8x2x4xf32> -> tensor<8x4xf32>
  %3 = tile.reshape %2 : tensor<8x4xf32> -> tensor<8x1x4xf32>
  %4 = tile.broadcast %3 : tensor<8x1x4xf32> -> tensor<8x2x4xf32>
  %5 = math.absf %4 : tensor<8x2x4xf32>
  %6 = tile.reduce max %5 axis 1 : tensor<8x2x4xf32> -> tensor<8x4xf32>
  %7 = tile.reshape %6 : tensor<8x4xf32> -> tensor<8x1x4xf32>
  %8 = tile.broadcast %7 : tensor<8x1x4xf32> -> tensor<8x2x4xf32>
  %9 = tile.reshape %8 : tensor<8x2x4xf32> -> tensor<1x64xf32>
  tile.store %9, %x[%c0, %c0] {simt.layout = #row, simt.vector = 2 : i64} : tensor<1x64xf32>, memref<?x64xf32>
  return
}
