// Rules that hold for unsigned integers or 8-bit floats only. The other tests cover the rules of all types.

#include "test/runtime/semantics/semantics.h"

#include "dialect/dsl/Scaled.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Types : public Semantics {};

// --- Unsigned integers -----------------------------------------------------------------------------------------------

void namedBy(View x, View ids, View out, View blocks) {
  Tile id = load(ids, {0}, {8});
  store(out, {0}, load(x, {id}));
  store(blocks, {0}, load(x, {reduce_max(id)}, {2}));
}
const Kernel namedByKernel = kernel("named_by", namedBy);

// A position is the number that it is: the upper half of a type is far outside, and not before the view.
TEST_P(Types, UnsignedSubscripts) {
  for (const Type type : {u8, u16, u32, u64}) {
    const int64_t bits = bytesOf(type) * 8;
    const uint64_t top = ~uint64_t(0) >> (64 - bits);
    const Raw ids = {0, 1, 199, top, top - 1, top / 2 + 1, 200, 131};
    const Tensor x = counting(i32, {200}, 1), at = tensor(type, {8}, ids), out(device, i32, {8}),
                 blocks(device, i32, {2});
    launch(namedByKernel, {x.ref(), at.ref(), out.ref(), blocks.ref()});
    const Raw got = read(out);
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(got[i], ids[i] < 200 ? ids[i] + 1 : 0) << nameOf(type) << " " << ids[i];
    EXPECT_EQ(read(blocks), (Raw{0, 0})) << nameOf(type);
  }
}

void carryUnsigned(View x, View out, Tile n) {
  Tile a = load(x, {0}, {16}), most = zeros(x.type(), {16});
  for (Tile i : range(0, 3)) {
    most = max(most, a);
    if_(i == 1, [&] { a = a / 3; }, [&] { a = a >> 1; });
  }
  store(out, {0, 0}, most);
  store(out, {1, 0}, a);
  store(out, {2, 0}, full(x.type(), {16}, n) / 2);
}
const Kernel carryUnsignedKernel = kernel("carry_unsigned", carryUnsigned);

// Loops and branches carry tiles that stay unsigned, and so do scalars of a launch.
TEST_P(Types, LoopsAndBranchesCarryUnsignedTiles) {
  for (const Type type : {u8, u16, u32, u64}) {
    const uint64_t top = ~uint64_t(0) >> (64 - bytesOf(type) * 8);
    Raw raw = words(type, 16, 1, 7);
    raw[0] = top;
    const Tensor x = tensor(type, {16}, raw), out(device, type, {3, 16});
    launch(carryUnsignedKernel, {x.ref(), out.ref(), Arg(top).as(type)});
    const Raw got = read(out);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(got[i], raw[i]) << nameOf(type);
      EXPECT_EQ(got[16 + i], raw[i] / 2 / 3 / 2) << nameOf(type) << " " << raw[i];
      EXPECT_EQ(got[32 + i], top / 2) << nameOf(type);
    }
  }
}

// --- Floats of 8 bits ------------------------------------------------------------------------------------------------

void moveBytes(View x, View out, View bits) {
  Tile tile = load(x, {0}, {256});
  store(out, {0, 0}, where(iota(256) % 2 == 0, tile, flip(flip(tile))));
  store(out, {1, 0}, reshape(transpose(transpose(reshape(tile, {16, 16}))), {256}));
  store(out, {2, 0}, pad(extract(tile, {4}, {248}), {4}, {4}, 0));
  store(bits, {0}, bitcast(tile, u8));
}
const Kernel moveBytesKernel = kernel("move_bytes", moveBytes);

