// Elements that move between warps are written to shared memory and read from it.
// RUN: kiln-opt %s --split-input-file --gpu-expand-exchanges | FileCheck %s
// RUN: kiln-opt %s --split-input-file --gpu-expand-exchanges=store-matrix | FileCheck %s --check-prefix=STMATRIX
// RUN: kiln-opt %s --split-input-file --gpu-expand-exchanges=max-bytes=1024 | FileCheck %s --check-prefix=ROUNDS

#rows = #simt.layout<8x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:2 d0:4]>
#columns = #simt.layout<8x32, reg [d1:1], lane [d0:1 d0:2 d0:4 d1:2 d1:4], warp [d1:8 d1:16]>

// A conversion becomes a write in the old layout and a read in the new one, at addresses where neither has bank
// conflicts.
// CHECK-LABEL: func @convert
// CHECK-SAME: (%[[X:.*]]: tensor<8x32xf32, [[ROWS:#simt.layout<.*>]]>)
// CHECK: %[[BUFFER:.*]] = simt.buffer : memref<1024xi8, 3>
// CHECK: simt.write %[[X]], %[[BUFFER]] by vectors in [[SHARED:<8x32xf32, d0 .*>]] : tensor<8x32xf32, [[ROWS]]>
// CHECK: simt.read %[[BUFFER]] by vectors in [[SHARED]] : memref<1024xi8, 3> -> tensor<8x32xf32, #simt.layout<8x32, reg [d1:1]
// CHECK-NOT: simt.convert
func.func @convert(%x: tensor<8x32xf32, #rows>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
  return
}

// -----

#rows = #simt.layout<8x16, reg [], lane [d1:1 d1:2 d1:4 d1:8 d0:1], warp [d0:2 d0:4]>
#columns = #simt.layout<8x16, reg [], lane [d0:1 d0:2 d0:4 d1:1 d1:2], warp [d1:4 d1:8]>

// A bool is a byte.
// CHECK-LABEL: func @dense
// CHECK: simt.write {{.*}} by vectors in <8x16xi1, d0 [16, 32, 64], d1 [1, 2, 4, 8]> : {{.*}}, memref<128xi8, 3>
func.func @dense(%x: tensor<8x16xi1, #rows>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<8x16xi1, #rows> -> tensor<8x16xi1, #columns>
  return
}

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#operand = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16 d0:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 *]>

// The operand of a product is read as rows of matrices, whose 16 bytes are contiguous as in the load's layout.
// CHECK-LABEL: func @operand
// CHECK: simt.write {{.*}} by vectors in [[SHARED:<64x32xbf16, .*, d1 \[2, 4, 8, .*>]] : {{.*}}, memref<4096xi8, 3>
// CHECK: simt.read {{.*}} by rows in [[SHARED]]
func.func @operand(%x: tensor<64x32xbf16, #loaded>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #operand>
  return
}

#one = #simt.layout<64, reg [d0:1 d0:32], lane [d0:2 d0:4 d0:8 d0:16 *], warp [* *]>
#other = #simt.layout<64, reg [d0:32 d0:1], lane [d0:2 d0:4 d0:8 d0:16 *], warp [* *]>

// A conversion that only renames registers needs no memory.
// CHECK-LABEL: func @registers
// CHECK-NOT: simt.buffer
// CHECK: simt.convert
// CHECK-NOT: simt.buffer
// CHECK: return
func.func @registers(%x: tensor<64xf32, #one>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<64xf32, #one> -> tensor<64xf32, #other>
  return
}

#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>
#apart = #simt.layout<256, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:64 d0:128]>

// A conversion within warps needs no shared memory either.
// CHECK-LABEL: func @lanes
// CHECK-NOT: simt.buffer
// CHECK: simt.convert
// CHECK-NOT: simt.buffer
// CHECK: return
func.func @lanes(%x: tensor<256xf32, #pairs>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<256xf32, #pairs> -> tensor<256xf32, #apart>
  return
}

// -----

#rows = #simt.layout<4x64, reg [d1:32], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1 d0:2]>
#sums = #simt.layout<4, reg [], lane [* * * * *], warp [d0:1 d0:2]>

