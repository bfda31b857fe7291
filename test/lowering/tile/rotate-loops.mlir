// The condition of a while is computed before the loop and at the end of each iteration.
// RUN: kiln-opt %s --tile-rotate-loops | FileCheck %s
// A loop in that form is unchanged.
// RUN: kiln-opt %s --tile-rotate-loops --tile-rotate-loops | FileCheck %s

// CHECK-LABEL: @tiles
// CHECK-SAME: (%[[INIT:.*]]: tensor<8xf32>, %[[END:.*]]: f32)
// CHECK: %[[FIRST:.*]] = tile.reduce max %[[INIT]] axis 0
// CHECK: %[[GO:.*]] = arith.cmpf olt, %[[FIRST]], %[[END]] : f32
// CHECK: %[[R:.*]] = scf.while (%[[A:.*]] = %[[GO]], %[[X:.*]] = %[[INIT]]) : (i1, tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: scf.condition(%[[A]]) %[[X]] : tensor<8xf32>
// CHECK: ^bb0(%[[Y:.*]]: tensor<8xf32>):
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[Y]], %[[Y]] : tensor<8xf32>
// CHECK-NEXT: %[[MOST:.*]] = tile.reduce max %[[NEXT]] axis 0
// CHECK-NEXT: %[[AGAIN:.*]] = arith.cmpf olt, %[[MOST]], %[[END]] : f32
// CHECK-NEXT: scf.yield %[[AGAIN]], %[[NEXT]] : i1, tensor<8xf32>
// CHECK: return %[[R]]
func.func @tiles(%init: tensor<8xf32>, %end: f32) -> tensor<8xf32> {
  %r = scf.while (%x = %init) : (tensor<8xf32>) -> tensor<8xf32> {
    %most = tile.reduce max %x axis 0 : tensor<8xf32> -> f32
    %again = arith.cmpf olt, %most, %end : f32
    scf.condition(%again) %x : tensor<8xf32>
  } do {
  ^bb0(%x: tensor<8xf32>):
    %y = arith.addf %x, %x : tensor<8xf32>
    scf.yield %y : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// An unused loop-carried number is removed.
// CHECK-LABEL: @idle
// CHECK: do {
// CHECK-NEXT: ^bb0(%[[N:[^:]*]]: i64, %[[M:[^:]*]]: i64):
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[M]]
// CHECK: scf.yield %{{.*}}, %[[N]], %[[NEXT]]
func.func @idle(%x: memref<4xi64>) -> i64 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r:2 = scf.while (%n = %c0, %m = %c0) : (i64, i64) -> (i64, i64) {
    %0 = tile.load %x[%c0] : memref<4xi64> -> tensor<1xi64>
    %1 = tile.reshape %0 : tensor<1xi64> -> i64
    %again = arith.cmpi ne, %1, %c0 : i64
    scf.condition(%again) %n, %m : i64, i64
  } do {
  ^bb0(%n: i64, %m: i64):
    %k = arith.addi %n, %c1 : i64
    %l = arith.addi %m, %c1 : i64
    scf.yield %k, %l : i64, i64
  }
  return %r#1 : i64
}

// The first region may yield other values, and another number of them. Loops in both regions are rotated, too.
// CHECK-LABEL: @others
// CHECK-COUNT-4: scf.while ({{.*}}) : (i1
// CHECK-NOT: scf.while
func.func @others(%n: i64, %x: memref<4xi64>) -> (i64, i64) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %r:2 = scf.while (%i = %c0) : (i64) -> (i64, i64) {
    %j = scf.while (%k = %i) : (i64) -> i64 {
      %odd = arith.cmpi slt, %k, %c1 : i64
      scf.condition(%odd) %k : i64
    } do {
    ^bb0(%k: i64):
      %l = arith.addi %k, %c1 : i64
      scf.yield %l : i64
    }
    %more = arith.cmpi slt, %j, %n : i64
    scf.condition(%more) %j, %n : i64, i64
  } do {
  ^bb0(%i: i64, %m: i64):
    %s = scf.while (%k = %m) : (i64) -> i64 {
      %big = arith.cmpi sgt, %k, %i : i64
      scf.condition(%big) %k : i64
    } do {
    ^bb0(%k: i64):
      %l = arith.subi %k, %c1 : i64
      scf.yield %l : i64
    }
    %t = arith.addi %s, %c1 : i64
    scf.yield %t : i64
  }
  return %r#0, %r#1 : i64, i64
}