// Operations that move elements keep every bit, also of infinities and NaN.
TEST_P(Types, MovesKeepEveryByte) {
  for (const Type type : {f8e4m3, f8e5m2, f8e8m0, f4e2m1x2}) {
    Raw raw(256);
    for (size_t i = 0; i < raw.size(); ++i)
      raw[i] = i;
    const Tensor x = tensor(type, {256}, raw), out(device, type, {3, 256}), bits(device, u8, {256});
    launch(moveBytesKernel, {x.ref(), out.ref(), bits.ref()});
    const Raw got = read(out);
    EXPECT_EQ(read(bits), raw) << nameOf(type);
    for (size_t i = 0; i < 768; ++i) {
      const bool isPadding = i >= 512 && (i % 256 < 4 || i % 256 >= 252);
      ASSERT_EQ(got[i], isPadding ? 0 : raw[i % 256]) << nameOf(type) << " " << i;
    }
  }
}

void scaleRows(View x, View s, View out) {
  const Tile scales = load(s, {0}, {256}), isKnown = !isnan(scales);
  store(out, {0}, where(isKnown, load(x, {0}, {256}) * where(isKnown, scales, full(f8e8m0, {256}, 0.3)), -1.f));
}
const Kernel scaleRowsKernel = kernel("scale_rows", scaleRows);

// A scale next to bf16, f32 and f64 is the power of two that it means, down to 2^-127; a number that a tile of scales
// is filled with is rounded to one.
TEST_P(Types, ScalesAreNumbersOfWiderFloats) {
  Raw codes(256);
  for (size_t i = 0; i < codes.size(); ++i)
    codes[i] = i;
  const Tensor scales = tensor(f8e8m0, {256}, codes);
  for (const Type type : {bf16, f32, f64}) {
    const Tensor x = tensor(type, {256}, Raw(256, rawOfReal(type, 1))), out(device, type, {256});
    launch(scaleRowsKernel, {x.ref(), scales.ref(), out.ref()});
    const Raw got = read(out);
    for (int i = 0; i < 255; ++i)
      ASSERT_EQ(toDouble(type, got[i]), std::ldexp(1.0, i - 127)) << nameOf(type) << " " << i;
    EXPECT_EQ(toDouble(type, got[255]), -1) << nameOf(type);
  }
}

void sumBytes(View x, View out) {
  Tile tile = load(x, {0}, {64});
  store(out, {0}, unsqueeze(sum(tile), 0));
  store(out, {1}, unsqueeze(reduce_max(tile), 0));
  store(out, {2}, unsqueeze(abs(reduce_min(tile)), 0));
}
const Kernel sumBytesKernel = kernel("sum_bytes", sumBytes);

// Sums are of f32, rounded once, and saturate.
TEST_P(Types, SumsOfBytesRoundOnce) {
  for (const Type type : byteFloats) {
    Raw raw(64, rawOfReal(type, 1));
    raw[7] = rawOfReal(type, -0.25);
    const Tensor x = tensor(type, {64}, raw), out(device, type, {3});
    launch(sumBytesKernel, {x.ref(), out.ref()});
    EXPECT_EQ(read(out), (Raw{rawOfReal(type, 62.75), rawOfReal(type, 1), rawOfReal(type, 0.25)})) << nameOf(type);
    const Tensor large = tensor(type, {64}, Raw(64, rawOfReal(type, INFINITY)));
    launch(sumBytesKernel, {large.ref(), out.ref()});
    EXPECT_EQ(read(out), Raw(3, rawOfReal(type, INFINITY))) << nameOf(type);
  }
}

// --- Pairs of floats of 4 bits ---------------------------------------------------------------------------------------

/// The numbers of every byte, and of a matrix of them along its columns.
void unpackBytes(View x, View out, View rows) {
  store(out, {0}, unpack(load(x, {0}, {256}), out.type()));
  store(rows, {0, 0}, unpack(reshape(load(x, {0}, {256}), {16, 16}), rows.type(), 0));
}
const Kernel unpackBytesKernel = kernel("unpack_bytes", unpackBytes);

constexpr double halfByteSizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
double realOfHalfByte(uint64_t code) { return code & 8 ? -halfByteSizes[code & 7] : halfByteSizes[code & 7]; }

