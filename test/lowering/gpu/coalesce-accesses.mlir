// Neighbouring threads access neighbouring elements. A thread accesses as many in a row as one instruction moves.
// RUN: kiln-opt %s --gpu-coalesce-accesses | FileCheck %s

// A vector has 16 bytes if the view is aligned and its extents are known: 16 lanes for a row of 64, then rows, then
// warps.
// CHECK-LABEL: func @aligned
// CHECK: tile.load {{.*}} {simt.layout = #simt.layout<16x64, reg [d1:1 d1:2 d0:8], lane [d1:4 d1:8 d1:16 d1:32 d0:1], warp [d0:2 d0:4]>, simt.vector = 4 : i64}
// CHECK: tile.store {{.*}} simt.vector = 4 : i64
func.func @aligned(%x: memref<?x64xf32, strided<[64, 1]>> {tile.align = 16 : i64}, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%m, %c0] : memref<?x64xf32, strided<[64, 1]>> -> tensor<16x64xf32>
  tile.store %0, %x[%m, %c0] : tensor<16x64xf32>, memref<?x64xf32, strided<[64, 1]>>
  return
}

// If the first dimension is contiguous, its offset and the other dimension's stride matter. Here neither is known. Lanes follow
// the order of memory, not that of the dimensions.
// CHECK-LABEL: func @column_major
// CHECK: tile.load {{.*}} lane [d0:1 d0:2 d0:4 d0:8 d0:16], {{.*}} simt.vector = 1 : i64
func.func @column_major(%x: memref<?x64xf32, strided<[1, ?]>> {tile.align = 16 : i64}, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%m, %c0] : memref<?x64xf32, strided<[1, ?]>> -> tensor<64x64xf32>
  return
}

// A vector has as many elements as fit in 16 bytes. A bool is a byte of memory.
// CHECK-LABEL: func @narrow
// CHECK: tile.load {{.*}} simt.vector = 8 : i64{{.*}}xbf16>
// CHECK: tile.load {{.*}} simt.vector = 16 : i64{{.*}}xi1>
// CHECK: tile.load {{.*}} simt.vector = 2 : i64{{.*}}xf64>
func.func @narrow(%x: memref<8192xbf16> {tile.align = 16 : i64}, %y: memref<8192xi8> {tile.align = 16 : i64},
                  %z: memref<8192xf64> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<8192xbf16> -> tensor<2048xbf16>
  %1 = tile.load %y[%c0] : memref<8192xi8> -> tensor<2048xi1>
  %2 = tile.load %z[%c0] : memref<8192xf64> -> tensor<2048xf64>
  return
}

// If the extent is known and no multiple of the vector, the view ends within a vector.
// CHECK-LABEL: func @ragged_extent
// CHECK: tile.load {{.*}} simt.ragged, simt.vector = 4 : i64
func.func @ragged_extent(%x: memref<1022xf32> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<1022xf32> -> tensor<1024xf32>
  return
}

// A vector is no wider than the view's alignment. Without a known alignment it is one element.
// CHECK-LABEL: func @alignment
// CHECK: tile.load %arg0{{.*}} simt.vector = 2 : i64
// CHECK: tile.load %arg1{{.*}} simt.vector = 1 : i64
func.func @alignment(%x: memref<4096xf32> {tile.align = 8 : i64}, %y: memref<4096xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<4096xf32> -> tensor<1024xf32>
  %1 = tile.load %y[%c0] : memref<4096xf32> -> tensor<1024xf32>
  return
}

// The offset along the row matters: a multiple of 1024, a multiple of 2, or unknown.
// CHECK-LABEL: func @offset
// CHECK: tile.load {{.*}} simt.vector = 4 : i64
// CHECK: tile.load {{.*}} simt.vector = 2 : i64
// CHECK: tile.load {{.*}} simt.vector = 1 : i64
func.func @offset(%x: memref<4096xf32> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c2 = arith.constant 2 : i64
  %c1024 = arith.constant 1024 : i64
  %p = tile.program_id 0
  %block = arith.muli %p, %c1024 : i64
  %pair = arith.muli %p, %c2 : i64
  %0 = tile.load %x[%block] : memref<4096xf32> -> tensor<1024xf32>
  %1 = tile.load %x[%pair] : memref<4096xf32> -> tensor<1024xf32>
  %2 = tile.load %x[%p] : memref<4096xf32> -> tensor<1024xf32>
  return
}

