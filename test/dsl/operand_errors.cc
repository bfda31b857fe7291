// Mistakes with types, shapes and numbers in functions that compute.

#include "test/dsl/ErrorCases.h"

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64});

// --- Numbers and types -----------------------------------------------------------------------------------------------

KILN_ERRORS(Numbers, OutOfRange, (View), row) {
  Tile small = zeros(i8, {4});
  // expected-error@+1 {{'+' expected a number that fits i8, but got 300}}
  small + 300;
  // expected-error@+1 {{'&' expected a number that fits boolean, but got 2}}
  (small == 0) & 2;
  // expected-error@+1 {{'full' expected a number that fits i32, but got 2147483648}}
  full(i32, {4}, int64_t(1) << 31);
  small + 127;
  small + -128;
}

// A finite number that would become an infinity; infinity itself is permitted.
KILN_ERRORS(Numbers, TooLargeForTheFloat, (View a), row) {
  Tile x = load(a, {0}, {4});
  // expected-error@+1 {{'*' expected a number that fits f32, but got 1e+300}}
  x * 1e300;
  // expected-error@+1 {{'full' expected a number that fits f16, but got 70000}}
  full(f16, {4}, 70000);
  // expected-error@+1 {{'full' expected a number that fits bf16, but got -3.402e+38}}
  full(bf16, {4}, -3.402e38);
  full(bf16, {4}, -infinity);
  full(f16, {4}, 65504);
  x * 1e-300;
}

// An unsigned number outside the signed range; floats represent it.
KILN_ERRORS(Numbers, UnsignedFrom2To63, (View a), row) {
  Tile n = program_id(), x = load(a, {0}, {4});
  // expected-error@+1 {{'<' expected a number that fits i64, but got 18446744073709551615; write the signed}}
  static_cast<void>(n < 0xFFFFFFFFFFFFFFFFull);
  // expected-error@+1 {{'full' expected a number that fits i64, but got 9223372036854775808; write the signed}}
  full(i64, {4}, 1ull << 63);
  // expected-error@+1 {{'Tile' expected a number that fits i64, but got 9223372036854775808; write the signed}}
  Tile most = 1ull << 63;
  // expected-error@+1 {{'load' expected a number that fits i64, but got 9223372036854775808; write the signed}}
  load(a, {1ull << 63}, {4});
  n < 0x7FFFFFFFFFFFFFFFull;
  x * 0xFFFFFFFFFFFFFFFFull;
}

KILN_ERRORS(Numbers, Unsigned, (View a, View b), view(u8, {8}), view(i8, {8})) {
  Tile n = load(a, {0}, {4}), s = load(b, {0}, {4});
  // expected-error@+1 {{'+' expected a number that fits u8, but got -1}}
  n + -1;
  // expected-error@+1 {{'full' expected a number that fits u8, but got 256}}
  full(u8, {4}, 256);
  // expected-error@+1 {{'full' expected a number that fits u64, but got -1}}
  full(u64, {4}, -1);
  // expected-error@+1 {{'constant' expected a number that fits u64, but got 18446744073709551616}}
  constant(u64, {1}, {0x1p64});
  // expected-error@+1 {{'<' expected operands of one type, but got i8 and u8, which have no implicit}}
  n < s;
  // expected-error@+1 {{'*' expected operands of one type, but got i8 and u32, which have no implicit}}
  s *cast(n, u32);
  // expected-error@+1 {{'store' expected a tile of the view's type u8, but got i8[4]; use cast()}}
  store(a, {0}, s);
  // expected-error@+1 {{'load' expected padding zero on a view of u8, but got inf}}
  load(a, {0}, {4}, Padding::inf);
  full(u64, {4}, 0xFFFFFFFFFFFFFFFFull);
  constant(u64, {1}, {0x1p63});
  n < 255;
}

// A loop's tile keeps its type, although MLIR has one type for both.
KILN_ERRORS(Numbers, LoopsKeepTheSign, (View a), view(u8, {8})) {
  // expected-note@+1 {{declared here}}
  Tile n = load(a, {0}, {4});
  for (Tile i : range(3))
    // expected-error@+1 {{a tile that a loop body changes must keep its type and shape u8[4], but got i8[4]}}
    n = cast(n, i8);
}