TEST_P(Types, PairsAreTwoNumbersTheFirstInTheLowHalf) {
  Raw raw(256);
  for (size_t i = 0; i < raw.size(); ++i)
    raw[i] = i;
  const Tensor x = tensor(f4e2m1x2, {256}, raw);
  for (const Type type : everyFloat) {
    const Tensor out(device, type, {512}), rows(device, type, {32, 16});
    launch(unpackBytesKernel, {x.ref(), out.ref(), rows.ref()});
    const Raw got = read(out), byRows = read(rows);
    for (size_t i = 0; i < 512; ++i) {
      ASSERT_EQ(got[i], rawOfReal(type, realOfHalfByte(i / 2 >> i % 2 * 4 & 15))) << nameOf(type) << " " << i;
      const size_t row = i / 16, byte = row / 2 * 16 + i % 16;
      ASSERT_EQ(byRows[i], rawOfReal(type, realOfHalfByte(byte >> row % 2 * 4 & 15))) << nameOf(type) << " " << i;
    }
  }
}

void packNumbers(View x, View out, View columns) {
  const Tile n = program_id(0) * 512, numbers = load(x, {n}, {512});
  store(out, {program_id(0) * 256}, pack(numbers));
  store(columns, {program_id(0), 0, 0}, unsqueeze(pack(reshape(numbers, {32, 16}), 0), 0));
}
const Kernel packNumbersKernel = kernel("pack_numbers", packNumbers);

/// The code of the nearest 4-bit float, by a search of all eight sizes; of two, the even one. NaN gives 6.
uint64_t halfByteOf(double value) {
  if (std::isnan(value))
    return 7;
  const double size = std::min(std::abs(value), 6.0);
  uint64_t best = 0;
  for (uint64_t code = 1; code < 8; ++code) {
    const double off = std::abs(halfByteSizes[code] - size), before = std::abs(halfByteSizes[best] - size);
    if (off < before || (off == before && code % 2 == 0))
      best = code;
  }
  return best | (std::signbit(value) ? 8 : 0);
}

// Every number of the narrow types; of the wider ones the ties of neighbours, and the numbers next to them.
TEST_P(Types, PackingRoundsToTheNearestPair) {
  for (const Type type : everyFloat) {
    Raw source;
    if (bytesOf(type) <= 2)
      for (uint64_t word = 0; word >> (8 * bytesOf(type)) == 0; ++word)
        source.push_back(word);
    for (int code = 0; code < 7 && bytesOf(type) > 2; ++code)
      for (const double value : {halfByteSizes[code], halfByteSizes[code] / 2 + halfByteSizes[code + 1] / 2})
        for (int64_t step = value == 0 ? 0 : -2; step <= 2; ++step)
          for (const double sign : {1., -1.})
            source.push_back(rawOfReal(type, sign * value) + static_cast<uint64_t>(step));
    for (const double value : {1e300, -1e300, double{INFINITY}, double{NAN}, 5., 7., 6.5, -1e30, 1e-30})
      source.push_back(rawOfReal(type, value));
    while (source.size() % 512 != 0)
      source.push_back(rawOfReal(type, 1.5));
    const auto count = static_cast<int64_t>(source.size()), programs = count / 512;
    const Tensor x = tensor(type, {count}, source), out(device, f4e2m1x2, {count / 2}),
                 columns(device, f4e2m1x2, {programs, 16, 16});
    launch(packNumbersKernel, {x.ref(), out.ref(), columns.ref()}, "", programs);
    const Raw got = read(out), byColumns = read(columns);
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t want = halfByteOf(toDouble(type, source[i]));
      ASSERT_EQ(got[i / 2] >> i % 2 * 4 & 15, want) << nameOf(type) << " of word " << std::hex << source[i];
      const int64_t row = i % 512 / 16, pair = i / 512 * 256 + row / 2 * 16 + i % 16;
      ASSERT_EQ(byColumns[pair] >> row % 2 * 4 & 15, want) << nameOf(type) << " of word " << std::hex << source[i];
    }
  }
}

