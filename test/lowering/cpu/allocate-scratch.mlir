// RUN: kiln-opt %s --cpu-allocate-scratch | FileCheck %s

// Each buffer becomes a view of the last argument at a multiple of 64 bytes. The total size is recorded.

// CHECK-LABEL: func.func @two_buffers(
// CHECK-SAME: %[[V:.*]]: memref<?xf32, strided<[1]>>, %[[SCRATCH:.*]]: memref<?xi8>)
// CHECK-SAME: cpu.scratch_bytes = 128 : i64
func.func @two_buffers(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: arith.constant 0 : index
  // CHECK: %[[O0:.*]] = arith.constant 0 : index
  // CHECK: memref.view %[[SCRATCH]][%[[O0]]][] : memref<?xi8> to memref<9xf32>
  // CHECK: %[[O64:.*]] = arith.constant 64 : index
  // CHECK: memref.view %[[SCRATCH]][%[[O64]]][] : memref<?xi8> to memref<5xf32>
  %a = memref.alloca() {alignment = 64 : i64} : memref<9xf32>
  %b = memref.alloca() {alignment = 64 : i64} : memref<5xf32>
  %x = memref.load %v[%c0] : memref<?xf32, strided<[1]>>
  memref.store %x, %a[%c0] : memref<9xf32>
  memref.store %x, %b[%c0] : memref<5xf32>
  %y = memref.load %a[%c0] : memref<9xf32>
  %z = memref.load %b[%c0] : memref<5xf32>
  memref.store %y, %v[%c0] : memref<?xf32, strided<[1]>>
  memref.store %z, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}

// A kernel without buffers gets the argument, too: its signature does not depend on its body.

// CHECK-LABEL: func.func @none(%arg0: i64, %arg1: memref<?xi8>)
// CHECK-SAME: cpu.scratch_bytes = 0 : i64
func.func @none(%n: i64) attributes {tile.kernel} {
  return
}

// CHECK-LABEL: func.func private @declaration(i64)
func.func private @declaration(i64)

// An operation that reads one buffer and writes another needs both at the same time.

// CHECK-LABEL: func.func @same_operation
// CHECK-SAME: cpu.scratch_bytes = 128 : i64
func.func @same_operation() attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<16xf32>
  %b = memref.alloca() : memref<16xf32>
  memref.store %f0, %a[%c0] : memref<16xf32>
  linalg.copy ins(%a : memref<16xf32>) outs(%b : memref<16xf32>)
  %z = memref.load %b[%c0] : memref<16xf32>
  memref.store %z, %b[%c0] : memref<16xf32>
  return
}

// A buffer from outside a loop that the body uses is alive through the whole loop, because an iteration may read what
// the previous one wrote. The body's own buffer must not overlap it, although the last use in the text comes before.

// CHECK-LABEL: func.func @carried_through_memory
// CHECK-SAME: cpu.scratch_bytes = 128 : i64
func.func @carried_through_memory(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %sum = memref.alloca() : memref<16xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    %old = memref.load %sum[%c0] : memref<16xf32>
    memref.store %old, %sum[%c1] : memref<16xf32>
    %body = memref.alloca() : memref<16xf32>
    memref.store %old, %body[%c0] : memref<16xf32>
    %x = memref.load %body[%c0] : memref<16xf32>
    memref.store %x, %v[%i] : memref<?xf32, strided<[1]>>
  }
  return
}

// Buffers of two loop bodies, and two buffers of one body that are used one after the other, share bytes.

// CHECK-LABEL: func.func @bodies
// CHECK-SAME: cpu.scratch_bytes = 64 : i64
func.func @bodies(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloca() : memref<16xf32>
    %b = memref.alloca() : memref<16xf32>
    %x = memref.load %v[%i] : memref<?xf32, strided<[1]>>
    memref.store %x, %a[%c0] : memref<16xf32>
    %y = memref.load %a[%c0] : memref<16xf32>
    memref.store %y, %b[%c0] : memref<16xf32>
    %z = memref.load %b[%c0] : memref<16xf32>
    memref.store %z, %v[%i] : memref<?xf32, strided<[1]>>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %a = memref.alloca() : memref<16xf32>
    %x = memref.load %v[%i] : memref<?xf32, strided<[1]>>
    memref.store %x, %a[%c0] : memref<16xf32>
    %y = memref.load %a[%c0] : memref<16xf32>
    memref.store %y, %v[%i] : memref<?xf32, strided<[1]>>
  }
  return
}

// The two branches of an if share bytes.

// CHECK-LABEL: func.func @branches
// CHECK-SAME: cpu.scratch_bytes = 64 : i64
func.func @branches(%v: memref<?xf32, strided<[1]>>, %flag: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %x = memref.load %v[%c0] : memref<?xf32, strided<[1]>>
  scf.if %flag {
    %a = memref.alloca() : memref<16xf32>
    memref.store %x, %a[%c0] : memref<16xf32>
    %y = memref.load %a[%c0] : memref<16xf32>
    memref.store %y, %v[%c0] : memref<?xf32, strided<[1]>>
  } else {
    %a = memref.alloca() : memref<16xf32>
    memref.store %x, %a[%c0] : memref<16xf32>
    %y = memref.load %a[%c0] : memref<16xf32>
    memref.store %y, %v[%c0] : memref<?xf32, strided<[1]>>
  }
  return
}

// A use of a view of a buffer, at the end of a chain of views, is a use of the buffer.