// An axis that each warp holds completely is reduced by its lanes.
// CHECK-LABEL: func @reduce_in_warp
// CHECK: %[[SUM:.*]] = simt.reduce sum %{{.*}} axis 1 : {{.*}} -> tensor<4x1xf32, #simt.layout<4x1, reg [], lane [* * * * *], warp [d0:1 d0:2]>>
// CHECK-NEXT: tile.reshape %[[SUM]] : {{.*}} -> tensor<4xf32, #simt.layout<4, reg [], lane [* * * * *], warp [d0:1 d0:2]>>
// CHECK-NEXT: return
func.func @reduce_in_warp(%x: tensor<4x64xf32, #rows>) attributes {tile.kernel} {
  %0 = tile.reduce sum %x axis 1 : tensor<4x64xf32, #rows> -> tensor<4xf32, #sums>
  return
}

// -----

#wide = #simt.layout<4x64, reg [d0:1 d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32 *]>
#sums = #simt.layout<4, reg [d0:1 d0:2], lane [* * * * *], warp [* *]>

// If warps share an axis, each reduces a part. Every warp reads and combines all parts. They are stored by columns, of
// which a thread writes and reads 16 bytes at a time.
// CHECK-LABEL: func @reduce_over_warps
// CHECK: %[[PART:.*]] = simt.reduce sum %arg0 axis 1 : {{.*}} -> tensor<4x2xf32, #simt.layout<4x2, reg [d0:1 d0:2], lane [* * * * *], warp [d1:1 *]>>
// CHECK: simt.write %[[PART]], %[[BUFFER:.*]] by vectors in [[SHARED:<4x2xf32, d0 \[4, 8\], d1 \[16\]>]]
// CHECK: %[[PARTS:.*]] = simt.read %[[BUFFER]] by vectors in [[SHARED]] : {{.*}} -> tensor<4x2xf32, #simt.layout<4x2, reg [d0:1 d0:2 d1:1], lane [* * * * *], warp [* *]>>
// CHECK: simt.reduce sum %[[PARTS]] axis 1 : {{.*}} -> tensor<4x1xf32,
func.func @reduce_over_warps(%x: tensor<4x64xf32, #wide>) attributes {tile.kernel} {
  %0 = tile.reduce sum %x axis 1 : tensor<4x64xf32, #wide> -> tensor<4xf32, #sums>
  return
}

// An argmax carries the element's index, which starts as its position along the axis. The comparison uses integers that
// have the order of the elements.
// CHECK-LABEL: func @argmax
// CHECK: %[[POSITIONS:.*]] = tile.broadcast {{.*}} -> tensor<4x64xi32
// CHECK: %[[KEYS:.*]] = arith.select {{.*}} tensor<4x64xi32
// CHECK: %[[BEST:.*]]:2 = simt.reduce argmax %[[KEYS]], %[[POSITIONS]] axis 1
// CHECK: simt.write %[[BEST]]#0
// CHECK: simt.write %[[BEST]]#1
// CHECK: %[[LAST:.*]]:2 = simt.reduce argmax
// CHECK: tile.reshape %[[LAST]]#1 : {{.*}} -> tensor<4xi32
func.func @argmax(%x: tensor<4x64xf32, #wide>) attributes {tile.kernel} {
  %0 = tile.reduce argmax %x axis 1 : tensor<4x64xf32, #wide> -> tensor<4xi32, #sums>
  return
}

// -----

#rows = #simt.layout<4x64, reg [d1:1], lane [d1:2 d1:4 d1:8 d1:16 d1:32], warp [d0:1 d0:2]>
#sums = #simt.layout<4, reg [], lane [* * * * *], warp [d0:1 d0:2]>

// If no warps share a row, the maximum is reduced first, and may be shared with another reduction. Then the least index
// of the elements equal to it is reduced. If all are NaN, no element is equal.
// CHECK-LABEL: func @argmax_in_warp
// CHECK: %[[MOST:.*]] = simt.reduce max %arg0 axis 1
// CHECK: %[[ALL:.*]] = tile.broadcast %[[MOST]] : {{.*}} -> tensor<4x64xf32
// CHECK: %[[IS:.*]] = arith.cmpf oeq, %arg0, %[[ALL]]
// CHECK: %[[HERE:.*]] = arith.select %[[IS]]
// CHECK: %[[FIRST:.*]] = simt.reduce min %[[HERE]] axis 1
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[FIRST]]
// CHECK: arith.select %[[NONE]]
// CHECK-NOT: simt.reduce
func.func @argmax_in_warp(%x: tensor<4x64xf32, #rows>) attributes {tile.kernel} {
  %0 = tile.reduce argmax %x axis 1 : tensor<4x64xf32, #rows> -> tensor<4xi32, #sums>
  return
}

