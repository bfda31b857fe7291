// Conversions within warps exchange 32-bit words between lanes.
// RUN: kiln-opt %s --gpu-distribute | FileCheck %s

#pairs = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp []>
#apart = #simt.layout<64, reg [d0:2], lane [d0:1 d0:4 d0:8 d0:16 d0:32], warp []>

// Each lane keeps one of its two words and exchanges the other with its neighbour: one shuffle, not two.
// CHECK-LABEL: func @exchange
// CHECK: %[[WORDS:.*]]:2 = vector.to_elements %{{.*}} : vector<2xi32>
// CHECK: %[[BIT:.*]] = arith.andi %{{.*}}, %c1_i32
// CHECK: %[[ODD:.*]] = arith.cmpi ne, %[[BIT]]
// CHECK: %[[KEPT:.*]] = arith.select %[[ODD]], %[[WORDS]]#1, %[[WORDS]]#0
// CHECK: %[[GIVEN:.*]] = arith.select %[[ODD]], %[[WORDS]]#0, %[[WORDS]]#1
// CHECK: %[[GOT:.*]] = simt.shuffle %[[GIVEN]] xor 1
// CHECK-NOT: simt.shuffle
// CHECK: %[[FIRST:.*]] = arith.select %[[AGAIN:.*]], %[[GOT]], %[[KEPT]]
// CHECK: %[[SECOND:.*]] = arith.select %[[AGAIN]], %[[KEPT]], %[[GOT]]
// CHECK: vector.from_elements %[[FIRST]], %[[SECOND]] : vector<2xi32>
func.func @exchange(%v: memref<64xf32>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0] : memref<64xf32> -> tensor<64xf32, #pairs>
  %1 = simt.convert %0 : tensor<64xf32, #pairs> -> tensor<64xf32, #apart>
  tile.store %1, %v[%c0] : tensor<64xf32, #apart>, memref<64xf32>
  return
}

#rows = #simt.layout<2x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp []>
#permuted = #simt.layout<2x32, reg [d0:1], lane [d1:2 d1:1 d1:4 d1:8 d1:16], warp []>

// Two narrow elements are one word. A lane requests the word from a lane whose number has permuted bits: here the
// lowest two bits are swapped.
// CHECK-LABEL: func @turn
// CHECK: %[[PAIR:.*]] = vector.bitcast %{{.*}} : vector<2xbf16> to vector<1xi32>
// CHECK: %[[WORD:.*]] = vector.to_elements %[[PAIR]]
// CHECK: %[[LOW:.*]] = arith.andi %[[LANE:.*]], %c1_i32
// CHECK: arith.shli %[[LOW]], %c1_i32
// CHECK: %[[HIGH:.*]] = arith.andi %[[LANE]], %c2_i32
// CHECK: arith.shrui %[[HIGH]], %c1_i32
// CHECK: arith.andi %[[LANE]], %c28_i32
// CHECK: simt.shuffle_from %[[WORD]],
// CHECK-NOT: simt.shuffle
func.func @turn(%v: memref<2x32xbf16>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0, %c0] : memref<2x32xbf16> -> tensor<2x32xbf16, #rows>
  %1 = simt.convert %0 : tensor<2x32xbf16, #rows> -> tensor<2x32xbf16, #permuted>
  tile.store %1, %v[%c0, %c0] : tensor<2x32xbf16, #permuted>, memref<2x32xbf16>
  return
}

#both = #simt.layout<2x32, reg [d0:1], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [*]>
#half = #simt.layout<2x32, reg [], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d0:1]>

// Elements that a thread already holds are selected in registers; both words of an f64 are.
// CHECK-LABEL: func @half
// CHECK-NOT: simt.shuffle
// CHECK: %[[WORDS:.*]]:4 = vector.to_elements %{{.*}} : vector<4xi32>
// CHECK: %[[LOW:.*]] = arith.select %{{.*}}, %[[WORDS]]#2, %[[WORDS]]#0
// CHECK: %[[HIGH:.*]] = arith.select %{{.*}}, %[[WORDS]]#3, %[[WORDS]]#1
// CHECK: vector.from_elements %[[LOW]], %[[HIGH]] : vector<2xi32>
// CHECK-NOT: simt.shuffle
// CHECK: return
func.func @half(%v: memref<2x32xf64>) attributes {tile.kernel, tile.warps = 2 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %v[%c0, %c0] : memref<2x32xf64> -> tensor<2x32xf64, #both>
  %1 = simt.convert %0 : tensor<2x32xf64, #both> -> tensor<2x32xf64, #half>
  tile.store %1, %v[%c0, %c0] : tensor<2x32xf64, #half>, memref<2x32xf64>
  return
}
