// RUN: kiln-opt %s --tile-unroll-loops=operations=8 --verify-diagnostics --split-input-file

func.func @large(%x: f32) -> f32 {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c8 = arith.constant 8 : i64
  // expected-error@+1 {{expected at most 8 operations, but 4 unrolled iterations of 3 operations exceed that; choose a smaller 'unroll'}}
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %x) -> (f32) : i64 {
    %b = arith.addf %a, %a : f32
    %c = arith.addf %b, %a : f32
    scf.yield %c : f32
  } {tile.unroll = 4 : i64}
  return %r : f32
}
