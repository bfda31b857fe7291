// Accesses of a shared-memory layout: vectors or matrices at addresses computed by exclusive or.
// RUN: kiln-opt %s --split-input-file --gpu-distribute | FileCheck %s

#pairs = #simt.layout<8x64, reg [d1:1 d1:2 d1:4 d0:4], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp []>

// The address of a thread's 16 bytes depends on its row, too. Row 4 differs in a register bit only. Bits that lanes use
// too are changed by an exclusive or; the rest is a displacement.
// CHECK-LABEL: func @swizzled
// CHECK: %[[THREAD:.*]] = simt.thread
// CHECK: arith.shli %{{.*}}, %c4_i32
// CHECK: arith.xori
// CHECK: simt.st shared %{{.*}}, %[[FIRST:.*]] + 0 : vector<8xf16>, i32
// CHECK: %[[TURNED:.*]] = arith.xori %{{.*}}, %c64_i32
// CHECK: %[[SECOND:.*]] = arith.addi %{{.*}}, %[[TURNED]]
// CHECK: simt.st shared %{{.*}}, %[[SECOND]] + 512 : vector<8xf16>, i32
// CHECK-NOT: simt.st
// CHECK: return
func.func @swizzled(%s: f16) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 1024 : i64} {
  %x = tile.splat %s : f16 -> tensor<8x64xf16, #pairs>
  %a = simt.buffer {offset = 0 : i64} : memref<1024xi8, 3>
  simt.write %x, %a by vectors in <8x64xf16, d0 [144, 288, 576], d1 [2, 4, 8, 16, 32, 64]>
      : tensor<8x64xf16, #pairs>, memref<1024xi8, 3>
  return
}

#left = #simt.layout<16x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []>
#right = #simt.layout<32x8, reg [d0:1 d0:8 d0:16], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp []>

// Fragments are read as matrices, four at once for a left operand whose rows are along K. For a right operand whose
// rows are along N, the matrices are transposed by the load.
// CHECK-LABEL: func @matrices
// CHECK-COUNT-2: simt.ldmatrix %{{.*}} + {{[0-9]+}} : vector<4xi32>
// CHECK-NOT: simt.ldmatrix %{{.*}} : vector<4xi32>
// CHECK: simt.ldmatrix %{{.*}} + {{[0-9]+}} transposed : vector<4xi32>
// CHECK-NOT: simt.ld
// CHECK: return
func.func @matrices() attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 2048 : i64} {
  %a = simt.buffer {offset = 0 : i64} : memref<1024xi8, 3>
  %b = simt.buffer {offset = 1024 : i64} : memref<512xi8, 3>
  %0 = simt.read %a by rows in <16x32xf16, d0 [64, 144, 288, 512], d1 [2, 4, 8, 16, 32]>
      : memref<1024xi8, 3> -> tensor<16x32xf16, #left>
  %1 = simt.read %b by columns in <32x8xf16, d0 [16, 32, 64, 128, 256], d1 [2, 4, 8]>
      : memref<512xi8, 3> -> tensor<32x8xf16, #right>
  return
}

// -----

#left = #simt.layout<16x16, reg [d1:1 d0:8 d1:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [*]>

// If several warps hold equal elements, one warp stores, with all its lanes.
// CHECK-LABEL: func @stores
// CHECK: %[[OWNER:.*]] = arith.cmpi eq
// CHECK: simt.stmatrix %{{.*}}, %{{.*}} + 0 if %[[OWNER]] : vector<4xi32>
func.func @stores(%s: f16) attributes {tile.kernel, tile.warps = 2 : i64, simt.shared_bytes = 512 : i64} {
  %x = tile.splat %s : f16 -> tensor<16x16xf16, #left>
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  simt.write %x, %a by rows in <16x16xf16, d0 [32, 64, 128, 256], d1 [2, 4, 8, 16]>
      : tensor<16x16xf16, #left>, memref<512xi8, 3>
  return
}

