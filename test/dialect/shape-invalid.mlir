// Errors of the verifiers of shape operations.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @iota_rank() {
  // expected-error@+1 {{'tile.iota' op expected a result of rank 1, but got shape 2x4}}
  %0 = tile.iota : tensor<2x4xi32>
  return
}

// -----

func.func @iota_empty() {
  // expected-error@+1 {{'tile.iota' op result #0 must be tile of rank 1 to 5 of i32 or i64 with extents of at least 1, but got 'tensor<0xi32>'}}
  %0 = tile.iota : tensor<0xi32>
  return
}

// -----

func.func @splat_type(%x: f32) {
  // expected-error@+1 {{'tile.splat' op expected a result of element type 'f32', but got 'bf16'}}
  %0 = tile.splat %x : f32 -> tensor<8xbf16>
  return
}

// -----

func.func @reshape_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.reshape' op expected a result of element type 'f32', but got 'i32'}}
  %0 = tile.reshape %x : tensor<8xf32> -> tensor<2x4xi32>
  return
}

// -----

func.func @reshape_count(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.reshape' op expected as many elements as the source's 8 (8), but got 6 (2x3)}}
  %0 = tile.reshape %x : tensor<8xf32> -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape_scalar(%x: f32) {
  // expected-error@+1 {{'tile.reshape' op expected as many elements as the source's 1 (scalar), but got 2 (2)}}
  %0 = tile.reshape %x : f32 -> tensor<2xf32>
  return
}

// -----

func.func @broadcast_type(%x: tensor<1xf32>) {
  // expected-error@+1 {{'tile.broadcast' op expected a result of element type 'f32', but got 'f64'}}
  %0 = tile.broadcast %x : tensor<1xf32> -> tensor<8xf64>
  return
}

// -----

func.func @broadcast_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.broadcast' op expected a result of the source's rank 1, but got 2}}
  %0 = tile.broadcast %x : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_extent(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.broadcast' op expected extent 1 or 8 in dimension 1 of the source, but got 2}}
  %0 = tile.broadcast %x : tensor<4x2xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @transpose_type(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.transpose' op expected a result of element type 'f32', but got 'i32'}}
  %0 = tile.transpose %x [1, 0] : tensor<4x2xf32> -> tensor<2x4xi32>
  return
}

// -----

func.func @transpose_order(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.transpose' op expected a permutation of the source's 2 dimensions, but got [0, 0]}}
  %0 = tile.transpose %x [0, 0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @transpose_rank(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.transpose' op expected a result of the source's rank 2, but got 1}}
  %0 = tile.transpose %x [1, 0] : tensor<4x2xf32> -> tensor<8xf32>
  return
}

// -----

func.func @transpose_extent(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.transpose' op expected extent 2 in dimension 0 of the result, but got 4}}
  %0 = tile.transpose %x [1, 0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @rotate_axis(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.rotate' op expected an axis from 0 to 1, but got 2}}
  %0 = tile.rotate %x by 1 axis 2 : tensor<4x2xf32>
  return
}

// -----

func.func @rotate_by(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.rotate' op expected to rotate by 0 to 3, but got 4}}
  %0 = tile.rotate %x by 4 axis 0 : tensor<4x2xf32>
  return
}

// -----

func.func @extract_begin(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected a begin for each of 2 dimensions, but got 1}}
  %0 = tile.extract %x begin [0] steps [1, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @extract_steps(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected a step for each of 2 dimensions, but got 3}}
  %0 = tile.extract %x begin [0, 0] steps [1, 1, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @extract_rank(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected an extent of the result for each of 2 dimensions, but got 1}}
  %0 = tile.extract %x begin [0, 0] steps [1, 1] : tensor<4x2xf32> -> tensor<4xf32>
  return
}

// -----

func.func @extract_step(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected a step that is not 0 in dimension 1}}
  %0 = tile.extract %x begin [0, 0] steps [1, 0] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @extract_outside(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected positions from 0 to 3 in dimension 0, but got 1 to -2}}
  %0 = tile.extract %x begin [1, 0] steps [-1, 1] : tensor<4x2xf32> -> tensor<4x2xf32>
  return
}

// -----

func.func @extract_type(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.extract' op expected a result of element type 'f32', but got 'i32'}}
  %0 = tile.extract %x begin [0, 0] steps [1, 1] : tensor<4x2xf32> -> tensor<4x2xi32>
  return
}

// -----

func.func @steps_that_wrap(%x: tensor<8xf32>) -> tensor<5xf32> {
  // expected-error@+1 {{'tile.extract' op expected positions from 0 to 7 in dimension 0, but got 0 and 4 steps of 4611686018427387904}}
  %0 = tile.extract %x begin [0] steps [4611686018427387904] : tensor<8xf32> -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
