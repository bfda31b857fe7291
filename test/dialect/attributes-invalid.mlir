// Each attribute of the dialect's stands where it means something, and says nothing else.

// RUN: kiln-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected 'tile.kernel' to be a unit on a function, but got 1 : i64}}
func.func @kernel(%a: f32) attributes {tile.kernel = 1} { return }

// -----

// expected-error @+1 {{expected 'tile.warps' to be an i64 from 1 on a function, but got 0 : i64}}
func.func @warps(%a: f32) attributes {tile.warps = 0} { return }

// -----

func.func @unroll(%n: i64) {
  // expected-error @+1 {{expected 'tile.unroll' to be an i64 from 1 on a loop, but got 0 : i64}}
  scf.for %i = %n to %n step %n : i64 { } {tile.unroll = 0 : i64}
  return
}

// -----

func.func @unroll_of_nothing(%x: f32) {
  // expected-error @+1 {{expected 'tile.unroll' to be an i64 from 1 on a loop, but got 2 : i64}}
  %0 = arith.addf %x, %x {tile.unroll = 2 : i64} : f32
  return
}

// -----

func.func @stages_of_a_loop(%n: i64) {
  // expected-error @+1 {{expected 'tile.stages' to be an i64 from 1 on a loop, but got "two"}}
  scf.for %i = %n to %n step %n : i64 { } {tile.stages = "two"}
  return
}

// -----

func.func @inside(%x: memref<?xf32>, %n: i64) {
  // expected-error @+1 {{expected 'tile.inside' to be dimensions of the view on a load, store or copy, but got array<i64: 1>}}
  %0 = tile.load %x[%n] {tile.inside = array<i64: 1>} : memref<?xf32> -> tensor<4xf32>
  return
}

// -----

func.func @inside_of_nothing(%x: f32) {
  // expected-error @+1 {{expected 'tile.inside' to be dimensions of the view on a load, store or copy, but got array<i64: 0>}}
  %0 = arith.addf %x, %x {tile.inside = array<i64: 0>} : f32
  return
}

// -----

func.func @cache(%x: memref<?xf32>, %n: i64) {
  // expected-error @+1 {{expected 'tile.cache' to be "stream" or "keep" on a load or store, but got "usual"}}
  %0 = tile.load %x[%n] {tile.cache = "usual"} : memref<?xf32> -> tensor<4xf32>
  return
}

// -----

func.func @cache_of_an_atomic(%x: memref<?xf32>, %n: i64) {
  // expected-error @+1 {{expected 'tile.cache' to be "stream" or "keep" on a load or store, but got "keep"}}
  %0 = tile.atomic_load relaxed %x[%n] {tile.cache = "keep"} : memref<?xf32> -> tensor<4xf32>
  return
}

// -----

func.func @factors(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xf32>) {
  // expected-error @+1 {{expected 'tile.factors' to be two floats of 8 bits on a product, but got [f8E4M3FN, f16]}}
  %0 = tile.dot %a, %b, %c {tile.factors = [f8E4M3FN, f16]} : tensor<16x32xi8>, tensor<32x8xi8>, tensor<16x8xf32>
  return
}

// -----

func.func @factors_of_a_sum(%x: f32) {
  // expected-error @+1 {{expected 'tile.factors' to be two floats of 8 bits on a product, but got [f8E4M3FN, f8E5M2]}}
  %0 = arith.addf %x, %x {tile.factors = [f8E4M3FN, f8E5M2]} : f32
  return
}

// -----

func.func @coarse(%a: tensor<16x32xi8>, %b: tensor<32x8xi8>, %c: tensor<16x8xi32>) {
  // expected-error @+1 {{expected 'tile.coarse' to be a unit on a 'tile.dot' with 'tile.factors', but got unit}}
  %0 = tile.dot %a, %b, %c {tile.coarse} : tensor<16x32xi8>, tensor<32x8xi8>, tensor<16x8xi32>
  return
}

// -----

