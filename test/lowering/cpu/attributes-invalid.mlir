// Each attribute of the CPU's passes stands where it means something, and says nothing else.

// RUN: kiln-opt %s --split-input-file --verify-diagnostics

!t = tensor<8x8xf32>
!v = memref<?x?xf32>

func.func @view(%a: !t) {
  // expected-error @+1 {{expected 'cpu.view' to be a unit on a load, but got unit on 'arith.negf'}}
  %0 = arith.negf %a {cpu.view} : !t
  return
}

// -----

func.func @placed(%a: f32) {
  // expected-error @+1 {{expected 'cpu.placed' to be a unit on what makes a tile, but got unit on 'arith.negf'}}
  %0 = arith.negf %a {cpu.placed} : f32
  return
}

// -----

func.func @dense(%a: tensor<4x100xf32>) {
  // expected-error @+1 {{expected 'cpu.dense' to be a unit on a placed tile, but got unit on 'tile.reshape'}}
  %0 = tile.reshape %a {cpu.dense} : tensor<4x100xf32> -> tensor<4x100xf32>
  return
}

// -----

func.func @flushes(%a: f32) {
  // expected-error @+1 {{expected 'cpu.flushes' to be a unit on a rounding, but got unit on 'arith.negf'}}
  %0 = arith.negf %a {cpu.flushes} : f32
  return
}

// -----

!t = tensor<8x8xf32>

func.func @left(%a: !t) {
  // expected-error @+1 {{expected 'cpu.left' to be 'placed', 'view', 'panels' or 'copy' on a product, but got "here" on 'tile.dot'}}
  %0 = tile.dot %a, %a, %a {cpu.left = "here"} : !t, !t, !t
  return
}

// -----

!t = tensor<8x8xf32>

func.func @unit(%a: !t) {
  // expected-error @+1 {{expected 'cpu.unit' to be a unit on a product of its elements and of whole words along k, but got "bf16_pairs" on 'tile.dot'}}
  %0 = tile.dot %a, %a, %a {cpu.unit = "bf16_pairs"} : !t, !t, !t
  return
}

// -----

!t = tensor<8x8xf32>

func.func @before(%a: !t) {
  // expected-error @+1 {{expected 'cpu.right_before' to be a number of loops around a product, but got 1 : i64 on 'tile.dot'}}
  %0 = tile.dot %a, %a, %a {cpu.right_before = 1} : !t, !t, !t
  return
}

// -----

!t = tensor<8x8xf32>

func.func @turned(%a: !t) {
  // expected-error @+1 {{expected 'cpu.right_turned' to be a unit on a product, but got true on 'tile.dot'}}
  %0 = tile.dot %a, %a, %a {cpu.right_turned = true} : !t, !t, !t
  return
}

// -----

!t = tensor<8x8xf32>

func.func @epilogue(%a: !t) {
  // expected-error @+1 {{expected 'cpu.epilogue' to be a bool for each result of a loop or product, but got array<i1: true, true> on 'tile.dot'}}
  %0 = tile.dot %a, %a, %a {cpu.epilogue = array<i1: true, true>} : !t, !t, !t
  return
}

// -----

func.func @in_place(%n: i64) {
  // expected-error @+1 {{expected 'cpu.in_place' to be a bool for each result of a loop, but got array<i1: true> on 'scf.for'}}
  scf.for %i = %n to %n step %n : i64 {
  } {cpu.in_place = array<i1: true>}
  return
}

// -----

// expected-error @+1 {{expected 'cpu.scratch_bytes' to be an i64 from 0 on a function, but got -1 : i64 on 'func.func'}}
func.func @scratch() attributes {cpu.scratch_bytes = -1} { return }

// -----

// expected-error @+1 {{expected an attribute that passes of the CPU make, but got 'cpu.scratch'}}
func.func @unknown() attributes {cpu.scratch = 0} { return }
