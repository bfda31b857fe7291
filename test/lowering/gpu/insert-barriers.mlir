// There is a barrier between accesses of one program that must not be reordered, and nowhere else.
// RUN: kiln-opt %s --split-input-file --gpu-insert-barriers | FileCheck %s

#row = #simt.layout<128, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>
#permuted = #simt.layout<128, reg [], lane [d0:64 d0:32 d0:4 d0:8 d0:16], warp [d0:2 d0:1]>

// Threads read shared memory that others wrote: one barrier is enough for two writes before it and two reads after.
// CHECK-LABEL: func @write_read
// CHECK: simt.write
// CHECK-NOT: simt.barrier
// CHECK: simt.write
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @write_read(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %b = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  simt.write %x, %b strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  %1 = simt.read %b strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  return
}

// Bytes that two buffers share, even if only one byte, are overwritten after all threads have read them.
// CHECK-LABEL: func @shared_bytes
// CHECK: simt.read
// CHECK-NEXT: simt.barrier "shared memory read, then written"
// CHECK-NEXT: simt.write
func.func @shared_bytes(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<513xi8, 3>
  %b = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  %0 = simt.read %a strides [4] : memref<513xi8, 3> -> tensor<128xf32, #permuted>
  simt.write %x, %b strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  return
}

// Adjacent buffers share no byte.
// CHECK-LABEL: func @neighbours
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @neighbours(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %b = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #row>
  simt.write %x, %b strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  return
}

// The next iteration writes bytes that this one may still read, so a loop's body needs two barriers where a single run
// needs one.
// CHECK-LABEL: func @back_edge
// CHECK: scf.for
// CHECK-NEXT: simt.barrier "shared memory read, then written"
// CHECK-NEXT: simt.write
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
// CHECK-NEXT: }
func.func @back_edge(%x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
    %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  return
}

