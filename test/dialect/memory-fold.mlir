// Static extents fold. Equal loads stay separate if a write may occur in between. Dead pure operations are removed.
// RUN: kiln-opt %s --canonicalize --cse | FileCheck %s

// CHECK-LABEL: @extents
func.func @extents(%v: memref<?x64xf32, strided<[?, 1]>>) -> (i64, i64) {
  // CHECK-DAG: %[[STATIC:.*]] = arith.constant 64 : i64
  // CHECK-DAG: %[[DYNAMIC:.*]] = tile.dim %{{.*}}, 0
  %0 = tile.dim %v, 0 : memref<?x64xf32, strided<[?, 1]>>
  %1 = tile.dim %v, 1 : memref<?x64xf32, strided<[?, 1]>>
  // CHECK: return %[[DYNAMIC]], %[[STATIC]]
  return %0, %1 : i64, i64
}

// The second load reads the stored value, so it cannot be replaced by the first.
// CHECK-LABEL: @between
func.func @between(%v: memref<?xf32, strided<[1]>>, %w: memref<?xf32, strided<[1]>>, %n: i64, %x: tensor<4xf32>) {
  // CHECK: %[[A:.*]] = tile.load
  // CHECK-NOT: tile.load
  // CHECK: tile.store %[[A]]
  // CHECK: %[[B:.*]] = tile.load
  // CHECK: tile.store %[[B]]
  %0 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %1 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  tile.store %1, %w[%n] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  %2 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  tile.store %2, %w[%n] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  return
}

// An unused load is removed. Atomics with unused results, prints, checks and assumptions stay, in order.
// CHECK-LABEL: @effects
func.func @effects(%v: memref<?xf32, strided<[1]>>, %n: i64, %x: tensor<4xf32>, %ok: i1) {
  // CHECK-NOT: tile.load
  // CHECK: tile.atomic_rmw
  // CHECK: tile.print "b"
  // CHECK: tile.print "a"
  // CHECK: tile.check
  // CHECK: tile.assume
  %0 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %1 = tile.atomic_rmw add relaxed %x, %v[%n] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  tile.print "b", %x : tensor<4xf32>
  tile.print "a", %x : tensor<4xf32>
  tile.check %ok, "expected true" : i1
  tile.assume %ok
  return
}

