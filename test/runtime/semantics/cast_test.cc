// Conversions between all pairs of element types: one rounding, to nearest, in a direction or stochastic; saturation,
// NaN to 0, `x != 0` for bool.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Converts in blocks, to the type of the output.
void convert(View x, View y) {
  constexpr int block = 512;
  Tile n = program_id(0) * block;
  store(y, {n}, cast(load(x, {n}, {block}), y.type()));
}
const Kernel convertKernel = kernel("convert", convert);

/// The 64-bit integer nearest to `value` toward zero, saturated to `type`.
int64_t truncated(Type type, double value) {
  const int64_t bits = bytesOf(type) * 8;
  if (isUnsigned(type)) {
    const double end = std::ldexp(1.0, static_cast<int>(bits));
    return !(value > 0) ? 0 : value >= end ? -1 : static_cast<int64_t>(static_cast<uint64_t>(value));
  }
  const double end = std::ldexp(1.0, static_cast<int>(bits - 1));
  if (std::isnan(value))
    return 0;
  if (value >= end)
    return static_cast<int64_t>(~(~0ull << (bits - 1)));
  if (value < -end)
    return static_cast<int64_t>(~0ull << (bits - 1));
  return static_cast<int64_t>(value);
}

/// Integer to float with one rounding, in integers: keeps the leading bits of the magnitude and a sticky bit.
uint64_t rawOfIntegerExactly(Type type, __int128 value) {
  uint64_t size = static_cast<uint64_t>(value < 0 ? -value : value);
  int shift = 0;
  while (size >> 53) { // two bits more than any narrower type keeps; f64 itself needs the tie below
    if (type == f64)
      break;
    size = size >> 1 | (size & 1);
    ++shift;
  }
  double real = static_cast<double>(size); // exact, or for f64 the rounding asked for
  real = std::ldexp(real, shift);
  return rawOfReal(type, value < 0 ? -real : real);
}

uint64_t expected(Type from, Type to, uint64_t raw) {
  if (from == to)
    return from == boolean ? raw != 0 : raw;
  if (isFloat(from)) {
    const double value = toDouble(from, raw);
    return to == boolean ? !(value == 0) : isFloat(to) ? rawOfReal(to, value) : rawOfInteger(to, truncated(to, value));
  }
  const __int128 value = wideOf(from, raw);
  return isFloat(to)     ? rawOfIntegerExactly(to, value)
         : to == boolean ? value != 0
                         : rawOfInteger(to, static_cast<int64_t>(value));
}

class Casts : public Semantics {
protected:
  void check(Type from, Type to, const Raw &source) {
    const int64_t count = static_cast<int64_t>(source.size());
    const Tensor x = tensor(from, {count}, source), y(device, to, {count});
    launch(convertKernel, {x.ref(), y.ref()}, "", (count + 511) / 512);
    const Raw got = read(y);
    int bad = 0;
    for (int64_t i = 0; i < count && bad < 5; ++i) {
      const uint64_t want = expected(from, to, source[i]);
      if (same(to, got[i], want))
        continue;
      ++bad;
      ADD_FAILURE() << nameOf(from) << " -> " << nameOf(to) << " of word " << std::hex << source[i] << ": got "
                    << got[i] << ", want " << want;
    }
  }
};

/// Numbers at and around the limits of every integer type and the ties of every narrower float.
Raw tieWords(Type from) {
  Raw result = specialWords(from);
  std::mt19937_64 random(3);
  if (!isFloat(from)) {
    for (int bit = 0; bit < bytesOf(from) * 8 - 1; ++bit)
      for (int kept : {7, 8, 10, 11, 23, 24, 52, 53}) // a tie when one bit follows what is kept, then a little off it
        for (const int64_t off : {-1, 0, 1}) {
          const int64_t high = 1ll << bit,
                        tie = bit > kept ? high + (1ll << (bit - kept)) + (1ll << (bit - kept - 1)) : high;
          result.push_back(rawOfInteger(from, tie + off));
          result.push_back(rawOfInteger(from, -tie + off));
        }
    for (int i = 0; i < 4000; ++i)
      result.push_back(rawOfInteger(from, static_cast<int64_t>(random()) >> (random() % 60)));
    return result;
  }
  for (const int bit : {7, 8, 15, 16, 31, 32, 63, 64})
    for (const double sign : {1., -1.})
      for (int64_t step = -3; step <= 3; ++step) {
        const uint64_t end = rawOfReal(from, sign * std::ldexp(1.0, bit));
        result.push_back(end + step);
        result.push_back(rawOfReal(from, toDouble(from, end) + static_cast<double>(step) / 2));
      }
  for (const Type to : castFloats)
    if (bytesOf(to) < bytesOf(from))
      for (int i = 0; i < 2000; ++i) { // a number of the narrower type, half a step on, and its neighbours
        const uint64_t word = random() & ((1ull << (bytesOf(to) * 8)) - 1);
        const double low = toDouble(to, word), high = toDouble(to, word + 1);
        if (!std::isfinite(low) || !std::isfinite(high))
          continue;
        const uint64_t tie = rawOfReal(from, low / 2 + high / 2);
        for (const uint64_t near : {tie - 1, tie, tie + 1})
          result.push_back(near);
      }
  return result;
}

