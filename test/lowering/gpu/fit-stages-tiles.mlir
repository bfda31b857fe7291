// The first operands of the next tile are copied early only if that takes no shared memory. Results that pass through a
// buffer larger than the ring's empty slots do so in rounds, if registers of both layouts have a bit in common.
// RUN: kiln-opt %s --gpu-fit-stages | FileCheck %s
// With `.pipeline = false`, one stage, on the loop over tiles, nothing of the next tile is copied early.
// RUN: sed -z 's/\n  }\n  return/\n  } {tile.stages = 1 : i64}&/g; s/} {tile.stages = 1 : i64}\n  }/} {tile.stages = 1 : i64}/g' %s \
// RUN:   | kiln-opt --gpu-fit-stages | FileCheck %s --check-prefix=STAGED
// STAGED-LABEL: func @early
// STAGED-NOT: simt.fetch
// STAGED: scf.for
// STAGED: simt.fetch

#loaded = #simt.layout<64x32, reg [d1:1 d1:2 d1:4 d0:32], lane [d1:8 d1:16 d0:1 d0:2 d0:4], warp [d0:8 d0:16]>
#left = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#right = #simt.layout<32x64, reg [d0:1 d0:8 d0:16 d1:8 d1:16 d1:32], lane [d0:2 d0:4 d1:1 d1:2 d1:4], warp [* *]>
#acc = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
#rows = #simt.layout<64x64, reg [d1:1 d1:2 d0:8 d0:16 d0:32], lane [d1:4 d1:8 d1:16 d1:32 d0:1], warp [d0:2 d0:4]>
#other = #simt.layout<64x64, reg [d1:2 d1:4 d0:16 d0:32 d0:4], lane [d1:1 d1:8 d1:16 d1:32 d0:8], warp [d0:1 d0:2]>

// CHECK-LABEL: func @early
// CHECK-SAME: simt.shared_bytes = 12288 : i64
// CHECK: simt.fetch
// CHECK: scf.for
// CHECK: scf.for
// CHECK-LABEL: func @late
// CHECK-SAME: simt.shared_bytes = {{1[67][0-9]+}} : i64
// CHECK-NOT: simt.fetch
// CHECK: scf.for
// CHECK: simt.fetch
// CHECK: scf.for
// CHECK-LABEL: func @rounds
// CHECK-SAME: simt.shared_bytes = 12288 : i64
// CHECK: simt.fetch
// CHECK: scf.for
// CHECK: %[[SUMS:.*]]:3 = scf.for
// CHECK: %[[HALF:.*]] = simt.half %[[SUMS]]#0 axis 0 bit 3 is 0
// CHECK: %[[PART:.*]] = simt.half %[[HALF]] axis 1 bit 0 is 0
// CHECK: simt.write %[[PART]]
// CHECK-COUNT-3: simt.write
// CHECK: simt.join {{.*}} axis 0 bit 3
func.func @early(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                 %c: memref<?x?xf32, strided<[?, 1]>>, %first: i64, %count: i64, %programs: i64, %k: i64,
                 %b: tensor<32x64xbf16, #right>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  scf.for %tile = %first to %count step %programs : i64 {
    %row = arith.muli %tile, %c64 : i64
    %0 = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
    tile.store %0, %c[%row, %c0] {simt.layout = #acc} : tensor<64x64xf32, #acc>, memref<?x?xf32, strided<[?, 1]>>
  }
  return
}
func.func @late(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                 %c: memref<?x?xf32, strided<[?, 1]>>, %first: i64, %count: i64, %programs: i64, %k: i64,
                 %b: tensor<32x64xbf16, #right>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  scf.for %tile = %first to %count step %programs : i64 {
    %row = arith.muli %tile, %c64 : i64
    %0 = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
    %r = simt.convert %0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #other>
    tile.store %r, %c[%row, %c0] {simt.layout = #other} : tensor<64x64xf32, #other>, memref<?x?xf32, strided<[?, 1]>>
  }
  return
}
func.func @rounds(%a: memref<?x?xbf16, strided<[?, 1]>> {tile.align = 16 : i64, tile.strides_by_16, tile.extent_by_16},
                 %c: memref<?x?xf32, strided<[?, 1]>>, %first: i64, %count: i64, %programs: i64, %k: i64,
                 %b: tensor<32x64xbf16, #right>) attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %c64 = arith.constant 64 : i64
  scf.for %tile = %first to %count step %programs : i64 {
    %row = arith.muli %tile, %c64 : i64
    %0 = scf.for %at = %c0 to %k step %c32 iter_args(%sum = %zero) -> (tensor<64x64xf32, #acc>) : i64 {
      %1 = tile.load %a[%row, %at] {simt.layout = #loaded, simt.vector = 8 : i64}
          : memref<?x?xbf16, strided<[?, 1]>> -> tensor<64x32xbf16, #loaded>
      %2 = simt.convert %1 : tensor<64x32xbf16, #loaded> -> tensor<64x32xbf16, #left>
      %3 = tile.dot %2, %b, %sum {simt.layout = #acc, simt.mma}
          : tensor<64x32xbf16, #left>, tensor<32x64xbf16, #right>, tensor<64x64xf32, #acc>
      scf.yield %3 : tensor<64x64xf32, #acc>
    }
    %r = simt.convert %0 : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #rows>
    tile.store %r, %c[%row, %c0] {simt.layout = #rows} : tensor<64x64xf32, #rows>, memref<?x?xf32, strided<[?, 1]>>
  }
  return
}
