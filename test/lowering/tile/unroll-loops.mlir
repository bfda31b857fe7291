// An iteration does the work of several. The remaining iterations have a loop of their own.
// RUN: kiln-opt %s --tile-unroll-loops | FileCheck %s

// CHECK-LABEL: @rest
// CHECK-SAME: (%[[X:.*]]: f32, %[[END:.*]]: i64)
// CHECK: %[[LAST:.*]] = arith.subi %[[END]], %c8{{.*}}
// CHECK: %[[S:.*]] = scf.for %[[I:.*]] = %c0{{.*}} to %[[LAST]] step %c12{{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK: arith.addf %[[A]]
// CHECK: arith.addi %[[I]], %c4
// CHECK: arith.addf
// CHECK: arith.addi %[[I]], %c8
// CHECK: arith.addf
// CHECK-NOT: tile.unroll
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[END]] step %c4{{.*}} iter_args(%{{.*}} = %[[S]])
// CHECK-NOT: tile.unroll
// CHECK: return
func.func @rest(%x: f32, %end: i64) -> f32 {
  %c0 = arith.constant 0 : i64
  %c4 = arith.constant 4 : i64
  %r = scf.for %i = %c0 to %end step %c4 iter_args(%a = %x) -> (f32) : i64 {
    %f = arith.sitofp %i : i64 to f32
    %b = arith.addf %a, %f : f32
    scf.yield %b : f32
  } {tile.unroll = 3 : i64}
  return %r : f32
}

// There is no loop for the rest if it is known to be empty.
// CHECK-LABEL: @whole
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: return
func.func @whole(%x: f32) -> f32 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c8 = arith.constant 8 : i64
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %x) -> (f32) : i64 {
    %b = arith.addf %a, %a : f32
    scf.yield %b : f32
  } {tile.unroll = 4 : i64}
  return %r : f32
}
