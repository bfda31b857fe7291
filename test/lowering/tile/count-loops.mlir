// Loops whose arithmetic might wrap get an iteration counter; the others are unchanged.
// RUN: kiln-opt %s --tile-count-loops | FileCheck %s

// Over an extent, over a part of it that a program processes, and inside another loop.
// CHECK-LABEL: @extents
// CHECK-NOT: arith.divui
// CHECK: return
func.func @extents(%x: memref<?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %c4096 = arith.constant 4096 : i64
  %n = tile.dim %x, 0 : memref<?xf32>
  %p = tile.program_id 0
  %begin = arith.muli %p, %c4096 : i64
  %past = arith.addi %begin, %c4096 : i64
  %end = arith.minsi %past, %n : i64
  scf.for %i = %c0 to %n step %c64 : i64 {
    scf.for %j = %i to %n step %c1 : i64 {
    }
  }
  scf.for %i = %begin to %end step %c64 : i64 {
  }
  return
}

// A scalar argument may have any value.
// CHECK-LABEL: @scalar
// CHECK-SAME: (%[[X:.*]]: memref<?xi64>, %[[END:.*]]: i64)
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %[[BEGIN:.*]], %[[END]]
// CHECK: %[[DISTANCE:.*]] = arith.subi %[[END]], %[[BEGIN]]
// CHECK: %[[SPAN:.*]] = arith.subi %[[DISTANCE]], %[[ONE:.*]] : i64
// CHECK: %[[STEPS:.*]] = arith.divui %[[SPAN]], %[[STEP:.*]] : i64
// CHECK: %[[COUNT:.*]] = arith.addi %[[STEPS]], %[[ONE]]
// CHECK: %[[BOUNDED:.*]] = arith.minui %[[COUNT]], %{{.*}}
// CHECK: %[[LAST:.*]] = arith.select %[[MORE]], %[[BOUNDED]], %{{.*}}
// CHECK: scf.for %[[N:.*]] = %{{.*}} to %[[LAST]] step
// CHECK: %[[FAR:.*]] = arith.muli %[[N]], %[[STEP]]
// CHECK: %[[I:.*]] = arith.addi %[[BEGIN]], %[[FAR]]
// CHECK: tile.store %{{.*}}, %[[X]][%[[I]]]
func.func @scalar(%x: memref<?xi64>, %end: i64) attributes {tile.kernel} {
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  scf.for %i = %c2 to %end step %c3 : i64 {
    %t = tile.splat %i : i64 -> tensor<1xi64>
    tile.store %t, %x[%i] : tensor<1xi64>, memref<?xi64>
  }
  return
}

// A step that may be below 1 counts as 1.
// CHECK-LABEL: @step
// CHECK: arith.maxsi %arg1
func.func @step(%x: memref<?xf32>, %step: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %n = tile.dim %x, 0 : memref<?xf32>
  scf.for %i = %c0 to %n step %step : i64 {
  }
  return
}

// Constants near the largest integer.
// CHECK-LABEL: @constants
// CHECK-COUNT-1: arith.divui
// CHECK-NOT: arith.divui
func.func @constants() attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c7 = arith.constant 7 : i64
  %near = arith.constant 9223372036854775800 : i64
  %most = arith.constant 9223372036854775807 : i64
  %small = arith.constant 1152921504606846976 : i64
  scf.for %i = %near to %most step %c7 : i64 {
  }
  scf.for %i = %c0 to %small step %c7 : i64 {
  }
  return
}

// A range that counts up or down by the sign of its step: the sign of the number of programs is known.
// CHECK-LABEL: @sign
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: tile.store %{{.*}}, %{{.*}}[%[[I]]]
// CHECK: scf.for %[[J:.*]] = %{{.*}} to
// CHECK: %[[POSITION:.*]] = arith.xori %{{.*}}, %[[FLIP:.*]] : i64
// CHECK-NEXT: tile.store %{{.*}}, %{{.*}}[%[[POSITION]]]
func.func @sign(%x: memref<?xf32>, %unknown: i64) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i64
  %c63 = arith.constant 63 : i64
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %n = tile.dim %x, 0 : memref<?xf32>
  %p = tile.program_id 0
  %programs = tile.num_programs 0
  %up = arith.shrsi %programs, %c63 : i64
  %begin = arith.xori %p, %up : i64
  %end = arith.xori %n, %up : i64
  %step = arith.maxsi %programs, %c1 : i64
  scf.for %j = %begin to %end step %step : i64 {
    %i = arith.xori %j, %up : i64
    tile.store %one, %x[%i] : tensor<1xf32>, memref<?xf32>
  }
  %flip = arith.shrsi %unknown, %c63 : i64
  scf.for %j = %p to %n step %step : i64 {
    %i = arith.xori %j, %flip : i64
    tile.store %one, %x[%i] : tensor<1xf32>, memref<?xf32>
  }
  return
}

// An assumption about the step or the end in the block that computes it.
// CHECK-LABEL: @assumed
// CHECK-NOT: arith.maxsi
// CHECK-NOT: arith.divui
// CHECK: scf.for
// CHECK: return
func.func @assumed(%step: i64, %end: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c1000 = arith.constant 1000 : i64
  %above = arith.cmpi sge, %step, %c1 : i64
  %below = arith.cmpi sgt, %c1000, %step : i64
  %both = arith.andi %above, %below : i1
  tile.assume %both
  %short = arith.cmpi ult, %end, %c1000 : i64
  tile.assume %short
  scf.for %i = %c0 to %end step %step : i64 {
  }
  return
}

// An assumption in a branch does not hold for a step outside. Neither a comparison without an assumption nor
// contradictory assumptions prove anything.
// CHECK-LABEL: @assumed_elsewhere
// CHECK-COUNT-3: arith.maxsi
// CHECK: return
func.func @assumed_elsewhere(%x: memref<?xf32>, %step: i64, %other: i64, %third: i64, %yes: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %n = tile.dim %x, 0 : memref<?xf32>
  %above = arith.cmpi sgt, %step, %c0 : i64
  scf.if %yes {
    tile.assume %above
  }
  scf.for %i = %c0 to %n step %step : i64 {
  }
  %more = arith.cmpi sgt, %other, %c0 : i64
  scf.if %more {
    scf.for %i = %c0 to %n step %other : i64 {
    }
  }
  %up = arith.cmpi sgt, %third, %c0 : i64
  %down = arith.cmpi slt, %third, %c0 : i64
  tile.assume %up
  tile.assume %down
  scf.for %i = %c0 to %n step %third : i64 {
  }
  return
}
