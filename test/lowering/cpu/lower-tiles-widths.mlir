// RUN: kiln-opt %s --tile-declare-console --cpu-place-tiles='vector-bits=256' --cpu-lower-tiles='vector-bits=256 registers=16' --canonicalize --cse | FileCheck %s

// Bytes that are moved without masks take full vectors; the rest of a row takes vectors of half the width.
// CHECK-LABEL: func @bytes
// CHECK: scf.for %{{.*}} = %c0 to %c256 step %c128 {
// CHECK-COUNT-4: vector.load {{.*}} vector<32xi8>
// CHECK-COUNT-4: vector.store {{.*}} vector<32xi8>
// CHECK: }
// CHECK: vector.load %{{.*}}[%{{.*}}, %c256] : {{.*}}, vector<16xi8>
// CHECK: vector.load %{{.*}}[%{{.*}}, %c272] : {{.*}}, vector<8xi8>
// CHECK: vector.maskedload %{{.*}}[%{{.*}}, %c280], {{.*}} vector<8xi8>
// CHECK: vector.maskedstore %{{.*}}[%{{.*}}, %c280], {{.*}} vector<8xi8>
// CHECK: return
func.func @bytes(%x: memref<4x283xi8, strided<[320, 1]>>, %y: memref<4x283xi8, strided<[320, 1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<4x283xi8, strided<[320, 1]>> -> tensor<4x283xi8>
  tile.store %0, %y[%c0, %c0] : tensor<4x283xi8>, memref<4x283xi8, strided<[320, 1]>>
  return
}

// 32-bit arithmetic keeps the usual number of lanes.
// CHECK-LABEL: func @widened
// CHECK-NOT: vector<32xi8>
// CHECK: vector.load {{.*}} vector<8xi8>
// CHECK: arith.extsi {{.*}} : vector<8xi8> to vector<8xi32>
// CHECK: return
func.func @widened(%x: memref<256xi8, strided<[1]>>, %y: memref<256xi32, strided<[1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<256xi8, strided<[1]>> -> tensor<256xi8>
  %1 = arith.extsi %0 : tensor<256xi8> to tensor<256xi32>
  tile.store %1, %y[%c0] : tensor<256xi32>, memref<256xi32, strided<[1]>>
  return
}

// A check compares full vectors of bytes, and its result folds to the usual lanes at a row's end. The last elements of
// a row are fewer, and are combined with the first lanes.
// CHECK-LABEL: func @checked
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<8xi32>)
// CHECK-COUNT-4: arith.cmpi slt, {{.*}} : vector<32xi8>
// CHECK: arith.cmpi slt, {{.*}} : vector<16xi8>
// CHECK: vector.shuffle {{.*}} : vector<16xi1>, vector<16xi1>
// CHECK: arith.andi {{.*}} : vector<32xi1>
// CHECK: arith.extsi {{.*}} : vector<32xi1> to vector<32xi8>
// CHECK: vector.shuffle {{.*}} : vector<32xi8>, vector<32xi8>
// CHECK: arith.andi {{.*}} : vector<8xi32>
// CHECK: call @kiln_check_failed
// CHECK: return
func.func @checked(%x: memref<4x144xi8, strided<[144, 1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %small = arith.constant dense<100> : tensor<4x144xi8>
  %0 = tile.load %x[%c0, %c0] {cpu.view} : memref<4x144xi8, strided<[144, 1]>> -> tensor<4x144xi8>
  %1 = arith.cmpi slt, %0, %small : tensor<4x144xi8>
  tile.check %1, "small" : tensor<4x144xi1>
  return
}

// If a tile may extend past its view, masked accesses of bytes have the usual lanes.
// CHECK-LABEL: func @over
// CHECK: scf.if
// CHECK: vector.load {{.*}} vector<32xi8>
// CHECK: vector.store {{.*}} vector<32xi8>
// CHECK: } else {
// CHECK-NOT: vector<32xi8>
// CHECK: vector.maskedload {{.*}} vector<8xi8>
// CHECK: vector.maskedstore {{.*}} vector<8xi8>
// CHECK: return
func.func @over(%x: memref<?xi8, strided<[1]>>, %y: memref<?xi8, strided<[1]>>, %n: i64)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %0 = tile.load %x[%n] {cpu.view} : memref<?xi8, strided<[1]>> -> tensor<256xi8>
  tile.store %0, %y[%n] : tensor<256xi8>, memref<?xi8, strided<[1]>>
  return
}

// Two rows of which every element is stored twice are read by half a vector each, without a mask.
// CHECK-LABEL: func @pairs
// CHECK-NOT: vector.maskedload
// CHECK: vector.load {{.*}} vector<16xi8>
// CHECK: vector.shuffle
// CHECK: vector.store {{.*}} vector<32xi8>
// CHECK: return
func.func @pairs(%x: memref<128xi8, strided<[1]>>, %y: memref<256xi8, strided<[1]>>)
    attributes {tile.kernel, tile.disjoint = [array<i64: 0, 1>]} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] {cpu.view} : memref<128xi8, strided<[1]>> -> tensor<128xi8>
  %1 = tile.reshape %0 : tensor<128xi8> -> tensor<128x1xi8>
  %2 = tile.broadcast %1 : tensor<128x1xi8> -> tensor<128x2xi8>
  %3 = tile.reshape %2 : tensor<128x2xi8> -> tensor<256xi8>
  tile.store %3, %y[%c0] : tensor<256xi8>, memref<256xi8, strided<[1]>>
  return
}

// Constants do not determine the width, except if they are stored.
// CHECK-LABEL: func @zeros
// CHECK: vector.store {{.*}} vector<8xf32>
// CHECK: return
func.func @zeros(%y: memref<256xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %zeros = arith.constant dense<0.0> : tensor<256xf32>
  tile.store %zeros, %y[%c0] : tensor<256xf32>, memref<256xf32, strided<[1]>>
  return
}