#padded = #simt.layout<25, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// The layout's padding of a tile is written as 0, so it is read as 0.
// CHECK-LABEL: func @padding
// CHECK: %[[WITHIN:.*]] = arith.cmpi slt, %{{.*}}, %c25_i32
// CHECK: arith.select
// CHECK: simt.st shared %{{.*}}, %{{.*}} + 0 : vector<1xf32>, i32
// CHECK: simt.ld shared %{{.*}} + 0 : i32, vector<1xf32>
func.func @padding(%s: f32) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 128 : i64} {
  %x = tile.splat %s : f32 -> tensor<25xf32, #padded>
  %a = simt.buffer {offset = 0 : i64} : memref<128xi8, 3>
  simt.write %x, %a by vectors in <25xf32, d0 [4, 8, 16, 32, 64]> : tensor<25xf32, #padded>, memref<128xi8, 3>
  %0 = simt.read %a by vectors in <25xf32, d0 [4, 8, 16, 32, 64]> : memref<128xi8, 3> -> tensor<25xf32, #padded>
  return
}

#repeats = #simt.layout<96, rep 3, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>

// Repeats of the core are contiguous. A bool takes a byte.
// CHECK-LABEL: func @repeats
// CHECK: arith.extui %{{.*}} : vector<3xi1> to vector<3xi8>
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS:.*]] + 0 : vector<1xi8>, i32
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 32 : vector<1xi8>, i32
// CHECK: simt.st shared %{{.*}}, %[[ADDRESS]] + 64 : vector<1xi8>, i32
func.func @repeats(%s: i1) attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 128 : i64} {
  %x = tile.splat %s : i1 -> tensor<96xi1, #repeats>
  %a = simt.buffer {offset = 0 : i64} : memref<96xi8, 3>
  simt.write %x, %a by vectors in <96xi1, d0 [1, 2, 4, 8, 16]> : tensor<96xi1, #repeats>, memref<96xi8, 3>
  return
}

#copies = #simt.layout<8x64, reg [d1:1 d1:2 d1:4 d0:4], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp []>

// A copy is 16 bytes for each piece of a thread. If pieces are whole, all 16 bytes are copied or are zeros. If the
// predicate is false, they are zeros.
// CHECK-LABEL: func @fetch
// CHECK: %[[FIRST:.*]] = arith.andi %arg4, %{{.*}} : i1
// CHECK: simt.cp_async 16 to %{{.*}} + 0 from %{{.*}} + 0 inside %[[FIRST]]{{$}}
// CHECK: %[[SECOND:.*]] = arith.andi %arg4, %{{.*}} : i1
// CHECK: simt.cp_async 16 to %{{.*}} + 512 from %{{.*}} + 512 inside %[[SECOND]]{{$}}
// CHECK-NOT: simt.cp_async
// CHECK: return
func.func @fetch(%x: memref<?x64xf16>, %m: i64, %ring: i32, %at: i32, %p: i1)
    attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 3072 : i64} {
  %c0 = arith.constant 0 : i64
  %a = simt.buffer {offset = 0 : i64} : memref<3072xi8, 3>
  simt.fetch %x[%m, %c0] to %a[%at] slot [2, 3] by 8 in <8x64xf16, d0 [144, 288, 576], d1 [2, 4, 8, 16, 32, 64]>
      if %p {layout = #copies, whole} : memref<?x64xf16>, memref<3072xi8, 3>
  return
}

// -----

#copies = #simt.layout<64, reg [d0:1 d0:2], lane [d0:4 d0:8 d0:16 d0:32 *], warp []>

// If the view may end within a piece, its bytes are counted. If lanes hold equal elements, one of them copies.
// CHECK-LABEL: func @ragged
// CHECK-DAG: arith.minsi
// CHECK-DAG: arith.maxsi
// CHECK: simt.cp_async 16 to %{{.*}} + 0 from %{{.*}} + 0 size %{{.*}} if %{{.*}}
func.func @ragged(%x: memref<?xf32>, %n: i64, %at: i32)
    attributes {tile.kernel, tile.warps = 1 : i64, simt.shared_bytes = 512 : i64} {
  %a = simt.buffer {offset = 0 : i64} : memref<512xi8, 3>
  simt.fetch %x[%n] to %a[%at] slot [0, 2] by 4 in <64xf32, d0 [4, 8, 16, 32, 64, 128]> {layout = #copies}
      : memref<?xf32>, memref<512xi8, 3>
  return
}
