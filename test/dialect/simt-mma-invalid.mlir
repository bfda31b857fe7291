// Errors of the verifier of simt.mma.
// RUN: kiln-opt %s --split-input-file --verify-diagnostics

func.func @fragments(%a: vector<8xbf16>, %b: vector<8xbf16>, %c: vector<4xf32>) {
  // expected-error@+1 {{'simt.mma' op expected 8 and 4 elements of one type, but got 'vector<8xbf16>' and 'vector<8xbf16>'}}
  %0 = simt.mma %a, %b, %c : vector<8xbf16>, vector<8xbf16>, vector<4xf32>
  return
}

// -----

func.func @mixed_fragments(%a: vector<8xbf16>, %b: vector<4xf16>, %c: vector<4xf32>) {
  // expected-error@+1 {{'simt.mma' op expected 8 and 4 elements of one type, but got 'vector<8xbf16>' and 'vector<4xf16>'}}
  %0 = simt.mma %a, %b, %c : vector<8xbf16>, vector<4xf16>, vector<4xf32>
  return
}

// -----

func.func @parts_of_bf16(%a: vector<8xbf16>, %b: vector<4xbf16>, %c: vector<4xf32>) {
  // expected-error@+1 {{'simt.mma' op expected a part of both factors, of f32, or of none, but got 'vector<8xbf16>' and 'vector<4xbf16>'}}
  %0 = simt.mma large of %a, small of %b, %c : vector<8xbf16>, vector<4xbf16>, vector<4xf32>
  return
}

// -----

func.func @part_of_one(%a: vector<4xf32>, %b: vector<2xf32>, %c: vector<4xf32>) {
  // expected-error@+1 {{'simt.mma' op expected a part of both factors, of f32, or of none, but got 'vector<4xf32>' and 'vector<2xf32>'}}
  %0 = simt.mma large of %a, %b, %c : vector<4xf32>, vector<2xf32>, vector<4xf32>
  return
}

// -----

func.func @accumulator(%a: vector<16xi8>, %b: vector<8xi8>, %c: vector<4xf32>) {
  // expected-error@+1 {{'simt.mma' op expected an accumulator of 4 i32, but got 'vector<4xf32>'}}
  %0 = simt.mma %a, %b, %c : vector<16xi8>, vector<8xi8>, vector<4xf32>
  return
}

// -----

func.func @accumulator_size(%a: vector<8xf16>, %b: vector<4xf16>, %c: vector<2xf32>) {
  // expected-error@+1 {{'simt.mma' op expected an accumulator of 4 f32, but got 'vector<2xf32>'}}
  %0 = simt.mma %a, %b, %c : vector<8xf16>, vector<4xf16>, vector<2xf32>
  return
}

// -----

func.func @factor_sums(%a: vector<16xi8>, %b: vector<8xi8>, %c: vector<4xi32>) {
  // expected-error@+1 {{'simt.mma' op expected an accumulator of 4 f32, but got 'vector<4xi32>'}}
  %0 = simt.mma %a, %b, %c {tile.factors = [f8E4M3FN, f8E5M2]} : vector<16xi8>, vector<8xi8>, vector<4xi32>
  return
}