// CHECK-LABEL: func.func @views
// CHECK-SAME: cpu.scratch_bytes = 128 : i64
func.func @views(%v: memref<?xf32, strided<[1]>>, %i: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %at = arith.index_cast %i : i64 to index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<4x4xf32>
  %b = memref.alloca() : memref<16xf32>
  %row = memref.subview %a[%at, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<1x4xf32, strided<[4, 1], offset: ?>>
  %flat = memref.reinterpret_cast %row to offset: [0], sizes: [4], strides: [1]
      : memref<1x4xf32, strided<[4, 1], offset: ?>> to memref<4xf32>
  memref.store %f0, %flat[%c0] : memref<4xf32>
  memref.store %f0, %b[%c0] : memref<16xf32>
  %x = memref.load %b[%c0] : memref<16xf32>
  memref.store %x, %v[%c0] : memref<?xf32, strided<[1]>>
  %y = memref.load %flat[%c0] : memref<4xf32>
  memref.store %y, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}

// A buffer that an if or a loop yields is alive as long as the result is used.

// CHECK-LABEL: func.func @through_results
// CHECK-SAME: cpu.scratch_bytes = 192 : i64
func.func @through_results(%v: memref<?xf32, strided<[1]>>, %flag: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<16xf32>
  %b = memref.alloca() : memref<16xf32>
  memref.store %f0, %a[%c0] : memref<16xf32>
  memref.store %f0, %b[%c0] : memref<16xf32>
  %chosen = scf.if %flag -> memref<16xf32> {
    scf.yield %a : memref<16xf32>
  } else {
    scf.yield %b : memref<16xf32>
  }
  %last:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %chosen, %q = %b) -> (memref<16xf32>, memref<16xf32>) {
    scf.yield %q, %p : memref<16xf32>, memref<16xf32>
  }
  %c = memref.alloca() : memref<16xf32>
  memref.store %f0, %c[%c0] : memref<16xf32>
  %x = memref.load %c[%c0] : memref<16xf32>
  %y = memref.load %last#1[%c0] : memref<16xf32>
  memref.store %x, %v[%c0] : memref<?xf32, strided<[1]>>
  memref.store %y, %v[%c1] : memref<?xf32, strided<[1]>>
  return
}

// A buffer that a loop body allocates and yields is alive through the whole loop and on to its last use.

// CHECK-LABEL: func.func @escapes_its_iteration
// CHECK-SAME: cpu.scratch_bytes = 192 : i64
func.func @escapes_its_iteration(%v: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %f0 = arith.constant 0.0 : f32
  %first = memref.alloca() : memref<16xf32>
  memref.store %f0, %first[%c0] : memref<16xf32>
  %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%p = %first) -> (memref<16xf32>) {
    %x = memref.load %p[%c0] : memref<16xf32>
    %t = memref.alloca() : memref<16xf32>
    memref.store %x, %t[%c0] : memref<16xf32>
    %u = memref.load %t[%c0] : memref<16xf32>
    %new = memref.alloca() : memref<16xf32>
    memref.store %u, %new[%c0] : memref<16xf32>
    scf.yield %new : memref<16xf32>
  }
  %y = memref.load %last[%c0] : memref<16xf32>
  memref.store %y, %v[%c0] : memref<?xf32, strided<[1]>>
  return
}

// A buffer whose address becomes an integer, for a call, stays alive until the call.

// CHECK-LABEL: func.func @pointer
// CHECK-SAME: cpu.scratch_bytes = 128 : i64
func.func private @use(!llvm.ptr)
func.func @pointer() attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<16xf32>
  %b = memref.alloca() : memref<16xf32>
  memref.store %f0, %a[%c0] : memref<16xf32>
  %at = memref.extract_aligned_pointer_as_index %a : memref<16xf32> -> index
  %int = arith.index_cast %at : index to i64
  %ptr = llvm.inttoptr %int : i64 to !llvm.ptr
  memref.store %f0, %b[%c0] : memref<16xf32>
  %x = memref.load %b[%c0] : memref<16xf32>
  func.call @use(%ptr) : (!llvm.ptr) -> ()
  return
}

// Buffers of a page or more begin at different offsets in a page: 4096 and 2 * 4096 + 128 … are not multiples of it.

// CHECK-LABEL: func.func @skew
// CHECK-SAME: cpu.scratch_bytes = 12672 : i64
func.func @skew() attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  // CHECK: arith.constant 0 : index
  // CHECK: arith.constant 0 : index
  // CHECK: arith.constant 4224 : index
  // CHECK: arith.constant 8448 : index
  %a = memref.alloca() : memref<1024xf32>
  %b = memref.alloca() : memref<1024xf32>
  %c = memref.alloca() : memref<1024xf32>
  memref.store %f0, %a[%c0] : memref<1024xf32>
  memref.store %f0, %b[%c0] : memref<1024xf32>
  memref.store %f0, %c[%c0] : memref<1024xf32>
  %x = memref.load %a[%c0] : memref<1024xf32>
  %y = memref.load %b[%c0] : memref<1024xf32>
  %z = memref.load %c[%c0] : memref<1024xf32>
  memref.store %x, %a[%c0] : memref<1024xf32>
  memref.store %y, %b[%c0] : memref<1024xf32>
  memref.store %z, %c[%c0] : memref<1024xf32>
  return
}

// A buffer that is only written is removed, together with its writes.

// CHECK-LABEL: func.func @unread
// CHECK-SAME: cpu.scratch_bytes = 64 : i64
// CHECK: memref.store {{.*}} : memref<16xf32>
// CHECK-NOT: store
func.func @unread(%v: vector<16xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<16xf32>
  %b = memref.alloca() : memref<16xf32>
  memref.store %f0, %a[%c0] : memref<16xf32>
  vector.store %v, %b[%c0] : memref<16xf32>, vector<16xf32>
  memref.store %f0, %b[%c0] : memref<16xf32>
  %x = memref.load %a[%c0] : memref<16xf32>
  return
}
