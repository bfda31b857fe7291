// Total operations and narrow floats become arith operations, on tiles and on scalars.
// RUN: kiln-opt %s --tile-expand-ops | FileCheck %s
// RUN: kiln-opt %s --tile-expand-ops --cse | FileCheck %s --check-prefix=SHARED

// A division by a constant that is neither 0 nor −1 needs no repair.
// CHECK-LABEL: @divide_by_constant
// CHECK: arith.divsi %arg0, %{{.*}} : tensor<4xi32>
// CHECK-NOT: arith.select
func.func @divide_by_constant(%a: tensor<4xi32>) -> tensor<4xi32> {
  %b = arith.constant dense<3> : tensor<4xi32>
  %0 = tile.div %a, %b : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// The divisor that reaches the division is never 0 or −1.
// CHECK-LABEL: @divide
// CHECK-SAME: (%[[A:.*]]: i64, %[[B:.*]]: i64)
// CHECK-DAG: %[[ZERO:.*]] = arith.cmpi eq, %[[B]], %c0_i64
// CHECK-DAG: %[[MINUS:.*]] = arith.cmpi eq, %[[B]], %c-1_i64
// CHECK: %[[SPECIAL:.*]] = arith.ori %[[ZERO]], %[[MINUS]]
// CHECK: %[[SAFE:.*]] = arith.select %[[SPECIAL]], %c1_i64, %[[B]]
// CHECK: arith.divsi %[[A]], %[[SAFE]]
func.func @divide(%a: i64, %b: i64) -> i64 {
  %0 = tile.div %a, %b : i64
  return %0 : i64
}

// CHECK-LABEL: @shift
// CHECK: %[[IN:.*]] = arith.cmpi ult, %arg1
// CHECK: %[[LEFT:.*]] = arith.shli %arg0, %arg1
// CHECK: arith.select %[[IN]], %[[LEFT]]
// CHECK: %[[AMOUNT:.*]] = arith.minui %arg1
// CHECK: arith.shrsi %arg0, %[[AMOUNT]]
func.func @shift(%a: tensor<4xi8>, %n: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>) {
  %0 = tile.shl %a, %n : tensor<4xi8>
  %1 = tile.shr %a, %n : tensor<4xi8>
  return %0, %1 : tensor<4xi8>, tensor<4xi8>
}

// The cast gets only numbers within the range of its result.
// CHECK-LABEL: @saturate
// CHECK: %[[LOW:.*]] = arith.select
// CHECK: %[[IN:.*]] = arith.cmpf olt, %[[LOW]]
// CHECK: %[[SAFE:.*]] = arith.select %[[IN]], %[[LOW]]
// CHECK: %[[WHOLE:.*]] = arith.fptosi %[[SAFE]]
// CHECK: arith.select %{{.*}}, %{{.*}}, %[[WHOLE]]
func.func @saturate(%x: tensor<8xf32>) -> tensor<8xi32> {
  %0 = tile.cast %x : tensor<8xf32> to tensor<8xi32>
  return %0 : tensor<8xi32>
}

// NaN is true: the comparison is unordered.
// CHECK-LABEL: @truth
// CHECK: arith.cmpf une, %arg0
func.func @truth(%x: f32) -> i1 {
  %0 = tile.cast %x : f32 to i1
  return %0 : i1
}

// Narrow arithmetic is done in f32. Comparisons keep their bool, and moves are unchanged.
// CHECK-LABEL: @narrow
// CHECK: %[[A:.*]] = arith.extf %arg0 : tensor<4xbf16> to tensor<4xf32>
// CHECK: %[[B:.*]] = arith.extf %arg1 : tensor<4xbf16> to tensor<4xf32>
// CHECK: %[[SUM:.*]] = arith.addf %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[NARROW:.*]] = arith.truncf %[[SUM]] : tensor<4xf32> to tensor<4xbf16>
// CHECK: %[[LESS:.*]] = arith.cmpf olt, %{{.*}} : tensor<4xf32>
// CHECK: arith.select %[[LESS]], %[[NARROW]], %arg0 : tensor<4xi1>, tensor<4xbf16>
func.func @narrow(%a: tensor<4xbf16>, %b: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = arith.addf %a, %b : tensor<4xbf16>
  %1 = arith.cmpf olt, %a, %b : tensor<4xbf16>
  %2 = arith.select %1, %0, %a : tensor<4xi1>, tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// A sum of bf16 is carried in f32 and rounded once.
// CHECK-LABEL: @narrow_sum
// CHECK: %[[WIDE:.*]] = arith.extf %arg0
// CHECK: %[[SUM:.*]] = tile.reduce sum %[[WIDE]] axis 0 : tensor<64xf32> -> f32
// CHECK: arith.truncf %[[SUM]] : f32 to bf16
func.func @narrow_sum(%a: tensor<64xbf16>) -> bf16 {
  %0 = tile.reduce sum %a axis 0 : tensor<64xbf16> -> bf16
  return %0 : bf16
}

// CHECK-LABEL: @philox
// CHECK-NOT: tile.random
// CHECK-COUNT-20: arith.muli
// CHECK: arith.trunci %{{.*}} : tensor<8xi64> to tensor<8xi32>
func.func @philox(%seed: i64, %index: tensor<8xi64>) -> tensor<8xi32> {
  %0 = tile.random %seed, %index : tensor<8xi64> -> tensor<8xi32>
  return %0 : tensor<8xi32>
}

// The four words of one counter are one number.
// SHARED-LABEL: @words
// SHARED-COUNT-20: arith.muli
// SHARED-NOT: arith.muli
// SHARED: return
func.func @words(%seed: i64, %index: tensor<8xi64>) -> (tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>) {
  %0 = tile.random %seed, %index : tensor<8xi64> -> tensor<8xi32>
  %1 = tile.random %seed, %index word 1 : tensor<8xi64> -> tensor<8xi32>
  %2 = tile.random %seed, %index word 2 : tensor<8xi64> -> tensor<8xi32>
  %3 = tile.random %seed, %index word 3 : tensor<8xi64> -> tensor<8xi32>
  return %0, %1, %2, %3 : tensor<8xi32>, tensor<8xi32>, tensor<8xi32>, tensor<8xi32>
}

// So is a scan of bf16, with each element rounded once.
// CHECK-LABEL: @narrow_scan
// CHECK: %[[WIDE:.*]] = arith.extf %arg0
// CHECK: %[[SUMS:.*]] = tile.scan sum %[[WIDE]] axis 0 : (tensor<64xf32>) -> tensor<64xf32>
// CHECK: arith.truncf %[[SUMS]] : tensor<64xf32> to tensor<64xbf16>
func.func @narrow_scan(%a: tensor<64xbf16>) -> tensor<64xbf16> {
  %0 = tile.scan sum %a axis 0 : (tensor<64xbf16>) -> tensor<64xbf16>
  return %0 : tensor<64xbf16>
}

// Unsigned numbers are compared as signed ones with the highest bit inverted.
// CHECK-LABEL: @unsigned
// CHECK: %[[A:.*]] = arith.xori %{{.*}}, %{{.*}} : tensor<4x8xi16>
// CHECK: %[[MOST:.*]] = tile.reduce max %[[A]] axis 1 : tensor<4x8xi16> -> tensor<4xi16>
// CHECK: arith.xori %[[MOST]], %{{.*}} : tensor<4xi16>
// CHECK: arith.divui
// CHECK: arith.uitofp %{{.*}} : tensor<4xi32> to tensor<4xf32>
func.func @unsigned(%x: tensor<4x8xi16>, %n: tensor<4xi32>, %m: tensor<4xi32>)
    -> (tensor<4xi16>, tensor<4xi32>, tensor<4xf32>) {
  %0 = tile.reduce max %x axis 1 {tile.unsigned} : tensor<4x8xi16> -> tensor<4xi16>
  %1 = tile.div %n, %m {tile.unsigned} : tensor<4xi32>
  %2 = tile.cast %n {tile.unsigned} : tensor<4xi32> to tensor<4xf32>
  return %0, %1, %2 : tensor<4xi16>, tensor<4xi32>, tensor<4xf32>
}

// 8-bit floats become bytes. A product reads them as bf16.
// CHECK-LABEL: @bytes
// CHECK-SAME: memref<?xi8, strided<[1]>>
// CHECK-SAME: tensor<4x4xi8>
// CHECK-NOT: f8E
// CHECK: tile.load %{{.*}} : memref<?xi8, strided<[1]>> -> tensor<4xi8>
// CHECK: tile.dot %{{.*}} : tensor<4x4xbf16>, tensor<4x4xbf16>, tensor<4x4xf32>
func.func @bytes(%v: memref<?xf8E5M2, strided<[1]>>, %a: tensor<4x4xf8E5M2>, %c: tensor<4x4xf32>, %i: i64)
    -> (tensor<4xf8E5M2>, tensor<4x4xf32>) {
  %x = tile.load %v[%i] : memref<?xf8E5M2, strided<[1]>> -> tensor<4xf8E5M2>
  %y = arith.addf %x, %x : tensor<4xf8E5M2>
  %d = tile.dot %a, %a, %c : tensor<4x4xf8E5M2>, tensor<4x4xf8E5M2>, tensor<4x4xf32>
  return %y, %d : tensor<4xf8E5M2>, tensor<4x4xf32>
}
