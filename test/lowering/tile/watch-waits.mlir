// A loop that changes no memory, and reads it by atomics until a value changes, calls the runtime after each iteration.
// RUN: kiln-opt %s --tile-rotate-loops --tile-watch-waits --split-input-file | FileCheck %s

// CHECK-DAG: llvm.mlir.global internal constant @[[WHERE:text_[0-9]+]]("{{.*}}watch-waits.mlir:{{[0-9]+}}\00")
// CHECK-DAG: func.func private @kiln_waits(!llvm.ptr, i64, i64) -> i64
// CHECK-LABEL: @waits
// CHECK: scf.while
// CHECK: tile.atomic_load
// CHECK: %[[AGAIN:.*]] = arith.cmpi eq
// CHECK: %[[WORD:.*]] = arith.extui %[[AGAIN]] : i1 to i64
// CHECK: %[[TEXT:.*]] = llvm.mlir.addressof @[[WHERE]]
// CHECK: %[[X:.*]] = tile.program_id 0
// CHECK: %[[PROGRAM:.*]] = arith.addi %[[X]]
// CHECK: %[[NEVER:.*]] = func.call @kiln_waits(%[[TEXT]], %[[PROGRAM]], %[[WORD]])
// CHECK: %[[WAITS:.*]] = arith.cmpi eq, %[[NEVER]], %{{.*}}
// CHECK: %[[MORE:.*]] = arith.andi %[[AGAIN]], %[[WAITS]]
// CHECK: scf.yield %[[MORE]]
func.func @waits(%flag: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zero = arith.constant 0 : i32
  scf.while : () -> () {
    %0 = tile.atomic_load acquire %flag[%c0] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
    %1 = tile.reshape %0 : tensor<1xi32> -> i32
    %again = arith.cmpi eq, %1, %zero : i32
    scf.condition(%again)
  } do {
    scf.yield
  }
  return
}

// -----

// A lock that is taken changes memory, and the iteration does not count as a wait. Elements that are masked off do not
// change.
// CHECK-LABEL: @locks
// CHECK: scf.while
// CHECK: %[[WAS:.*]] = tile.atomic_cas acq_rel %[[FREE:.*]] to %[[TAKEN:.*]], %
// CHECK: %[[AGAIN:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : i32
// CHECK: %[[TAKES:.*]] = arith.cmpi eq, %[[WAS]], %[[FREE]]
// CHECK: %[[IS:.*]] = arith.select %[[TAKES]], %[[TAKEN]], %[[WAS]]
// CHECK: %[[BITS:.*]] = arith.xori %[[WAS]], %[[IS]]
// CHECK: %[[WORD:.*]] = tile.reshape %[[BITS]] : tensor<1xi32> -> i32
// CHECK: %[[UNCHANGED:.*]] = arith.cmpi eq, %[[WORD]], %{{.*}} : i32
// CHECK: %[[ONLY:.*]] = arith.andi %[[AGAIN]], %[[UNCHANGED]]
// CHECK: arith.extui %[[ONLY]] : i1 to i64
// CHECK: call @kiln_waits
// CHECK: scf.while
// CHECK: %[[BEFORE:.*]] = tile.atomic_rmw exchange acq_rel %[[NEXT:.*]], %{{.*}} if %[[MASK:.*]] : tensor<2x2xf32>
// CHECK: %[[TO:.*]] = arith.bitcast %[[NEXT]] : tensor<2x2xf32> to tensor<2x2xi32>
// CHECK: %[[FROM:.*]] = arith.bitcast %[[BEFORE]]
// CHECK: %[[BITS:.*]] = arith.xori %[[FROM]], %[[TO]]
// CHECK: %[[OWN:.*]] = arith.select %[[MASK]], %[[BITS]], %{{.*}}
// CHECK: %[[ROW:.*]] = tile.reshape %[[OWN]] : tensor<2x2xi32> -> tensor<4xi32>
// CHECK: tile.reduce or %[[ROW]] axis 0
// CHECK: call @kiln_waits
func.func @locks(%lock: memref<?xi32, strided<[1]>>, %free: tensor<1xi32>, %taken: tensor<1xi32>,
                 %floats: memref<?xf32, strided<[1]>>, %next: tensor<2x2xf32>, %at: tensor<2x2xi32>,
                 %mask: tensor<2x2xi1>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %one = arith.constant 1 : i32
  %zero = arith.constant 0.0 : f32
  scf.while : () -> () {
    %0 = tile.atomic_cas acq_rel %free to %taken, %lock[%c0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
    %1 = tile.reshape %0 : tensor<1xi32> -> i32
    %again = arith.cmpi eq, %1, %one : i32
    scf.condition(%again)
  } do {
    scf.yield
  }
  scf.while : () -> () {
    %0 = tile.atomic_rmw exchange acq_rel %next, %floats[%at] if %mask : tensor<2x2xf32>, memref<?xf32, strided<[1]>>, tensor<2x2xi32>
    %1 = tile.reshape %0 : tensor<2x2xf32> -> tensor<4xf32>
    %2 = tile.reduce sum %1 axis 0 : tensor<4xf32> -> f32
    %again = arith.cmpf une, %2, %zero : f32
    scf.condition(%again)
  } do {
    scf.yield
  }
  return
}

// -----

// These loops have other effects: a write to memory, an exchange whose value the next iteration changes, or a counter on
// which the end depends.
// CHECK-NOT: kiln_waits
func.func @works(%flag: memref<?xi32, strided<[1]>>, %one: tensor<1xi32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c9 = arith.constant 9 : i64
  %zero = arith.constant 0 : i32
  scf.while : () -> () {
    %0 = tile.atomic_load acquire %flag[%c0] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
    %1 = tile.reshape %0 : tensor<1xi32> -> i32
    %again = arith.cmpi eq, %1, %zero : i32
    scf.condition(%again)
  } do {
    tile.atomic_store relaxed %one, %flag[%c1] : tensor<1xi32>, memref<?xi32, strided<[1]>>
    scf.yield
  }
  scf.while (%x = %one) : (tensor<1xi32>) -> tensor<1xi32> {
    %0 = tile.atomic_load acquire %flag[%c0] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
    %1 = tile.reshape %0 : tensor<1xi32> -> i32
    %again = arith.cmpi eq, %1, %zero : i32
    scf.condition(%again) %x : tensor<1xi32>
  } do {
  ^bb0(%x: tensor<1xi32>):
    %0 = tile.atomic_rmw exchange relaxed %x, %flag[%c1] : tensor<1xi32>, memref<?xi32, strided<[1]>>
    %next = arith.addi %0, %one : tensor<1xi32>
    scf.yield %next : tensor<1xi32>
  }
  %n = scf.while (%k = %c0) : (i64) -> i64 {
    %0 = tile.atomic_load acquire %flag[%c0] : memref<?xi32, strided<[1]>> -> tensor<1xi32>
    %1 = tile.reshape %0 : tensor<1xi32> -> i32
    %same = arith.cmpi eq, %1, %zero : i32
    %few = arith.cmpi slt, %k, %c9 : i64
    %again = arith.andi %same, %few : i1
    scf.condition(%again) %k : i64
  } do {
  ^bb0(%k: i64):
    %next = arith.addi %k, %c1 : i64
    scf.yield %next : i64
  }
  return
}