// Rows begin at multiples of the stride: 66 is even. An unknown stride permits one element unless it is a fact of the
// call.
// CHECK-LABEL: func @strides
// CHECK: tile.load %arg0{{.*}} simt.vector = 2 : i64
// CHECK: tile.load %arg1{{.*}} simt.vector = 1 : i64
// CHECK: tile.load %arg2{{.*}} simt.vector = 4 : i64
func.func @strides(%x: memref<?x64xf32, strided<[66, 1]>> {tile.align = 16 : i64},
                   %y: memref<?x64xf32, strided<[?, 1]>> {tile.align = 16 : i64},
                   %z: memref<?x64xf32, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16})
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] : memref<?x64xf32, strided<[66, 1]>> -> tensor<16x64xf32>
  %1 = tile.load %y[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<16x64xf32>
  %2 = tile.load %z[%c0, %c0] : memref<?x64xf32, strided<[?, 1]>> -> tensor<16x64xf32>
  return
}

// If the last extent is a multiple of the vector, a vector is wholly inside or wholly outside.
// CHECK-LABEL: func @extents
// CHECK: tile.load %arg0{{.*}} simt.ragged, simt.vector = 4 : i64
// CHECK: tile.load %arg1{{.*}}]>, simt.vector = 4 : i64
func.func @extents(%x: memref<?xf32, strided<[1]>> {tile.align = 16 : i64},
                   %y: memref<?xf32, strided<[1]>> {tile.align = 16 : i64, tile.extent_by_16})
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  %1 = tile.load %y[%c0] : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  return
}

// Elements that are not contiguous are accessed one by one.
// CHECK-LABEL: func @apart
// CHECK: tile.load {{.*}} simt.vector = 1 : i64
func.func @apart(%x: memref<4096xf32, strided<[2]>> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<4096xf32, strided<[2]>> -> tensor<1024xf32>
  return
}

// Wider vectors would leave threads without elements: 256 elements are two for each of 128 threads.
// CHECK-LABEL: func @small
// CHECK: tile.load {{.*}} simt.vector = 2 : i64{{.*}}tensor<256xf32>
// CHECK: tile.load {{.*}} lane [d0:1 d0:2 d0:4 d0:8 *], warp [* *]>, simt.vector = 1 : i64{{.*}}tensor<16xf32>
func.func @small(%x: memref<4096xf32> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<4096xf32> -> tensor<256xf32>
  %1 = tile.load %x[%c0] : memref<4096xf32> -> tensor<16xf32>
  return
}

// Rows of a gather and scatter may begin anywhere, but each row is contiguous. Single gathered elements are not. Atomic
// additions are done one by one.
// CHECK-LABEL: func @others
// CHECK: tile.gather %arg0{{.*}} simt.vector = 4 : i64
// CHECK: tile.scatter {{.*}} simt.vector = 4 : i64
// CHECK: tile.gather %arg1{{.*}} simt.vector = 1 : i64
// CHECK: tile.atomic_rmw {{.*}} simt.vector = 1 : i64
func.func @others(%x: memref<?x64xf32, strided<[64, 1]>> {tile.align = 16 : i64}, %y: memref<4096xf32> {tile.align = 16 : i64})
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %rows = tile.iota : tensor<16xi32>
  %0 = tile.gather %x[%rows, %c0] : memref<?x64xf32, strided<[64, 1]>>, tensor<16xi32> -> tensor<16x64xf32>
  tile.scatter %0, %x[%rows, %c0] : tensor<16x64xf32>, memref<?x64xf32, strided<[64, 1]>>, tensor<16xi32>
  %many = tile.iota : tensor<1024xi32>
  %1 = tile.gather %y[%many] : memref<4096xf32>, tensor<1024xi32> -> tensor<1024xf32>
  %2 = tile.atomic_rmw add relaxed %1, %y[%c0] : tensor<1024xf32>, memref<4096xf32>
  return
}

// The layout has as many bits for warps as the kernel sets; without a setting, two bits for 4 warps.
// CHECK-LABEL: func @warps
// CHECK: tile.load {{.*}} warp [d0:32 d0:64 d0:128]>
func.func @warps(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.warps = 8 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  return
}

