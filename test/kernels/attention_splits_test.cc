// Attention whose keys several programs share, and of a single query that is multiplied elementwise, in every form,
// against the plain formulas in double precision; and how many parts plans choose.

#include "kernels/cache_append.h"
#include "test/expect_error.h"
#include "test/kernels/attention_problem.h"
#include "test/kernels/harness.h"

namespace kiln {
namespace {

class AttentionSplitsTest : public AttentionProblemTest {
protected:
  AttentionConfig shared(int parts, int bm = 16, int bn = 16) const {
    AttentionConfig config = tiles(true, bm, bn);
    config.kvSplits = parts;
    return config;
  }
  AttentionConfig alone(int parts, int bn = 16) const {
    AttentionConfig config = shared(parts, 1, bn);
    config.decode = true;
    return config;
  }
  /// The forward pass, and the backward pass with its saved results.
  void checkForward(const Problem &p, const std::optional<AttentionConfig> &config) {
    const ProblemSize &s = p.s;
    SCOPED_TRACE(testing::Message() << s.B << " x " << s.H << " of " << s.Hk << ", " << s.Tq << " see " << s.Tk
                                    << (config ? ", parts " + std::to_string(config->kvSplits) : "")
                                    << (config && config->decode ? " decode" : ""));
    run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, config));
    const AttentionSaved saved = {p.q, p.k, p.v, p.o, p.lse, p.dout};
    run(planAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask));
    expectRight(p);
  }
  /// For each sequence: the keys from 0 up to one of these.
  static Ranges upTo(const std::vector<int32_t> &ends) {
    Ranges ranges;
    for (const int32_t end : ends)
      ranges.insert(ranges.end(), {0, end});
    return ranges;
  }
};

// More parts than blocks of keys, fewer, and equally many; keys that fill blocks, and that do not.
TEST_P(AttentionSplitsTest, EveryNumberOfParts) {
  for (const auto &[parts, Tk] : taken<std::pair<int, int>>(GetParam(), {{3, 50}, {4, 64}, {5, 129}, {2, 1}}, 1))
    for (const bool causal : taken<char>(GetParam(), {false, true}, 1)) {
      checkForward(problem({1, 2, 2, 5, Tk, 8}, causal), shared(parts));
      checkForward(problem({1, 2, 2, 1, Tk, 8}, causal), alone(parts));
    }
}

// A query alone, in one program.
TEST_P(AttentionSplitsTest, ASingleQueryByRows) {
  for (const auto &[Tk, D] : taken<std::pair<int, int>>(GetParam(), {{70, 64}, {1, 8}, {16, 16}, {37, 7}}, 2))
    checkForward(problem({2, 2, 2, 1, Tk, D}, false), alone(1));
}

// Growing texts: each sees the filled part of its cache, one nothing.
TEST_P(AttentionSplitsTest, CachesThatAreFilledDifferently) {
  for (const AttentionConfig &config : {alone(4), shared(4, 1)}) {
    Problem p = problem({4, 2, 1, 1, 70, 16}, false);
    setRanges(p, upTo({70, 33, 1, 0}));
    checkForward(p, config);
  }
}

// Blocks of queries, some of which begin after the ends of others; arbitrary masks, and the causal mask.
TEST_P(AttentionSplitsTest, EveryKindOfMask) {
  Problem windows = problem({1, 2, 1, 20, 53, 8}, false);
  Ranges ranges;
  for (int32_t i = 0; i < 20; ++i)
    ranges.insert(ranges.end(), {std::max(0, 2 * i - 9), 2 * i + 3});
  setRanges(windows, ranges);
  checkForward(windows, shared(3));
  if (!takesAll(GetParam()))
    return;
  for (const bool causal : {true, false}) {
    Problem p = problem({2, 2, 1, 19, 70, 8}, causal);
    setMask(p, 2, 1, randomMask(2, 19, 70));
    checkForward(p, shared(3));
    Problem one = problem({2, 2, 1, 1, 70, 8}, causal);
    setMask(one, 1, 2, randomMask(2, 1, 70));
    checkForward(one, alone(3));
  }
  Problem none = problem({1, 1, 1, 9, 40, 8}, false);
  setMask(none, 1, 1, std::vector<double>(9 * 40, 0));
  checkForward(none, shared(2));
}

// Weights are dropped as in one program, and scaled in evaluations.
TEST_P(AttentionSplitsTest, DropsWhatOneProgramDrops) {
  Problem p = problem({1, 2, 2, 9, 90, 8}, true), one = problem({2, 2, 2, 1, 90, 8}, false);
  setDropout(p, {0.3}, 77, 3, 128);
  checkForward(p, shared(3));
  setDropout(one, {0.3}, 77, 3, 128);
  checkForward(one, alone(3));
  one.mask.dropout = Dropout{{0.25, DropoutKind::plain}, {}, 1, 90};
  checkForward(one, alone(3));
}

// With the configs that plans pick while a text grows: on a GPU several splits, of a cache of several blocks.
TEST_P(AttentionSplitsTest, AsPlansPick) {
  Problem p = problem({2, 1, 1, 1, 300, 64}, false);
  setRanges(p, upTo({299, 150}));
  checkForward(p, {});
}

// Scores of ∞ and NaN give NaN, as they do in one program.
TEST_P(AttentionSplitsTest, NaNsArePassedOn) {
  Problem p = problem({1, 1, 1, 1, 40, 8}, false);
  p.k.values[20 * 8] = NAN;
  p.k.reset();
  run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, alone(3)));
  for (const double o : p.o.read())
    EXPECT_TRUE(std::isnan(o)) << o;
}