// A mask that is true everywhere is removed. If it is false everywhere, the access is removed.
// CHECK-LABEL: @masks
func.func @masks(%v: memref<?xf32, strided<[1]>>, %n: i64, %r: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %all = arith.constant dense<true> : tensor<4xi1>
  %none = arith.constant dense<false> : tensor<4xi1>
  // CHECK-DAG: %[[PADDING:.*]] = arith.constant dense<0xFF800000> : tensor<4xf32>
  // CHECK: %[[BLOCK:.*]] = tile.load %{{.*}}[%{{.*}}] pad inf :
  // CHECK: %[[NAMED:.*]] = tile.gather %{{.*}}[%{{.*}}] : memref<?xf32, strided<[1]>>, tensor<4xi32> -> tensor<4xf32>
  // CHECK: tile.store %[[BLOCK]]
  // CHECK-NOT: tile.scatter
  %0 = tile.gather %v[%n] if %all pad inf : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %1 = tile.gather %v[%r] if %all : memref<?xf32, strided<[1]>>, tensor<4xi32> -> tensor<4xf32>
  %2 = tile.gather %v[%r] if %none pad neg_inf : memref<?xf32, strided<[1]>>, tensor<4xi32> -> tensor<4xf32>
  tile.scatter %0, %v[%n] if %all : tensor<4xf32>, memref<?xf32, strided<[1]>>
  tile.scatter %0, %v[%n] if %none : tensor<4xf32>, memref<?xf32, strided<[1]>>
  // CHECK: return %[[BLOCK]], %[[NAMED]], %[[PADDING]]
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A gather or scatter at consecutive positions becomes a block access, with or without a mask, in one and two
// dimensions.
// CHECK-LABEL: @runs
func.func @runs(%v: memref<?xf32, strided<[1]>>, %w: memref<?x?xf32, strided<[?, 1]>>, %n: i64, %m: i64,
                %mask: tensor<64xi1>) -> (tensor<64xf32>, tensor<64xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  // CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : i64
  // CHECK: tile.load %{{.*}}[%arg2] : memref<?xf32, strided<[1]>> -> tensor<64xf32>
  // CHECK: %[[MORE:.*]] = arith.addi %arg2, %[[FIVE]] : i64
  // CHECK: tile.gather %{{.*}}[%[[MORE]]] if %arg4 : memref<?xf32, strided<[1]>> -> tensor<64xf32>
  // CHECK: tile.load %{{.*}}[%arg2, %arg3] : memref<?x?xf32, strided<[?, 1]>> -> tensor<8x4xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %arg3] : memref<?x?xf32, strided<[?, 1]>>, tensor<8xi64> -> tensor<8x4xf32>
  %five = arith.constant dense<5> : tensor<64xi64>
  %iota = tile.iota : tensor<64xi32>
  %wide = tile.cast %iota : tensor<64xi32> to tensor<64xi64>
  %from = tile.splat %n : i64 -> tensor<64xi64>
  %run = arith.addi %from, %wide : tensor<64xi64>
  %0 = tile.gather %v[%run] : memref<?xf32, strided<[1]>>, tensor<64xi64> -> tensor<64xf32>
  %next = arith.addi %run, %five : tensor<64xi64>
  %1 = tile.gather %v[%next] if %mask : memref<?xf32, strided<[1]>>, tensor<64xi64> -> tensor<64xf32>
  %rows = tile.iota : tensor<8xi64>
  %column = tile.reshape %rows : tensor<8xi64> -> tensor<8x1xi64>
  %y = tile.broadcast %column : tensor<8x1xi64> -> tensor<8x4xi64>
  %fromRow = tile.splat %n : i64 -> tensor<8x4xi64>
  %yy = arith.addi %fromRow, %y : tensor<8x4xi64>
  %columns = tile.iota : tensor<4xi64>
  %row = tile.reshape %columns : tensor<4xi64> -> tensor<1x4xi64>
  %x = tile.broadcast %row : tensor<1x4xi64> -> tensor<8x4xi64>
  %fromColumn = tile.splat %m : i64 -> tensor<8x4xi64>
  %xx = arith.addi %fromColumn, %x : tensor<8x4xi64>
  %2 = tile.gather %w[%yy, %xx] : memref<?x?xf32, strided<[?, 1]>>, tensor<8x4xi64>, tensor<8x4xi64> -> tensor<8x4xf32>
  %odd = arith.muli %column, %column : tensor<8x1xi64>
  %z = tile.broadcast %odd : tensor<8x1xi64> -> tensor<8x4xi64>
  %3 = tile.gather %w[%z, %xx] : memref<?x?xf32, strided<[?, 1]>>, tensor<8x4xi64>, tensor<8x4xi64> -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<64xf32>, tensor<64xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// A uniform index tile beside consecutive positions is a block of one element, as is a block of one before them.
// CHECK-LABEL: @rows
func.func @rows(%w: memref<?x?xf32, strided<[?, 1]>>, %n: i64, %mask: tensor<64xi1>, %x: tensor<64xf32>)
    -> (tensor<64xf32>, tensor<64x1xf32>) {
  // CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : i64
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i64
  // CHECK: %[[A:.*]] = tile.load %{{.*}}[%[[THREE]], %[[ZERO]]] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x64xf32>
  // CHECK: tile.reshape %[[A]] : tensor<1x64xf32> -> tensor<64xf32>
  // CHECK: %[[B:.*]] = tile.load %{{.*}}[%arg1, %[[ZERO]]] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x64xf32>
  // CHECK: tile.reshape %[[B]] : tensor<1x64xf32> -> tensor<64x1xf32>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%arg1, %[[ZERO]]] if %{{.*}} : tensor<1x64xf32>, memref<?x?xf32, strided<[?, 1]>>
  %columns = tile.iota : tensor<64xi64>
  %three = arith.constant dense<3> : tensor<64xi64>
  %0 = tile.gather %w[%three, %columns] : memref<?x?xf32, strided<[?, 1]>>, tensor<64xi64>, tensor<64xi64> -> tensor<64xf32>
  %1 = tile.gather %w[%n, %columns] : memref<?x?xf32, strided<[?, 1]>>, i64, tensor<64xi64> -> tensor<64x1xf32>
  %rows = tile.splat %n : i64 -> tensor<64xi64>
  tile.scatter %x, %w[%rows, %columns] if %mask : tensor<64xf32>, memref<?x?xf32, strided<[?, 1]>>, tensor<64xi64>, tensor<64xi64>
  return %0, %1 : tensor<64xf32>, tensor<64x1xf32>
}

// Positions that may wrap in 32 bits, and positions along the first of two dimensions, do not become a block.
// CHECK-LABEL: @noRuns
func.func @noRuns(%v: memref<?xf32, strided<[1]>>, %n: i32) -> (tensor<64xf32>, tensor<64x2xf32>) {
  // CHECK: tile.gather
  // CHECK: tile.gather
  %iota = tile.iota : tensor<64xi32>
  %from = tile.splat %n : i32 -> tensor<64xi32>
  %run = arith.addi %from, %iota : tensor<64xi32>
  %0 = tile.gather %v[%run] : memref<?xf32, strided<[1]>>, tensor<64xi32> -> tensor<64xf32>
  %column = tile.reshape %iota : tensor<64xi32> -> tensor<64x1xi32>
  %twice = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x2xi32>
  %1 = tile.gather %v[%twice] : memref<?xf32, strided<[1]>>, tensor<64x2xi32> -> tensor<64x2xf32>
  return %0, %1 : tensor<64xf32>, tensor<64x2xf32>
}

// A block access loses the index's dimension of extent 1; a reshape restores it.
// CHECK-LABEL: @otherDimension
func.func @otherDimension(%v: memref<?xf32, strided<[1]>>, %x: tensor<1x5xf32>) -> tensor<1x5xf32> {
  // CHECK: %[[A:.*]] = tile.load %{{.*}} -> tensor<5xf32>
  // CHECK: tile.reshape %[[A]] : tensor<5xf32> -> tensor<1x5xf32>
  // CHECK: tile.store %{{.*}} : tensor<5xf32>, memref<?xf32, strided<[1]>>
  %iota = tile.iota : tensor<5xi64>
  %row = tile.reshape %iota : tensor<5xi64> -> tensor<1x5xi64>
  %0 = tile.gather %v[%row] : memref<?xf32, strided<[1]>>, tensor<1x5xi64> -> tensor<1x5xf32>
  tile.scatter %x, %v[%row] : tensor<1x5xf32>, memref<?xf32, strided<[1]>>, tensor<1x5xi64>
  return %0 : tensor<1x5xf32>
}

// Two atomic loads of one address stay separate, because the value may have changed.
// CHECK-LABEL: @polls
func.func @polls(%v: memref<?xi32, strided<[1]>>, %n: i64) -> (tensor<1xi32>, tensor<1xi32>) {
  // CHECK: %[[A:.*]] = tile.atomic_load relaxed
  // CHECK: %[[B:.*]] = tile.atomic_load relaxed
  // CHECK: return %[[A]], %[[B]]
  %0 = tile.atomic_load relaxed %v[%n] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
  %1 = tile.atomic_load relaxed %v[%n] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
  return %0, %1 : tensor<1xi32>, tensor<1xi32>
}

// A cache hint is kept when an access is replaced by another one.
// CHECK-LABEL: @caches
func.func @caches(%v: memref<?xf32, strided<[1]>>, %n: i64) {
  %all = arith.constant dense<true> : tensor<64xi1>
  %lanes = tile.iota : tensor<64xi64>
  %begin = tile.splat %n : i64 -> tensor<64xi64>
  %run = arith.addi %begin, %lanes : tensor<64xi64>
  // CHECK: tile.load %{{.*}} {tile.cache = "keep"} :
  %0 = tile.gather %v[%n] if %all {tile.cache = "keep"} : memref<?xf32, strided<[1]>> -> tensor<64xf32>
  // CHECK: tile.load %{{.*}} {tile.cache = "stream"} :
  %1 = tile.gather %v[%run] {tile.cache = "stream"} : memref<?xf32, strided<[1]>>, tensor<64xi64> -> tensor<64xf32>
  // CHECK: tile.store %{{.*}} {tile.cache = "stream"} :
  tile.scatter %0, %v[%n] if %all {tile.cache = "stream"} : tensor<64xf32>, memref<?xf32, strided<[1]>>
  // CHECK: tile.store %{{.*}} {tile.cache = "keep"} :
  tile.scatter %1, %v[%run] {tile.cache = "keep"} : tensor<64xf32>, memref<?xf32, strided<[1]>>, tensor<64xi64>
  return
}

// Of extents that are equal, the first is read, or one that is static.
// CHECK-LABEL: func @equal_extents(
// CHECK-SAME: %[[V:.*]]: memref<?x?xf32>, %[[W:.*]]: memref<?x?xf32>, %[[S:.*]]: memref<?x64xf32>)
func.func @equal_extents(%v: memref<?x?xf32>, %w: memref<?x?xf32>, %s: memref<?x64xf32>) -> (i64, i64, i64, i64)
    attributes {tile.equal_extents = [array<i64: 0, 0, 1, 1>, array<i64: 0, 1, 2, 1>]} {
  // CHECK-DAG: %[[FIRST:.*]] = tile.dim %[[V]], 0
  // CHECK-DAG: %[[OTHER:.*]] = tile.dim %[[W]], 0
  // CHECK-DAG: %[[STATIC:.*]] = arith.constant 64
  %0 = tile.dim %v, 0 : memref<?x?xf32>
  %1 = tile.dim %w, 1 : memref<?x?xf32>
  %2 = tile.dim %w, 0 : memref<?x?xf32>
  %3 = tile.dim %v, 1 : memref<?x?xf32>
  // CHECK: return %[[FIRST]], %[[FIRST]], %[[OTHER]], %[[STATIC]]
  return %0, %1, %2, %3 : i64, i64, i64, i64
}