// A loop may have no iteration, so its barriers order nothing after it.
// CHECK-LABEL: func @no_iteration
// CHECK: simt.read
// CHECK-NEXT: scf.for
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.write
// CHECK: }
// CHECK-NEXT: simt.barrier "shared memory read, then written"
// CHECK-NEXT: simt.write
func.func @no_iteration(%x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %b = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  scf.for %i = %n to %n step %n : i64 {
    simt.write %x, %b strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
    %1 = simt.read %b strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  return
}

// Only one side of the branch has a barrier, so it orders nothing after the branch.
// CHECK-LABEL: func @branch
// CHECK: scf.if
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.read
// CHECK-NEXT: }
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
func.func @branch(%x: tensor<128xf32, #row>, %p: i1) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  scf.if %p {
    %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  %1 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  return
}

// Two views may overlap.
// CHECK-LABEL: func @may_overlap
// CHECK: tile.store
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.load
func.func @may_overlap(%v: memref<?xf32>, %w: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %w[%n] : memref<?xf32> -> tensor<128xf32, #row>
  return
}

// There is no barrier if the kernel states that they do not overlap.
// CHECK-LABEL: func @disjoint
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @disjoint(%v: memref<?xf32>, %w: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %w[%n] : memref<?xf32> -> tensor<128xf32, #row>
  return
}

// With equal offsets and layouts, each thread accesses its own elements again.
// CHECK-LABEL: func @own_elements
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @own_elements(%v: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<128xf32, #row>
  return
}

// With other offsets or another layout, a thread accesses elements of another thread.
// CHECK-LABEL: func @other_offset
// CHECK: tile.store
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: tile.load
// CHECK-LABEL: func @other_layout
// CHECK: tile.store
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: tile.load
func.func @other_offset(%v: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64, %m: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %v[%m] : memref<?xf32> -> tensor<128xf32, #row>
  return
}
func.func @other_layout(%v: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<128xf32, #permuted>
  return
}

#same = #simt.layout<16, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>

// If several lanes hold an element, one of them writes it and the others read it.
// CHECK-LABEL: func @held_by_several
// CHECK: tile.store
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: tile.load
func.func @held_by_several(%v: memref<?xf32>, %x: tensor<16xf32, #same>, %n: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<16xf32, #same>, memref<?xf32>
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<16xf32, #same>
  return
}

// Two equal offsets in one iteration differ in the next.
// CHECK-LABEL: func @other_iteration
// CHECK: scf.for
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.store
// CHECK-NEXT: }
func.func @other_iteration(%v: memref<?xf32>, %n: i64) attributes {tile.kernel} {
  scf.for %i = %n to %n step %n : i64 {
    %0 = tile.load %v[%i] : memref<?xf32> -> tensor<128xf32, #row>
    tile.store %0, %v[%i] : tensor<128xf32, #row>, memref<?xf32>
  }
  return
}

// -----

#row = #simt.layout<16x128, reg [d0:1 d0:2 d0:4 d0:8], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32 d1:64]>
#numbers = #simt.layout<16, reg [d0:1 d0:2 d0:4 d0:8], lane [* * * * *], warp [* *]>

// Gathered rows may be any rows.
// CHECK-LABEL: func @rows
// CHECK: tile.scatter
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.gather
// CHECK-NEXT: simt.barrier "global memory read, then written"
// CHECK-NEXT: tile.scatter
func.func @rows(%v: memref<?x128xf32>, %x: tensor<16x128xf32, #row>, %r: tensor<16xi32, #numbers>, %n: i64) attributes {tile.kernel} {
  tile.scatter %x, %v[%r, %n] : tensor<16x128xf32, #row>, memref<?x128xf32>, tensor<16xi32, #numbers>
  %0 = tile.gather %v[%r, %n] : memref<?x128xf32>, tensor<16xi32, #numbers> -> tensor<16x128xf32, #row>
  tile.scatter %x, %v[%r, %n] : tensor<16x128xf32, #row>, memref<?x128xf32>, tensor<16xi32, #numbers>
  return
}

// -----

#row = #simt.layout<128, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>

// An atomic addition that releases waits for all of the program's earlier writes, to any memory. Accesses after one
// that acquires wait for it. A relaxed one orders its own elements alone.
// CHECK-LABEL: func @atomic
// CHECK: tile.store
// CHECK-NEXT: simt.barrier "global memory written, then written"
// CHECK-NEXT: tile.atomic_rmw add release
// CHECK-NEXT: simt.barrier "global memory written, then written"
// CHECK-NEXT: tile.atomic_rmw add acquire
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.load
// CHECK-NEXT: tile.atomic_rmw add relaxed
func.func @atomic(%v: memref<?xf32>, %w: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  tile.store %x, %v[%n] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.atomic_rmw add release %x, %w[%n] : tensor<128xf32, #row>, memref<?xf32>
  %1 = tile.atomic_rmw add acquire %x, %w[%n] : tensor<128xf32, #row>, memref<?xf32>
  %2 = tile.load %v[%n] : memref<?xf32> -> tensor<128xf32, #row>
  %3 = tile.atomic_rmw add relaxed %x, %w[%n] : tensor<128xf32, #row>, memref<?xf32>
  return
}

#permuted = #simt.layout<128, reg [], lane [d0:64 d0:32 d0:4 d0:8 d0:16], warp [d0:2 d0:1]>

// An existing barrier is not inserted again.
// CHECK-LABEL: func @there_already
// CHECK: simt.barrier{{$}}
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @there_already(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  simt.barrier
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  return
}

// All iterations of a loop read data written before it: one barrier before the loop is enough.
// CHECK-LABEL: func @before_the_loop
// CHECK: simt.write
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: scf.for
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @before_the_loop(%x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  scf.for %i = %n to %n step %n : i64 {
    %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  return
}

// A loop over constants surely has iterations, so accesses after it need no further barrier.
// CHECK-LABEL: func @surely_runs
// CHECK: scf.for
// CHECK-NEXT: simt.barrier
// CHECK: }
// CHECK-NEXT: simt.write
func.func @surely_runs(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c4 = arith.constant 4 : i64
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %b = simt.buffer {offset = 512 : i64} : memref<512xi8, 3>
  %0 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  scf.for %i = %c0 to %c4 step %c1 : i64 {
    simt.write %x, %b strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
    %1 = simt.read %b strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
  return
}

// A loop with a single iteration needs no barrier between iterations.
// CHECK-LABEL: func @one_iteration
// CHECK: scf.for
// CHECK-NEXT: simt.write
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
// CHECK-LABEL: func @two_iterations
// CHECK: scf.for
// CHECK-NEXT: simt.barrier "shared memory read, then written"
func.func @one_iteration(%x: tensor<128xf32, #row>, %n: i64, %m: i64) attributes {tile.kernel} {
  %c2 = arith.constant 2 : i64
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %0 = arith.addi %n, %c2 : i64
  %end = arith.minsi %0, %m : i64
  scf.for %i = %n to %end step %c2 : i64 {
    simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
    %1 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  return
}
func.func @two_iterations(%x: tensor<128xf32, #row>, %n: i64, %m: i64) attributes {tile.kernel} {
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  %0 = arith.addi %n, %c3 : i64
  %end = arith.minsi %0, %m : i64
  scf.for %i = %n to %end step %c2 : i64 {
    simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<512xi8, 3>
    %1 = simt.read %a strides [4] : memref<512xi8, 3> -> tensor<128xf32, #permuted>
  }
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// A ring of slots takes one barrier an iteration, after the wait: the copy fills the slot that the previous iteration
// read, and the read slot was filled two iterations before. The loop's own barrier also orders earlier accesses to the
// first copies' slots. Later users of the ring's bytes wait for the remaining copies, and for the other threads.
// CHECK-LABEL: func @ring
// CHECK: simt.fetch {{.*}} slot [0, 3]
// CHECK-NOT: simt.barrier
// CHECK: simt.fetch {{.*}} slot [1, 3]
// CHECK-NOT: simt.barrier
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 1
// CHECK-NEXT: simt.barrier "shared memory read, then written"
// CHECK-NEXT: simt.fetch {{.*}} slot [2, 3]
// CHECK-NOT: simt.barrier
// CHECK: simt.read
// CHECK-NEXT: }
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.barrier "shared memory {{.*}}, then written"
// CHECK-NEXT: simt.write
func.func @ring(%a: memref<?xf32>, %n: i64, %t: tensor<32xf32, #row>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<384xi8, 3>
  %after = simt.buffer {offset = 0 : i64} : memref<128xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  simt.fetch %a[%c0] to %ring[%at] slot [0, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  simt.fetch %a[%c1] to %ring[%at] slot [1, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<384xi8, 3>
  scf.for %i = %c0 to %n step %c1 : i64 {
    simt.wait_copies 1
    simt.fetch %a[%i] to %ring[%at] slot [2, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<384xi8, 3>
    %1 = simt.read %ring[%at] slot [0, 3] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
        : memref<384xi8, 3> -> tensor<32xf32, #row>
  }
  simt.wait_copies 0
  simt.write %t, %after by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
  return
}

// A barrier alone does not complete copies in flight: another barrier orders the copy after the reads, and still there
// is one between the wait and the read.
// CHECK-LABEL: func @other_barriers
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.fetch {{.*}} slot [1, 2]
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: simt.write
func.func @other_barriers(%a: memref<?xf32>, %n: i64, %t: tensor<32xf32, #row>)
    attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<256xi8, 3>
  %other = simt.buffer {offset = 256 : i64} : memref<128xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  simt.fetch %a[%c0] to %ring[%at] slot [0, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<256xi8, 3>
  scf.for %i = %c0 to %n step %c1 : i64 {
    simt.wait_copies 0
    simt.fetch %a[%i] to %ring[%at] slot [1, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<256xi8, 3>
    %1 = simt.read %ring[%at] slot [0, 2] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
        : memref<256xi8, 3> -> tensor<32xf32, #row>
    simt.barrier
    simt.write %t, %other by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
  }
  return
}

#permuted = #simt.layout<32, reg [], lane [d0:16 d0:8 d0:4 d0:2 d0:1], warp []>

// Data copied before the loop are visible to all threads once each has waited, inside the loop. A barrier before the
// loop would be too early.
// CHECK-LABEL: func @copied_before
// CHECK: simt.commit_copies
// CHECK-NOT: simt.barrier
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
func.func @copied_before(%a: memref<?xf32>, %n: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<128xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %at = arith.constant 0 : i32
  simt.fetch %a[%c0] to %ring[%at] slot [0, 1] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<128xi8, 3>
  simt.commit_copies
  scf.for %i = %c0 to %n step %c1 : i64 {
    simt.wait_copies 0
    %1 = simt.read %ring[%at] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
        : memref<128xi8, 3> -> tensor<32xf32, #permuted>
  }
  return
}

// Iterations with a 32-bit counter access disjoint elements, as those with a 64-bit counter do.
// CHECK-LABEL: func @narrow
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @narrow(%a: memref<?xf32>, %n: i32) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  scf.for %i = %c0 to %n step %c32 : i32 {
    %at = arith.extsi %i : i32 to i64
    %0 = tile.load %a[%at] {simt.layout = #row} : memref<?xf32> -> tensor<32xf32, #row>
    %1 = simt.convert %0 : tensor<32xf32, #row> -> tensor<32xf32, #row>
    tile.store %1, %a[%at] {simt.layout = #row} : tensor<32xf32, #row>, memref<?xf32>
  }
  return
}

// An iteration of a while reads elements that the previous one wrote: one barrier between them, and one between the read
// and the write. The read after the loop needs one, too.
// CHECK-LABEL: func @while
// CHECK: do {
// CHECK: tile.load
// CHECK: simt.barrier "global memory read, then written"
// CHECK-NEXT: tile.store
// CHECK: scf.yield
// CHECK: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.load
func.func @while(%a: memref<?xf32>, %n: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %go = arith.cmpi slt, %c0, %n : i64
  %r = scf.while (%c = %go, %i = %c0) : (i1, i64) -> i64 {
    scf.condition(%c) %i : i64
  } do {
  ^bb0(%i: i64):
    %0 = tile.load %a[%i] {simt.layout = #row} : memref<?xf32> -> tensor<32xf32, #row>
    %1 = simt.convert %0 : tensor<32xf32, #row> -> tensor<32xf32, #permuted>
    tile.store %1, %a[%i] {simt.layout = #permuted} : tensor<32xf32, #permuted>, memref<?xf32>
    %next = arith.addi %i, %c1 : i64
    %more = arith.cmpi slt, %next, %n : i64
    scf.yield %more, %next : i1, i64
  }
  %2 = tile.load %a[%r] {simt.layout = #row} : memref<?xf32> -> tensor<32xf32, #row>
  tile.store %2, %a[%r] {simt.layout = #row} : tensor<32xf32, #row>, memref<?xf32>
  return
}
