// RUN: kiln-opt %s --cpu-forward-loads | FileCheck %s

!v = memref<?xf32, strided<[1]>>

// A load whose tile is stored at the same place is read element by element before each is overwritten.
// CHECK-LABEL: func @in_place
func.func @in_place(%v: !v, %n: i64) attributes {tile.kernel} {
  // CHECK: tile.load {{.*}} {cpu.view}
  %x = tile.load %v[%n] : !v -> tensor<64xf32>
  %y = arith.addf %x, %x : tensor<64xf32>
  tile.store %y, %v[%n] : tensor<64xf32>, !v
  return
}

// A store at another offset could overwrite elements that are still to be read.
// CHECK-LABEL: func @shifted
func.func @shifted(%v: !v, %n: i64, %m: i64) attributes {tile.kernel} {
  // CHECK-NOT: cpu.view
  %x = tile.load %v[%n] : !v -> tensor<64xf32>
  tile.store %x, %v[%m] : tensor<64xf32>, !v
  return
}

// Two views may overlap unless the launch says that they do not.
// CHECK-LABEL: func @other_view
func.func @other_view(%v: !v, %w: !v, %n: i64) attributes {tile.kernel} {
  // CHECK-NOT: cpu.view
  %x = tile.load %v[%n] : !v -> tensor<64xf32>
  tile.store %x, %w[%n] : tensor<64xf32>, !v
  return
}

// In a swap of views that do not overlap, the first tile stays a view. The second one is read after its view was written,
// so it must be copied.
// CHECK-LABEL: func @swap
func.func @swap(%v: !v, %w: !v, %n: i64) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  // CHECK: tile.load %arg0{{.*}} {cpu.view}
  // CHECK: tile.load %arg1
  // CHECK-NOT: cpu.view
  // CHECK: tile.store
  %x = tile.load %v[%n] : !v -> tensor<64xf32>
  %y = tile.load %w[%n] : !v -> tensor<64xf32>
  tile.store %x, %w[%n] : tensor<64xf32>, !v
  tile.store %y, %v[%n] : tensor<64xf32>, !v
  return
}

