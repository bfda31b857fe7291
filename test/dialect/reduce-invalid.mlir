// What the verifiers of reductions and of the matrix product say.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.reduce' op expected an axis from 0 to 1, but got 2}}
  %0 = tile.reduce sum %x axis 2 : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @negative_axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.reduce' op expected an axis from 0 to 1, but got -1}}
  %0 = tile.reduce sum %x axis -1 : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @shape(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.reduce' op expected a result of type 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  %0 = tile.reduce max %x axis 1 : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

func.func @scalar(%x: tensor<8xf32>) {
  // expected-error@+1 {{'tile.reduce' op expected a result of type 'f32', but got 'tensor<1xf32>'}}
  %0 = tile.reduce max %x axis 0 : tensor<8xf32> -> tensor<1xf32>
  return
}

// -----

func.func @index(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.reduce' op expected a result of type 'tensor<4xi32>', but got 'tensor<4xf32>'}}
  %0 = tile.reduce argmax %x axis 1 : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @dot_rank(%a: tensor<4xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.dot' op expected tiles of rank 2, but got ranks 1, 2 and 2}}
  %0 = tile.dot %a, %b, %c : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @dot_inner(%a: tensor<64x32xf32>, %b: tensor<48x64xf32>, %c: tensor<64x64xf32>) {
  // expected-error@+1 {{'tile.dot' op expected inner sizes to match, but got 64x32 and 48x64}}
  %0 = tile.dot %a, %b, %c : tensor<64x32xf32>, tensor<48x64xf32>, tensor<64x64xf32>
  return
}

// -----

func.func @dot_acc(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.dot' op expected an accumulator of shape 4x2, but got 4x8}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @dot_operands(%a: tensor<4x8xf32>, %b: tensor<8x2xbf16>, %c: tensor<4x2xf32>) {
  // expected-error@+1 {{'tile.dot' op expected operands of one element type, but got 'f32' and 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xf32>, tensor<8x2xbf16>, tensor<4x2xf32>
  return
}

// -----

func.func @dot_type(%a: tensor<4x8xi64>, %b: tensor<8x2xi64>, %c: tensor<4x2xi64>) {
  // expected-error@+1 {{'tile.dot' op expected operands of type f32, bf16, f16, f64 or i8, but got 'i64'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xi64>, tensor<8x2xi64>, tensor<4x2xi64>
  return
}

// -----

func.func @dot_sum(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>, %c: tensor<4x2xbf16>) {
  // expected-error@+1 {{'tile.dot' op expected an accumulator of 'f32' for operands of 'bf16', but got 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<4x2xbf16>
  return
}
