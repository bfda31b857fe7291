// Cache hints change no result, for all accesses: blocks, gathered elements, tiles that a loop may prefetch, and memory
// that is read and written.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t length = 300;

struct Config {
  int reading = 0, writing = 0;
};

/// y[i] = x[i] + x[i + 1], the last one without a neighbour; named[names[i]] = x[i] if names[i] is not 7; and all of y
/// once more, read and written in place.
void move(View x, View names, View y, View named, Config cfg) {
  const auto in = static_cast<Cache>(cfg.reading), out = static_cast<Cache>(cfg.writing);
  Tile here = load(x, {0}, {length}, {.cache = in}), next = load(x, {1}, {length}, {.cache = in});
  store(y, {0}, here + next, {.cache = out});
  Tile at = load(names, {0}, {length}, {.cache = in});
  store(named, {at}, load(x, {at}, {}, {.mask = at != 7, .cache = in}), {.mask = at != 7, .cache = out});
  store(y, {0}, load(y, {0}, {length}, {.cache = in}) + 1, {.cache = out});
}
const Kernel moveKernel =
    kernel("move", move, {field("reading", &Config::reading), field("writing", &Config::writing)});

/// c = a · b, (32, K) by (K, 32).
void multiply(View a, View b, View c, Config cfg) {
  Tile sums = zeros(f32, {32, 32});
  for (Tile k : range(0, a.dim(1), 32))
    sums = dot(load(a, {0, k}, {32, 32}, {.cache = static_cast<Cache>(cfg.reading)}),
               load(b, {k, 0}, {32, 32}, {.cache = static_cast<Cache>(cfg.writing)}), sums);
  store(c, {0, 0}, sums, {.cache = static_cast<Cache>(cfg.writing)});
}
const Kernel multiplyKernel =
    kernel("multiply", multiply, {field("reading", &Config::reading), field("writing", &Config::writing)});

std::string configOf(int number) { // all pairs of hints
  return "reading=" + std::to_string(number / 3) + ",writing=" + std::to_string(number % 3);
}

class Caches : public Semantics {};

TEST_P(Caches, ChangeNothingThatIsMoved) {
  for (int number = 0; number < 9; ++number) {
    const Type type = std::array{f32, u8, bf16, f64, i32, i16, f16, i64, i8}[number];
    const auto wordOf = [&](int64_t value) {
      return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
    };
    Raw numbers(length), positions(length);
    for (int64_t i = 0; i < length; ++i) {
      numbers[i] = wordOf(i % 41);
      positions[i] = rawOfInteger(i32, i * 7 % length); // each once
    }
    const Tensor x = tensor(type, {length}, numbers), names = tensor(i32, {length}, positions),
                 y = tensor(type, {length}, Raw(length, wordOf(99))),
                 named = tensor(type, {length}, Raw(length, wordOf(99)));
    launch(moveKernel, {x.ref(), names.ref(), y.ref(), named.ref()}, configOf(number));
    const Raw sums = read(y), there = read(named);
    for (int64_t i = 0; i < length; ++i) {
      ASSERT_EQ(sums[i], wordOf(i % 41 + (i + 1 < length ? (i + 1) % 41 : 0) + 1)) << nameOf(type) << " at " << i;
      ASSERT_EQ(there[i], wordOf(i == 7 ? 99 : i % 41)) << nameOf(type) << " named " << i;
    }
  }
}

TEST_P(Caches, ChangeNoProduct) {
  const int64_t K = 100;
  for (int number = 0; number < 9; ++number) {
    const Type type = std::array{bf16, f16, f32}[number % 3];
    Raw left(32 * K), right(K * 32);
    for (int64_t i = 0; i < 32 * K; ++i) {
      left[i] = rawOfReal(type, static_cast<double>(i * 5 % 17 - 8));
      right[i] = rawOfReal(type, static_cast<double>(i * 3 % 13 - 6));
    }
    const Tensor a = tensor(type, {32, K}, left), b = tensor(type, {K, 32}, right),
                 c = tensor(f32, {32, 32}, Raw(32 * 32, 0));
    launch(multiplyKernel, {a.ref(), b.ref(), c.ref()}, configOf(number));
    const Raw got = read(c);
    for (int64_t i = 0; i < 32 * 32; ++i) {
      double want = 0;
      for (int64_t k = 0; k < K; ++k)
        want += realOf(type, left[i / 32 * K + k]) * realOf(type, right[k * 32 + i % 32]);
      ASSERT_EQ(realOf(f32, got[i]), want) << nameOf(type) << " at " << i;
    }
  }
}

KILN_ON_PROCESSORS(Caches);

} // namespace