// Every word of the 8-bit types, and of the floats of 16 bits, to every type.
TEST_P(Casts, AreRightForEveryNarrowWord) {
  for (const Type from : {boolean, i8, u8, f8e4m3, f8e5m2, f8e8m0, bf16, f16}) {
    Raw source(from == boolean ? 2 : 1ll << (8 * bytesOf(from)));
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = i;
    for (const Type to : castTypes)
      check(from, to, source);
  }
}

// Ties, their neighbours, ends of ranges, NaN and infinities of the wide types to every type.
TEST_P(Casts, RoundOnceAndSaturate) {
  for (const Type from : {i16, u16, i32, u32, i64, u64, f32, f64})
    for (const Type to : castTypes)
      check(from, to, tieWords(from));
}

// f32 to narrow floats, whose ties are in the upper half or right below it: every upper half of a word, including
// denormals, infinities and NaN of every payload, with lower halves just below, on and above the tie and at both ends.
TEST_P(Casts, RoundEveryUpperHalf) {
  Raw source;
  for (const uint64_t lower : {0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF})
    for (uint64_t upper = 0; upper <= 0xFFFF; ++upper)
      source.push_back(upper << 16 | lower);
  for (const Type to : {f8e4m3, f8e5m2, f8e8m0, bf16})
    check(f32, to, source);
}

void convertTwice(View x, View viaF32, View viaF64) {
  Tile a = load(x, {0}, {3});
  store(viaF32, {0}, cast(cast(a, f32), bf16));
  store(viaF64, {0}, cast(cast(a, f64), f32));
}
const Kernel convertTwiceKernel = kernel("convert_twice", convertTwice);

// The first cast rounds the number to a tie of the second. A merged cast would round it up.
TEST_P(Casts, TwoCastsRoundTwice) {
  const int64_t tie32 = (1 << 24) + (1 << 16), tie64 = (int64_t(1) << 60) + (int64_t(1) << 36);
  const Raw source{static_cast<uint64_t>(tie32 + 1), static_cast<uint64_t>(tie64 + 1), 3};
  const Tensor x = tensor(i64, {3}, source), viaF32(device, bf16, {3}), viaF64(device, f32, {3});
  launch(convertTwiceKernel, {x.ref(), viaF32.ref(), viaF64.ref()});
  EXPECT_EQ(toDouble(bf16, read(viaF32)[0]), 0x1p24);
  EXPECT_EQ(toDouble(f32, read(viaF64)[1]), 0x1p60);
}

/// Extents of tiles that end with a part of a vector, one element above all.
constexpr int64_t partWidths[] = {1, 2, 3, 5, 9, 15, 17, 33, 65};
constexpr int64_t lineExtent = 72;

/// Line i of y begins with a tile of width i, converted to y's type.
void convertParts(View x, View y) {
  (void)(x.extent(0) + y.extent(0) + y.extent(1));
  for (int64_t line = 0; line < std::ssize(partWidths); ++line)
    store(y, {line, 0}, cast(load(x, {0}, {partWidths[line]}) + load(x, {1}, {partWidths[line]}), y.type()));
}
const Kernel convertPartsKernel = kernel("convert_parts", convertParts, {"x (73)", "y (lines, 72)"});

