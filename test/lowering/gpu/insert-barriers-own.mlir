// There is no barrier between accesses of one program if each thread accesses the elements that it accessed before, or
// if the accesses never overlap.
// RUN: kiln-opt %s --split-input-file --gpu-insert-barriers | FileCheck %s

#row = #simt.layout<128, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 d0:64]>
#flat = #simt.layout<1x128, reg [], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32 d1:64]>

// Equal bytes of shared memory in one layout belong to one thread, for every rank. With another stride they do not.
// CHECK-LABEL: func @own_bytes
// CHECK-NOT: simt.barrier
// CHECK-LABEL: func @other_bytes
// CHECK: simt.write
// CHECK-NEXT: simt.barrier
func.func @own_bytes(%x: tensor<128xf32, #row>, %y: tensor<1x128xf32, #flat>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<1024xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<1024xi8, 3>
  %0 = simt.read %a strides [4] : memref<1024xi8, 3> -> tensor<128xf32, #row>
  simt.write %y, %a strides [512, 4] : tensor<1x128xf32, #flat>, memref<1024xi8, 3>
  return
}
func.func @other_bytes(%x: tensor<128xf32, #row>) attributes {tile.kernel} {
  %a = simt.buffer {offset = 0 : i64} : memref<1024xi8, 3>
  simt.write %x, %a strides [4] : tensor<128xf32, #row>, memref<1024xi8, 3>
  %0 = simt.read %a strides [8] : memref<1024xi8, 3> -> tensor<128xf32, #row>
  return
}

#same = #simt.layout<16, reg [], lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>

// If several threads hold an element, the same one writes it each time.
// CHECK-LABEL: func @one_writer
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @one_writer(%v: memref<?xf32>, %x: tensor<16xf32, #same>, %n: i64) attributes {tile.kernel} {
  tile.store %x, %v[%n] : tensor<16xf32, #same>, memref<?xf32>
  tile.store %x, %v[%n] : tensor<16xf32, #same>, memref<?xf32>
  return
}

#permuted = #simt.layout<128, reg [], lane [d0:64 d0:32 d0:4 d0:8 d0:16], warp [d0:2 d0:1]>

// If offsets differ by the tile's extent, each thread accesses elements of its own, in either order, and other layouts
// share no element. If they differ by less, threads access elements of others.
// CHECK-LABEL: func @neighbours
// CHECK-NOT: simt.barrier
// CHECK-LABEL: func @overlapping
// CHECK: tile.store
// CHECK-NEXT: simt.barrier
// CHECK-NEXT: tile.load
func.func @neighbours(%v: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  %c128 = arith.constant 128 : i64
  %m = arith.addi %n, %c128 : i64
  tile.store %x, %v[%m] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<128xf32, #permuted>
  tile.store %x, %v[%m] : tensor<128xf32, #row>, memref<?xf32>
  return
}
func.func @overlapping(%v: memref<?xf32>, %x: tensor<128xf32, #row>, %n: i64) attributes {tile.kernel} {
  %c127 = arith.constant 127 : i64
  %m = arith.addi %n, %c127 : i64
  tile.store %x, %v[%m] : tensor<128xf32, #row>, memref<?xf32>
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<128xf32, #permuted>
  return
}

// -----

#row = #simt.layout<1x128, reg [], lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32 d1:64]>

// Two loops over the same columns have steps of whole tiles. A column's number determines its thread, in every row and
// iteration.
// CHECK-LABEL: func @same_columns
// CHECK-NOT: simt.barrier
// CHECK: return
func.func @same_columns(%v: memref<?x?xf32>, %n: i64, %m: i64, %end: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c128 = arith.constant 128 : i64
  %c256 = arith.constant 256 : i64
  scf.for %i = %c0 to %end step %c128 : i64 {
    %0 = tile.load %v[%n, %i] : memref<?x?xf32> -> tensor<1x128xf32, #row>
    tile.store %0, %v[%n, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
  }
  scf.for %i = %c128 to %end step %c256 : i64 {
    %0 = tile.load %v[%m, %i] : memref<?x?xf32> -> tensor<1x128xf32, #row>
    tile.store %0, %v[%m, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
  }
  return
}

// That is not so if a loop begins at another column, or has steps of half a tile.
// CHECK-LABEL: func @other_columns
// CHECK: scf.for
// CHECK: }
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: scf.for
// CHECK-NOT: simt.barrier
// CHECK: }
// CHECK-NEXT: scf.for
// CHECK-NEXT: simt.barrier "global memory written, then read"
func.func @other_columns(%v: memref<?x?xf32>, %n: i64, %m: i64, %end: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c64 = arith.constant 64 : i64
  %c128 = arith.constant 128 : i64
  scf.for %i = %c0 to %end step %c128 : i64 {
    %0 = tile.load %v[%n, %i] : memref<?x?xf32> -> tensor<1x128xf32, #row>
    tile.store %0, %v[%n, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
  }
  scf.for %i = %c1 to %end step %c128 : i64 {
    %0 = tile.load %v[%m, %i] : memref<?x?xf32> -> tensor<1x128xf32, #row>
    tile.store %0, %v[%m, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
  }
  scf.for %i = %c0 to %end step %c64 : i64 {
    %0 = tile.load %v[%m, %i] : memref<?x?xf32> -> tensor<1x128xf32, #row>
    tile.store %0, %v[%m, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
  }
  return
}

#one = #simt.layout<1x1, reg [], lane [* * * * *], warp [* *]>

// Each iteration of the outer loop has its own row, so no element that all threads read was written in an earlier
// iteration. In the second kernel all iterations use one row.
// CHECK-LABEL: func @own_rows
// CHECK: scf.for
// CHECK-NEXT: tile.load
// CHECK-NEXT: simt.barrier "global memory read, then written"
// CHECK-NEXT: scf.for
// CHECK-LABEL: func @one_row
// CHECK: scf.for
// CHECK-NEXT: simt.barrier "global memory written, then read"
// CHECK-NEXT: tile.load
func.func @own_rows(%v: memref<?x?xf32>, %x: tensor<1x128xf32, #row>, %m: i64, %end: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c128 = arith.constant 128 : i64
  scf.for %n = %c0 to %end step %c1 : i64 {
    %0 = tile.load %v[%n, %m] : memref<?x?xf32> -> tensor<1x1xf32, #one>
    scf.for %i = %c0 to %end step %c128 : i64 {
      tile.store %x, %v[%n, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
    }
  }
  return
}
func.func @one_row(%v: memref<?x?xf32>, %x: tensor<1x128xf32, #row>, %m: i64, %end: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c128 = arith.constant 128 : i64
  scf.for %n = %c0 to %end step %c1 : i64 {
    %0 = tile.load %v[%m, %n] : memref<?x?xf32> -> tensor<1x1xf32, #one>
    scf.for %i = %c0 to %end step %c128 : i64 {
      tile.store %x, %v[%m, %i] : tensor<1x128xf32, #row>, memref<?x?xf32>
    }
  }
  return
}
