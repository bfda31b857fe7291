// RUN: kiln-opt %s --split-input-file --verify-diagnostics --cpu-lower-kernel-arguments

// expected-error @below {{expected scratch memory to be placed, by cpu-allocate-scratch, before kernel arguments}}
func.func @no_scratch(%n: i64) attributes {tile.kernel} {
  return
}

// -----

// expected-error @below {{expected a kernel to return nothing, but got 'i64'}}
func.func @result(%n: i64, %scratch: memref<?xi8>) -> i64 attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  return %n : i64
}

// -----

// expected-error @below {{expected a kernel's arguments to be scalars and strided views of offset 0, but got 'memref<?xf32, strided<[1], offset: ?>>'}}
func.func @offset(%v: memref<?xf32, strided<[1], offset: ?>>, %scratch: memref<?xi8>)
    attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  return
}

// -----

// expected-error @below {{expected a kernel's arguments to be scalars and strided views of offset 0, but got 'tensor<4xf32>'}}
func.func @tensor(%v: tensor<4xf32>, %scratch: memref<?xi8>) attributes {tile.kernel, cpu.scratch_bytes = 0 : i64} {
  return
}
