// Every tile becomes a buffer, and every operation a loop.
// RUN: kiln-opt %s --generic-lower-to-linalg | FileCheck %s

// CHECK-LABEL: @elementwise
// CHECK: %[[X:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK: scf.for
// CHECK: arith.cmpi ult
// CHECK: scf.if
// CHECK: memref.load %arg0
// CHECK: %[[Y:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[X]], %[[X]] : memref<8xf32>, memref<8xf32>) outs(%[[Y]] : memref<8xf32>)
// CHECK: arith.addf %{{.*}} : f32
// CHECK: scf.for
// CHECK: memref.store %{{.*}}, %arg0
func.func @elementwise(%v: memref<?xf32, strided<[1]>>, %n: i64) {
  %0 = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<8xf32>
  %1 = arith.addf %0, %0 : tensor<8xf32>
  tile.store %1, %v[%n] : tensor<8xf32>, memref<?xf32, strided<[1]>>
  return
}

// A bool is a byte; the comparison's result is widened to be stored.
// CHECK-LABEL: @compare
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<8xi8>
// CHECK: arith.cmpi slt
// CHECK: arith.extui %{{.*}} : i1 to i8
func.func @compare(%v: memref<?xi8, strided<[1]>>, %n: i64) {
  %0 = tile.iota : tensor<8xi32>
  %1 = arith.constant dense<3> : tensor<8xi32>
  %2 = arith.cmpi slt, %0, %1 : tensor<8xi32>
  tile.store %2, %v[%n] : tensor<8xi1>, memref<?xi8, strided<[1]>>
  return
}

// Swapped loop-carried tiles use temporaries. Scalars stay values of the loop.
// CHECK-LABEL: @swap
// CHECK: %[[A:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK: %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK: %[[SLOT0:.*]] = memref.alloca
// CHECK: %[[SLOT1:.*]] = memref.alloca
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %c1_i64) -> (i64)
// CHECK: %[[T0:.*]] = memref.alloca
// CHECK: linalg.generic {{.*}} ins(%[[SLOT1]] {{.*}} outs(%[[T0]]
// CHECK: %[[T1:.*]] = memref.alloca
// CHECK: linalg.generic {{.*}} ins(%[[SLOT0]] {{.*}} outs(%[[T1]]
// CHECK: linalg.generic {{.*}} ins(%[[T0]] {{.*}} outs(%[[SLOT0]]
// CHECK: linalg.generic {{.*}} ins(%[[T1]] {{.*}} outs(%[[SLOT1]]
func.func @swap(%v: memref<?xf32, strided<[1]>>, %n: i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %a = tile.load %v[%c0] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %b = tile.load %v[%n] : memref<?xf32, strided<[1]>> -> tensor<4xf32>
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %s = %c1, %y = %b)
      -> (tensor<4xf32>, i64, tensor<4xf32>) : i64 {
    %t = arith.addi %s, %i : i64
    scf.yield %y, %t, %x : tensor<4xf32>, i64, tensor<4xf32>
  }
  tile.store %r#0, %v[%r#1] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  tile.store %r#2, %v[%c0] : tensor<4xf32>, memref<?xf32, strided<[1]>>
  return
}

// CHECK-LABEL: @branch
// CHECK: %[[SLOT:.*]] = memref.alloca() {alignment = 64 : i64} : memref<4xi32>
// CHECK: scf.if
// CHECK: linalg.generic {{.*}} outs(%[[SLOT]]
// CHECK: else
// CHECK: linalg.generic {{.*}} outs(%[[SLOT]]
func.func @branch(%c: i1, %v: memref<?xi32, strided<[1]>>, %n: i64) {
  %a = tile.iota : tensor<4xi32>
  %r = scf.if %c -> tensor<4xi32> {
    %b = arith.addi %a, %a : tensor<4xi32>
    scf.yield %b : tensor<4xi32>
  } else {
    scf.yield %a : tensor<4xi32>
  }
  tile.store %r, %v[%n] : tensor<4xi32>, memref<?xi32, strided<[1]>>
  return
}

// The first part of a tile is as long as the result: loops take their extents from the first operand.
// CHECK-LABEL: @beginning
// CHECK: %[[PART:.*]] = memref.subview %{{.*}}[0, 0] [3, 4] [1, 1] : memref<3x8xi32> to memref<3x4xi32, strided<[8, 1]>>
// CHECK: linalg.generic {{.*}} ins(%[[PART]] {{.*}} outs(%{{.*}} : memref<3x4xi32>)
func.func @beginning(%v: memref<?x?xi32, strided<[?, 1]>>) {
  %c0 = arith.constant 0 : i64
  %a = tile.load %v[%c0, %c0] : memref<?x?xi32, strided<[?, 1]>> -> tensor<3x8xi32>
  %0 = tile.extract %a begin [0, 0] steps [1, 1] : tensor<3x8xi32> -> tensor<3x4xi32>
  tile.store %0, %v[%c0, %c0] : tensor<3x4xi32>, memref<?x?xi32, strided<[?, 1]>>
  return
}
