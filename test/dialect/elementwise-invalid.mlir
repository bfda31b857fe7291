// Errors of the verifiers of programs, conversions, integer arithmetic and random numbers.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @axis() {
  // expected-error@+1 {{'tile.program_id' op attribute 'axis' failed to satisfy constraint}}
  %0 = tile.program_id 3
  return
}

// -----

func.func @axis() {
  // expected-error@+1 {{'tile.num_programs' op attribute 'axis' failed to satisfy constraint}}
  %0 = tile.num_programs -1
  return
}

// -----

func.func @cast_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.cast' op requires the same shape for all operands and results}}
  %0 = tile.cast %x : tensor<8xf32> to tensor<4xf32>
  return
}

// -----

func.func @cast_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.cast' op result #0 must be tile or scalar, but got 'tensor<8xi24>'}}
  %0 = tile.cast %x : tensor<8xf32> to tensor<8xi24>
  return
}

// -----

func.func @division_of_floats(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.div' op operand #0 must be integer tile or scalar, but got 'tensor<8xf32>'}}
  %0 = tile.div %x, %x : tensor<8xf32>
  return
}

// -----

func.func @rank(%x: tensor<1x1x1x1x1x1xi32>) {
  // expected-error@+1 {{'tile.shl' op operand #0 must be integer tile or scalar, but got 'tensor<1x1x1x1x1x1xi32>'}}
  %0 = tile.shl %x, %x : tensor<1x1x1x1x1x1xi32>
  return
}

// -----

func.func @random_shape(%seed: i64, %index: tensor<8xi64>) {
  // expected-error@+1 {{'tile.random' op expected one number for each index, but got indices of shape 8 and a result of shape 4}}
  %0 = tile.random %seed, %index : tensor<8xi64> -> tensor<4xi32>
  return
}

// -----

func.func @random_word(%seed: i64) {
  // expected-error@+1 {{'tile.random' op attribute 'word' failed to satisfy constraint}}
  %0 = tile.random %seed, %seed word 4 : i64 -> i32
  return
}