/// Rows of 32 numbers as MXFP4, a scale for each, and back.
void quantise(View x, View scales, View pairs, View back) {
  const Tile numbers = load(x, {0, 0}, {8, 32});
  const Tile scale = cast(reduce_max(abs(numbers), 1, keep) / 6.f, f8e8m0, Rounding::up);
  const Tile codes = pack(numbers / scale);
  store(scales, {0, 0}, scale);
  store(pairs, {0, 0}, codes);
  store(back, {0, 0}, unpack(codes, f32) * scale);
}
const Kernel quantiseKernel = kernel("quantise", quantise);

// No number saturates, and each is off by at most half the largest distance of 4-bit floats, which is 2. Zeros have the
// least scale.
TEST_P(Types, BlocksAreQuantisedWithinHalfAStep) {
  Raw source;
  for (int i = 0; i < 256; ++i)
    source.push_back(rawOfReal(f32, i < 32 ? 0 : std::ldexp((i * 37 % 101 - 50) / 7.0, i / 32 * 9 - 40)));
  const Tensor x = tensor(f32, {8, 32}, source), scales(device, f8e8m0, {8, 1}), pairs(device, f4e2m1x2, {8, 16}),
               back(device, f32, {8, 32});
  launch(quantiseKernel, {x.ref(), scales.ref(), pairs.ref(), back.ref()});
  const Raw scale = read(scales), got = read(back), codes = read(pairs);
  EXPECT_EQ(scale[0], 0u);
  for (int i = 0; i < 256; ++i) {
    const double step = toDouble(f8e8m0, scale[i / 32]), number = toDouble(f32, source[i]);
    EXPECT_LE(std::abs(number), 6 * step) << i;
    EXPECT_LE(std::abs(toDouble(f32, got[i]) - number), step) << i;
    EXPECT_EQ(toDouble(f32, got[i]), step * realOfHalfByte(codes[i / 2] >> i % 2 * 4 & 15)) << i;
  }
}

KILN_ON_PROCESSORS(Types);

// --- Constants with a number for each element are tiles like any other, for every reader -----------------------------

class Constants : public Semantics {};

/// Numbers that every type has: 0 and 1 of bool, else small whole ones and, of floats, halves.
double numberAt(Type type, int64_t i) {
  if (type == boolean)
    return static_cast<double>(i % 3 == 1);
  const double number = static_cast<double>((i * 37 + 5) % 101 - (isUnsigned(type) ? 0 : 50));
  return isFloat(type) ? number / 2 : number;
}
std::vector<double> numbersOf(Type type, int64_t count) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(numberAt(type, i));
  return numbers;
}
uint64_t rawOf(Type type, double number) {
  return isFloat(type) ? rawOfReal(type, number) : rawOfInteger(type, static_cast<int64_t>(number));
}

void whole(View out, ExtentConfig cfg) {
  store(out, {0}, constant(out.type(), {cfg.extent}, numbersOf(out.type(), cfg.extent)));
}
const Kernel wholeKernel = kernel("whole", whole, extentField());

TEST_P(Constants, OfEveryTypeAndExtent) {
  for (const Type type : castTypes)
    for (const int64_t extent : extents) {
      const Tensor out(device, type, {extent});
      launch(wholeKernel, {out.ref()}, extentText(extent));
      const Raw got = read(out);
      for (int64_t i = 0; i < extent; ++i)
        ASSERT_EQ(got[i], rawOf(type, numberAt(type, i))) << nameOf(type) << "[" << extent << "] at " << i;
    }
}

// Values that are not integers, and signs that a cast could lose.
void special(View out) {
  store(out, {0}, constant(out.type(), {6}, {-0.0, infinity, -infinity, kiln::nan, 0x1p-24, 1.0 / 3}));
}
const Kernel specialKernel = kernel("special", special);

TEST_P(Constants, KeepSignsOfZeroAndRoundOnce) {
  for (const Type type : floatTypes) {
    const Tensor out(device, type, {6});
    launch(specialKernel, {out.ref()});
    const Raw got = read(out);
    const double want[] = {-0.0, INFINITY, -INFINITY, NAN, 0x1p-24, 1.0 / 3};
    for (int i = 0; i < 6; ++i)
      EXPECT_TRUE(same(type, got[i], rawOfReal(type, want[i]))) << nameOf(type) << ", number " << i;
  }
}