#acc = #simt.layout<32x32, reg [d1:1 d1:2 d0:1], lane [d1:4 d1:8 d1:16 d0:2 d0:4], warp [d0:8 d0:16]>

// An outer product has both operands in shared memory. Each thread reads 8 columns of one and 8 rows of the other at a
// time, those of its own accumulators.
// CHECK-LABEL: func @outer_product
// CHECK: simt.write %arg0, %[[A:.*]] strides [144, 4]
// CHECK: simt.write %arg1, %[[B:.*]] strides [144, 4]
// CHECK: scf.for %[[K:.*]] = %c0_i32 to %c32_i32 step %c8_i32 iter_args(%[[SUM:.*]] = %arg2)
// CHECK: %[[COLUMN:.*]] = arith.muli %[[K]], %c4_i32
// CHECK: %[[X:.*]] = simt.read %[[A]][%[[COLUMN]]] strides [144, 4] : {{.*}} -> tensor<32x8xf32, #simt.layout<32x8, reg [d1:1 d1:2 d1:4 d0:1], lane [* * * d0:2 d0:4], warp [d0:8 d0:16]>>
// CHECK: %[[ROW:.*]] = arith.muli %[[K]], %c144_i32
// CHECK: %[[Y:.*]] = simt.read %[[B]][%[[ROW]]] strides [144, 4] : {{.*}} -> tensor<8x32xf32, #simt.layout<8x32, reg [d0:1 d0:2 d0:4 d1:1 d1:2], lane [d1:4 d1:8 d1:16 * *], warp [* *]>>
// CHECK: %[[NEXT:.*]] = tile.dot %[[X]], %[[Y]], %[[SUM]]
// CHECK: scf.yield %[[NEXT]]
func.func @outer_product(%a: tensor<32x32xf32, #acc>, %b: tensor<32x32xf32, #acc>, %c: tensor<32x32xf32, #acc>)
    attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %c : tensor<32x32xf32, #acc>, tensor<32x32xf32, #acc>, tensor<32x32xf32, #acc>
  return
}

#a = #simt.layout<32x7, reg [d1:1 d1:2 d1:4], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [* *]>
#b = #simt.layout<7x32, reg [d0:1 d0:2 d0:4], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [* *]>

// A thread reads as many steps at once as divide the sum's length: of 7, one.
// CHECK-LABEL: func @odd_length
// CHECK: scf.for %{{.*}} = %c0_i32 to %c7_i32 step %c1_i32
// CHECK: tile.dot {{.*}} : tensor<32x1xf32, {{.*}}>, tensor<1x32xf32, {{.*}}>, tensor<32x32xf32
func.func @odd_length(%a: tensor<32x7xf32, #a>, %b: tensor<7x32xf32, #b>, %c: tensor<32x32xf32, #acc>) attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %c : tensor<32x7xf32, #a>, tensor<7x32xf32, #b>, tensor<32x32xf32, #acc>
  return
}

// -----

#acc = #simt.layout<16x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [* *]>
#a = #simt.layout<16x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [* *]>
#b = #simt.layout<16x8, reg [d0:1 d0:8], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>

