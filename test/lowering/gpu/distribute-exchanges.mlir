// Operations of several threads: shared memory, shuffles, tensor cores, and the console.
// RUN: kiln-opt %s --split-input-file --gpu-distribute | FileCheck %s

#quads = #simt.layout<128, reg [d0:1 d0:2], lane [d0:4 d0:8 d0:16 d0:32 d0:64], warp []>

// Adjacent elements are stored and loaded together, up to 16 bytes of a row, as both layouts and the alignment permit.
// CHECK-LABEL: func @shared
// CHECK: %[[BASE:.*]] = simt.shared_base {bytes = 1024 : i64}
// CHECK: %[[BUFFER:.*]] = arith.addi %[[BASE]], %c512_i32
// CHECK: %[[ADDRESS:.*]] = arith.addi %[[BUFFER]], %
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 0 : vector<4xf32>, i32
// CHECK-NOT: simt.st
// CHECK: simt.barrier
// CHECK: simt.ld shared %{{.*}} + 0 : i32, vector<4xf32>
// CHECK-NOT: simt.ld
// CHECK: return
func.func @shared(%s: f32) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 1024 : i64} {
  %x = tile.splat %s : f32 -> tensor<128xf32, #quads>
  %a = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #quads>, memref<512xi8, 3>
  simt.barrier
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #quads>
  return
}

#column = #simt.layout<4x32, reg [d0:1 d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp []>

// Elements of a column have the stride of a row, so they are accessed one by one.
// CHECK-LABEL: func @apart
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS:.*]] + 0 : vector<1xf32>, i32
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 144 : vector<1xf32>, i32
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 288 : vector<1xf32>, i32
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 432 : vector<1xf32>, i32
func.func @apart(%s: f32) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 1024 : i64} {
  %x = tile.splat %s : f32 -> tensor<4x32xf32, #column>
  %a = simt.buffer {offset = 0 : i64} : memref<576xi8, 3>
  simt.write %x, %a strides [144, 4] : tensor<4x32xf32, #column>, memref<576xi8, 3>
  return
}

// A read that may begin at any byte is done one by one, too. At a multiple of 8 bytes, two elements are read together.
// CHECK-LABEL: func @offset
// CHECK-COUNT-4: simt.ld shared %{{.*}} : i32, vector<1xf32>
// CHECK-COUNT-2: simt.ld shared %{{.*}} : i32, vector<2xf32>
// CHECK-NOT: simt.ld
// CHECK: return
func.func @offset(%n: i32) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 1024 : i64} {
  %a = simt.buffer {offset = 0 : i64} : memref<1024xi8, 3>
  %c8 = arith.constant 8 : i32
  %m = arith.muli %n, %c8 : i32
  %0 = simt.read %a[%n] strides [4] : memref<1024xi8, 3> -> tensor<128xf32, #quads>
  %1 = simt.read %a[%m] strides [4] : memref<1024xi8, 3> -> tensor<128xf32, #quads>
  return
}

#padded = #simt.layout<25, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The layout's padding of a tile is not written, and is read as 0.
// CHECK-LABEL: func @padding
// CHECK: %[[WITHIN:.*]] = arith.cmpi slt, %{{.*}}, %c25_i32
// CHECK: simt.st shared %{{.*}}, %{{.*}} + 0 if %[[WITHIN]] : vector<1xf32>, i32
// CHECK: simt.ld shared %{{.*}} + 0 if %{{.*}} else %cst{{.*}} : vector<1xf32> : i32, vector<1xf32>
func.func @padding(%s: f32) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 128 : i64} {
  %x = tile.splat %s : f32 -> tensor<25xf32, #padded>
  %a = simt.buffer {offset = 0 : i64} : memref<100xi8, 3>
  simt.write %x, %a strides [4] : tensor<25xf32, #padded>, memref<100xi8, 3>
  %0 = simt.read %a strides [4] : memref<100xi8, 3> -> tensor<25xf32, #padded>
  return
}

#rows = #simt.layout<8x8, reg [d1:1], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#sums = #simt.layout<8x1, reg [], lane [* * d0:1 d0:2 d0:4], warp []>

