// Modules that are not kernels are reported at their line.
// RUN: kiln-opt %s --tile-verify-kernels="operations=6 nesting=2 lanes=16" --split-input-file --verify-diagnostics

// expected-error@below {{a module must contain only kernels, functions with the attribute 'tile.kernel'}}
func.func @plain() {
  return
}

// -----

// expected-error@below {{expected a module with a kernel: a function with the attribute 'tile.kernel'}}
module {
}

// -----

// expected-error@below {{expected a kernel to have a body}}
func.func private @declaration() attributes {tile.kernel}

// -----

// expected-error@below {{expected a kernel to return nothing, but got 1 results}}
func.func @result(%n: i64) -> i64 attributes {tile.kernel} {
  return %n : i64
}

// -----

// expected-error@below {{expected a kernel's arguments to be scalars and strided views of rank 1 to 5 and offset 0, but got 'tensor<4xf32>'}}
func.func @tile(%x: tensor<4xf32>) attributes {tile.kernel} {
  return
}

// -----

// expected-error@below {{expected a kernel's arguments to be scalars and strided views of rank 1 to 5 and offset 0, but got 'memref<4xf32, strided<[1], offset: 8>>'}}
func.func @offset(%x: memref<4xf32, strided<[1], offset: 8>>) attributes {tile.kernel} {
  return
}

// -----

func.func @operation(%x: f32) attributes {tile.kernel} {
  // expected-error@below {{expected an operation of the tile language, but got 'math.isnan'}}
  %0 = math.isnan %x : f32
  return
}

// -----

// expected-error@below {{expected structured control flow, but got a region of several blocks}}
func.func @blocks(%flag: i1) attributes {tile.kernel} {
  return
^other:
  return
}

// -----

func.func @scalar() attributes {tile.kernel} {
  // expected-error@below {{expected values to be scalars and tiles of rank 1 to 5, but got 'i7'}}
  %0 = arith.constant 3 : i7
  return
}

// -----

func.func @carried(%n: i64, %x: memref<4xf32>) attributes {tile.kernel} {
  // expected-error@below {{expected values to be scalars and tiles of rank 1 to 5, but got 'memref<4xf32>'}}
  %0 = scf.for %i = %n to %n step %n iter_args(%y = %x) -> (memref<4xf32>) : i64 {
    scf.yield %y : memref<4xf32>
  }
  return
}

// -----

func.func @elements() attributes {tile.kernel} {
  // expected-error@below {{expected tiles of at most 16777216 elements, but got 4097x4096: choose a smaller tile, or loop over parts of it}}
  %0 = arith.constant dense<0.0> : tensor<4097x4096xf32>
  return
}

// -----

func.func @overflowing() attributes {tile.kernel} {
  // expected-error@below {{expected tiles of at most 16777216 elements, but got 4294967296x4294967296: choose a smaller tile, or loop over parts of it}}
  %0 = arith.constant dense<0> : tensor<4294967296x4294967296xi64>
  return
}

// -----

func.func @operations(%n: i64) attributes {tile.kernel} {
  %0 = arith.addi %n, %n : i64
  %1 = arith.addi %0, %n : i64
  %2 = arith.addi %1, %n : i64
  %3 = arith.addi %2, %n : i64
  %4 = arith.addi %3, %n : i64
  %5 = arith.addi %4, %n : i64
  // expected-error@below {{kernel 'operations' has more than 6 operations: use range() in place of host loops, which unroll}}
  return
}

// -----

// Integer types have no sign; operations do.
// expected-error@below {{expected a kernel's arguments to be scalars and strided views of rank 1 to 5 and offset 0, but got 'si8'}}
func.func @signed(%n: si8) attributes {tile.kernel} {
  return
}

// -----

func.func @nesting(%flag: i1) attributes {tile.kernel} {
  %n = arith.constant 1 : index
  scf.for %i = %n to %n step %n {
    scf.if %flag {
      // expected-error@below {{expected loops and branches at most 2 deep; merge loops into one and compute their positions from its own}}
      scf.for %j = %n to %n step %n {
      }
    }
  }
  return
}

// -----

// Vectors are allowed in a part that is lowered already.
func.func @lanes(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  %n = arith.constant 1 : index
  %a = vector.load %x[%n] : memref<?xf32, strided<[1]>>, vector<16xf32>
  // expected-error@below {{expected vectors of at most 16 elements, but got 'vector<17xf32>': use tiles, or loop over parts of it}}
  %b = vector.load %x[%n] : memref<?xf32, strided<[1]>>, vector<17xf32>
  return
}

// -----

func.func @heap() attributes {tile.kernel} {
  // expected-error@below {{expected 'memref.alloca' for scratch memory, but got 'memref.alloc'}}
  %a = memref.alloc() : memref<16xf32>
  return
}

// -----

func.func @alignment() attributes {tile.kernel} {
  %a = memref.alloca() {alignment = 64 : i64} : memref<16xf32>
  // expected-error@below {{expected an alignment of at most 64 bytes, but got 128}}
  %b = memref.alloca() {alignment = 128 : i64} : memref<16xf32>
  return
}

// -----

func.func @size() attributes {tile.kernel} {
  %n = arith.constant 1 : index
  // expected-error@below {{expected scratch memory of a size known while compiling, but got 'memref<?xf32>'}}
  %a = memref.alloca(%n) : memref<?xf32>
  return
}

// -----

func.func @resource() attributes {tile.kernel} {
  // expected-error@below {{expected a constant tile as 'dense<…>', but got dense_resource<numbers> : tensor<2xf32>}}
  %0 = arith.constant dense_resource<numbers> : tensor<2xf32>
  return
}

// -----

func.func @sparse() attributes {tile.kernel} {
  // expected-error@below {{expected a constant tile as 'dense<…>', but got sparse<0, 1.000000e+00> : tensor<2xf32>}}
  %0 = arith.constant sparse<[[0]], [1.0]> : tensor<2xf32>
  return
}

// -----

func.func @two_results(%x: memref<8xi32, strided<[1]>>) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i64
  %0 = tile.load %x[%c0] : memref<8xi32, strided<[1]>> -> tensor<8xi32>
  // expected-error@below {{expected an operation on tiles to have one result, but got 'arith.mului_extended'}}
  %low, %high = arith.mului_extended %0, %0 : tensor<8xi32>
  return
}
