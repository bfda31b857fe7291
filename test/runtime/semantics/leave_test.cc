// Iterations, loops and programs that end early, and loop hints.

#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

#include <array>

using namespace kiln;
using namespace kiln::test;

namespace {

class Leave : public Semantics {};

Raw numbers(const std::vector<int64_t> &values) { return {values.begin(), values.end()}; }

// --- Loops -----------------------------------------------------------------------------------------------------------

/// Appends each number that passes to `out`, and leaves both loops in all ways.
void primes(View out, Tile end) {
  Tile count = 0;
  for (Tile n : range(2, end)) {
    continue_if(n % 5 == 3);
    Tile isPrime = n > 0;
    for (Tile d : range(2, n)) {
      continue_if(n % d != 0);
      isPrime = n < 0;
      break_if(n > 0);
      store(out, {0}, -1); // never
    }
    continue_if(!isPrime);
    store(out, {count}, n);
    count = count + 1;
    break_if(count == 6);
  }
  store(out, {15}, count);
}
const Kernel primesKernel = kernel("primes", primes);

TEST_P(Leave, LoopsAndRoundsEnd) {
  for (const int64_t end : {0, 2, 3, 12, 100}) {
    const Tensor out = tensor(i64, {16}, Raw(16, 77));
    launch(primesKernel, {out.ref(), end});
    std::vector<int64_t> want(16, 77);
    int64_t count = 0;
    for (int64_t n = 2; n < end && count < 6; ++n) {
      bool isPrime = n % 5 != 3;
      for (int64_t d = 2; d < n; ++d)
        isPrime &= n % d != 0;
      if (isPrime)
        want[count++] = n;
    }
    want[15] = count;
    EXPECT_EQ(read(out), numbers(want)) << end;
  }
}

/// A tile that is changed before and after the points where the loop may be left, also in branches.
void changed(View out, Tile stop, Tile skip) {
  Tile x = zeros(f32, {3, 17}), y = zeros(i32, {5});
  for (Tile k : range(10)) {
    x = x + 1.0;
    if_(k == skip, [&] {
      x = x + 100.0;
      continue_if(k > 0);
      x = x + 1000.0;
    });
    y = y + 1;
    if_(
        k < stop, [&] { x = x + 10.0; },
        [&] {
          y = y + 100;
          break_if(k == stop);
          y = y + 1000;
        });
    x = x + 0.5;
  }
  store(out, {0, 0}, x);
  store(out, {3, 0}, cast(y, f32));
}
const Kernel changedKernel = kernel("changed", changed);

TEST_P(Leave, TilesKeepWhatTheyHadWhenALoopWasLeft) {
  for (const int64_t stop : {-1, 0, 4, 9, 20})
    for (const int64_t skip : {-1, 0, 2, 4, 9}) {
      const Tensor out(device, f32, {4, 17});
      launch(changedKernel, {out.ref(), stop, skip});
      float x = 0, y = 0;
      for (int64_t k = 0; k < 10; ++k) {
        x += 1;
        if (k == skip) {
          x += 100;
          if (k > 0)
            continue;
          x += 1000;
        }
        y += 1;
        if (k < stop) {
          x += 10;
        } else {
          y += 100;
          if (k == stop)
            break;
          y += 1000;
        }
        x += 0.5;
      }
      const Raw got = read(out);
      for (int64_t i = 0; i < 56; ++i)
        ASSERT_EQ(toDouble(f32, got[i]), i < 51 ? x : y) << "at " << i << ", stop " << stop << ", skip " << skip;
    }
}

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

void collect(View out, Tile begin, Tile end, Tile step, Tile rounds) {
  Tile at = 0;
  for (Tile i : range(begin, end, step)) {
    store(out, {at}, i);
    at = at + 1;
    break_if(at == rounds);
  }
}
const Kernel collectKernel = kernel("collect_some", collect);

// A range with an early exit counts like any other, also next to the ends of 64 bits, and need not reach its end.
TEST_P(Leave, RangesCountTo64BitBounds) {
  for (const auto &[begin, end, step] : std::vector<std::array<int64_t, 3>>{{0, 5, 1},
                                                                            {5, 5, 1},
                                                                            {7, 5, 1},
                                                                            {-3, 4, 2},
                                                                            {0, most, 1},
                                                                            {least, most, 1},
                                                                            {most - 10, most, 3},
                                                                            {most - 1, most, 10},
                                                                            {most - 5, most, most},
                                                                            {least, most, most},
                                                                            {least, most, int64_t{1} << 62},
                                                                            {0, 3, -2},
                                                                            {0, 3, 0},
                                                                            {9, 0, -2},
                                                                            {most, least, -most}})
    for (const int64_t rounds : {1, 2, 6}) {
      const Tensor out = tensor(i64, {8}, Raw(8, 77));
      launch(collectKernel, {out.ref(), begin, end, step, rounds});
      std::vector<int64_t> want(8, 77);
      int64_t count = 0;
      for (__int128 i = begin; (step < 0 ? i > end : i < end) && count < rounds; i += step == 0 ? 1 : step)
        want[count++] = static_cast<int64_t>(i);
      EXPECT_EQ(read(out), numbers(want)) << fmt::format("range({}, {}, {}), {} rounds", begin, end, step, rounds);
    }
}

void leaveWhile(View out, Tile stop, Tile end) {
  Tile total = zeros(i64, {17}), asked = 0;
  for (Tile n : repeat_while([&] { return reduce_max(total) < end; })) {
    asked = n;
    continue_if(n % 3 == 1);
    total = total + n;
    if_(n == stop, [&] { break_if(n >= 0); });
    total = total + 100;
  }
  store(out, {0}, total);
  store(out, {17}, asked);
}
const Kernel leaveWhileKernel = kernel("leave_while", leaveWhile);

TEST_P(Leave, WhilesEnd) {
  for (const int64_t stop : {-1, 0, 2, 5, 50})
    for (const int64_t end : {0, 1, 250, 2000}) {
      const Tensor out(device, i64, {18});
      launch(leaveWhileKernel, {out.ref(), stop, end});
      int64_t total = 0, asked = 0;
      for (int64_t n = 0; total < end; ++n) {
        asked = n;
        if (n % 3 == 1)
          continue;
        total += n;
        if (n == stop)
          break;
        total += 100;
      }
      std::vector<int64_t> want(18, total);
      want[17] = asked;
      EXPECT_EQ(read(out), numbers(want)) << stop << ", " << end;
    }
}

/// The condition has an effect: it is not evaluated again after the loop is left.
void askedOnce(View counts, Tile stop) {
  for (Tile n : repeat_while([&] { return atomic_add(counts, {0}, 1) < 10; })) {
    atomic_add(counts, {1}, 1);
    break_if(n == stop);
  }
}
const Kernel askedOnceKernel = kernel("asked_once", askedOnce);

TEST_P(Leave, AConditionIsAskedOnceARound) {
  for (const int64_t stop : {-1, 0, 3, 9}) {
    const Tensor counts = tensor(i64, {2}, {0, 0});
    launch(askedOnceKernel, {counts.ref(), stop});
    const uint64_t rounds = stop < 0 ? 10 : static_cast<uint64_t>(stop) + 1;
    EXPECT_EQ(read(counts), Raw({stop < 0 ? 11 : rounds, rounds})) << stop;
  }
}

// --- Programs --------------------------------------------------------------------------------------------------------

/// From Triton's test of nested ifs that return.
void returns(View out, Tile a, Tile b) {
  Tile p = program_id(0), x = full(i64, {17}, 1);
  return_if(p == 3);
  if_(
      a > 0,
      [&] {
        x = x + 1;
        if_(b > 0, [&] { return_if(p < 2); }, [&] { x = x + 10; });
        x = x + 100;
      },
      [&] { return_if(b == 0); });
  store(out, {p, 0}, x);
  for (Tile i : range(3)) {
    x = x + 1000;
    for (Tile j : range(3))
      return_if((i == 1) & (j == p));
    store(out, {p, 0}, x);
  }
  store(out, {p, 0}, x + 5);
}
const Kernel returnsKernel = kernel("returns", returns);

// A program that has returned stores nothing more, wherever in its loops and branches it returned.
TEST_P(Leave, ProgramsEnd) {
  for (const int64_t a : {0, 1})
    for (const int64_t b : {0, 1}) {
      const Tensor out = tensor(i64, {6, 17}, Raw(102, 7));
      launch(returnsKernel, {out.ref(), a, b}, "", 6);
      std::vector<int64_t> want(102, 7);
      for (int64_t p = 0; p < 6; ++p) {
        int64_t x = 1;
        if (p == 3 || (a > 0 && b > 0 && p < 2) || (a == 0 && b == 0))
          continue;
        if (a > 0)
          x += 101 + (b > 0 ? 0 : 10);
        x += p < 3 ? 1000 : 3005;
        std::fill_n(want.begin() + p * 17, 17, x);
      }
      EXPECT_EQ(read(out), numbers(want)) << a << ", " << b;
    }
}

/// A tile gets its first value in sides of branches that end some programs.
void firstValues(View out, Tile a) {
  Tile x, y;
  if_(a == 0, [&] { return_if(true); }, [&] { x = full(f32, {17}, 2.0); });
  if_(
      a == 1,
      [&] {
        return_if(program_id(0) == 0);
        y = x * 2.0;
      },
      [&] { y = x; });
  store(out, {program_id(0), 0}, y);
}
const Kernel firstValuesKernel = kernel("first_values", firstValues);

TEST_P(Leave, TilesGetValuesInSidesThatAreLeft) {
  for (const int64_t a : {0, 1, 2}) {
    const Tensor out = tensor(f32, {2, 17}, Raw(34, rawOfReal(f32, 7)));
    launch(firstValuesKernel, {out.ref(), a}, "", 2);
    const Raw got = read(out);
    for (int64_t i = 0; i < 34; ++i)
      EXPECT_EQ(toDouble(f32, got[i]), a == 2 ? 2 : a == 0 || i < 17 ? 7 : 4) << a << " at " << i;
  }
}

/// Shared memory, sums and products on both sides of a place where some programs return.
void returnsFromProducts(View x, View out, Tile end) {
  Tile p = program_id(0), sum = zeros(f32, {32, 32});
  for (Tile k : range(0, x.dim(1), 16)) {
    Tile a = load(x, {0, k}, {32, 16});
    return_if(p * 16 == k);
    sum = dot(a, transpose(a), sum);
    break_if(k == end);
  }
  store(out, {p, 0, 0}, sum + kiln::sum(sum, 1, keep));
}
const Kernel returnsFromProductsKernel = kernel("returns_from_products", returnsFromProducts);

TEST_P(Leave, ProgramsEndAmongProducts) {
  constexpr int64_t depth = 64;
  Raw words;
  for (int64_t i = 0; i < 32 * depth; ++i)
    words.push_back(rawOfReal(f16, static_cast<double>(i * 3 % 7 - 3)));
  const Tensor x = tensor(f16, {32, depth}, words);
  for (const int64_t end : {0, 16, 100}) {
    const Tensor out = tensor(f32, {6, 32, 32}, Raw(6 * 1024, rawOfReal(f32, 7)));
    launch(returnsFromProductsKernel, {x.ref(), out.ref(), end}, "", 6);
    const Raw got = read(out);
    for (int64_t p = 0; p < 6; ++p)
      for (int64_t i = 0; i < 32; ++i) {
        const int64_t last = std::min(end + 16, depth);
        std::vector<double> row(32, 7);
        if (p * 16 >= last) {
          double total = 0;
          for (int64_t j = 0; j < 32; ++j) {
            row[j] = 0;
            for (int64_t k = 0; k < last; ++k)
              row[j] += toDouble(f16, words[i * depth + k]) * toDouble(f16, words[j * depth + k]);
            total += row[j];
          }
          for (double &each : row)
            each += total;
        }
        for (int64_t j = 0; j < 32; ++j)
          ASSERT_EQ(toDouble(f32, got[(p * 32 + i) * 32 + j]), row[j]) << p << " at " << i << ", " << j << ", " << end;
      }
  }
}

// --- Hints -----------------------------------------------------------------------------------------------------------

struct HintConfig {
  int unroll = 1, stages = 0, pipeline = 1;
};
std::vector<Field> hintFields() {
  return {field("unroll", &HintConfig::unroll), field("hinted", &HintConfig::stages),
          field("pipeline", &HintConfig::pipeline)};
}

void hinted(View x, View out, Tile begin, Tile end, Tile step, HintConfig cfg) {
  Tile sum = zeros(f32, {32, 32}), total = zeros(f32, {17}), count = 0;
  for (Tile k : range(begin, end, step, {.unroll = cfg.unroll, .stages = cfg.stages, .pipeline = cfg.pipeline != 0})) {
    Tile a = load(x, {0, k}, {32, 16});
    sum = dot(a, transpose(a), sum);
    total = total * 0.7 + cast(k, f32) * 0.1;
    if_(k % 3 == 0, [&] { count = count + k; });
  }
  store(out, {0, 0}, sum);
  store(out, {32, 0}, total);
  store(out, {33, 0}, cast(reshape(count, {1}), f32));
}
const Kernel hintedKernel = kernel("hinted", hinted, hintFields());

struct KnownConfig {
  int unroll = 1;
};
void hintedKnown(View out, KnownConfig cfg) {
  for (int end = 0; end < 9; ++end) {
    Tile total = zeros(f32, {17});
    for (Tile k : range(1, end, 2, {.unroll = cfg.unroll}))
      total = total * 0.7 + cast(k, f32) * 0.1;
    store(out, {end, 0}, total);
  }
}
const Kernel hintedKnownKernel = kernel("hinted_known", hintedKnown, {"out"}, {field("unroll", &KnownConfig::unroll)});

// No result depends on a hint, bit for bit, for any number of iterations left over by unrolling.
TEST_P(Leave, HintsChangeNoResult) {
  Raw words;
  for (int64_t i = 0; i < 32 * 128; ++i)
    words.push_back(rawOfReal(bf16, static_cast<double>(i * 3 % 7 - 3) * 0.3));
  const Tensor x = tensor(bf16, {32, 128}, words);
  for (const auto &[begin, end, step] : std::vector<std::array<int64_t, 3>>{{0, 128, 16},
                                                                            {0, 100, 16},
                                                                            {16, 17, 16},
                                                                            {5, 5, 16},
                                                                            {0, 112, 1},
                                                                            {most - 40, most, 7},
                                                                            {0, most, most / 5}}) {
    Raw want;
    for (const std::string config :
         {"", "unroll=2", "unroll=3", "unroll=8", "hinted=2", "hinted=4,unroll=2", "pipeline=0"}) {
      const Tensor out(device, f32, {34, 32});
      launch(hintedKernel, {x.ref(), out.ref(), begin, end, step}, config);
      if (config.empty())
        want = read(out);
      EXPECT_EQ(read(out), want) << config << fmt::format(" of range({}, {}, {})", begin, end, step);
    }
  }
  Raw want;
  for (const int unroll : {1, 2, 3, 4, 16}) {
    const Tensor out(device, f32, {9, 17});
    launch(hintedKnownKernel, {out.ref()}, KnownConfig{unroll});
    if (unroll == 1)
      want = read(out);
    EXPECT_EQ(read(out), want) << unroll;
  }
}

KILN_ON_PROCESSORS(Leave);

} // namespace
