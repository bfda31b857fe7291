// RUN: kiln-opt %s --cpu-forward-loads --cpu-pin-carried-tiles --cpu-fuse-epilogues | FileCheck %s

!t = tensor<16x16xf32>
!v = memref<?x?xf32, strided<[?, 1]>>

// Only a store reads the accumulator, so the store can run in the loop's last step.
// CHECK-LABEL: func @sum
func.func @sum(%a: !v, %c: !v, %n: i64) attributes {tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %c16 = arith.constant 16 : i64
  // CHECK: cpu.epilogue = array<i1: true>
  %r = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> (!t) : i64 {
    %x = tile.load %a[%c0, %k] : !v -> !t
    %d = tile.dot %x, %x, %acc : !t, !t, !t
    scf.yield %d : !t
  }
  %y = math.absf %r : !t
  tile.store %y, %c[%c0, %c0] : !t, !v
  return
}

// The store may overwrite rows that later blocks still read.
// CHECK-LABEL: func @overlap
// CHECK-NOT: cpu.epilogue
func.func @overlap(%a: !v, %c: !v) {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  tile.store %d, %c[%c0, %c0] : !t, !v
  return
}

// The store adds to its target in place. Each element is read before it is overwritten.
// CHECK-LABEL: func @accumulate
// CHECK: cpu.epilogue = array<i1: true>
func.func @accumulate(%a: !v, %c: !v) attributes {tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %old = tile.load %c[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %old : !t, !t, !t
  tile.store %d, %c[%c0, %c0] : !t, !v
  return
}

// A sum along a row needs the whole tile.
// CHECK-LABEL: func @reduced
// CHECK-NOT: cpu.epilogue
func.func @reduced(%a: !v, %c: !v, %s: memref<?xf32>) attributes {tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  %sum = tile.reduce sum %d axis 1 : !t -> tensor<16xf32>
  tile.store %sum, %s[%c0] : tensor<16xf32>, memref<?xf32>
  tile.store %d, %c[%c0, %c0] : !t, !v
  return
}

// Another operand of the store is a later product.
// CHECK-LABEL: func @later
// CHECK: tile.dot {{.*}}, %[[zero:[a-z_0-9]+]] :
// CHECK: tile.dot {{.*}} {cpu.epilogue = array<i1: true>}
func.func @later(%a: !v, %c: !v) attributes {tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : !t
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %first = tile.dot %x, %x, %zero : !t, !t, !t
  %y = math.absf %x : !t
  %second = tile.dot %y, %x, %zero : !t, !t, !t
  %both = arith.addf %first, %second : !t
  tile.store %both, %c[%c0, %c0] : !t, !v
  return
}

// An atomic that is not relaxed orders all accesses. A store after it does not run before it, and a store before it is
// not delayed.
!flag = memref<?xi32, strided<[1]>>

// CHECK-LABEL: func @behind_acq_rel
// CHECK-NOT: cpu.epilogue
func.func @behind_acq_rel(%a: !v, %c: !v, %f: !flag) attributes {tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1> : tensor<1xi32>
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  %0 = tile.atomic_rmw add acq_rel %one, %f[%c0] : tensor<1xi32>, !flag
  tile.store %d, %c[%c0, %c0] : !t, !v
  return
}

// CHECK-LABEL: func @before_acq_rel
// CHECK: cpu.epilogue = array<i1: true>
func.func @before_acq_rel(%a: !v, %c: !v, %f: !flag) attributes {tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1> : tensor<1xi32>
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  tile.store %d, %c[%c0, %c0] : !t, !v
  %0 = tile.atomic_rmw add acq_rel %one, %f[%c0] : tensor<1xi32>, !flag
  return
}

// A relaxed atomic orders no other accesses.
// CHECK-LABEL: func @behind_relaxed
// CHECK: cpu.epilogue = array<i1: true>
func.func @behind_relaxed(%a: !v, %c: !v, %f: !flag) attributes {tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1> : tensor<1xi32>
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  %0 = tile.atomic_rmw add relaxed %one, %f[%c0] : tensor<1xi32>, !flag
  tile.store %d, %c[%c0, %c0] : !t, !v
  return
}

// A tile that is loaded after the atomic and added to the accumulator is not read before it.
// CHECK-LABEL: func @loads_behind
// CHECK-NOT: cpu.epilogue
func.func @loads_behind(%a: !v, %c: !v, %bias: !v, %f: !flag)
    attributes {tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>, array<i64: 0, 3>, array<i64: 1, 3>, array<i64: 2, 3>]} {
  %zero = arith.constant dense<0.0> : !t
  %one = arith.constant dense<1> : tensor<1xi32>
  %c0 = arith.constant 0 : i64
  %x = tile.load %a[%c0, %c0] : !v -> !t
  %d = tile.dot %x, %x, %zero : !t, !t, !t
  %0 = tile.atomic_rmw add acquire %one, %f[%c0] : tensor<1xi32>, !flag
  %b = tile.load %bias[%c0, %c0] : !v -> !t
  %y = arith.addf %d, %b : !t
  tile.store %y, %c[%c0, %c0] : !t, !v
  return
}
