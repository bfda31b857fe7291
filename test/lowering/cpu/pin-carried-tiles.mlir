// RUN: kiln-opt %s --cpu-pin-carried-tiles | FileCheck %s

!t = tensor<16x16xf32>

// The old value may be scaled element by element before the product.
// CHECK-LABEL: func @rescale
func.func @rescale(%a: !t, %b: !t, %n: i64) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // CHECK: } {cpu.in_place = array<i1: true>}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!t) : i64 {
    %s = arith.mulf %acc, %a : !t
    %d = tile.dot %a, %b, %s : !t, !t, !t
    scf.yield %d : !t
  }
  return %r : !t
}

// The old value is read after the product, so it must not be overwritten.
// CHECK-LABEL: func @read_later
func.func @read_later(%a: !t, %b: !t, %n: i64, %v: memref<?x?xf32, strided<[?, 1]>>) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // CHECK-NOT: cpu.in_place
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!t) : i64 {
    %d = tile.dot %a, %b, %acc : !t, !t, !t
    tile.store %acc, %v[%i, %i] : !t, memref<?x?xf32, strided<[?, 1]>>
    scf.yield %d : !t
  }
  return %r : !t
}

// A transposed old value is needed whole while the new one is written.
// CHECK-LABEL: func @transposed
func.func @transposed(%a: !t, %b: !t, %n: i64) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // CHECK-NOT: cpu.in_place
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!t) : i64 {
    %s = tile.transpose %acc [1, 0] : !t -> !t
    %d = tile.dot %a, %b, %s : !t, !t, !t
    scf.yield %d : !t
  }
  return %r : !t
}

// An inner loop that begins with the outer loop's tile shares its buffer.
// CHECK-LABEL: func @nested
func.func @nested(%a: !t, %b: !t, %n: i64) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // CHECK: } {cpu.in_place = array<i1: true>}
  // CHECK: } {cpu.in_place = array<i1: true>}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%outer = %zero) -> (!t) : i64 {
    %q = scf.for %j = %c0 to %n step %c1 iter_args(%acc = %outer) -> (!t) : i64 {
      %d = tile.dot %a, %b, %acc : !t, !t, !t
      scf.yield %d : !t
    }
    scf.yield %q : !t
  }
  return %r : !t
}

// An atomic between the last reader of the old value and the product prevents moving either.
// CHECK-LABEL: func @atomic_between
func.func @atomic_between(%a: !t, %b: !t, %n: i64, %v: memref<?x?xf32, strided<[?, 1]>>, %f: memref<?xi32, strided<[1]>>) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1> : tensor<1xi32>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  // CHECK: tile.store
  // CHECK-NEXT: tile.atomic_rmw add acq_rel
  // CHECK-NEXT: tile.dot
  // CHECK: } {cpu.in_place = array<i1: true>}
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (!t) : i64 {
    tile.store %acc, %v[%c0, %c0] : !t, memref<?x?xf32, strided<[?, 1]>>
    %0 = tile.atomic_rmw add acq_rel %one, %f[%c0] : tensor<1xi32>, memref<?xi32, strided<[1]>>
    %d = tile.dot %a, %b, %acc : !t, !t, !t
    scf.yield %d : !t
  }
  return %r : !t
}

// A while loop is handled like a for loop. Its condition comes before its loop-carried values. A nested while is
// handled, too.
// CHECK-LABEL: func @while
func.func @while(%a: !t, %b: !t, %n: i64) -> !t {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %go = arith.cmpi slt, %c0, %n : i64
  // CHECK: } attributes {cpu.in_place = array<i1: true>}
  // CHECK: } attributes {cpu.in_place = array<i1: false, true>}
  %r:2 = scf.while (%c = %go, %i = %c0, %acc = %zero) : (i1, i64, !t) -> (i64, !t) {
    scf.condition(%c) %i, %acc : i64, !t
  } do {
  ^bb0(%i: i64, %acc: !t):
    %s = scf.while (%d = %go, %inner = %acc) : (i1, !t) -> !t {
      scf.condition(%d) %inner : !t
    } do {
    ^bb0(%inner: !t):
      %d = tile.dot %a, %b, %inner : !t, !t, !t
      %never = arith.cmpi slt, %n, %c0 : i64
      scf.yield %never, %d : i1, !t
    }
    %next = arith.addi %i, %c1 : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %more, %next, %s : i1, i64, !t
  }
  return %r#1 : !t
}
