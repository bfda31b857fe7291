// A kernel that does not set a number of warps gets as many as its tiles need.
// RUN: kiln-opt %s --gpu-choose-warps | FileCheck %s
// RUN: kiln-opt %s --gpu-choose-warps=groups=true | FileCheck %s --check-prefix=GROUPS

// 4096 elements are 32 for each of 128 threads. The addition does not increase the number.
// CHECK-LABEL: func @few
// CHECK-SAME: tile.warps = 4
func.func @few(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<4096xf32>
  %1 = arith.addf %0, %0 : tensor<4096xf32>
  %2 = arith.mulf %1, %1 : tensor<4096xf32>
  tile.store %2, %y[%c0] : tensor<4096xf32>, memref<?xf32>
  return
}

// CHECK-LABEL: func @twice
// CHECK-SAME: tile.warps = 8
func.func @twice(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<8192xf32>
  tile.store %0, %y[%c0] : tensor<8192xf32>, memref<?xf32>
  return
}

// Both tiles are alive at the second load, one of them as 16 bits.
// CHECK-LABEL: func @together
// CHECK-SAME: tile.warps = 8
func.func @together(%x: memref<?xf32>, %y: memref<?xbf16>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<4096xf32>
  %1 = tile.load %y[%c0] : memref<?xbf16> -> tensor<8192xbf16>
  tile.store %1, %y[%c0] : tensor<8192xbf16>, memref<?xbf16>
  tile.store %0, %x[%c0] : tensor<4096xf32>, memref<?xf32>
  return
}

// More than 16 warps would leave a thread few registers.
// CHECK-LABEL: func @most
// CHECK-SAME: tile.warps = 16
func.func @most(%x: memref<?xf32>, %y: memref<?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<65536xf32>
  tile.store %0, %y[%c0] : tensor<65536xf32>, memref<?xf32>
  return
}

// A thread holds at most 1024 values of a tile.
// CHECK-LABEL: func @bytes
// CHECK-SAME: tile.warps = 32
func.func @bytes(%x: memref<?xi8>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zeros = arith.constant dense<0> : tensor<1048576xi8>
  tile.store %zeros, %x[%c0] : tensor<1048576xi8>, memref<?xi8>
  return
}

// Positions, masks made of them, and constants are computed at each use.
// CHECK-LABEL: func @positions
// CHECK-SAME: tile.warps = 4
func.func @positions(%x: memref<?xf32>, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zeros = arith.constant dense<0.0> : tensor<4096xf32>
  %0 = tile.iota : tensor<4096xi32>
  %1 = tile.splat %n : i32 -> tensor<4096xi32>
  %2 = arith.cmpi slt, %0, %1 : tensor<4096xi32>
  %3 = tile.load %x[%c0] : memref<?xf32> -> tensor<4096xf32>
  %4 = arith.select %2, %3, %zeros : tensor<4096xi1>, tensor<4096xf32>
  %5 = arith.select %2, %4, %zeros : tensor<4096xi1>, tensor<4096xf32>
  tile.store %5, %x[%c0] : tensor<4096xf32>, memref<?xf32>
  return
}

// A loop's initial value, argument and result count as one tile. A tile that is alive across the loop is another.
// CHECK-LABEL: func @carried
// CHECK-SAME: tile.warps = 4
func.func @carried(%x: memref<?xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<4096xf32>
  %1 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %0) -> (tensor<4096xf32>) : i64 {
    %2 = arith.addf %a, %a : tensor<4096xf32>
    scf.yield %2 : tensor<4096xf32>
  }
  tile.store %1, %x[%c0] : tensor<4096xf32>, memref<?xf32>
  return
}

// CHECK-LABEL: func @across
// CHECK-SAME: tile.warps = 8
func.func @across(%x: memref<?xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<4096xf32>
  scf.for %i = %c0 to %n step %c1 : i64 {
    %2 = tile.load %x[%i] : memref<?xf32> -> tensor<4096xf32>
    tile.store %2, %x[%i] : tensor<4096xf32>, memref<?xf32>
  }
  tile.store %0, %x[%c0] : tensor<4096xf32>, memref<?xf32>
  return
}

// Operands stay in shared memory. Accumulators are held by few threads.
// CHECK-LABEL: func @product
// CHECK-SAME: tile.warps = 4
func.func @product(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %0 = tile.load %a[%c0, %c0] : memref<?x?xbf16> -> tensor<128x64xbf16>
  %1 = tile.load %b[%c0, %c0] : memref<?x?xbf16> -> tensor<64x128xbf16>
  %2 = tile.dot %0, %1, %zeros : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
  tile.store %2, %c[%c0, %c0] : tensor<128x128xf32>, memref<?x?xf32>
  return
}

// CHECK-LABEL: func @wide
// CHECK-SAME: tile.warps = 8
func.func @wide(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zeros = arith.constant dense<0.0> : tensor<128x256xf32>
  %0 = tile.load %a[%c0, %c0] : memref<?x?xbf16> -> tensor<128x64xbf16>
  %1 = tile.load %b[%c0, %c0] : memref<?x?xbf16> -> tensor<64x256xbf16>
  %2 = tile.dot %0, %1, %zeros : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
  tile.store %2, %c[%c0, %c0] : tensor<128x256xf32>, memref<?x?xf32>
  return
}

// 192 words a thread are 32 too many, but a warpgroup has 64 rows: with eight warps none would compute the product.
// CHECK-LABEL: func @rows
// CHECK-SAME: tile.warps = 8
// GROUPS-LABEL: func @rows
// GROUPS-SAME: tile.warps = 4
func.func @rows(%a: memref<?x?xbf16>, %b: memref<?x?xbf16>, %c: memref<?x?xf32>, %n: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c64 = arith.constant 64 : i64
  %zeros = arith.constant dense<0.0> : tensor<64x384xf32>
  %sums = scf.for %k = %c0 to %n step %c64 iter_args(%x = %zeros) -> (tensor<64x384xf32>) : i64 {
    %0 = tile.load %a[%c0, %k] : memref<?x?xbf16> -> tensor<64x64xbf16>
    %1 = tile.load %b[%k, %c0] : memref<?x?xbf16> -> tensor<64x384xbf16>
    %2 = tile.dot %0, %1, %x : tensor<64x64xbf16>, tensor<64x384xbf16>, tensor<64x384xf32>
    scf.yield %2 : tensor<64x384xf32>
  }
  tile.store %sums, %c[%c0, %c0] : tensor<64x384xf32>, memref<?x?xf32>
  return
}

// With several programs per SM, more warps would leave a thread fewer registers.
// CHECK-LABEL: func @resident
// CHECK-SAME: tile.warps = 4
func.func @resident(%x: memref<?xf32>) attributes {tile.kernel, tile.programs = 2} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<16384xf32>
  tile.store %0, %x[%c0] : tensor<16384xf32>, memref<?xf32>
  return
}

// A given number is kept. A function that is no kernel has none.
// CHECK-LABEL: func @given
// CHECK-SAME: tile.warps = 1
func.func @given(%x: memref<?xf32>) attributes {tile.kernel, tile.warps = 1} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xf32> -> tensor<8192xf32>
  tile.store %0, %x[%c0] : tensor<8192xf32>, memref<?xf32>
  return
}

// CHECK-LABEL: func @helper
// CHECK-NOT: tile.warps
func.func @helper() {
  return
}
