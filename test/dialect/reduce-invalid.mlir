// Errors of the verifiers of reductions and of the matrix product.
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
  // expected-error@+1 {{'tile.dot' op expected tiles of the same rank, 2 or more, but got ranks 1, 2 and 2}}
  %0 = tile.dot %a, %b, %c : tensor<4xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @dot_ranks(%a: tensor<3x4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<3x4x2xf32>) {
  // expected-error@+1 {{'tile.dot' op expected tiles of the same rank, 2 or more, but got ranks 3, 2 and 3}}
  %0 = tile.dot %a, %b, %c : tensor<3x4x8xf32>, tensor<8x2xf32>, tensor<3x4x2xf32>
  return
}

// -----

func.func @dot_leading(%a: tensor<3x4x8xf32>, %b: tensor<2x8x2xf32>, %c: tensor<3x4x2xf32>) {
  // expected-error@+1 {{'tile.dot' op expected leading sizes to match, but got 3x4x8 and 2x8x2}}
  %0 = tile.dot %a, %b, %c : tensor<3x4x8xf32>, tensor<2x8x2xf32>, tensor<3x4x2xf32>
  return
}

// -----

func.func @dot_sums(%a: tensor<3x4x8xf32>, %b: tensor<3x8x2xf32>, %c: tensor<2x4x2xf32>) {
  // expected-error@+1 {{'tile.dot' op expected an accumulator of shape 3x4x2, but got 2x4x2}}
  %0 = tile.dot %a, %b, %c : tensor<3x4x8xf32>, tensor<3x8x2xf32>, tensor<2x4x2xf32>
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
  // expected-error@+1 {{'tile.dot' op expected operands of type f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8, but got 'i64'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xi64>, tensor<8x2xi64>, tensor<4x2xi64>
  return
}

// -----

func.func @dot_sum(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>, %c: tensor<4x2xbf16>) {
  // expected-error@+1 {{'tile.dot' op expected an accumulator of 'f32' for operands of 'bf16', but got 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<4x8xbf16>, tensor<8x2xbf16>, tensor<4x2xbf16>
  return
}

// -----

func.func @scan_axis(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.scan' op expected an axis from 0 to 1, but got 2}}
  %0 = tile.scan sum %x axis 2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scan_nothing(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tile.scan' op expected either a kind or a function}}
  %0 = tile.scan %x axis 1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scan_two(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op expected one tile for 'sum', but got 2}}
  %0:2 = tile.scan sum %x, %x axis 0 : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @scan_none() {
  // expected-error@+1 {{'tile.scan' op expected a tile to scan}}
  tile.scan axis 0 : () -> ()
  return
}

// -----

func.func @scan_argmax(%x: tensor<4xi32>) {
  // expected-error@+1 {{'tile.scan' op expected another kind than 'argmax'}}
  %0 = tile.scan argmax %x axis 0 : (tensor<4xi32>) -> tensor<4xi32>
  return
}

// -----

func.func @scan_bitwise(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op expected integers for 'xor', but got 'f32'}}
  %0 = tile.scan xor %x axis 0 : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scan_result(%x: tensor<4xi8>) {
  // expected-error@+1 {{'tile.scan' op expected results of the types 'tensor<4xi8>', but got 'tensor<4xi32>'}}
  %0 = tile.scan sum %x axis 0 : (tensor<4xi8>) -> tensor<4xi32>
  return
}

// -----

func.func @scan_shapes(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'tile.scan' op expected tiles of one shape, but got 4 and 8}}
  %0:2 = tile.scan %x, %y axis 0 by (%a: f32, %b: f32, %c: f32, %d: f32) {
    tile.yield %a, %b : f32, f32
  } : (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @scan_reversed(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op expected a kind where the scan is reversed}}
  %0 = tile.scan %x axis 0 reverse by (%a: f32, %b: f32) {
    tile.yield %a : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scan_arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tile.scan' op expected a function of ('f32', 'f32'), but got ('f32', 'i32')}}
  %0 = tile.scan %x axis 0 by (%a: f32, %b: i32) {
    tile.yield %a : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scan_yield(%x: tensor<4xf32>, %n: i32) {
  // expected-error@+1 {{'tile.scan' op expected a function that yields ('f32'), but got ('i32')}}
  %0 = tile.scan %x axis 0 by (%a: f32, %b: f32) {
    tile.yield %n : i32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @scan_program(%x: tensor<4xi64>) {
  %0 = tile.scan %x axis 0 by (%a: i64, %b: i64) {
    // expected-error@+1 {{'tile.program_id' op expected arithmetic in the function of a scan}}
    %1 = tile.program_id 0
    tile.yield %1 : i64
  } : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @scan_tiles(%x: tensor<4xf32>) {
  %0 = tile.scan %x axis 0 by (%a: f32, %b: f32) {
    // expected-error@+1 {{'arith.addf' op expected scalars in the function of a scan, but got 'tensor<4xf32>'}}
    %1 = arith.addf %x, %x : tensor<4xf32>
    tile.yield %a : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @yield_alone(%x: i1) {
  scf.if %x {
    // expected-error@+1 {{'tile.yield' op expected a 'tile.scan' around it, but got 'scf.if'}}
    tile.yield %x : i1
  }
  return
}
