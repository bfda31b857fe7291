// A printed operation parses as an equal one, with every optional part of the syntax present and absent.
// RUN: kiln-opt %s | kiln-opt | FileCheck %s
// RUN: kiln-opt %s --mlir-print-op-generic | kiln-opt | FileCheck %s

#rows = #simt.layout<8x64, reg [d1:1 d1:2], lane [d1:4 d1:8 d1:16 d1:32 d0:1], warp [d0:2 d0:4]>
#parts = #simt.layout<8x1, reg [], lane [* * * * d0:1], warp [d0:2 d0:4]>
#fragment = #simt.layout<8x32, reg [d1:1 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [* *]>
#single = #simt.layout<1, reg [], lane [* * * * *], warp [* *]>

// Repeats and blocks are optional parts of a layout.
// CHECK-LABEL: @layouts
// CHECK-SAME: tensor<96xf32, #simt.layout<96, rep 3, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [*]>>
// CHECK-SAME: tensor<64xf32, #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [], block [d0:32]>>
func.func @layouts(%x: tensor<96xf32, #simt.layout<96, rep 3, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [*]>>,
                   %y: tensor<64xf32, #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [], block [d0:32]>>) {
  return
}

// CHECK-LABEL: @tiles
func.func @tiles(%x: tensor<8x64xf32, #rows>, %n: tensor<8x64xi32, #rows>, %i: i32, %program: i64) {
  // CHECK: simt.reduce max %{{.*}} axis 1 : (tensor<8x64xf32, #{{.*}}>) -> tensor<8x1xf32, #{{.*}}>
  %0 = simt.reduce max %x axis 1 : (tensor<8x64xf32, #rows>) -> tensor<8x1xf32, #parts>
  // CHECK: simt.reduce argmax %{{.*}}, %{{.*}} axis 1 : (tensor<8x64xi32, {{.*}}>, tensor<8x64xi32, {{.*}}>) -> (tensor<8x1xi32, {{.*}}>, tensor<8x1xi32, {{.*}}>)
  %1:2 = simt.reduce argmax %n, %n axis 1
      : (tensor<8x64xi32, #rows>, tensor<8x64xi32, #rows>) -> (tensor<8x1xi32, #parts>, tensor<8x1xi32, #parts>)
  // CHECK: simt.convert %{{.*}} : tensor<8x64xf32, #{{.*}}> -> tensor<8x64xf32, #{{.*}}>
  %2 = simt.convert %x : tensor<8x64xf32, #rows> -> tensor<8x64xf32, #rows>
  // CHECK: simt.buffer : memref<2048xi8, 3>
  %3 = simt.buffer : memref<2048xi8, 3>
  // CHECK: simt.buffer {offset = 2048 : i64} : memref<2048xi8, 3>
  %4 = simt.buffer {offset = 2048 : i64} : memref<2048xi8, 3>
  // CHECK: simt.write %{{.*}}, %{{.*}} strides [256, 4] : tensor<8x64xf32, #{{.*}}>, memref<2048xi8, 3>
  simt.write %x, %3 strides [256, 4] : tensor<8x64xf32, #rows>, memref<2048xi8, 3>
  // CHECK: simt.barrier{{$}}
  simt.barrier
  // CHECK: simt.barrier "written, then read"
  simt.barrier "written, then read"
  // CHECK: simt.read %{{.*}} strides [256, 4] : memref<2048xi8, 3> -> tensor<8x64xf32, #{{.*}}>
  %5 = simt.read %3 strides [256, 4] : memref<2048xi8, 3> -> tensor<8x64xf32, #rows>
  // CHECK: simt.pick %{{.*}} at #{{.*}} : memref<2048xi8, 3> -> tensor<8x64xf32, #{{.*}}>
  %fetched = simt.pick %3 at affine_map<(d0, d1) -> (d0 * 256 + ((d1 + 3) mod 64) * 4)> : memref<2048xi8, 3> -> tensor<8x64xf32, #rows>
  // CHECK: simt.read %{{.*}}[%{{.*}}] strides [256, 4] :
  %6 = simt.read %3[%i] strides [256, 4] : memref<2048xi8, 3> -> tensor<8x64xf32, #rows>
  // CHECK: simt.write %{{.*}}, %{{.*}} by vectors in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]> :
  simt.write %x, %3 by vectors in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]>
      : tensor<8x64xf32, #rows>, memref<2048xi8, 3>
  // CHECK: simt.read %{{.*}} by vectors in <8x64xf32, d0 [272, 544, 1088], d1 [4, 8, 16, 32, 64, 128]> :
  %8 = simt.read %3 by vectors in <8x64xf32, d0 [272, 544, 1088], d1 [4, 8, 16, 32, 64, 128]>
      : memref<2048xi8, 3> -> tensor<8x64xf32, #rows>
  // CHECK: simt.read %{{.*}} by rows in <8x32xf16, d0 [64, 128, 256], d1 [2, 4, 8, 16, 32]> :
  %9 = simt.read %3 by rows in <8x32xf16, d0 [64, 128, 256], d1 [2, 4, 8, 16, 32]>
      : memref<2048xi8, 3> -> tensor<8x32xf16, #fragment>
  // CHECK: simt.read %{{.*}}[%{{.*}}] slot [0, 3] by vectors in <8x64xf32,
  %10 = simt.read %3[%i] slot [0, 3] by vectors in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]>
      : memref<2048xi8, 3> -> tensor<8x64xf32, #rows>
  // CHECK: %[[PLACE:.*]] = simt.reserve 128 : tensor<1xi64, #{{.*}}>
  %7 = simt.reserve 128 : tensor<1xi64, #single>
  // CHECK: simt.print %{{.*}} at %[[PLACE]] of %{{.*}} label 2 shape [8, 64] : tensor<8x64xf32, #{{.*}}>, tensor<1xi64, #{{.*}}>
  simt.print %x at %7 of %program label 2 shape [8, 64] : tensor<8x64xf32, #rows>, tensor<1xi64, #single>
  return
}

