// Operations that tile-expand-ops should have removed are named.
// RUN: kiln-opt %s --generic-lower-to-linalg --split-input-file --verify-diagnostics

func.func @unexpanded(%a: tensor<4xi32>) {
  // expected-error@below {{'tile.div' op expected an operation that generic-lower-to-linalg knows; run tile-expand-ops first}}
  %0 = tile.div %a, %a : tensor<4xi32>
  return
}
