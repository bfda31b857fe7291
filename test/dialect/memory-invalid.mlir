// What the verifiers of memory operations say.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @dim_axis(%v: memref<?x?xf32>) {
  // expected-error@+1 {{'tile.dim' op expected an axis from 0 to 1, but got 2}}
  %0 = tile.dim %v, 2 : memref<?x?xf32>
  return
}

// -----

func.func @dim_negative(%v: memref<?x?xf32>) {
  // expected-error@+1 {{'tile.dim' op expected an axis from 0 to 1, but got -1}}
  %0 = tile.dim %v, -1 : memref<?x?xf32>
  return
}

// -----

func.func @load_type(%v: memref<?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected a tile of the view's element type 'f32', but got 'bf16'}}
  %0 = tile.load %v[%n] : memref<?xf32> -> tensor<8xbf16>
  return
}

// -----

func.func @load_rank(%v: memref<?x?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected a tile of the view's rank 2, but got 1}}
  %0 = tile.load %v[%n, %n] : memref<?x?xf32> -> tensor<8xf32>
  return
}

// -----

func.func @load_offsets(%v: memref<?x?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected 2 offsets for a view of rank 2, but got 1}}
  %0 = tile.load %v[%n] : memref<?x?xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @load_padding(%v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.load' op expected padding 'zero' on a tile of integers, but got 'neg_inf'}}
  %0 = tile.load %v[%n] pad neg_inf : memref<?xi32> -> tensor<8xi32>
  return
}

// -----

func.func @store_type(%x: tensor<8xi1>, %v: memref<?xi32>, %n: i64) {
  // expected-error@+1 {{'tile.store' op expected a tile of the view's element type 'i32', but got 'i1'}}
  tile.store %x, %v[%n] : tensor<8xi1>, memref<?xi32>
  return
}

// -----

func.func @store_offsets(%x: tensor<8xf32>, %v: memref<?xf32>, %n: i64) {
  // expected-error@+1 {{'tile.store' op expected 1 offsets for a view of rank 1, but got 2}}
  tile.store %x, %v[%n, %n] : tensor<8xf32>, memref<?xf32>
  return
}

// -----

func.func @gather_rows(%v: memref<?x?xf32>, %r: tensor<2x2xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected an index tile of rank 1, but got shape 2x2}}
  %0 = tile.gather %v[%r, %n] : memref<?x?xf32>, tensor<2x2xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @gather_count(%v: memref<?x?xf32>, %r: tensor<3xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected one row index for each of the tile's rows, but got 3 indices and a tile of shape 4x8}}
  %0 = tile.gather %v[%r, %n] : memref<?x?xf32>, tensor<3xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @gather_offsets(%v: memref<?x?xf32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected 1 offsets for a view of rank 2, but got 2}}
  %0 = tile.gather %v[%r, %n, %n] : memref<?x?xf32>, tensor<4xi32> -> tensor<4x8xf32>
  return
}

// -----

func.func @gather_padding(%v: memref<?x?xi32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.gather' op expected padding 'zero' on a tile of integers, but got 'nan'}}
  %0 = tile.gather %v[%r, %n] pad nan : memref<?x?xi32>, tensor<4xi32> -> tensor<4x8xi32>
  return
}

// -----

func.func @scatter_count(%x: tensor<4x8xf32>, %v: memref<?x?xf32>, %r: tensor<5xi32>, %n: i64) {
  // expected-error@+1 {{'tile.scatter' op expected one row index for each of the tile's rows, but got 5 indices and a tile of shape 4x8}}
  tile.scatter %x, %v[%r, %n] : tensor<4x8xf32>, memref<?x?xf32>, tensor<5xi32>
  return
}

// -----

func.func @scatter_rank(%x: tensor<4xf32>, %v: memref<?x?xf32>, %r: tensor<4xi32>, %n: i64) {
  // expected-error@+1 {{'tile.scatter' op expected a tile of the view's rank 2, but got 1}}
  tile.scatter %x, %v[%r, %n] : tensor<4xf32>, memref<?x?xf32>, tensor<4xi32>
  return
}

// -----

func.func @atomic_type(%x: tensor<4xbf16>, %v: memref<?xbf16>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_add' op expected elements of type i32, i64, f32 or f64, but got 'bf16'}}
  %0 = tile.atomic_add relaxed %x, %v[%n] : tensor<4xbf16>, memref<?xbf16>
  return
}

// -----

func.func @atomic_view(%x: tensor<4xf32>, %v: memref<?xf64>, %n: i64) {
  // expected-error@+1 {{'tile.atomic_add' op expected a tile of the view's element type 'f64', but got 'f32'}}
  %0 = tile.atomic_add relaxed %x, %v[%n] : tensor<4xf32>, memref<?xf64>
  return
}

// -----

func.func @check_type(%x: tensor<4xi8>) {
  // expected-error@+1 {{'tile.check' op operand #0 must be boolean tile or scalar, but got 'tensor<4xi8>'}}
  tile.check %x, "expected 1" : tensor<4xi8>
  return
}