// 8-bit floats accept any number, but no padding other than 0.
KILN_ERRORS(Numbers, FloatsOf8Bits, (View a), view(f8e4m3, {8})) {
  full(f8e4m3, {4}, 1e30);
  full(f8e5m2, {4}, -infinity);
  // expected-error@+1 {{'load' expected padding zero on a view of f8e4m3, but got neg_inf}}
  load(a, {0}, {4}, Padding::neg_inf);
  // expected-error@+1 {{'+' expected operands of one type, but got f8e4m3 and f8e5m2, which have no implicit}}
  load(a, {0}, {4}) + zeros(f8e5m2, {4});
}

// Scales are moved and converted; f16 has not all of them.
KILN_ERRORS(Numbers, Scales, (View a), view(f8e8m0, {8})) {
  Tile s = load(a, {0}, {4}), e = zeros(f8e4m3, {4}), h = zeros(f16, {4});
  // expected-error@+1 {{'+' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  s + s;
  // expected-error@+1 {{'-' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  -s;
  // expected-error@+1 {{'*' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  s * 2;
  // expected-error@+1 {{'exp2' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  exp2(s);
  // expected-error@+1 {{'<' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  s < 2;
  // expected-error@+1 {{'reduce_max' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  reduce_max(s);
  // expected-error@+1 {{'cumsum' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  cumsum(s);
  // expected-error@+1 {{'sort' expected a type with arithmetic, but got f8e8m0[4]; use cast()}}
  sort(s);
  // expected-error@+1 {{'*' expected operands of one type, but got f8e8m0 and f16, which have no implicit}}
  s *h;
  // expected-error@+1 {{'where' expected operands of one type, but got f8e4m3 and f8e8m0, which have no implicit}}
  where(e < 1, s, e);
  // expected-error@+1 {{'dot' expected operands of one type, but got f8e4m3 and f8e8m0; use cast()}}
  dot(zeros(f8e4m3, {8, 32}), zeros(f8e8m0, {32, 8}));
  // expected-error@+1 {{'dot' expected operands of type f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8 or u8,}}
  dot(zeros(f8e8m0, {8, 32}), zeros(f8e8m0, {32, 8}));
  // expected-error@+1 {{'load' expected padding zero on a view of f8e8m0, but got inf}}
  load(a, {0}, {4}, Padding::inf);
  store(a, {0}, where(isnan(s), cast(cast(s, f32) * 2.5f, f8e8m0), full(f8e8m0, {4}, -1)));
}

