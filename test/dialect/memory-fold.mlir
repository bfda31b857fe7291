// A static extent is a constant; loads of one place stay where a write may come between; dead pure operations go.
// RUN: kiln-opt %s --canonicalize --cse --split-input-file | FileCheck %s

// CHECK-LABEL: @extents
func.func @extents(%v: memref<?x64xf32, strided<[?, 1]>>) -> (i64, i64) {
  // CHECK-DAG: %[[STATIC:.*]] = arith.constant 64 : i64
  // CHECK-DAG: %[[DYNAMIC:.*]] = tile.dim %{{.*}}, 0
  %0 = tile.dim %v, 0 : memref<?x64xf32, strided<[?, 1]>>
  %1 = tile.dim %v, 1 : memref<?x64xf32, strided<[?, 1]>>
  // CHECK: return %[[DYNAMIC]], %[[STATIC]]
  return %0, %1 : i64, i64
}

// -----

// The second load reads what the store wrote: it is another value than the first.
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

// -----

// An unused load goes; an unused result of an atomic, a print and a check stay, in order.
// CHECK-LABEL: @effects
func.func @effects(%v: memref<?xf32, strided<[1]>>, %n: i64, %x: tensor<4xf32>, %ok: i1) {
  // CHECK-NOT: tile.load
  // CHECK: tile.atomic_add
  // CHECK: tile.print "b"
  // CHECK: tile.print "a"
  // CHECK: tile.check
  %0 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %1 = tile.atomic_add relaxed %x, %v[%n] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  tile.print "b", %x : tensor<4xf32>
  tile.print "a", %x : tensor<4xf32>
  tile.check %ok, "expected true" : i1
  return
}
