// Barriers for copies that begin before a loop, or for the next iteration of an outer loop.
// RUN: kiln-opt %s --split-input-file --gpu-insert-barriers | FileCheck %s

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The first copy of the next tile is to a constant slot, and the results of this tile are in another slot: they need no
// wait for the copy. The copy waits for the threads that still read the ring. The loop's barrier orders the reads of the
// results before the copies to their slot.
// CHECK-LABEL: func @tiles
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.barrier "shared memory {{.*}}, then written"
// CHECK-NEXT: simt.fetch {{.*}} slot [1, 2]
// CHECK-NOT: simt.barrier
// CHECK: simt.read
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.barrier "shared memory {{.*}}, then written"
// CHECK-NEXT: simt.fetch {{.*}} slot [0, 2]
// CHECK-NEXT: simt.write
// CHECK: simt.read
// CHECK-NEXT: }
func.func @tiles(%a: memref<?xf32>, %n: i64, %t: tensor<32xf32, #row>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<256xi8, 3>
  %results = simt.buffer {offset = 128 : i64} : memref<128xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %first = arith.constant 0 : i32
  simt.fetch %a[%c0] to %ring[%first] slot [0, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
      : memref<?xf32>, memref<256xi8, 3>
  scf.for %tile = %c0 to %n step %c1 : i64 {
    %0:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %next = %first) -> (i32, i32) : i64 {
      simt.wait_copies 0
      simt.fetch %a[%i] to %ring[%next] slot [1, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
          : memref<?xf32>, memref<256xi8, 3>
      %1 = simt.read %ring[%at] slot [0, 2] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
          : memref<256xi8, 3> -> tensor<32xf32, #row>
      scf.yield %next, %at : i32, i32
    }
    simt.wait_copies 0
    simt.fetch %a[%tile] to %ring[%first] slot [0, 2] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<256xi8, 3>
    simt.write %t, %results by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : tensor<32xf32, #row>, memref<128xi8, 3>
    %2 = simt.read %results by vectors in <32xf32, d0 [4, 8, 16, 32, 64]> : memref<128xi8, 3> -> tensor<32xf32, #row>
  }
  simt.wait_copies 0
  return
}

// -----

#row = #simt.layout<32, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The slot of a copy in an outer loop is counted from the first iteration of the inner loop, in each outer iteration.
// CHECK-LABEL: func @outer_slot
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NEXT: simt.wait_copies 0
// CHECK-NEXT: simt.barrier "shared memory written, then read"
// CHECK-NEXT: simt.read
func.func @outer_slot(%a: memref<?xf32>, %n: i64) attributes {tile.kernel, tile.warps = 1 : i64} {
  %ring = simt.buffer {offset = 0 : i64} : memref<384xi8, 3>
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %first = arith.constant 0 : i32
  scf.for %tile = %c0 to %n step %c1 : i64 {
    scf.for %i = %c0 to %n step %c1 : i64 {
      simt.wait_copies 0
      %1 = simt.read %ring[%first] slot [0, 3] by vectors in <32xf32, d0 [4, 8, 16, 32, 64]>
          : memref<384xi8, 3> -> tensor<32xf32, #row>
    }
    simt.wait_copies 0
    simt.fetch %a[%tile] to %ring[%first] slot [0, 3] by 1 in <32xf32, d0 [4, 8, 16, 32, 64]> {layout = #row}
        : memref<?xf32>, memref<384xi8, 3>
  }
  simt.wait_copies 0
  return
}