// Pairs are moved, packed and unpacked.
KILN_ERRORS(Numbers, Pairs, (View a), view(f4e2m1x2, {8})) {
  Tile p = load(a, {0}, {4}), n = zeros(u8, {4}), x = zeros(f32, {4});
  // expected-error@+1 {{'+' expected a type with arithmetic, but got f4e2m1x2[4]; use unpack()}}
  p + p;
  // expected-error@+1 {{'+' expected operands of one type, but got f4e2m1x2 and f32, which have no implicit}}
  p + x;
  // expected-error@+1 {{'&' expected a type with arithmetic, but got f4e2m1x2[4]; use unpack()}}
  p & p;
  // expected-error@+1 {{'==' expected a type with arithmetic, but got f4e2m1x2[4]; use unpack()}}
  p == p;
  // expected-error@+1 {{'reduce_or' expected a type with arithmetic, but got f4e2m1x2[4]; use unpack()}}
  reduce_or(p);
  // expected-error@+1 {{'where' expected operands of one type, but got u8 and f4e2m1x2, which have no implicit}}
  where(n < 1, p, n);
  // expected-error@+1 {{'cast' expected types of single numbers, but got f4e2m1x2[4] to convert to f32; use unpack()}}
  cast(p, f32);
  // expected-error@+1 {{'cast' expected types of single numbers, but got f32[4] to convert to f4e2m1x2; use pack()}}
  cast(x, f4e2m1x2, Rounding::down);
  // expected-error@+1 {{'full' expected a number that fits f4e2m1x2, but got 1}}
  full(f4e2m1x2, {4}, 1);
  // expected-error@+1 {{'full' expected types of single numbers, but got i32 scalar to convert to f4e2m1x2; use pack}}
  full(f4e2m1x2, {4}, cast(program_id(0), i32));
  // expected-error@+1 {{'load' expected integers as subscripts, but got f4e2m1x2[4]}}
  load(a, {p});
  // expected-error@+1 {{'store' expected a tile of the view's type f4e2m1x2, but got u8[4]; use cast()}}
  store(a, {0}, n);
  // expected-error@+1 {{'dot' expected operands of one type, but got f4e2m1x2 and i8; use cast()}}
  dot(zeros(f4e2m1x2, {8, 32}), zeros(i8, {32, 8}));
  // expected-error@+1 {{'unpack' expected a tile of f4e2m1x2, but got u8[4]; use bitcast()}}
  unpack(n, f32);
  // expected-error@+1 {{'unpack' expected a float type with arithmetic, but got f8e8m0}}
  unpack(p, f8e8m0);
  // expected-error@+1 {{'unpack' expected a tile of rank 1 to 4, but got f4e2m1x2[1x1x1x1x4]}}
  unpack(reshape(p, {1, 1, 1, 1, 4}), f32);
  // expected-error@+1 {{'pack' expected floats with arithmetic, but got u8[4]}}
  pack(n);
  // expected-error@+1 {{'pack' expected an even extent along axis 0, but got f32[3]}}
  pack(zeros(f32, {3}));
  // expected-error@+1 {{'pack' expected an axis from -1 to 0, but got 1}}
  pack(x, 1);
  store(a, {0}, where(unpack(p, f32) < 1, zeros(f4e2m1x2, {8}), concat({pack(unpack(p, bf16)), bitcast(n, f4e2m1x2)})));
}

// Neither type has all numbers of the other, and f16 would make infinities of most of bf16's.
KILN_ERRORS(Types, Bf16WithF16, (View), row) {
  Tile b = zeros(bf16, {4}), h = zeros(f16, {4}), x = zeros(f32, {4});
  // expected-error@+1 {{'+' expected operands of one type, but got bf16 and f16, which have no implicit}}
  b + h;
  // expected-error@+1 {{'where' expected operands of one type, but got bf16 and f16, which have no implicit}}
  where(x < 0, h, b);
  // expected-error@+1 {{'fma' expected operands of one type, but got bf16 and f16, which have no implicit}}
  fma(h, 2, b);
  clamp(b, h, x);
}

KILN_ERRORS(Numbers, OfAConstant, (View), row) {
  // expected-error@+1 {{'constant' expected 4 numbers for shape 2x2, but got 3}}
  constant(f32, {2, 2}, {1, 2, 3});
  // expected-error@+1 {{'constant' expected 1 number for shape scalar, but got 2}}
  constant(f32, {}, {1, 2});
  // expected-error@+1 {{'constant' expected a number that fits i8, but got 128}}
  constant(i8, {2}, {127, 128});
  // expected-error@+1 {{'constant' expected a number that fits i32, but got 0.5}}
  constant(i32, {2}, {1, 0.5});
  // expected-error@+1 {{'constant' expected a number that fits boolean, but got 2}}
  constant(boolean, {3}, {0, 1, 2});
  // expected-error@+1 {{'constant' expected a number that fits i64, but got 1e+19}}
  constant(i64, {1}, {1e19});
  // expected-error@+1 {{'constant' expected extents of at least 1, but got shape 0}}
  constant(f32, {0}, {});
}

KILN_ERRORS(Types, ArithmeticOnBool, (View), row) {
  Tile mask = iota(4) < 2;
  // expected-error@+1 {{'+' expected numbers, but got boolean; use cast()}}
  mask + mask;
  // expected-error@+1 {{'max' expected numbers, but got boolean; use cast()}}
  max(mask, mask);
  // expected-error@+1 {{'-' expected numbers, but got boolean; use cast()}}
  -mask;
  // expected-error@+1 {{'abs' expected numbers, but got boolean; use cast()}}
  abs(mask);
  // expected-error@+1 {{'fma' expected numbers, but got boolean; use cast()}}
  fma(mask, mask, mask);
  // expected-error@+1 {{'clamp' expected numbers, but got boolean; use cast()}}
  clamp(mask, false, true);
  // expected-error@+1 {{'%' expected numbers, but got boolean; use cast()}}
  mask % mask;
  // expected-error@+1 {{'floor' expected numbers, but got boolean; use cast()}}
  floor(mask);
}

