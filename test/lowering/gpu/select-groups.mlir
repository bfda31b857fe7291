// Warpgroups compute a product if a loop only adds to it, and if its operands are tiles that the iterations load.
// RUN: kiln-opt %s --gpu-select-instructions=groups=true | FileCheck %s
// RUN: kiln-opt %s --gpu-select-instructions | FileCheck %s --check-prefix=NONE

// NONE-NOT: simt.wgmma

// The rows of the accumulator are distributed to warps: 64 to a group, then 64 to the next group.
// CHECK-LABEL: func @sum
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<128x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>, simt.mma, simt.wgmma}
func.func @sum(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %end: i64, %zero: tensor<128x64xf32>)
    -> tensor<128x64xf32> attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i64 {
    %1 = tile.load %a[%c0, %k] : memref<?x?xbf16> -> tensor<128x32xbf16>
    %2 = tile.load %b[%c0, %k] : memref<?x?xbf16> -> tensor<64x32xbf16>
    %3 = tile.transpose %2 [1, 0] : tensor<64x32xbf16> -> tensor<32x64xbf16>
    %4 = tile.dot %1, %3, %acc : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
    scf.yield %4 : tensor<128x64xf32>
  }
  return %0 : tensor<128x64xf32>
}

// An iteration that uses the accumulator otherwise would have to wait for it.
// CHECK-LABEL: func @scaled
// CHECK-NOT: simt.wgmma
func.func @scaled(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %end: i64, %zero: tensor<64x64xf32>)
    -> tensor<64x64xf32> attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i64 {
    %1 = tile.load %a[%c0, %k] : memref<?x?xbf16> -> tensor<64x32xbf16>
    %2 = tile.load %b[%k, %c0] : memref<?x?xbf16> -> tensor<32x64xbf16>
    %3 = tile.dot %1, %2, %acc : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
    %4 = arith.addf %3, %3 : tensor<64x64xf32>
    scf.yield %4 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// A computed operand is in registers, and so is one that is not loaded in the iteration.
// CHECK-LABEL: func @computed
// CHECK-NOT: simt.wgmma
func.func @computed(%a: memref<?x?xbf16>, %q: tensor<64x32xbf16>, %end: i64, %zero: tensor<64x64xf32>)
    -> (tensor<64x64xf32>, tensor<64x64xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0:2 = scf.for %k = %c0 to %end step %c32 iter_args(%first = %zero, %second = %zero)
      -> (tensor<64x64xf32>, tensor<64x64xf32>) : i64 {
    %1 = tile.load %a[%c0, %k] : memref<?x?xbf16> -> tensor<32x64xbf16>
    %2 = arith.mulf %1, %1 : tensor<32x64xbf16>
    %3 = tile.load %a[%c0, %k] : memref<?x?xbf16> -> tensor<64x32xbf16>
    %4 = tile.dot %q, %1, %first : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
    %5 = tile.dot %3, %2, %second : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
    scf.yield %4, %5 : tensor<64x64xf32>, tensor<64x64xf32>
  }
  return %0#0, %0#1 : tensor<64x64xf32>, tensor<64x64xf32>
}

// 64 rows do not fill two groups.
// CHECK-LABEL: func @low
// CHECK-NOT: simt.wgmma
func.func @low(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %end: i64, %zero: tensor<64x64xf32>)
    -> tensor<64x64xf32> attributes {tile.kernel, tile.warps = 8 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %k = %c0 to %end step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i64 {
    %1 = tile.load %a[%c0, %k] : memref<?x?xf16> -> tensor<64x32xf16>
    %2 = tile.load %b[%k, %c0] : memref<?x?xf16> -> tensor<32x64xf16>
    %3 = tile.dot %1, %2, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %3 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}

// An operand in registers is multiplied by a tile that the iteration loads, if each warp has its own rows: scores whose
// rows are reduced, and the product with the resulting weights. The accumulator may be rescaled in between.
// CHECK-LABEL: func @attend
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x32, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>, simt.mma, simt.wgmma}
// CHECK: tile.dot {{.*}} {simt.layout = #simt.layout<64x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>, simt.mma, simt.wgmma}
func.func @attend(%k: memref<?x?xbf16>, %v: memref<?x?xbf16>, %q: tensor<64x64xbf16>, %end: i64, %zero: tensor<64x64xf32>,
                  %none: tensor<64x32xf32>) -> tensor<64x64xf32> attributes {tile.kernel, tile.warps = 4 : i64} {
  %c0 = arith.constant 0 : i64
  %c32 = arith.constant 32 : i64
  %0 = scf.for %n = %c0 to %end step %c32 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i64 {
    %1 = tile.load %k[%n, %c0] : memref<?x?xbf16> -> tensor<32x64xbf16>
    %2 = tile.load %v[%n, %c0] : memref<?x?xbf16> -> tensor<32x64xbf16>
    %3 = tile.transpose %1 [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
    %4 = tile.dot %q, %3, %none : tensor<64x64xbf16>, tensor<64x32xbf16>, tensor<64x32xf32>
    %5 = arith.truncf %4 : tensor<64x32xf32> to tensor<64x32xbf16>
    %6 = arith.addf %acc, %acc : tensor<64x64xf32>
    %7 = tile.dot %5, %2, %6 : tensor<64x32xbf16>, tensor<32x64xbf16>, tensor<64x64xf32>
    scf.yield %7 : tensor<64x64xf32>
  }
  return %0 : tensor<64x64xf32>
}
