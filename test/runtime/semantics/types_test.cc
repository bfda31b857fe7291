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
  store(bits, {0}, bitcast(tile, u8));
}
const Kernel moveBytesKernel = kernel("move_bytes", moveBytes);

// Operations that move elements keep every bit, also of infinities and NaN.
TEST_P(Types, MovesKeepEveryByte) {
  for (const Type type : {f8e4m3, f8e5m2, f8e8m0, f4e2m1x2}) {
    Raw raw(256);
    for (size_t i = 0; i < raw.size(); ++i)
      raw[i] = i;
    const Tensor x = tensor(type, {256}, raw), out(device, type, {2, 256}), bits(device, u8, {256});
    launch(moveBytesKernel, {x.ref(), out.ref(), bits.ref()});
    const Raw got = read(out);
    EXPECT_EQ(read(bits), raw) << nameOf(type);
    for (size_t i = 0; i < 512; ++i)
      ASSERT_EQ(got[i], raw[i % 256]) << nameOf(type) << " " << i;
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

} // namespace