// Tensor cores read their operands from registers.
// CHECK-LABEL: func @tensor_core
// CHECK-NOT: simt.buffer
// CHECK: tile.dot %arg0, %arg1, %arg2 {simt.mma}
// CHECK-NEXT: return
func.func @tensor_core(%a: tensor<16x16xbf16, #a>, %b: tensor<16x8xbf16, #b>, %c: tensor<16x8xf32, #acc>)
    attributes {tile.kernel} {
  %0 = tile.dot %a, %b, %c {simt.mma} : tensor<16x16xbf16, #a>, tensor<16x8xbf16, #b>, tensor<16x8xf32, #acc>
  return
}

#square = #simt.layout<16x16, reg [d0:8], lane [d1:1 d1:2 d1:4 d1:8 d0:1], warp [d0:2 d0:4]>
#pairs = #simt.layout<256, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [d0:64 d0:128]>
#line = #simt.layout<256, reg [d0:128], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// A reshape that moves elements uses a dense buffer. One that only renames positions is unchanged.
// CHECK-LABEL: func @reshape
// CHECK: simt.write %arg0, %[[BUFFER:.*]] strides [64, 4]
// CHECK: simt.read %[[BUFFER]] strides [4] : memref<1024xi8, 3> -> tensor<256xf32
// CHECK-NOT: simt.buffer
// CHECK: tile.reshape
// CHECK-NOT: simt.buffer
// CHECK: return
func.func @reshape(%x: tensor<16x16xf32, #square>) attributes {tile.kernel} {
  %0 = tile.reshape %x : tensor<16x16xf32, #square> -> tensor<256xf32, #pairs>
  %1 = tile.reshape %x : tensor<16x16xf32, #square> -> tensor<256xf32, #line>
  return
}

#half = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>
#whole = #simt.layout<128, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// The thread that does an atomic addition broadcasts the result to the threads that hold that element. Nothing is
// broadcast if no other thread holds it, or if the result is unused.
// CHECK-LABEL: func @atomic
// CHECK: %[[FOUND:.*]] = tile.atomic_rmw add relaxed %arg0
// CHECK: simt.write %[[FOUND]], %[[BUFFER:.*]] by vectors
// CHECK: %[[TOLD:.*]] = simt.read %[[BUFFER]]
// CHECK: arith.negf %[[TOLD]]
// CHECK-NOT: simt.buffer
// CHECK: return
func.func @atomic(%x: tensor<64xf32, #half>, %y: tensor<128xf32, #whole>, %v: memref<?xf32>, %n: i64) attributes {tile.kernel} {
  %0 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<64xf32, #half>, memref<?xf32>
  %1 = arith.negf %0 : tensor<64xf32, #half>
  %2 = tile.atomic_rmw add relaxed %y, %v[%n] : tensor<128xf32, #whole>, memref<?xf32>
  %3 = arith.negf %2 : tensor<128xf32, #whole>
  %4 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<64xf32, #half>, memref<?xf32>
  return
}

#row = #simt.layout<4x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:2 *]>

// A check reports the lowest row-major index of the elements that are false.
// CHECK-LABEL: func @check
// CHECK: arith.constant dense<32> : tensor<4x32xi32
// CHECK: %[[NONE:.*]] = arith.constant dense<2147483647>
// CHECK: %[[INDICES:.*]] = arith.select %arg0, %[[NONE]], %
// CHECK: simt.reduce min %[[INDICES]] axis 1
// CHECK: simt.reduce min {{.*}} axis 0
// CHECK: %[[FAILED:.*]] = arith.cmpi ne, %[[FIRST:.*]], %c2147483647_i32
// CHECK: %[[ELEMENT:.*]] = arith.extsi %[[FIRST]] : i32 to i64
// CHECK: simt.report element %[[ELEMENT]] of %{{.*}} message 3 where 4 if %[[FAILED]]
func.func @check(%ok: tensor<4x32xi1, #row>) attributes {tile.kernel} {
  tile.check %ok, "positive" {tile.message = @text_3, tile.where = @text_4} : tensor<4x32xi1, #row>
  return
}

// A scalar's only element is number 0. The check fails if it is false.
// CHECK-LABEL: func @check_scalar
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK: %[[FAILED:.*]] = arith.xori %arg0, %true
// CHECK: simt.report element %[[ZERO]] of %{{.*}} message 3 where 4 if %[[FAILED]]
func.func @check_scalar(%ok: i1) attributes {tile.kernel} {
  tile.check %ok, "positive" {tile.message = @text_3, tile.where = @text_4} : i1
  return
}

// -----

#row = #simt.layout<33, rep 3, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>

// A line takes 72 bytes for its head, and the elements' bytes rounded up to a multiple of 8. One thread reserves them
// for all.
// CHECK-LABEL: func @print
// CHECK: %[[TAKEN:.*]] = simt.reserve 208
// CHECK: simt.write %[[TAKEN]], %[[BUFFER:.*]] by vectors in <1xi64, d0 []>
// CHECK: %[[PLACE:.*]] = simt.read %[[BUFFER]] by vectors in <1xi64
// CHECK: simt.print %arg0 at %[[PLACE]] of %{{.*}} label 2 shape [33]
// CHECK: %[[SCALAR:.*]] = tile.splat %arg1 : f32 -> tensor<1xf32
// CHECK: simt.print %[[SCALAR]] at {{.*}} label 2 shape []
func.func @print(%x: tensor<33xf32, #row>, %s: f32) attributes {tile.kernel} {
  tile.print "x", %x {tile.label = @text_2} : tensor<33xf32, #row>
  tile.print "x", %s {tile.label = @text_2} : f32
  return
}

// -----

#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>
#odd = #simt.layout<12x3, rep 3x3, reg [], lane [d0:1 d0:2 * * *], warp [*]>
#even = #simt.layout<9x4, reg [d0:8], lane [d1:1 d1:2 d0:1 d0:2 d0:4], warp [*]>
#split = #simt.layout<2x32, reg [], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>

// A reshape that only renames registers stays. One that keeps the row-major order is read by strides, and any other
// operation element by element.
// CHECK: #[[TURN:.*]] = affine_map<(d0) -> (((d0 + 59) mod 64) * 4)>
// CHECK-LABEL: func @moves
// CHECK: tile.reshape %arg0 {{.*}} tensor<2x32xf32
// CHECK: simt.write %arg1, %[[ODD:.*]] strides [12, 4]
// CHECK: simt.read %[[ODD]] strides [16, 4] {{.*}} tensor<9x4xf32
// CHECK: simt.write %arg0, %[[ROW:.*]] strides [4]
// CHECK: simt.pick %[[ROW]] at #[[TURN]]
// CHECK: return
func.func @moves(%x: tensor<64xf32, #row>, %y: tensor<12x3xf32, #odd>) attributes {tile.kernel, tile.warps = 2 : i64} {
  %0 = tile.reshape %x : tensor<64xf32, #row> -> tensor<2x32xf32, #split>
  %1 = tile.reshape %y : tensor<12x3xf32, #odd> -> tensor<9x4xf32, #even>
  %2 = tile.rotate %x by 5 axis 0 : tensor<64xf32, #row>
  return
}

#operand = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16 d0:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 *]>
#stored = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d1:8], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d1:16 d0:32]>

// With stmatrix, a fragment is also stored by rows of matrices. Other targets store pairs.
// CHECK-LABEL: func @fragment
// CHECK: simt.write {{.*}} by vectors in
// STMATRIX-LABEL: func @fragment
// STMATRIX: simt.write {{.*}} by rows in
// STMATRIX: simt.read {{.*}} by vectors in
func.func @fragment(%x: tensor<64x32xbf16, #operand>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<64x32xbf16, #operand> -> tensor<64x32xbf16, #stored>
  return
}

#rows = #simt.layout<4x64, reg [d1:32], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1 d0:2]>
#wide = #simt.layout<4x64, reg [d0:1 d0:2], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32]>

// A scan of lines within one warp needs no exchange. Otherwise each warp writes its part's total, which takes one
// barrier.
// CHECK-LABEL: func @scan
// CHECK-SAME: (%[[X:.*]]: tensor<4x64xf32, {{.*}}>, %[[Y:.*]]: tensor<4x64xi8, {{.*}}>)
// CHECK-NOT: simt.buffer
// CHECK: simt.scan sum %[[X]] axis 1 reverse : (tensor<4x64xf32, {{.*}}>) -> tensor<4x64xf32, {{.*}}>
// CHECK: %[[TOTALS:.*]] = simt.buffer : memref<16xi8, 3>
// CHECK: %[[PARTS:.*]] = simt.scan max %[[Y]] axis 1 to %[[TOTALS]]
// CHECK: simt.carry max %[[PARTS]] axis 1 from %[[TOTALS]]
func.func @scan(%x: tensor<4x64xf32, #rows>, %y: tensor<4x64xi8, #wide>) attributes {tile.kernel} {
  %0 = tile.scan sum %x axis 1 reverse : (tensor<4x64xf32, #rows>) -> tensor<4x64xf32, #rows>
  %1 = tile.scan max %y axis 1 : (tensor<4x64xi8, #wide>) -> tensor<4x64xi8, #wide>
  return
}

// -----

#row = #simt.layout<128, reg [d0:64], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32]>

// A sort stays within warps, except for the stages on the warp's bit, which exchange elements through shared memory.
// CHECK-LABEL: func @sort
// CHECK: simt.sort %{{.*}} axis 0 stages [0, 15]
// CHECK: simt.write
// CHECK: simt.pick
// CHECK: simt.sort %{{.*}} axis 0 stages [16, 22]
// CHECK: simt.pick
// CHECK: simt.sort %{{.*}} axis 0 stages [23, 28]
// CHECK-NOT: simt.pick
func.func @sort(%x: tensor<128xi32, #row>) attributes {tile.kernel, tile.warps = 2 : i64} {
  %0:2 = tile.sort %x axis 0 : tensor<128xi32, #row> -> tensor<128xi32, #row>, tensor<128xi32, #row>
  return
}

#bins = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [*]>

// Elements are gathered from a copy in shared memory, and counted there.
// CHECK-LABEL: func @look_ups
// CHECK: simt.write
// CHECK: simt.look_up
// CHECK: simt.write
// CHECK: simt.count
// CHECK: simt.read
func.func @look_ups(%x: tensor<128xi32, #row>) attributes {tile.kernel, tile.warps = 2 : i64} {
  %0 = tile.take %x[%x] axis 0 : tensor<128xi32, #row>, tensor<128xi32, #row> -> tensor<128xi32, #row>
  %1 = tile.histogram %x : tensor<128xi32, #row> -> tensor<32xi32, #bins>
  return
}

#acc = #simt.layout<16x32, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d1:16]>
#rows = #simt.layout<16x32, reg [d1:1 d1:2 d0:8], lane [d1:4 d1:8 d1:16 d0:1 d0:2], warp [d0:4]>

// Two rounds: the halves differ in the highest bit of positions that registers of both layouts have. Of the others
// (d1:1) one makes vectors.
// ROUNDS-LABEL: func @rounds
// ROUNDS-SAME: (%[[X:[a-z0-9]+]]:
// ROUNDS: %[[LOW:.*]] = simt.half %[[X]] axis 0 bit 3 is 0 : {{.*}} -> tensor<8x32xf32, [[HALF:#simt.layout<8x32, reg \[d1:1 d1:8\], .*>]]>
// ROUNDS: simt.write %[[LOW]], %[[A:[0-9]+]] {{.*}} memref<1024xi8, 3>
// ROUNDS: %[[FIRST:.*]] = simt.read %[[A]]
// ROUNDS: %[[HIGH:.*]] = simt.half %[[X]] axis 0 bit 3 is 1
// ROUNDS: simt.write %[[HIGH]], %[[B:[0-9]+]] {{.*}} memref<1024xi8, 3>
// ROUNDS: %[[SECOND:.*]] = simt.read %[[B]]
// ROUNDS: simt.join %[[FIRST]], %[[SECOND]] axis 0 bit 3 : {{.*}} -> tensor<16x32xf32, #simt.layout<16x32, reg [d1:1 d1:2 d0:8]
func.func @rounds(%x: tensor<16x32xf32, #acc>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<16x32xf32, #acc> -> tensor<16x32xf32, #rows>
  return
}

#a = #simt.layout<16x32, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d1:16]>
#b = #simt.layout<16x32, reg [d1:2 d1:4 d0:4], lane [d1:1 d1:8 d1:16 d0:1 d0:2], warp [d0:8]>

// One round if registers have no bit in common.
// ROUNDS-LABEL: func @whole
// ROUNDS-NOT: simt.half
// ROUNDS: simt.write {{.*}} memref<2048xi8, 3>
func.func @whole(%x: tensor<16x32xf32, #a>) attributes {tile.kernel} {
  %0 = simt.convert %x : tensor<16x32xf32, #a> -> tensor<16x32xf32, #b>
  return
}