// A reversed or broadcast element is read at another position, so storing in place would be unsafe.
// CHECK-LABEL: func @moved
func.func @moved(%v: memref<?x?xf32, strided<[?, 1]>>, %n: i64) attributes {tile.kernel} {
  // CHECK-NOT: cpu.view
  %x = tile.load %v[%n, %n] : memref<?x?xf32, strided<[?, 1]>> -> tensor<16x16xf32>
  %y = tile.transpose %x [1, 0] : tensor<16x16xf32> -> tensor<16x16xf32>
  tile.store %y, %v[%n, %n] : tensor<16x16xf32>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// A loop that writes the view stands between the load and the loop's next iteration.
// CHECK-LABEL: func @written_in_loop
func.func @written_in_loop(%v: !v, %n: i64) attributes {tile.kernel} {
  // CHECK-NOT: cpu.view
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %x = tile.load %v[%c0] : !v -> tensor<64xf32>
  scf.for %i = %c0 to %n step %c1 : i64 {
    tile.store %x, %v[%i] : tensor<64xf32>, !v
  }
  return
}

// A gather's indices are read at its use. A write between the gather and that use makes a copy of the indices
// necessary.
// CHECK-LABEL: func @numbers
func.func @numbers(%v: !v, %w: !v, %ids: memref<?xi32, strided<[1]>>, %n: i64, %zeros: tensor<64xi32>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  // CHECK: tile.load {{.*}} {cpu.view} : memref<?xi32
  // CHECK: tile.gather {{.*}} {cpu.view}
  %first = tile.load %ids[%n] : memref<?xi32, strided<[1]>> -> tensor<64xi32>
  %x = tile.gather %v[%first] : !v, tensor<64xi32> -> tensor<64xf32>
  tile.store %x, %w[%n] : tensor<64xf32>, !v
  // CHECK: tile.load %{{.*}}[%{{.*}}] : memref<?xi32
  // CHECK: tile.gather {{.*}} {cpu.view}
  %second = tile.load %ids[%n] : memref<?xi32, strided<[1]>> -> tensor<64xi32>
  %y = tile.gather %v[%second] : !v, tensor<64xi32> -> tensor<64xf32>
  tile.store %zeros, %ids[%n] : tensor<64xi32>, memref<?xi32, strided<[1]>>
  tile.store %y, %w[%n] : tensor<64xf32>, !v
  return
}

// An atomic that is not relaxed orders all accesses of the program, to all views. A tile loaded before it and used
// after it is copied before it.
!flag = memref<?xi32, strided<[1]>>
// CHECK-LABEL: func @before_ordering_atomics
func.func @before_ordering_atomics(%v: !v, %w: !v, %f: !flag, %n: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %one = arith.constant dense<1> : tensor<1xi32>
  // CHECK: tile.load
  // CHECK-NOT: cpu.view
  // CHECK: atomic_rmw add acquire
  %a = tile.load %v[%n] : !v -> tensor<64xf32>
  %0 = tile.atomic_rmw add acquire %one, %f[%n] : tensor<1xi32>, !flag
  tile.store %a, %w[%n] : tensor<64xf32>, !v
  // CHECK: tile.load
  // CHECK-NOT: cpu.view
  // CHECK: atomic_rmw add release
  %b = tile.load %v[%n] : !v -> tensor<64xf32>
  %1 = tile.atomic_rmw add release %one, %f[%n] : tensor<1xi32>, !flag
  tile.store %b, %w[%n] : tensor<64xf32>, !v
  // CHECK: tile.load
  // CHECK-NOT: cpu.view
  // CHECK: atomic_rmw add acq_rel
  %c = tile.load %v[%n] : !v -> tensor<64xf32>
  %2 = tile.atomic_rmw add acq_rel %one, %f[%n] : tensor<1xi32>, !flag
  tile.store %c, %w[%n] : tensor<64xf32>, !v
  return
}

// A load whose uses are all on one side is not copied. Relaxed atomics order no other accesses.
// CHECK-LABEL: func @beside_ordering_atomics
func.func @beside_ordering_atomics(%v: !v, %w: !v, %f: !flag, %n: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %one = arith.constant dense<1> : tensor<1xi32>
  // CHECK: tile.load {{.*}} {cpu.view}
  // CHECK: tile.store
  // CHECK: tile.atomic_rmw add acq_rel
  // CHECK: tile.load {{.*}} {cpu.view}
  // CHECK: tile.atomic_rmw add relaxed
  %a = tile.load %v[%n] : !v -> tensor<64xf32>
  tile.store %a, %w[%n] : tensor<64xf32>, !v
  %0 = tile.atomic_rmw add acq_rel %one, %f[%n] : tensor<1xi32>, !flag
  %b = tile.load %v[%n] : !v -> tensor<64xf32>
  %1 = tile.atomic_rmw add relaxed %one, %f[%n] : tensor<1xi32>, !flag
  tile.store %b, %w[%n] : tensor<64xf32>, !v
  return
}

// If the atomic may release other programs, its operand is computed before its first addition.
// CHECK-LABEL: func @added
func.func @added(%x: !flag, %f: !flag, %n: i64) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  // CHECK: tile.load
  // CHECK-NOT: cpu.view
  // CHECK: atomic_rmw add release
  // CHECK: tile.load {{.*}} {cpu.view}
  // CHECK: atomic_rmw add relaxed
  %a = tile.load %x[%n] : !flag -> tensor<64xi32>
  %0 = tile.atomic_rmw add release %a, %f[%n] : tensor<64xi32>, !flag
  %b = tile.load %x[%n] : !flag -> tensor<64xi32>
  %1 = tile.atomic_rmw add relaxed %b, %f[%n] : tensor<64xi32>, !flag
  return
}

// An atomic inside a loop or branch makes the whole loop or branch an ordering operation.
// CHECK-LABEL: func @nested
func.func @nested(%v: !v, %w: !v, %f: !flag, %n: i64, %p: i1)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>, array<i64: 0, 2>, array<i64: 1, 2>]} {
  %one = arith.constant dense<1> : tensor<1xi32>
  // CHECK-NOT: cpu.view
  %a = tile.load %v[%n] : !v -> tensor<64xf32>
  scf.if %p {
    %0 = tile.atomic_rmw add release %one, %f[%n] : tensor<1xi32>, !flag
  }
  tile.store %a, %w[%n] : tensor<64xf32>, !v
  return
}
