// Valid kernels are unchanged, and so are operations of the LLVM dialect in the module.
// RUN: kiln-opt %s --tile-verify-kernels | FileCheck %s

// CHECK-LABEL: func @everything
func.func @everything(%x: memref<?x16xf32, strided<[?, 1]>>, %mask: memref<8xi8, strided<[1]>>, %n: i64, %f: f32)
    attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // CHECK: scf.for
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16xf32>) : i64 {
    %rows = tile.load %x[%i, %c0] : memref<?x16xf32, strided<[?, 1]>> -> tensor<1x16xf32>
    %row = tile.reshape %rows : tensor<1x16xf32> -> tensor<16xf32>
    %next = math.fma %row, %row, %acc : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %some = arith.cmpi sgt, %n, %c0 : i64
  // CHECK: scf.if
  scf.if %some {
    %sums = tile.reshape %sum : tensor<16xf32> -> tensor<1x16xf32>
    tile.store %sums, %x[%c0, %c0] : tensor<1x16xf32>, memref<?x16xf32, strided<[?, 1]>>
  }
  return
}

// A while may pass any values to its body.
// CHECK-LABEL: func @while
func.func @while(%x: memref<?xf32, strided<[1]>>, %n: i64) attributes {tile.kernel} {
  %zero = arith.constant dense<0.0> : tensor<16xf32>
  // CHECK: scf.while
  %sum = scf.while (%i = %n, %acc = %zero) : (i64, tensor<16xf32>) -> tensor<16xf32> {
    %most = tile.reduce max %acc axis 0 : tensor<16xf32> -> f32
    %limit = arith.sitofp %i : i64 to f32
    %more = arith.cmpf olt, %most, %limit : f32
    scf.condition(%more) %acc : tensor<16xf32>
  } do {
  ^bb0(%acc: tensor<16xf32>):
    %row = tile.load %x[%n] : memref<?xf32, strided<[1]>> -> tensor<16xf32>
    %next = arith.addf %row, %acc : tensor<16xf32>
    scf.yield %n, %next : i64, tensor<16xf32>
  }
  tile.store %sum, %x[%n] : tensor<16xf32>, memref<?xf32, strided<[1]>>
  return
}

// A tile with the maximum number of elements.
// CHECK-LABEL: func @largest
func.func @largest(%x: memref<?xi8, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %tile = tile.load %x[%c0] : memref<?xi8, strided<[1]>> -> tensor<16777216xi8>
  tile.store %tile, %x[%c0] : tensor<16777216xi8>, memref<?xi8, strided<[1]>>
  return
}

// A part that is lowered already.
// CHECK-LABEL: func @lowered
func.func @lowered(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  // CHECK: vector.load
  %a = vector.load %x[%c0] : memref<?xf32, strided<[1]>>, vector<8xf32>
  %b = arith.addf %a, %a : vector<8xf32>
  vector.store %b, %x[%c0] : memref<?xf32, strided<[1]>>, vector<8xf32>
  return
}

// CHECK: llvm.func @other
llvm.func @other()
