// The number of warps must be a power of two, because layouts count them in bits.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics --gpu-coalesce-accesses

// expected-error@+1 {{expected 'warps' of kernel 'three' to be a power of two up to 32, but got 3}}
func.func @three() attributes {tile.kernel, tile.warps = 3 : i64} {
  return
}

// -----

// expected-error@+1 {{expected 'warps' of kernel 'many' to be a power of two up to 32, but got 64}}
func.func @many() attributes {tile.kernel, tile.warps = 64 : i64} {
  return
}