// A converted tile is stored with its own width: the element after it is unchanged, for all pairs of types.
TEST_P(Casts, ConvertedTilesLeaveTheNextElement) {
  for (const Type from : {i8, i32, f32, f64})
    for (const Type to : {i8, i32, bf16, f16, f32}) {
      Raw ones(lineExtent + 1, wordOf(from, 1)), before(std::size(partWidths) * lineExtent, wordOf(to, 77));
      const Tensor x = tensor(from, {lineExtent + 1}, ones);
      Tensor y = tensor(to, {std::ssize(partWidths), lineExtent}, before);
      launch(convertPartsKernel, {x, y});
      const Raw after = read(y);
      for (int64_t line = 0; line < std::ssize(partWidths); ++line)
        for (int64_t column = 0; column < lineExtent; ++column)
          ASSERT_EQ(after[line * lineExtent + column], wordOf(to, column < partWidths[line] ? 2 : 77))
              << nameOf(from) << " to " << nameOf(to) << ", tile of " << partWidths[line] << ", element " << column;
    }
}

// --- Directions and chance -------------------------------------------------------------------------------------------

constexpr Rounding everyRounding[] = {Rounding::nearest, Rounding::toward_zero, Rounding::down, Rounding::up};

/// Converts in each direction, to a row of the output for each.
void convertTowards(View x, View y) {
  constexpr int block = 512;
  const Tile n = program_id(0) * block, source = load(x, {n}, {block});
  for (const Rounding rounding : everyRounding)
    store(y, {static_cast<int>(rounding), n}, cast(source, y.type(), rounding));
}
const Kernel convertTowardsKernel = kernel("convert_towards", convertTowards);

uint64_t signBit(Type type) { return uint64_t{1} << (bytesOf(type) * 8 - 1); }