KILN_ERRORS(Types, BitsOfFloats, (View), row) {
  Tile x = zeros(f32, {4});
  // expected-error@+1 {{'&' expected integers or booleans, but got f32; use cast()}}
  x & x;
  // expected-error@+1 {{'<<' expected integers, but got f32; use cast()}}
  x << 1;
  // expected-error@+1 {{'mulhi' expected integers, but got f32; use cast()}}
  mulhi(x, x);
  // expected-error@+1 {{'~' expected integers or booleans, but got f32; use cast()}}
  ~x;
}

KILN_ERRORS(Types, FunctionsOfIntegers, (View), row) {
  Tile n = iota(4);
  // expected-error@+1 {{'divide' expected floats, but got i32; use cast()}}
  divide(n, n, Accuracy::fast);
  // expected-error@+1 {{'exp' expected floats, but got i32; use cast()}}
  exp(n);
  // expected-error@+1 {{'sqrt' expected floats, but got i32; use cast()}}
  sqrt(n);
  // expected-error@+1 {{'cbrt' expected floats, but got i32; use cast()}}
  cbrt(n);
  // expected-error@+1 {{'pow' expected floats, but got i32; use cast()}}
  pow(n, 2);
  // expected-error@+1 {{'tan' expected floats, but got i32; use cast()}}
  tan(n);
  // expected-error@+1 {{'exp10' expected floats, but got i32; use cast()}}
  exp10(n);
  // expected-error@+1 {{'hypot' expected floats, but got i32; use cast()}}
  hypot(n, n);
}

KILN_ERRORS(Types, ConditionsAreBool, (View), row) {
  Tile x = zeros(f32, {4});
  // expected-error@+1 {{'where' expected a boolean condition, but got f32[4]; compare it, as x > 0}}
  where(x, x, x);
  // expected-error@+1 {{'device_assert' expected a boolean condition, but got f32[4]}}
  device_assert(x, "expected a number");
  // expected-error@+1 {{'assume' expected a boolean scalar as condition, but got boolean[4]}}
  assume(x > 0);
  // expected-error@+1 {{'!' expected boolean, but got i32[4]; compare it with 0}}
  !iota(4);
}

KILN_ERRORS(Types, RandomOperands, (View), row) {
  Tile seed = full(i64, {}, 7);
  // expected-error@+1 {{'random' expected integer indices, but got f32[4]}}
  random(seed, zeros(f32, {4}));
  // expected-error@+1 {{'random_bits' expected an integer scalar as seed, but got i32[4]}}
  random_bits(iota(4), iota(4));
  // expected-error@+1 {{'random_normal' expected integer indices, but got f32[4]}}
  random_normal(seed, zeros(f32, {4}));
}

KILN_ERRORS(Types, Roundings, (View), row) {
  Tile x = zeros(f32, {4}), bits = zeros(i32, {4});
  // expected-error@+1 {{'stochastic_round' expected floats, but got i64[4] to round to bf16; use cast()}}
  stochastic_round(iota(4, i64), bf16, bits);
  // expected-error@+1 {{'stochastic_round' expected floats, but got f32[4] to round to i8; use cast()}}
  stochastic_round(x, i8, bits);
  // expected-error@+1 {{'stochastic_round' expected i32 or u32 as random bits, but got f32[4]}}
  stochastic_round(x, bf16, x);
  // expected-error@+1 {{'stochastic_round' expected random bits that broadcast to f32[4], but got i32[8]}}
  stochastic_round(x, bf16, iota(8));
}

// --- Shapes ----------------------------------------------------------------------------------------------------------