// Splits are combined in order: the same bits on any number of threads.
TEST_P(AttentionSplitsTest, IsDeterministic) {
  Problem p = problem({1, 2, 2, 1, 100, 16}, false);
  expectSameBits(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, alone(5)), {&p.o, &p.lse});
}

KILN_ON_PRODUCT_MACHINES(AttentionSplitsTest);

TensorRef tensor(Shape extents) { return TensorRef::dense(nullptr, bf16, std::move(extents)); }

/// The launches for queries that see all of a number of keys.
std::vector<Launch> launchesOf(const Target &target, int64_t B, int64_t H, int64_t Tq, int64_t Tk) {
  const TensorRef q = tensor({B, H, Tq, 64}), k = tensor({B, H, Tk, 64}),
                  lse = TensorRef::dense(nullptr, f32, {B, H, Tq});
  return planAttention(target, q, k, k, q, lse, 0.125f, {.causal = false}).launches;
}

// On a GPU, one token of a text has several programs for each head, because most SMs would be idle otherwise. Many
// texts, prompts as long as the cache, short caches and elastic targets have one. Eight heads are enough for a CPU's
// cores.
TEST(AttentionSplits, AreForFewQueriesOfManyKeys) {
  const Target cpu = {"cpu", CpuFacts{}}, gpu = {"gpu", GpuFacts{}};
  Target elastic = gpu;
  elastic.elastic = true;
  const auto programsOf = [](const std::vector<Launch> &launches) { return launches.at(0).grid[0]; };
  EXPECT_EQ(programsOf(launchesOf(gpu, 1, 12, 1, 1024)), 16);
  EXPECT_EQ(launchesOf(gpu, 1, 12, 1, 1024).size(), 2u);
  EXPECT_EQ(launchesOf(gpu, 64, 12, 1, 128).size(), 1u);
  EXPECT_EQ(launchesOf(gpu, 1, 12, 1024, 1024).size(), 1u);
  EXPECT_EQ(launchesOf(gpu, 1, 12, 1, 64).size(), 1u);
  EXPECT_EQ(launchesOf(elastic, 1, 12, 1, 1024).size(), 1u);
  EXPECT_EQ(launchesOf(cpu, 1, 12, 1, 1024).size(), 1u);
  EXPECT_EQ(programsOf(launchesOf(cpu, 1, 3, 1, 1024)), 3);
}

TEST(AttentionSplits, NameWhatDoesNotFit) {
  const Target cpu = {"cpu", CpuFacts{}};
  const TensorRef q = tensor({1, 2, 4, 8}), lse = TensorRef::dense(nullptr, f32, {1, 2, 4});
  const auto planned = [&](const AttentionConfig &config) {
    return [&, config] { planAttention(cpu, q, q, q, q, lse, 1, {}, config); };
  };
  expectError(planned({.kvSplits = 0}), {"'attention': expected 'kv_splits' to be above 0, but got 0"});
  expectError(planned({.decode = true}), {"'attention': expected 'bm' to be 1 with 'decode', but got 64"});
}

// --- Keys and values of new positions join a cache -------------------------------------------------------------------

class CacheAppendTest : public KernelTest {};

// New positions are written where each sequence's start says, from packed heads, for any number; other positions are
// unchanged.
TEST_P(CacheAppendTest, PutsPlacesBehindThoseThereAre) {
  const int64_t B = 3, H = 2, T = 20, D = 5;
  for (const int64_t n : {1, 3, 16}) {
    const Array qkv = uniform({B, n, 3, H, D}, type());
    Array keys = uniform({B, H, T, D}, type()), values = uniform({B, H, T, D}, type());
    const std::vector<double> starts = {0, 4, 20}; // the last has no room
    const auto part = [&](int which) { return qkv.ref().select(2, which).permute({0, 2, 1, 3}); };
    run(planCacheAppend(target(), part(1), part(2), array({B}, i32, starts), keys, values));
    const auto want = [&](const Array &before, int which) {
      std::vector<double> all = before.values;
      for (int64_t b = 0; b < B; ++b)
        for (int64_t i = 0; i < n && starts[b] + i < T; ++i)
          for (int64_t h = 0; h < H; ++h)
            for (int64_t d = 0; d < D; ++d)
              all[((b * H + h) * T + static_cast<int64_t>(starts[b]) + i) * D + d] =
                  qkv[(((b * n + i) * 3 + which) * H + h) * D + d];
      return all;
    };
    expectEqual("keys", keys.read(), want(keys, 1));
    expectEqual("values", values.read(), want(values, 2));
  }
}
KILN_ON_MACHINES(CacheAppendTest);

TEST(CacheAppend, NamesWhatDoesNotFit) {
  const Target target = Device::open("cpu")->target();
  const auto tensor = [](Type type, Shape extents) { return TensorRef::dense(nullptr, type, std::move(extents)); };
  const TensorRef k = tensor(f32, {2, 3, 4, 8}), cache = tensor(f32, {2, 3, 9, 8}), starts = tensor(i32, {2});
  expectError([&] { planCacheAppend(target, k, k, starts, cache, tensor(f32, {2, 3, 8, 8})); },
              {"'cache_append': expected 'values' of shape 2x3x9x8, but got 2x3x8x8"});
  expectError([&] { planCacheAppend(target, k, k, starts, cache, cache, CacheAppendConfig{3}); },
              {"'cache_append': expected 'rows' to divide 4 new positions, but got 3"});
}

} // namespace
} // namespace kiln