// A thread combines its own values, then those of the lanes that share the row. Their numbers differ in the lowest two
// bits.
// CHECK-LABEL: func @reduce
// CHECK: arith.addf %{{.*}}, %{{.*}} : vector<1xf32>
// CHECK: simt.shuffle %{{.*}} xor 1 : i32
// CHECK: arith.addf
// CHECK: simt.shuffle %{{.*}} xor 2 : i32
// CHECK: arith.addf
// CHECK-NOT: simt.shuffle
// CHECK: return
func.func @reduce(%s: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %x = tile.splat %s : f32 -> tensor<8x8xf32, #rows>
  %0 = simt.reduce sum %x axis 1 : (tensor<8x8xf32, #rows>) -> tensor<8x1xf32, #sums>
  return
}

// A 64-bit value is exchanged as two words; a narrow value takes one word. max and min ignore NaN.
// CHECK-LABEL: func @types
// CHECK-COUNT-4: simt.shuffle
// CHECK: arith.maxnumf {{.*}} : vector<1xf16>
// CHECK: arith.extui %{{.*}} : i16 to i32
// CHECK-NEXT: simt.shuffle
// CHECK-NEXT: arith.trunci %{{.*}} : i32 to i16
// CHECK: simt.shuffle
// CHECK-NOT: simt.shuffle
// CHECK: return
func.func @types(%s: i64, %t: f16) attributes {tile.kernel, tile.warps = 1 : i64} {
  %x = tile.splat %s : i64 -> tensor<8x8xi64, #rows>
  %0 = simt.reduce sum %x axis 1 : (tensor<8x8xi64, #rows>) -> tensor<8x1xi64, #sums>
  %y = tile.splat %t : f16 -> tensor<8x8xf16, #rows>
  %1 = simt.reduce max %y axis 1 : (tensor<8x8xf16, #rows>) -> tensor<8x1xf16, #sums>
  return
}

#one = #simt.layout<1, reg [], lane [* * * * *], warp []>

// Padding along the axis is the neutral element: −0 for a sum, the largest integer for min, NaN for max of floats.
// CHECK-LABEL: func @neutral
// CHECK: %[[ZERO:.*]] = arith.constant dense<-0.000000e+00> : vector<1xf32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[ZERO]]
// CHECK: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : vector<1xf32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[NAN]]
// CHECK: %[[LARGEST:.*]] = arith.constant dense<2147483647> : vector<1xi32>
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[LARGEST]]
func.func @neutral(%s: f32, %n: i32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %x = tile.splat %s : f32 -> tensor<25xf32, #padded>
  %y = tile.splat %n : i32 -> tensor<25xi32, #padded>
  %0 = simt.reduce sum %x axis 0 : (tensor<25xf32, #padded>) -> tensor<1xf32, #one>
  %1 = simt.reduce max %x axis 0 : (tensor<25xf32, #padded>) -> tensor<1xf32, #one>
  %2 = simt.reduce min %y axis 0 : (tensor<25xi32, #padded>) -> tensor<1xi32, #one>
  return
}

#acc = #simt.layout<16x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#a = #simt.layout<16x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#b = #simt.layout<32x16, reg [d0:1 d0:8 d0:16 d1:8], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp []>

// A product by tensor cores: for each of the 2 accumulator fragments, one instruction for each of 2 steps along K, in
// order.
// CHECK-LABEL: func @tensor_core
// CHECK: %[[A:.*]] = vector.broadcast %arg0 : bf16
// CHECK: %[[B:.*]] = vector.broadcast %arg0 : bf16
// CHECK-DAG: %[[A0:.*]] = vector.shuffle %[[A]], %[[A]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK-DAG: %[[B0:.*]] = vector.shuffle %[[B]], %[[B]] [0, 1, 2, 3]
// CHECK: %[[SUM:.*]] = simt.mma %[[A0]], %[[B0]], %
// CHECK: simt.mma %[[A0]], %
// CHECK-DAG: %[[A1:.*]] = vector.shuffle %[[A]], %[[A]] [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK-DAG: %[[B1:.*]] = vector.shuffle %[[B]], %[[B]] [4, 5, 6, 7]
// CHECK: simt.mma %[[A1]], %[[B1]], %[[SUM]]
// CHECK: simt.mma %[[A1]], %
// CHECK-NOT: simt.mma
// CHECK: return
func.func @tensor_core(%s: bf16, %t: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %a = tile.splat %s : bf16 -> tensor<16x32xbf16, #a>
  %b = tile.splat %s : bf16 -> tensor<32x16xbf16, #b>
  %c = tile.splat %t : f32 -> tensor<16x16xf32, #acc>
  %0 = tile.dot %a, %b, %c {simt.mma} : tensor<16x32xbf16, #a>, tensor<32x16xbf16, #b>, tensor<16x16xf32, #acc>
  return
}

// -----

#acc = #simt.layout<16x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#a = #simt.layout<16x16, reg [d0:8 d1:4 d1:8], lane [d1:1 d1:2 d0:1 d0:2 d0:4], warp []>
#b = #simt.layout<16x8, reg [d0:4 d0:8], lane [d0:1 d0:2 d1:1 d1:2 d1:4], warp []>

// Each operand is split into two numbers. The small products have their own accumulator, which is added if it is
// finite. The numbers of a loop-invariant operand are computed in the loop.
// CHECK-LABEL: func @two_numbers
// CHECK: %[[A:.*]] = vector.broadcast %arg0 : f32 to vector<8xf32>
// CHECK: scf.for
// CHECK: %[[B:.*]] = vector.broadcast %{{.*}} : f32 to vector<4xf32>
// CHECK-DAG: %[[A0:.*]] = vector.shuffle %[[A]], %[[A]] [0, 1, 2, 3]
// CHECK-DAG: %[[PINNED:.*]] = simt.pin %[[A0]]
// CHECK-DAG: %[[B0:.*]] = vector.shuffle %[[B]], %[[B]] [0, 1]
// CHECK: %[[FIRST:.*]] = simt.mma small of %[[PINNED]], large of %[[B0]], %{{.*}}
// CHECK: %[[SECOND:.*]] = simt.mma large of %[[PINNED]], small of %[[B0]], %[[FIRST]]
// CHECK: %[[LARGE:.*]] = simt.mma large of %[[PINNED]], large of %[[B0]], %
// CHECK: simt.mma small of %{{.*}}, large of %{{.*}}, %[[SECOND]]
// CHECK: %[[SMALL:.*]] = simt.mma large of %{{.*}}, small of
// CHECK: %[[SUM:.*]] = simt.mma large of %{{.*}}, large of %{{.*}}, %[[LARGE]]
// CHECK-NOT: simt.pin %[[B0]]
// CHECK: %[[PRODUCTS:.*]] = math.fma %[[SMALL]], %[[SMALL]], %
// CHECK: %[[ALL:.*]] = vector.reduction <add>, %[[PRODUCTS]]
// CHECK: %[[SIZE:.*]] = math.absf %[[ALL]]
// CHECK: %[[FINITE:.*]] = arith.cmpf olt, %[[SIZE]]
// CHECK: scf.if %[[FINITE]]
// CHECK-NEXT: arith.addf %[[SUM]], %[[SMALL]]
// CHECK: } else {
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[SMALL]], %
// CHECK-NEXT: arith.addf %[[SUM]], %[[KEPT]]
func.func @two_numbers(%s: f32, %n: i32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %a = tile.splat %s : f32 -> tensor<16x16xf32, #a>
  %c = tile.splat %s : f32 -> tensor<16x8xf32, #acc>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = scf.for %i = %zero to %n step %one iter_args(%sum = %c) -> (tensor<16x8xf32, #acc>) : i32 {
    %t = arith.sitofp %i : i32 to f32
    %b = tile.splat %t : f32 -> tensor<16x8xf32, #b>
    %1 = tile.dot %a, %b, %sum precision tf32x3 {simt.mma} : tensor<16x16xf32, #a>, tensor<16x8xf32, #b>, tensor<16x8xf32, #acc>
    scf.yield %1 : tensor<16x8xf32, #acc>
  }
  return
}

// -----

#acc = #simt.layout<16x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#a = #simt.layout<16x13, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#b = #simt.layout<13x16, reg [d0:1 d0:8 d1:8], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp []>

// Both operands are padded along K with zeros, because 0 · NaN is not 0.
// CHECK-LABEL: func @padded_length
// CHECK: arith.cmpi slt, %{{.*}}, %c13_i32
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xbf16>
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xbf16>
// CHECK: simt.mma
func.func @padded_length(%s: bf16, %t: f32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %a = tile.splat %s : bf16 -> tensor<16x13xbf16, #a>
  %b = tile.splat %s : bf16 -> tensor<13x16xbf16, #b>
  %c = tile.splat %t : f32 -> tensor<16x16xf32, #acc>
  %0 = tile.dot %a, %b, %c {simt.mma} : tensor<16x13xbf16, #a>, tensor<13x16xbf16, #b>, tensor<16x16xf32, #acc>
  return
}

// -----

#acc = #simt.layout<8x8, reg [d1:1], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#a = #simt.layout<8x2, reg [d1:1], lane [* * d0:1 d0:2 d0:4], warp []>
#b = #simt.layout<2x8, reg [d0:1 d1:1], lane [d1:2 d1:4 * * *], warp []>

// An outer product for each step along K: fused multiply-adds in f32; products and sums of integers in i32.
// CHECK-LABEL: func @outer_product
// CHECK: arith.extf %{{.*}} : vector<2xbf16> to vector<2xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 0] : vector<2xf32>
// CHECK: %[[SUM:.*]] = math.fma %{{.*}} : vector<2xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [1, 1] : vector<2xf32>
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[SUM]] : vector<2xf32>
// CHECK: arith.extsi %{{.*}} : vector<2xi8> to vector<2xi32>
// CHECK: arith.muli {{.*}} : vector<2xi32>
// CHECK: arith.addi {{.*}} : vector<2xi32>
func.func @outer_product(%s: bf16, %t: f32, %i: i8, %n: i32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %a = tile.splat %s : bf16 -> tensor<8x2xbf16, #a>
  %b = tile.splat %s : bf16 -> tensor<2x8xbf16, #b>
  %c = tile.splat %t : f32 -> tensor<8x8xf32, #acc>
  %0 = tile.dot %a, %b, %c : tensor<8x2xbf16, #a>, tensor<2x8xbf16, #b>, tensor<8x8xf32, #acc>
  %d = tile.splat %i : i8 -> tensor<8x2xi8, #a>
  %e = tile.splat %i : i8 -> tensor<2x8xi8, #b>
  %f = tile.splat %n : i32 -> tensor<8x8xi32, #acc>
  %1 = tile.dot %d, %e, %f : tensor<8x2xi8, #a>, tensor<2x8xi8, #b>, tensor<8x8xi32, #acc>
  return
}

#single = #simt.layout<1, reg [], lane [* * * * *], warp []>
#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The first thread reserves space after the earlier output, and writes the head of the line if there is space. Then all
// threads write their elements, after the 72 bytes of the head.
// CHECK-LABEL: func @print
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32
// CHECK: %[[PLACE:.*]] = simt.atomic_rmw add %{{.*}}, %{{.*}} + 48 if %[[FIRST]] : i64
// CHECK: %[[ROOM:.*]] = arith.cmpi ule, %{{.*}}, %c1048376_i64
// CHECK: %[[HEAD:.*]] = arith.andi %[[ROOM]], %
// CHECK: simt.ld global %{{.*}} + 0 if %[[HEAD]]
// CHECK-COUNT-7: simt.st global {{.*}} if %[[HEAD]]
// CHECK: simt.st global %{{.*}}, %{{.*}} + 72 if %[[ROOM]] : vector<1xf32>, i64
func.func @print(%s: f32, %program: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %x = tile.splat %s : f32 -> tensor<32xf32, #row>
  %place = simt.reserve 200 : tensor<1xi64, #single>
  simt.print %x at %place of %program label 0 shape [32] : tensor<32xf32, #row>, tensor<1xi64, #single>
  return
}
