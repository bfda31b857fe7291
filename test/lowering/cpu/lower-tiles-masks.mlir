// RUN: kiln-opt %s --cpu-place-tiles='vector-bits=256' --cpu-lower-tiles='vector-bits=256 registers=16' --canonicalize --cse | FileCheck %s

// The masks of four vectors are tested together. If they are true everywhere, memory is accessed without masks.
// Otherwise each vector is tested separately.
// CHECK-LABEL: func @masked
// CHECK: scf.for
// CHECK-COUNT-4: arith.cmpi ne, {{.*}} : vector<8xi8>
// CHECK: %[[ALL:.*]] = vector.reduction <and>, %{{.*}} : vector<8xi1> into i1
// CHECK: scf.if %[[ALL]] {
// CHECK-COUNT-4: vector.load {{.*}} vector<8xf32>
// CHECK-COUNT-4: vector.store {{.*}} vector<8xf32>
// CHECK: } else {
// CHECK: scf.for
// CHECK: %[[ONE:.*]] = vector.reduction <and>, %{{.*}} : vector<8xi1> into i1
// CHECK: scf.if %[[ONE]] {
// CHECK: vector.load {{.*}} vector<8xf32>
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK: } else {
// CHECK: vector.maskedload {{.*}} vector<8xf32>
// CHECK: vector.maskedstore {{.*}} vector<8xf32>
// CHECK: return
func.func @masked(%x: memref<256xf32, strided<[1]>>, %m: memref<256xi8, strided<[1]>>, %y: memref<256xf32, strided<[1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 2>]} {
  %c0 = arith.constant 0 : i64
  %mask = tile.load %m[%c0] {cpu.view} : memref<256xi8, strided<[1]>> -> tensor<256xi1>
  %0 = tile.gather %x[%c0] if %mask {cpu.view} : memref<256xf32, strided<[1]>> -> tensor<256xf32>
  tile.scatter %0, %y[%c0] if %mask : tensor<256xf32>, memref<256xf32, strided<[1]>>
  return
}

// A loop nest that reads no uncached memory has two versions of its rows, too, if masked stores are slow.
// CHECK-LABEL: func @stored
// CHECK: scf.if
// CHECK-COUNT-4: vector.store {{.*}} vector<8xf32>
// CHECK-NOT: vector.maskedstore
// CHECK: } else {
// CHECK: vector.maskedstore {{.*}} vector<8xf32>
// CHECK: return
func.func @stored(%y: memref<?x?xf32, strided<[?, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %p = tile.program_id 0
  %0 = arith.constant dense<2.0> : tensor<16x64xf32>
  tile.store %0, %y[%p, %c0] : tensor<16x64xf32>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// For positions below a bound, the first and last position of a row decide, and then those of several vectors. If they
// are below it, no vector is compared. Vectors of bytes have full width in spite of the mask.
// CHECK-LABEL: func @below
// CHECK-COUNT-2: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK: scf.if
// CHECK-NEXT: scf.for
// CHECK-NOT: arith.cmpi
// CHECK-COUNT-4: vector.load {{.*}} vector<32xi8>
// CHECK-COUNT-4: vector.store {{.*}} vector<32xi8>
// CHECK: } else {
// CHECK-NEXT: scf.for
// CHECK-COUNT-2: arith.cmpi slt, %{{.*}}, %{{.*}} : i64
// CHECK: scf.if
// CHECK-COUNT-4: vector.load {{.*}} vector<32xi8>
// CHECK-COUNT-4: vector.store {{.*}} vector<32xi8>
// CHECK: } else {
// CHECK: vector.maskedstore
// CHECK: return
func.func @below(%x: memref<1024xi8, strided<[1]>>, %y: memref<1024xi8, strided<[1]>>, %count: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %p = tile.program_id 0
  %at = tile.iota : tensor<1024xi64>
  %begin = tile.splat %p : i64 -> tensor<1024xi64>
  %sum = arith.addi %begin, %at : tensor<1024xi64>
  %limit = tile.splat %count : i64 -> tensor<1024xi64>
  %mask = arith.cmpi slt, %sum, %limit : tensor<1024xi64>
  %0 = tile.gather %x[%c0] if %mask : memref<1024xi8, strided<[1]>> -> tensor<1024xi8>
  tile.scatter %0, %y[%c0] if %mask : tensor<1024xi8>, memref<1024xi8, strided<[1]>>
  return
}

// For a sum that could wrap, comparing its ends shows whether it does.
// CHECK-LABEL: func @wraps
// CHECK: arith.cmpi slt, %arg1, %arg2 : i64
// CHECK: %[[LAST:.*]] = arith.addi %arg1, %c1023_i64 : i64
// CHECK: arith.cmpi slt, %[[LAST]], %arg2 : i64
// CHECK: arith.cmpi sle, %arg1, %[[LAST]] : i64
// CHECK: scf.if
// CHECK-NOT: vector<8xi64>
// CHECK: } else {
// CHECK: return
func.func @wraps(%y: memref<1024xf32, strided<[1]>>, %from: i64, %count: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %at = tile.iota : tensor<1024xi64>
  %begin = tile.splat %from : i64 -> tensor<1024xi64>
  %sum = arith.addi %begin, %at : tensor<1024xi64>
  %limit = tile.splat %count : i64 -> tensor<1024xi64>
  %mask = arith.cmpi slt, %sum, %limit : tensor<1024xi64>
  %0 = arith.constant dense<2.0> : tensor<1024xf32>
  tile.scatter %0, %y[%c0] if %mask : tensor<1024xf32>, memref<1024xf32, strided<[1]>>
  return
}

// A sum of two increasing tiles could wrap more than once, so all elements are compared.
// CHECK-LABEL: func @doubles
// CHECK: scf.for
// CHECK: arith.cmpi slt, %{{.*}}, %{{.*}} : vector<8xi64>
// CHECK: vector.reduction <and>
// CHECK: return
func.func @doubles(%y: memref<1024xf32, strided<[1]>>, %from: i64, %count: i64) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %at = tile.iota : tensor<1024xi64>
  %begin = tile.splat %from : i64 -> tensor<1024xi64>
  %sum = arith.addi %begin, %at : tensor<1024xi64>
  %double = arith.addi %sum, %at : tensor<1024xi64>
  %limit = tile.splat %count : i64 -> tensor<1024xi64>
  %mask = arith.cmpi slt, %double, %limit : tensor<1024xi64>
  %0 = arith.constant dense<2.0> : tensor<1024xf32>
  tile.scatter %0, %y[%c0] if %mask : tensor<1024xf32>, memref<1024xf32, strided<[1]>>
  return
}

// The test whether a tile is inside its view is outside of all of its loops.
// CHECK-LABEL: func @planes
// CHECK: scf.if %{{.*}} {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c8 step %c1 {
// CHECK-NOT: scf.if
// CHECK: } else {
// CHECK-NEXT: scf.for %{{.*}} = %c0 to %c4 step %c1 {
// CHECK: return
func.func @planes(%x: memref<?x?x?xf32, strided<[?, ?, 1]>>, %y: memref<4x8x64xf32, strided<[512, 64, 1]>>)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0, %c0] {cpu.view} : memref<?x?x?xf32, strided<[?, ?, 1]>> -> tensor<4x8x64xf32>
  tile.store %0, %y[%c0, %c0, %c0] : tensor<4x8x64xf32>, memref<4x8x64xf32, strided<[512, 64, 1]>>
  return
}