// A tile that is reduced along memory gives each warp whole rows. The row after next is in other registers.
// CHECK-LABEL: func @whole_rows
// CHECK: tile.load {{.*}}reg [d1:1 d1:2 d1:4 d0:4 d1:256 d1:512], lane [d1:8 d1:16 d1:32 d1:64 d1:128], warp [d0:1 d0:2]>
func.func @whole_rows(%x: memref<?x1024xbf16, strided<[1024, 1]>> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] : memref<?x1024xbf16, strided<[1024, 1]>> -> tensor<8x1024xbf16>
  %1 = arith.extf %0 : tensor<8x1024xbf16> to tensor<8x1024xf32>
  %2 = tile.reduce sum %1 axis 1 : tensor<8x1024xf32> -> tensor<8xf32>
  return
}

// Warps share rows if there are fewer rows than warps, if a lane would hold more than 64 values of a row, or if columns
// are reduced in an inner loop.
// CHECK-LABEL: func @shared_rows
// CHECK: tile.load {{.*}}warp [d1:128 d1:256]>{{.*}} -> tensor<2x1024xf32>
// CHECK: tile.load {{.*}}warp [d1:128 d1:256]>{{.*}} -> tensor<4x4096xf32>
// CHECK: tile.load {{.*}}warp [d1:128 d1:256]>{{.*}} -> tensor<4x512xf32>
func.func @shared_rows(%x: memref<?x4096xf32, strided<[4096, 1]>> {tile.align = 16 : i64}, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0, %c0] : memref<?x4096xf32, strided<[4096, 1]>> -> tensor<2x1024xf32>
  %1 = tile.reduce sum %0 axis 1 : tensor<2x1024xf32> -> tensor<2xf32>
  %2 = tile.load %x[%c0, %c0] : memref<?x4096xf32, strided<[4096, 1]>> -> tensor<4x4096xf32>
  %3 = tile.reduce sum %2 axis 1 : tensor<4x4096xf32> -> tensor<4xf32>
  %4 = tile.load %x[%c0, %c0] : memref<?x4096xf32, strided<[4096, 1]>> -> tensor<4x512xf32>
  %5 = tile.reduce sum %4 axis 1 : tensor<4x512xf32> -> tensor<4xf32>
  scf.for %i = %c0 to %n step %c1 : i64 {
    %6 = tile.reduce sum %4 axis 0 : tensor<4x512xf32> -> tensor<512xf32>
  }
  return
}

// Tiles of one shape share a layout, in which the widest type takes 16 bytes at once, so no tile is converted.
// CHECK-LABEL: func @types
// CHECK: tile.load %arg0{{.*}}simt.layout = [[SHARED:#simt.layout<1024, reg \[d0:1 d0:2 d0:512\].*]], simt.vector = 4 : i64
// CHECK: tile.load %arg1{{.*}}simt.layout = [[SHARED]], simt.vector = 4 : i64
func.func @types(%x: memref<4096xbf16> {tile.align = 64 : i64}, %y: memref<4096xf32> {tile.align = 64 : i64})
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<4096xbf16> -> tensor<1024xbf16>
  %1 = tile.load %y[%c0] : memref<4096xf32> -> tensor<1024xf32>
  return
}

// A function that is not a kernel stays unchanged.
// CHECK-LABEL: func @other
// CHECK-NOT: simt
// CHECK: return
func.func @other(%x: memref<?xf32, strided<[1]>>) {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32, strided<[1]>> -> tensor<1024xf32>
  return
}

// A table begins at a multiple of 64 bytes, and its whole extent is inside.
// CHECK-LABEL: func @table
// CHECK: tile.load {{.*}}simt.vector = 4 : i64} : memref<256xf32>
memref.global "private" constant @table_0 : memref<1024xi8> = dense<1> {alignment = 64 : i64}
func.func @table(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel, tile.warps = 1 : i64} {
  %c0 = arith.constant 0 : index
  %n = arith.constant 0 : i64
  %bytes = memref.get_global @table_0 : memref<1024xi8>
  %view = memref.view %bytes[%c0][] : memref<1024xi8> to memref<256xf32>
  %t = tile.load %view[%n] : memref<256xf32> -> tensor<256xf32>
  tile.store %t, %x[%n] : tensor<256xf32>, memref<?xf32, strided<[1]>>
  return
}

