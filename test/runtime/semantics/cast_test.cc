// Conversions between all pairs of element types: one rounding, saturation, NaN to 0, `x != 0` for bool.

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
    const double value = realOf(from, raw);
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

/// Numbers at and round the ends of every integer type and at the ties of every narrower float.
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
        result.push_back(rawOfReal(from, realOf(from, end) + static_cast<double>(step) / 2));
      }
  for (const Type to : everyFloat)
    if (bytesOf(to) < bytesOf(from))
      for (int i = 0; i < 2000; ++i) { // a number of the narrower type, half a step on, and its neighbours
        const uint64_t word = random() & ((1ull << (bytesOf(to) * 8)) - 1);
        const double low = realOf(to, word), high = realOf(to, word + 1);
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
  for (const Type from : {boolean, i8, u8, f8e4m3, f8e5m2, bf16, f16}) {
    Raw source(from == boolean ? 2 : 1ll << (8 * bytesOf(from)));
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = i;
    for (const Type to : everyType)
      check(from, to, source);
  }
}

// Ties, their neighbours, ends of ranges, NaN and infinities of the wide types to every type.
TEST_P(Casts, RoundOnceAndSaturate) {
  for (const Type from : {i16, u16, i32, u32, i64, u64, f32, f64})
    for (const Type to : everyType)
      check(from, to, tieWords(from));
}

// f32 to the narrow floats, whose ties lie in the upper half or right below it: every upper half of a word, denormals,
// infinities and NaN of every payload among them, with lower halves just below, on and above the tie and at both ends.
TEST_P(Casts, RoundEveryUpperHalf) {
  Raw source;
  for (const uint64_t lower : {0x0000, 0x0001, 0x7FFF, 0x8000, 0x8001, 0xFFFF})
    for (uint64_t upper = 0; upper <= 0xFFFF; ++upper)
      source.push_back(upper << 16 | lower);
  for (const Type to : {f8e4m3, f8e5m2, bf16})
    check(f32, to, source);
}

void convertTwice(View x, View viaF32, View viaF64) {
  Tile a = load(x, {0}, {3});
  store(viaF32, {0}, cast(cast(a, f32), bf16));
  store(viaF64, {0}, cast(cast(a, f64), f32));
}
const Kernel convertTwiceKernel = kernel("convert_twice", convertTwice);

// A number that the first cast rounds to a tie of the second: merged into one, the casts would round it up.
TEST_P(Casts, TwoCastsRoundTwice) {
  const int64_t tie32 = (1 << 24) + (1 << 16), tie64 = (int64_t(1) << 60) + (int64_t(1) << 36);
  const Raw source{static_cast<uint64_t>(tie32 + 1), static_cast<uint64_t>(tie64 + 1), 3};
  const Tensor x = tensor(i64, {3}, source), viaF32(device, bf16, {3}), viaF64(device, f32, {3});
  launch(convertTwiceKernel, {x.ref(), viaF32.ref(), viaF64.ref()});
  EXPECT_EQ(realOf(bf16, read(viaF32)[0]), 0x1p24);
  EXPECT_EQ(realOf(f32, read(viaF64)[1]), 0x1p60);
}

KILN_ON_PROCESSORS(Casts);

} // namespace