KILN_ERRORS(Shapes, DoNotBroadcast, (View), row) {
  Tile x = zeros(f32, {64, 32}), y = zeros(f32, {48, 32});
  // expected-error@+1 {{'+' expected shapes that broadcast, but got 64x32 and 48x32}}
  x + y;
  // expected-error@+1 {{but got 64x32 and 64; unsqueeze(), or keep in a reduction, makes 64x1 of 64}}
  x - reduce_max(x);
  // expected-error@+1 {{'<' expected shapes that broadcast, but got 64x32 and 48x32}}
  static_cast<void>(x < y);
  // expected-error@+1 {{'where' expected shapes that broadcast, but got 64x32 and 48x32}}
  where(true, x, y);
  // expected-error@+1 {{'where' expected shapes that broadcast, but got a condition of shape 48x32 and values}}
  where(y < 0, x, 0);
}

KILN_ERRORS(Shapes, ExtentsAndRank, (View a), row) {
  // expected-error@+1 {{'zeros' expected extents of at least 1, but got shape 4x0}}
  zeros(f32, {4, 0});
  // expected-error@+1 {{'full' expected a rank of at most 5, but got shape 1x1x1x1x1x1}}
  full(f32, {1, 1, 1, 1, 1, 1}, 0);
  // expected-error@+1 {{'iota' expected extents of at least 1, but got shape 0}}
  iota(0);
  // expected-error@+1 {{'load' expected extents of at least 1, but got shape -1}}
  load(a, {0}, {-1});
}

KILN_ERRORS(Shapes, Creation, (View), row) {
  // expected-error@+1 {{'iota' expected type i32 or i64, but got f32}}
  iota(4, f32);
  // expected-error@+1 {{'full' expected a number or a scalar to fill with, but got i32[4]; use broadcast()}}
  full(i32, {4}, iota(4));
  // expected-error@+1 {{'program_id' expected a grid axis from 0 to 2, but got 3}}
  program_id(3);
  // expected-error@+1 {{'num_programs' expected a grid axis from 0 to 2, but got -1}}
  num_programs(-1);
}

KILN_ERRORS(Shapes, Reshaping, (View), row) {
  Tile x = zeros(f32, {4, 8});
  // expected-error@+1 {{'reshape' expected a shape of 32 elements for f32[4x8], but got 4x9}}
  reshape(x, {4, 9});
  // expected-error@+1 {{'reshape' expected a shape of 32 elements for f32[4x8], but got 3x-1}}
  reshape(x, {3, -1});
  // expected-error@+1 {{'reshape' expected extents of at least 1, but got shape 1x-1}}
  reshape(x, {-1, -1});
  // expected-error@+1 {{'transpose' expected a tile of rank 2 or more, but got i32[4]}}
  transpose(iota(4));
  // expected-error@+1 {{'transpose' expected each of the 2 dimensions once, but got order [0, 0]}}
  transpose(x, {0, 0});
  // expected-error@+1 {{'broadcast' expected a tile that broadcasts to 4x9, but got f32[4x8]}}
  broadcast(x, {4, 9});
  // expected-error@+1 {{'broadcast' expected a tile that broadcasts to 8, but got f32[4x8]}}
  broadcast(x, {8});
  // expected-error@+1 {{'unsqueeze' expected an axis from -3 to 2, but got 3}}
  unsqueeze(x, 3);
  // expected-error@+1 {{'squeeze' expected an axis from -2 to 1, but got 2}}
  squeeze(x, 2);
  // expected-error@+1 {{'squeeze' expected an axis of extent 1, but got axis -1 of f32[4x8]}}
  squeeze(x, -1);
  // expected-error@+1 {{'roll' expected an axis from -2 to 1, but got 2}}
  roll(x, 1, 2);
  // expected-error@+1 {{'roll' expected a tile of rank 1 or more, but got f32 scalar}}
  roll(sum(sum(x)), 1);
}

KILN_ERRORS(Shapes, Moments, (View), row) {
  // expected-error@+1 {{'mean' expected floats, but got i32; use cast()}}
  mean(iota(4));
  // expected-error@+1 {{'var' expected floats, but got i32; use cast()}}
  var(iota(4));
  // expected-error@+1 {{'cdiv' expected integers, but got f32; use cast()}}
  cdiv(zeros(f32, {4}), 2);
}