// Tiles that are combined share a layout, even if they differ in dimensions of extent 1. If their types differ, vectors
// are as wide as those of the wider type.
// CHECK-LABEL: func @together
// CHECK: tile.load %arg0{{.*}}simt.layout = #simt.layout<1024, reg [d0:1 d0:2 d0:512], {{.*}}simt.vector = 4
// CHECK: tile.load %arg1{{.*}}simt.layout = #simt.layout<1x1024, reg [d1:1 d1:2 d1:512], {{.*}}simt.vector = 4
// CHECK: tile.store {{.*}}simt.layout = #simt.layout<1024, reg [d0:1 d0:2 d0:512], {{.*}}simt.vector = 4
func.func @together(%x: memref<1024xf32> {tile.align = 64 : i64}, %y: memref<8x1024xbf16> {tile.align = 64 : i64},
                    %z: memref<1024xf32> {tile.align = 64 : i64}) attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<1024xf32> -> tensor<1024xf32>
  %1 = tile.load %y[%c0, %c0] : memref<8x1024xbf16> -> tensor<1x1024xbf16>
  %2 = tile.reshape %1 : tensor<1x1024xbf16> -> tensor<1024xbf16>
  %3 = arith.extf %2 : tensor<1024xbf16> to tensor<1024xf32>
  %4 = arith.addf %0, %3 : tensor<1024xf32>
  tile.store %4, %z[%c0] : tensor<1024xf32>, memref<1024xf32>
  return
}

// An unaligned tile is read one element at a time, in the layout of its neighbours, with four adjacent elements a thread.
// CHECK-LABEL: func @neighbours
// CHECK: tile.load {{.*}}simt.layout = [[LAYOUT:#simt.layout<512, reg \[d0:1 d0:2\], .*>]], simt.vector = 4
// CHECK: tile.load {{.*}}simt.layout = [[LAYOUT]], simt.vector = 1
// CHECK: tile.store {{.*}}simt.layout = [[LAYOUT]], simt.vector = 4
func.func @neighbours(%x: memref<1024xf32> {tile.align = 64 : i64}, %y: memref<1024xf32> {tile.align = 64 : i64})
    attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0] : memref<1024xf32> -> tensor<512xf32>
  %1 = tile.load %x[%c1] : memref<1024xf32> -> tensor<512xf32>
  %2 = arith.addf %0, %1 : tensor<512xf32>
  tile.store %2, %y[%c0] : tensor<512xf32>, memref<1024xf32>
  return
}

// A mask permits vectors if it is constant along each vector: if it is broadcast along memory, or if it compares
// positions that begin at a multiple of a vector with a bound that is one.
// CHECK-LABEL: func @masks
// CHECK: tile.gather %arg0{{.*}} if %arg1 {{.*}} simt.vector = 1 : i64
// CHECK: tile.gather {{.*}} simt.vector = 4 : i64
// CHECK: tile.scatter {{.*}} simt.vector = 4 : i64
// CHECK: tile.scatter {{.*}} simt.vector = 1 : i64
func.func @masks(%x: memref<?x64xf32, strided<[64, 1]>> {tile.align = 16 : i64}, %any: tensor<16x64xi1>,
                 %rows: tensor<16x1xi1>, %m: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.gather %x[%m, %c0] if %any : memref<?x64xf32, strided<[64, 1]>> -> tensor<16x64xf32>
  %same = tile.broadcast %rows : tensor<16x1xi1> -> tensor<16x64xi1>
  %1 = tile.gather %x[%m, %c0] if %same : memref<?x64xf32, strided<[64, 1]>> -> tensor<16x64xf32>
  %columns = tile.iota : tensor<64xi32>
  %end = arith.constant dense<36> : tensor<64xi32>
  %odd = arith.constant dense<37> : tensor<64xi32>
  %below = arith.cmpi slt, %columns, %end : tensor<64xi32>
  %row = tile.reshape %below : tensor<64xi1> -> tensor<1x64xi1>
  %all = tile.broadcast %row : tensor<1x64xi1> -> tensor<16x64xi1>
  tile.scatter %1, %x[%m, %c0] if %all : tensor<16x64xf32>, memref<?x64xf32, strided<[64, 1]>>
  %belowOdd = arith.cmpi slt, %columns, %odd : tensor<64xi32>
  %oddRow = tile.reshape %belowOdd : tensor<64xi1> -> tensor<1x64xi1>
  %oddAll = tile.broadcast %oddRow : tensor<1x64xi1> -> tensor<16x64xi1>
  tile.scatter %0, %x[%m, %c0] if %oddAll : tensor<16x64xf32>, memref<?x64xf32, strided<[64, 1]>>
  return
}

