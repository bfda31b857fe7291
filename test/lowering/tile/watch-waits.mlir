// A loop that only reads memory by atomics, until a value changes, calls the runtime after each iteration.
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

// These loops have other effects: a write to memory, or a counter on which the end depends.
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
    %2 = tile.atomic_rmw add relaxed %one, %flag[%c1] : tensor<1xi32>, memref<?xi32, strided<[1]>>
    scf.yield
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