// CHECK-LABEL: @copies
func.func @copies(%x: memref<?x64xf32>, %m: i64, %ring: memref<4096xi8, 3>, %at: i32, %p: i1) {
  // CHECK: simt.fetch %{{.*}}[%{{.*}}, %{{.*}}] to %{{.*}}[%{{.*}}] slot [1, 2] by 2 in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]> {layout = #{{.*}}} : memref<?x64xf32>, memref<4096xi8, 3>
  simt.fetch %x[%m, %m] to %ring[%at] slot [1, 2] by 2 in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]>
      {layout = #rows} : memref<?x64xf32>, memref<4096xi8, 3>
  // CHECK: simt.fetch {{.*}} if %{{.*}} {layout = #{{.*}}, whole} :
  simt.fetch %x[%m, %m] to %ring[%at] slot [1, 2] by 2 in <8x64xf32, d0 [256, 512, 1024], d1 [4, 8, 16, 32, 64, 128]>
      if %p {layout = #rows, whole} : memref<?x64xf32>, memref<4096xi8, 3>
  // CHECK: simt.commit_copies
  simt.commit_copies
  // CHECK: simt.wait_copies 1
  simt.wait_copies 1
  return
}

// CHECK-LABEL: @threads
func.func @threads(%far: i64, %near: i32, %p: i1, %x: vector<2xf32>, %s: f64, %i: i32, %n: i64) {
  // CHECK: simt.thread {warps = 4 : i64}
  %0 = simt.thread {warps = 4 : i64}
  // CHECK: simt.shared_base {bytes = 4096 : i64}
  %1 = simt.shared_base {bytes = 4096 : i64}
  // CHECK: simt.ld global %{{.*}} + 0 : i64, vector<2xf32>
  %2 = simt.ld global %far + 0 : i64, vector<2xf32>
  // CHECK: simt.ld global %{{.*}} + -8 if %{{.*}} else %{{.*}} : vector<2xf32> {readonly} : i64, vector<2xf32>
  %3 = simt.ld global %far + -8 if %p else %x : vector<2xf32> {readonly} : i64, vector<2xf32>
  // CHECK: simt.ld shared %{{.*}} + 16 : i32, vector<16xi8>
  %4 = simt.ld shared %near + 16 : i32, vector<16xi8>
  // CHECK: %[[WORDS:.*]] = simt.ldmatrix %{{.*}} + 512 : vector<4xi32>
  %words = simt.ldmatrix %near + 512 : vector<4xi32>
  // CHECK: simt.ldmatrix %{{.*}} + 0 transposed : vector<1xi32>
  %word = simt.ldmatrix %near + 0 transposed : vector<1xi32>
  // CHECK: simt.stmatrix %[[WORDS]], %{{.*}} + 16 : vector<4xi32>
  simt.stmatrix %words, %near + 16 : vector<4xi32>
  // CHECK: simt.stmatrix %[[WORDS]], %{{.*}} + 16 transposed if %{{.*}} : vector<4xi32>
  simt.stmatrix %words, %near + 16 transposed if %p : vector<4xi32>
  // CHECK: simt.cp_async 16 to %{{.*}} + 0 from %{{.*}} + 32{{$}}
  simt.cp_async 16 to %near + 0 from %far + 32
  // CHECK: simt.cp_async 4 to %{{.*}} + 8 from %{{.*}} + 0 size %{{.*}} if %{{.*}}
  simt.cp_async 4 to %near + 8 from %far + 0 size %i if %p
  // CHECK: simt.cp_async 4 to %{{.*}} + 0 from %{{.*}} + 0 size %{{.*}} inside %{{.*}} if %{{.*}}
  simt.cp_async 4 to %near + 0 from %far + 0 size %i inside %p if %p
  // CHECK: simt.address %{{.*}} + %{{.*}} * 3{{$}}
  %farther = simt.address %far + %i * 3
  // CHECK: simt.st global %{{.*}}, %{{.*}} + 8 : vector<2xf32>, i64
  simt.st global %x, %far + 8 : vector<2xf32>, i64
  // CHECK: simt.st shared %{{.*}}, %{{.*}} + 8 if %{{.*}} : vector<2xf32>, i32
  simt.st shared %x, %near + 8 if %p : vector<2xf32>, i32
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}} + 0 : f64
  %5 = simt.atomic_rmw add %s, %far + 0 : f64
  // CHECK: simt.atomic_rmw add %{{.*}}, %{{.*}} + 4 if %{{.*}} : i32
  %6 = simt.atomic_rmw add %i, %far + 4 if %p : i32
  // CHECK: simt.atomic_rmw max %{{.*}}, %{{.*}} + 4 if %{{.*}} {simt.fenced, simt.order = "acq_rel"} : i32
  %rmw = simt.atomic_rmw max %i, %far + 4 if %p {simt.fenced, simt.order = "acq_rel"} : i32
  // CHECK: simt.fence
  simt.fence
  // CHECK: simt.console : i64
  %7 = simt.console : i64
  // CHECK: simt.report element %{{.*}} of %{{.*}} message 0 where 1 if %{{.*}}
  simt.report element %n of %n message 0 where 1 if %p
  // CHECK: simt.shuffle %{{.*}} xor 31 : i32
  %8 = simt.shuffle %i xor 31 : i32
  // CHECK: simt.shuffle_from %{{.*}}, %{{.*}} : i32
  %9 = simt.shuffle_from %i, %i : i32
  return
}

// CHECK-LABEL: @products
func.func @products(%a: vector<16xi8>, %b: vector<8xi8>, %c: vector<4xi32>, %d: vector<4xf32>, %e: vector<2xf32>) {
  // CHECK: simt.mma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xi8>, vector<8xi8>, vector<4xi32>
  %0 = simt.mma %a, %b, %c : vector<16xi8>, vector<8xi8>, vector<4xi32>
  // CHECK: simt.mma %{{.*}}, %{{.*}}, %{{.*}} : vector<4xf32>, vector<2xf32>, vector<4xf32>
  %1 = simt.mma %d, %e, %d : vector<4xf32>, vector<2xf32>, vector<4xf32>
  return
}