/// The uses of a table of 6 x 5 numbers, each a row of `out`, which has 30 columns.
void uses(View x, View out, View product) {
  const Type type = x.type();
  Tile table = constant(type, {6, 5}, numbersOf(type, 30)), a = load(x, {0, 0}, {6, 5});
  store(out, {0, 0}, reshape(table, {30}));
  store(out, {1, 0}, reshape(transpose(table), {30}));
  store(out, {2, 0}, reshape(a + table, {30}));
  store(out, {3, 0}, reshape(where(constant(boolean, {5}, {1, 0, 0, 1, 1}), a, table), {30}));
  store(out, {4, 0}, sum(table));
  store(out, {5, 0}, reduce_max(table, 0));
  Tile last = table;
  for (Tile k : range(3)) {
    if_(k == 1, [&] { last = last + constant(type, {6, 1}, {1, 2, 3, 4, 5, 6}); });
    store(out, {6 + k, 0}, reshape(last, {30}));
  }
  store(out, {9, 0}, reshape(load(x, {constant(i32, {3}, {4, 0, 5}), 0}, {5}), {15}));
  store(out, {constant(i64, {2}, {11, 10}), 0}, broadcast(constant(type, {2, 1}, {7, 8}), {2, 30}));
  store(product, {0, 0}, dot(a, transpose(table)) + dot(table, constant(type, {5, 6}, numbersOf(type, 30))));
}
const Kernel usesKernel = kernel("uses", uses);

TEST_P(Constants, MayBeReadByWhateverReadsTiles) {
  const Tensor x = counting(f32, {6, 5}), out(device, f32, {12, 30}), product(device, f32, {6, 6});
  launch(usesKernel, {x.ref(), out.ref(), product.ref()});
  const Raw got = read(out), products = read(product);
  const auto table = [](int64_t i, int64_t j) { return numberAt(f32, i * 5 + j); };
  const auto at = [&](int64_t row, int64_t column) { return toDouble(f32, got[row * 30 + column]); };
  const bool chosen[] = {true, false, false, true, true};
  for (int64_t i = 0; i < 6; ++i) {
    double total = 0;
    for (int64_t j = 0; j < 5; ++j) {
      const double number = table(i, j), loaded = static_cast<double>(i * 5 + j);
      total += number;
      EXPECT_EQ(at(0, i * 5 + j), number);
      EXPECT_EQ(at(1, j * 6 + i), number);
      EXPECT_EQ(at(2, i * 5 + j), number + loaded);
      EXPECT_EQ(at(3, i * 5 + j), chosen[j] ? loaded : number);
      EXPECT_EQ(at(6, i * 5 + j), number);
      EXPECT_EQ(at(7, i * 5 + j), number + static_cast<double>(i + 1));
      EXPECT_EQ(at(8, i * 5 + j), number + static_cast<double>(i + 1));
    }
    EXPECT_EQ(at(4, i), total);
    for (int64_t n = 0; n < 6; ++n) {
      double want = 0;
      for (int64_t k = 0; k < 5; ++k)
        want += static_cast<double>(i * 5 + k) * table(n, k) + table(i, k) * numberAt(f32, k * 6 + n);
      EXPECT_EQ(toDouble(f32, products[i * 6 + n]), want) << i << ", " << n;
    }
  }
  for (int64_t j = 0; j < 5; ++j) {
    double most = table(0, j);
    for (int64_t i = 1; i < 6; ++i)
      most = std::max(most, table(i, j));
    EXPECT_EQ(at(5, j), most);
    EXPECT_EQ(at(9, j), static_cast<double>(20 + j));
    EXPECT_EQ(at(9, 5 + j), static_cast<double>(j));
    EXPECT_EQ(at(9, 10 + j), static_cast<double>(25 + j));
  }
  EXPECT_EQ(at(11, 29), 7);
  EXPECT_EQ(at(10, 29), 8);
}

KILN_ON_PROCESSORS(Constants);

} // namespace
