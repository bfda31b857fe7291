// RUN: kiln-opt %s --cpu-emulate-amx | FileCheck %s

// AMX tiles become vectors, also if a loop carries them. Memory of i32 words gives the same bytes.
// CHECK-LABEL: func @sums
// CHECK-NOT: amx
// CHECK: scf.for {{.*}} -> (vector<16x16xf32>) {
// CHECK: vector.load {{.*}} : memref<?x?xbf16, {{.*}}>, vector<32xbf16>
// CHECK: %[[WORDS:.*]] = vector.load {{.*}} : memref<16x16xi32>, vector<16xi32>
// CHECK: vector.bitcast %[[WORDS]] : vector<16xi32> to vector<32xbf16>
// CHECK: func.call @amx_16x32xbf16_16x16xf32(%{{.*}}) : (memref<3072xi8>) -> ()
// CHECK: func.call @amx_16x32xbf16_16x16xf32(%{{.*}}) : (memref<3072xi8>) -> ()
// CHECK-NOT: amx.
// CHECK: return
func.func @sums(%a: memref<?x?xbf16, strided<[?, 1]>>, %b: memref<16x16xi32>, %c: memref<16x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %zero = amx.tile_zero : !amx.tile<16x16xf32>
  %sums = scf.for %k = %c0 to %n step %c32 iter_args(%sum = %zero) -> !amx.tile<16x16xf32> {
    %x = amx.tile_load %a[%c0, %k] : memref<?x?xbf16, strided<[?, 1]>> into !amx.tile<16x32xbf16>
    %y = amx.tile_load %b[%c0, %c0] : memref<16x16xi32> into !amx.tile<16x32xbf16>
    %half = amx.tile_mulf %x, %y, %sum : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    %next = amx.tile_mulf %x, %y, %half : !amx.tile<16x32xbf16>, !amx.tile<16x32xbf16>, !amx.tile<16x16xf32>
    scf.yield %next : !amx.tile<16x16xf32>
  }
  amx.tile_store %c[%c0, %c0], %sums : memref<16x16xf32>, !amx.tile<16x16xf32>
  return
}

// CHECK-LABEL: func @integers
// CHECK: call @amx_16x64xi8_16x16xi32(
// CHECK: return

// The function of all products of the same types: the loop over rows, with the loop over steps inside it.
// CHECK: func.func private @amx_16x32xbf16_16x16xf32(%{{.*}}: memref<3072xi8>)
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[ALL:.*]] = vector.load {{.*}} vector<32xbf16>
// CHECK: vector.shuffle %[[ALL]], %[[ALL]] [0, 2, 4, 6,
// CHECK: math.fma
// CHECK: vector.shuffle %[[ALL]], %[[ALL]] [1, 3, 5, 7,
// CHECK: math.fma
// CHECK: return
// CHECK-NOT: func.func private @amx_16x32

// Each step has four products of i8.
// CHECK: func.func private @amx_16x64xi8_16x16xi32
// CHECK-COUNT-4: arith.muli {{.*}} : vector<16xi32>
// CHECK: return
func.func @integers(%a: memref<16x64xi8>, %c: memref<16x16xi32>) {
  %c0 = arith.constant 0 : index
  %zero = amx.tile_zero : !amx.tile<16x16xi32>
  %x = amx.tile_load %a[%c0, %c0] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %y = amx.tile_load %a[%c0, %c0] : memref<16x64xi8> into !amx.tile<16x64xi8>
  %sums = amx.tile_muli %x, %y, %zero : !amx.tile<16x64xi8>, !amx.tile<16x64xi8>, !amx.tile<16x16xi32>
  amx.tile_store %c[%c0, %c0], %sums : memref<16x16xi32>, !amx.tile<16x16xi32>
  return
}