/// The word of the largest number of a float type that is not above `size`, which is not negative. It may be infinity.
uint64_t wordBelow(Type type, long double size) {
  uint64_t low = 0, high = rawOfReal(type, INFINITY);
  while (low < high) { // words count up with their numbers
    const uint64_t middle = low + (high - low + 1) / 2;
    if (static_cast<long double>(toDouble(type, middle)) <= size)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// A number as converted to `to`: 8-bit floats saturate, and scales have no negative numbers.
long double within(Type to, long double value) {
  if (to == f8e8m0)
    return value < 0 ? NAN : std::clamp(value, 0x1p-127L, 0x1p127L);
  const long double largest = bytesOf(to) > 1 ? INFINITY : to == f8e4m3 ? 448 : 57344;
  return std::clamp(value, -largest, largest);
}

uint64_t expectedTowards(Type from, Type to, uint64_t raw, Rounding rounding) {
  if (isFloat(from) && isInteger(to)) {
    const double value = toDouble(from, raw);
    return rawOfInteger(to, truncated(to, rounding == Rounding::nearest ? std::nearbyint(value)
                                          : rounding == Rounding::down  ? std::floor(value)
                                          : rounding == Rounding::up    ? std::ceil(value)
                                                                        : value));
  }
  const long double real = isFloat(from) ? static_cast<long double>(toDouble(from, raw))
                                         : static_cast<long double>(wideOf(from, raw)); // holds 64 bits
  if (!isFloat(to) || rounding == Rounding::nearest || from == to || std::isnan(real))
    return expected(from, to, raw);
  const long double value = within(to, real), size = std::abs(value);
  if (std::isnan(value))
    return expected(from, to, raw);
  const uint64_t low = wordBelow(to, size);
  const bool isInexact = static_cast<long double>(toDouble(to, low)) != size, isNegative = std::signbit(value);
  const bool grows = isInexact && rounding == (isNegative ? Rounding::down : Rounding::up);
  return (low + grows) | (isNegative ? signBit(to) : 0);
}

/// At most about `count` of the words at and near ties, from all over the list.
Raw someTieWords(Type from, size_t count) {
  const Raw words = tieWords(from);
  const uint64_t mask = from == boolean ? 1 : ~uint64_t{0} >> (64 - 8 * bytesOf(from));
  Raw result;
  for (size_t i = 0; i < words.size(); i += 1 + words.size() / count)
    result.push_back(words[i] & mask);
  return result;
}

// Every direction, from and to every type, at special numbers, at ties and around them.
TEST_P(Casts, RoundInTheGivenDirection) {
  for (const Type from : castTypes)
    for (const Type to : castTypes) {
      const Raw source = someTieWords(from, isFloat(to) && to != from ? 1500 : 200);
      const auto count = static_cast<int64_t>(source.size());
      const Tensor x = tensor(from, {count}, source), y(device, to, {4, count});
      launch(convertTowardsKernel, {x.ref(), y.ref()}, "", (count + 511) / 512);
      const Raw got = read(y);
      for (const Rounding rounding : everyRounding)
        for (int64_t i = 0; i < count; ++i) {
          const uint64_t want = expectedTowards(from, to, source[i], rounding),
                         here = got[static_cast<int64_t>(rounding) * count + i];
          ASSERT_TRUE(same(to, here, want))
              << nameOf(from) << " -> " << nameOf(to) << " of word " << std::hex << source[i] << ", rounding "
              << static_cast<int>(rounding) << ": got " << here << ", want " << want;
        }
    }
}

void convertByChance(View x, View bits, View y) {
  constexpr int block = 512;
  const Tile n = program_id(0) * block, source = load(x, {n}, {block});
  store(y, {n}, stochastic_round(source, y.type(), load(bits, {n}, {block})));
}
const Kernel convertByChanceKernel = kernel("convert_by_chance", convertByChance);

/// The fraction of the way from the number below `size` to the next one, in 2^-32; 2^32 beyond the largest number.
uint64_t chanceOf(Type to, long double size) {
  const uint64_t low = wordBelow(to, size);
  const long double below = toDouble(to, low), above = toDouble(to, low + 1);
  if (below == size)
    return 0;
  const long double step = std::isinf(above) ? below - static_cast<long double>(toDouble(to, low - 1)) : above - below;
  return static_cast<uint64_t>(std::min((size - below) / step, 1.0L) * 0x1p32L);
}

uint64_t expectedByChance(Type from, Type to, uint64_t raw, uint32_t bits) {
  const double real = toDouble(from, raw);
  const long double value = within(to, real), size = std::abs(value);
  if (std::isnan(value) || from == to)
    return expected(from, to, raw);
  return (wordBelow(to, size) + (bits < chanceOf(to, size))) | (std::signbit(value) ? signBit(to) : 0);
}

// Random bits just below the number's fraction round it away from zero; bits from the fraction on, towards zero.
TEST_P(Casts, RoundByChance) {
  for (const Type from : castFloats)
    for (const Type to : castFloats) {
      Raw source, bits;
      for (const uint64_t word : someTieWords(from, 700)) {
        const long double value = within(to, toDouble(from, word));
        const uint64_t chance = std::isnan(value) ? 0 : chanceOf(to, std::abs(value));
        for (const uint64_t number : {chance - 1, chance, uint64_t{0}, uint64_t{0xFFFFFFFF}, chance / 2}) {
          source.push_back(word);
          bits.push_back(number & 0xFFFFFFFF);
        }
      }
      const auto count = static_cast<int64_t>(source.size());
      const Tensor x = tensor(from, {count}, source), random = tensor(u32, {count}, bits), y(device, to, {count});
      launch(convertByChanceKernel, {x.ref(), random.ref(), y.ref()}, "", (count + 511) / 512);
      const Raw got = read(y);
      for (int64_t i = 0; i < count; ++i) {
        const uint64_t want = expectedByChance(from, to, source[i], static_cast<uint32_t>(bits[i]));
        ASSERT_TRUE(same(to, got[i], want))
            << nameOf(from) << " -> " << nameOf(to) << " of word " << std::hex << source[i] << " with bits " << bits[i]
            << ": got " << got[i] << ", want " << want;
      }
    }
}

void roundQuarters(View y) {
  const Tile n = program_id(0) * 512 + iota(512, i64);
  store(y, {program_id(0) * 512}, stochastic_round(full(f32, {512}, 1 + 0x1p-9), bf16, random_bits(7, n)));
}
const Kernel roundQuartersKernel = kernel("round_quarters", roundQuarters);

// A number a quarter of the way up is rounded up in 1 of 4 cases: n · p = 1024, and σ = √(n · p · (1 − p)) = 28.
TEST_P(Casts, RoundByChanceWithoutBias) {
  const Tensor y(device, bf16, {4096});
  launch(roundQuartersKernel, {y.ref()}, "", 8);
  int up = 0;
  for (const uint64_t word : read(y)) {
    ASSERT_TRUE(word == rawOfReal(bf16, 1) || word == rawOfReal(bf16, 1 + 0x1p-7)) << std::hex << word;
    up += word != rawOfReal(bf16, 1);
  }
  EXPECT_NEAR(up, 1024, 5 * 28);
}

KILN_ON_PROCESSORS(Casts);

} // namespace
