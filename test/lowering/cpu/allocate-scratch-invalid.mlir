// RUN: kiln-opt %s --split-input-file --verify-diagnostics --cpu-allocate-scratch

func.func @dynamic(%n: index) attributes {tile.kernel} {
  // expected-error @below {{expected a scratch buffer of static shape and identity layout, but got 'memref<?xf32>'}}
  %a = memref.alloca(%n) : memref<?xf32>
  return
}

// -----

func.func @layout() attributes {tile.kernel} {
  // expected-error @below {{expected a scratch buffer of static shape and identity layout, but got 'memref<4x4xf32, strided<[8, 1]>>'}}
  %a = memref.alloca() : memref<4x4xf32, strided<[8, 1]>>
  return
}

// -----

func.func @alignment() attributes {tile.kernel} {
  // expected-error @below {{expected an alignment of at most 64 bytes, but got 128}}
  %a = memref.alloca() {alignment = 128 : i64} : memref<4x4xf32>
  return
}

// -----

// expected-error @below {{'func.func' op expected structured control flow while scratch buffers are placed}}
func.func @unstructured(%flag: i1) attributes {tile.kernel} {
  %a = memref.alloca() : memref<4x4xf32>
  cf.cond_br %flag, ^one, ^two
^one:
  cf.br ^two
^two:
  return
}

// -----

// expected-error @below {{kernel 'limit' needs 64.1 MiB of scratch memory for its tiles, but at most 64.0 MiB are possible: choose smaller tiles, or loop over parts of them}}
func.func @limit() attributes {tile.kernel} {
  %c0 = arith.constant 0 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloca() : memref<16800000xf32>
  memref.store %f0, %a[%c0] : memref<16800000xf32>
  %x = memref.load %a[%c0] : memref<16800000xf32>
  return
}