KILN_ERRORS(Shapes, Reductions, (View row), row) {
  Tile x = zeros(f32, {4, 8});
  // expected-error@+1 {{f32 scalar; load(view, {n}) reads one element, load(view, {n}, {64}) a block}}
  sum(cast(load(row, {program_id()}), f32));
  // expected-error@+1 {{but got f32[64x32] and f32 scalar; load(view, {n}) reads one element}}
  dot(zeros(f32, {64, 32}), cast(load(row, {program_id()}), f32));
  // expected-error@+1 {{'sum' expected an axis from -2 to 1, but got 2}}
  sum(x, 2);
  // expected-error@+1 {{'reduce_max' expected an axis from -2 to 1, but got -3}}
  reduce_max(x, -3);
  // expected-error@+1 {{'argmax' expected a tile of rank 1 or more, but got i64 scalar}}
  argmax(program_id());
  // expected-error@+1 {{'sum' expected different axes, at least one, but got [0, -2]}}
  sum(x, {0, -2});
  // expected-error@+1 {{'reduce_min' expected different axes, at least one, but got []}}
  reduce_min(x, {}, true);
  // expected-error@+1 {{'sum' expected an axis from -2 to 1, but got 2}}
  sum(x, {0, 2}, keep);
}

// --- dot -------------------------------------------------------------------------------------------------------------

KILN_ERRORS(Dot, Operands, (View), row) {
  Tile x = zeros(f32, {64, 32}), y = zeros(f32, {48, 64}), v = zeros(f32, {32});
  // expected-error@+1 {{'dot' expected inner extents to match, but got 64x32 and 48x64}}
  dot(x, y);
  // expected-error@+1 {{'dot' expected tiles of the same rank, 2 or more, but got f32[64x32] and f32[32]}}
  dot(x, v);
  Tile three = zeros(f32, {3, 8, 32}), two = zeros(f32, {2, 32, 8});
  // expected-error@+1 {{'dot' expected tiles of the same rank, 2 or more, but got f32[3x8x32] and f32[64x32]}}
  dot(three, x);
  // expected-error@+1 {{'dot' expected leading extents to match, but got 3x8x32 and 2x32x8; use broadcast()}}
  dot(three, two);
  // expected-error@+1 {{'dot' expected inner extents to match, but got 3x8x32 and 3x8x32}}
  dot(three, three);
  // expected-error@+1 {{'dot' expected an accumulator f32[3x8x8], but got f32[8x8]}}
  dot(three, transpose(three, {0, 2, 1}), zeros(f32, {8, 8}));
  // expected-error@+1 {{'dot' expected operands of one type, but got f32 and bf16; use cast()}}
  dot(y, cast(x, bf16));
  // expected-error@+1 {{'dot' expected operands of type f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8 or u8, but got i64}}
  dot(cast(y, i64), cast(x, i64));
  // expected-error@+1 {{'dot' expected operands of type f32, bf16, f16, f8e4m3, f8e5m2, f64 or i8 or u8, but got u16}}
  dot(cast(y, u16), cast(x, u16));
  // expected-error@+1 {{'dot' expected operands of one type, but got u8 and i32; use cast()}}
  dot(cast(y, u8), cast(x, i32));
  // expected-error@+1 {{'dot' expected an accumulator i32[48x32], but got u32[48x32]}}
  dot(cast(y, u8), cast(x, i8), zeros(u32, {48, 32}));
  // expected-error@+1 {{'dot' expected an accumulator f32[48x32], but got f32[48x48]}}
  dot(y, x, zeros(f32, {48, 48}));
  // expected-error@+1 {{'dot' expected an accumulator f32[48x32], but got bf16[48x32]}}
  dot(cast(y, bf16), cast(x, bf16), zeros(bf16, {48, 32}));
}

