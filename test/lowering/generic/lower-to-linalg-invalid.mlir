// Errors name operations that tile-expand-ops should have removed, and arguments that have no buffer.
// RUN: kiln-opt %s --generic-lower-to-linalg --split-input-file --verify-diagnostics

func.func @unexpanded() {
  %a = arith.constant dense<3> : tensor<4xi32>
  // expected-error@below {{'tile.div' op expected an operation that generic-lower-to-linalg knows; run tile-expand-ops first}}
  %0 = tile.div %a, %a : tensor<4xi32>
  return
}

// -----

// expected-error@below {{'func.func' op expected arguments that are views and scalars, but got 'tensor<4xi32>'}}
func.func @argument(%a: tensor<4xi32>) {
  %0 = arith.addi %a, %a : tensor<4xi32>
  return
}
