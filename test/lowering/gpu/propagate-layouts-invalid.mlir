// RUN: kiln-opt %s --gpu-coalesce-accesses --gpu-propagate-layouts -verify-diagnostics

// A tile of which a thread would hold too many elements is an error at its definition.
func.func @large(%x: memref<?xf32, strided<[1]>>, %y: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  // expected-error @+1 {{each of 128 threads would hold 2048 values of a tile of 262144, but at most 1024 are possible}}
  %0 = tile.load %x[%c0] : memref<?xf32, strided<[1]>> -> tensor<262144xf32>
  tile.store %0, %y[%c0] : tensor<262144xf32>, memref<?xf32, strided<[1]>>
  return
}

// An operation on tiles without a rule for layouts would leave tiles without one.
func.func @unknown(%x: memref<?xi32, strided<[1]>>, %y: memref<?xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<?xi32, strided<[1]>> -> tensor<64xi32>
  // expected-error @+1 {{'arith.mului_extended' op expected an operation on tiles whose layouts are known}}
  %1, %2 = arith.mului_extended %0, %0 : tensor<64xi32>
  tile.store %2, %y[%c0] : tensor<64xi32>, memref<?xi32, strided<[1]>>
  return
}