// 8-bit floats of any two formats can be multiplied, but not with other types.
KILN_ERRORS(Dot, Bytes, (View), row) {
  Tile x = zeros(f8e4m3, {8, 64}), y = zeros(f8e5m2, {64, 16});
  dot(x, y);
  dot(transpose(y), transpose(x));
  // expected-error@+1 {{'dot' expected operands of one type, but got f8e4m3 and bf16; use cast()}}
  dot(x, cast(y, bf16));
  // expected-error@+1 {{'dot' expected operands of one type, but got f8e4m3 and i8; use cast()}}
  dot(x, zeros(i8, {64, 16}));
}

// Operands with scales: their permitted types, and their number of scales.
KILN_ERRORS(Dot, Scaled, (View), row) {
  Tile x = zeros(f8e4m3, {8, 64}), y = zeros(f8e5m2, {64, 16}), s = zeros(u8, {8, 2}), t = zeros(u8, {2, 16});
  dot_scaled(x, s, y, t);
  // expected-error@+1 {{'dot_scaled' expected factors of f8e4m3, f8e5m2 or f4e2m1x2, or of u8 with two}}
  dot_scaled(cast(x, f32), s, y, t);
  dot_scaled(x, {}, y, t);
  dot_scaled(x, s, cast(y, bf16), {});
  dot_scaled(zeros(u8, {8, 32}), zeros(f8e4m3, {8, 4}), y, t);
  // expected-error@+1 {{'dot_scaled' expected a factor without scales of f8e4m3, f8e5m2 or bf16, but got f16[8x64]}}
  dot_scaled(cast(x, f16), {}, y, t);
  // expected-error@+1 {{'dot_scaled' expected a factor without scales of f8e4m3, f8e5m2 or bf16, but got u8[32x16]}}
  dot_scaled(x, s, zeros(u8, {32, 16}), {});
  // expected-error@+1 {{'dot_scaled' expected scales of at least one factor; use dot()}}
  dot_scaled(x, {}, y, {});
  // expected-error@+1 {{'dot_scaled' expected factors of f8e4m3, f8e5m2 or f4e2m1x2, or of u8 with two}}
  dot_scaled(cast(x, bf16), s, y, t);
  // expected-error@+1 {{'dot_scaled' expected scales of f8e8m0, u8 or f8e4m3, but got i8[8x2]}}
  dot_scaled(x, cast(s, i8), y, t);
  // expected-error@+1 {{'dot_scaled' expected factors of rank 2 to 4, but got f8e4m3[64]}}
  dot_scaled(zeros(f8e4m3, {64}), s, y, t);
  // expected-error@+1 {{'dot_scaled' expected an inner extent that is a multiple of 16, but got 40}}
  dot_scaled(zeros(f8e4m3, {8, 40}), s, y, t);
  // expected-error@+1 {{'dot_scaled' expected scales of shape 8x3, one for each 16 elements of the inner dimension,}}
  dot_scaled(zeros(f8e4m3, {8, 48}), s, y, t);
  // expected-error@+1 {{'dot_scaled' expected scales of shape 4x16 or 2x16, one for each 16 or 32 elements of}}
  dot_scaled(x, s, y, transpose(t));
  // expected-error@+1 {{'dot_scaled' expected leading and inner extents to match, but got 8x64 and 128x16}}
  dot_scaled(x, s, zeros(u8, {64, 16}), zeros(u8, {4, 16}));
  // expected-error@+1 {{'dot' expected an accumulator f32[8x16], but got f32[8x8]}}
  dot_scaled(x, s, y, t, zeros(f32, {8, 8}));
}

// A mistake is reported once: later uses of its result are no errors, and other mistakes are found in the same run.
KILN_ERRORS(Poison, OneMistakeOneError, (View a), row) {
  // expected-error@+1 {{'dot' expected inner extents to match, but got 2x3 and 4x5}}
  Tile x = dot(zeros(f32, {2, 3}), zeros(f32, {4, 5}));
  Tile y = exp(transpose(x)) + zeros(i8, {9, 9});
  for (Tile k : range(4))
    y = y * 2;
  store(a, {0, 1}, sum(y, 7)); // expected-error {{'store' expected 1 offset for a view of rank 1, but got 2}}
}

} // namespace
} // namespace kiln::testing