// If a tile is wholly inside its view, its vectors are whole for every extent.
// CHECK-LABEL: func @inside
// CHECK: tile.load {{.*}}]>, simt.vector = 8 : i64, tile.inside
// CHECK: tile.store {{.*}}]>, simt.vector = 8 : i64, tile.inside
// CHECK: tile.load {{.*}} simt.ragged, simt.vector = 8 : i64
// CHECK: tile.store {{.*}} simt.ragged, simt.vector = 8 : i64
func.func @inside(%x: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16}, %m: i64)
    attributes {tile.kernel} {
  %c64 = arith.constant 64 : i64
  %n = arith.muli %m, %c64 : i64
  %0 = tile.load %x[%m, %n] {tile.inside = array<i64: 0, 1>} : memref<?x?xbf16, strided<[?, 1]>> -> tensor<1x1024xbf16>
  tile.store %0, %x[%m, %n] {tile.inside = array<i64: 0, 1>} : tensor<1x1024xbf16>, memref<?x?xbf16, strided<[?, 1]>>
  %1 = tile.load %x[%m, %n] : memref<?x?xbf16, strided<[?, 1]>> -> tensor<2x512xbf16>
  tile.store %1, %x[%m, %n] : tensor<2x512xbf16>, memref<?x?xbf16, strided<[?, 1]>>
  return
}

// Atomics are done one by one, so no view ends within a vector.
// CHECK-LABEL: func @single
// CHECK-NOT: simt.ragged
// CHECK: return
func.func @single(%x: memref<1021xi32> {tile.align = 16 : i64}) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %one = arith.constant dense<1> : tensor<1024xi32>
  %0 = tile.atomic_rmw add relaxed %one, %x[%c0] : tensor<1024xi32>, memref<1021xi32>
  return
}

// A multiple is assumed by a remainder, by low bits, or of an i32 index. The assumption does not hold in other blocks.
// CHECK-LABEL: func @assumed
// CHECK-COUNT-3: tile.load {{.*}} simt.vector = 4 : i64
// CHECK: tile.load {{.*}} simt.vector = 1 : i64
func.func @assumed(%x: memref<?xf32, strided<[1]>> {tile.align = 16 : i64, tile.extent_by_16}, %a: i64, %b: i64, %c: i32, %d: i64, %yes: i1) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c3 = arith.constant 3 : i64
  %c12 = arith.constant 12 : i64
  %0 = arith.remsi %a, %c12 : i64
  %1 = arith.cmpi eq, %0, %c0 : i64
  %2 = arith.andi %b, %c3 : i64
  %3 = arith.cmpi eq, %2, %c0 : i64
  %4 = arith.andi %1, %3 : i1
  tile.assume %4
  %5 = tile.load %x[%a] : memref<?xf32, strided<[1]>> -> tensor<512xf32>
  %6 = tile.load %x[%b] : memref<?xf32, strided<[1]>> -> tensor<512xf32>
  %c0_i32 = arith.constant 0 : i32
  %c8_i32 = arith.constant 8 : i32
  %7 = arith.remui %c, %c8_i32 : i32
  %8 = arith.cmpi eq, %7, %c0_i32 : i32
  tile.assume %8
  %9 = arith.extsi %c : i32 to i64
  %10 = tile.load %x[%9] : memref<?xf32, strided<[1]>> -> tensor<512xf32>
  %11 = arith.remsi %d, %c12 : i64
  %12 = arith.cmpi eq, %11, %c0 : i64
  scf.if %yes {
    tile.assume %12
  }
  %13 = tile.load %x[%d] : memref<?xf32, strided<[1]>> -> tensor<512xf32>
  return
}
