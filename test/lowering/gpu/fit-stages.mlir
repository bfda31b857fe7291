// A loop has as many stages as fit in shared memory together with other buffers: 24,576 bytes are three stages, and the
// sums that warps exchange need 1,024 more. A number set by the kernel is kept, and the error suggests fewer. An error
// counts exchanges in rounds.
// RUN: kiln-opt %s --gpu-fit-stages=limit=40000 | FileCheck %s --check-prefix=THREE
// RUN: kiln-opt %s --gpu-fit-stages=limit=24576 | FileCheck %s --check-prefix=TWO
// RUN: kiln-opt %s --gpu-fit-stages=limit=16384 | FileCheck %s --check-prefix=ONE
// RUN: not kiln-opt %s --gpu-fit-stages=limit=1000 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed 's/tile.kernel}/tile.kernel, tile.stages = 3 : i64}/' %s | not kiln-opt --gpu-fit-stages=limit=24576 2>&1 | FileCheck %s --check-prefix=ASKED

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#transposed = #simt.layout<32x64, reg [d0:1 d0:2 d0:4 d1:32], lane [d0:8 d0:16 d1:1 d1:2 d1:4], warp [d1:8 d1:16]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#columns = #simt.layout<64, reg [d0:1 d0:8 d0:16 d0:32], lane [d0:2 d0:4 * * *], warp [* *]>
#row = #simt.layout<64, reg [], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp [d0:32 *]>

// THREE: simt.shared_bytes = 25600 : i64
// THREE: simt.fetch {{.*}} slot [1, 3]
// TWO: simt.shared_bytes = 17408 : i64
// TWO: simt.fetch {{.*}} slot [1, 2]
// ONE: simt.shared_bytes = 4096 : i64
// ONE-NOT: simt.fetch
// NONE: error: kernel 'matmul' needs 2048 bytes of shared memory for its tiles, but a program may use at most 1000: choose smaller tiles, or loop over parts of them (live together: 2048 at fit-stages.mlir:[[#]] for bf16 64x16)
// ASKED: error: kernel 'matmul' needs 25600 bytes of shared memory for its tiles, but a program may use at most 24576: choose smaller tiles or fewer stages, or loop over parts of them
func.func @matmul(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %b: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                  %out: memref<?xf32, strided<[1]>>, %m: i64,
                  %acc: tensor<64x64xf32, #acc>) attributes {tile.disjoint = [array<i64: 0, 2>, array<i64: 1, 2>], tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  %row = arith.muli %m, %c64 : i64
  %end = tile.dim %a, 1 : memref<?x?xbf16, strided<[?, 1]>>
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%sum = %acc) -> (tensor<64x64xf32, #acc>) : i64 {
    %1 = tile.load %a[%row, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %2 = tile.load %b[%row, %k] {simt.layout = #loaded, simt.vector = 8 : i64}
        : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16, #loaded> -> tensor<32x64xbf16, #transposed>
    %4 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
    %5 = simt.convert %3 : tensor<32x64xbf16, #transposed> -> tensor<32x64xbf16, #right>
    %6 = tile.dot %4, %5, %sum {simt.layout = #acc, simt.mma}
        : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
    %7 = tile.reduce sum %6 axis 0 : tensor<64x64xf32, #acc> -> tensor<64xf32, #columns>
    %8 = simt.convert %7 : tensor<64xf32, #columns> -> tensor<64xf32, #row>
    tile.store %8, %out[%k] {simt.layout = #row, simt.vector = 1 : i64} : tensor<64xf32, #row>, memref<?xf32, strided<[1]>>
    scf.yield %6 : tensor<64x64xf32, #acc>
  }
  return
}