func.func @accuracy(%x: f32) {
  // expected-error @+1 {{expected 'tile.accuracy' to be "full" or "fast" on a division or a function that may be fast, but got "quick"}}
  %0 = math.exp2 %x {tile.accuracy = "quick"} : f32
  return
}

// -----

func.func @accuracy_of_erf(%x: f32) {
  // expected-error @+1 {{expected 'tile.accuracy' to be "full" or "fast" on a division or a function that may be fast, but got "fast"}}
  %0 = math.erf %x {tile.accuracy = "fast"} : f32
  return
}

// -----

// expected-error @+1 {{expected 'tile.stages' to be an i64 from 1 on a function, but got 2 : i32}}
func.func @stages(%a: f32) attributes {tile.stages = 2 : i32} { return }

// -----

// expected-error @+1 {{expected 'tile.problems' to be an i64 from 1 on a function, but got 0}}
func.func @problems(%a: f32) attributes {tile.problems = 0 : i64} { return }

// -----

// expected-error @+1 {{expected 'tile.disjoint' to be pairs of views on a function, each pair in order, but got [array<i64: 1, 0>]}}
func.func @order(%a: memref<?xf32>, %b: memref<?xf32>) attributes {tile.disjoint = [array<i64: 1, 0>]} { return }

// -----

// expected-error @+1 {{expected 'tile.disjoint' to be pairs of views on a function, each pair in order, but got [array<i64: 0, 1>]}}
func.func @scalar(%a: memref<?xf32>, %b: f32) attributes {tile.disjoint = [array<i64: 0, 1>]} { return }

// -----

// expected-error @+1 {{expected 'tile.disjoint' to be pairs of views on a function, each pair in order, but got [array<i64: 0, 2>]}}
func.func @outside(%a: memref<?xf32>, %b: memref<?xf32>) attributes {tile.disjoint = [array<i64: 0, 2>]} { return }

// -----

// expected-error @+1 {{expected an attribute that the 'tile' dialect has, but got 'tile.warp'}}
func.func @unknown(%a: f32) attributes {tile.warp = 4} { return }

// -----

// expected-error @+1 {{expected 'tile.align' of argument 0 to be a power of two in i64 on a view, but got 48 : i64}}
func.func @align(%a: memref<?xf32> {tile.align = 48}) { return }

// -----

// expected-error @+1 {{expected 'tile.align' of argument 0 to be a power of two in i64 on a view, but got 64 : i64}}
func.func @alignedScalar(%a: f32 {tile.align = 64}) { return }

// -----

// expected-error @+1 {{expected 'tile.fits_32' of argument 1 to be a unit on a view, but got 1 : i64}}
func.func @fits(%a: f32, %b: memref<?xf32> {tile.fits_32 = 1}) { return }

// -----

// expected-error @+1 {{expected an attribute of arguments that the 'tile' dialect has, but got 'tile.aligned'}}
func.func @unknownOfArgument(%a: memref<?xf32> {tile.aligned}) { return }

// -----

func.func @console(%a: i1) {
  // expected-error @+1 {{expected 'tile.label' to be a symbol on a 'tile.print', but got @text}}
  tile.check %a, "no" {tile.label = @text} : i1
  return
}

// -----

func.func @sign(%a: i32) {
  // expected-error @+1 {{expected 'tile.unsigned' to be a unit on an operation to which the sign of integers matters, but got unit}}
  %0 = tile.shl %a, %a {tile.unsigned} : i32
  return
}

// -----

func.func @element(%a: i8) {
  // expected-error @+1 {{expected 'tile.element' to be the number of an element type, an i32, on a print, but got 99 : i32}}
  tile.print "x", %a {tile.element = 99 : i32} : i8
  return
}

// -----

func.func @text(%a: i1) {
  // expected-error @+1 {{expected 'tile.where' to be a symbol on a 'tile.check', but got "text"}}
  tile.check %a, "no" {tile.where = "text"} : i1
  return
}

// -----

// expected-error @+1 {{expected 'tile.programs' to be an i64 from 1 on a function, but got 0 : i64}}
func.func @programs(%a: f32) attributes {tile.programs = 0} { return }
