// The embedding compared with plain loops. Tables have integers: every misplaced row is an inequality.

#include "kernels/embedding.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"
#include "test/kernels/host_dropout.h"

#include <algorithm>
#include <map>

namespace kiln {
namespace {

class EmbeddingTest : public KernelTest {
protected:
  static constexpr int64_t V = 11, T = 6, B = 3, N = B * T, C = 19;

  /// The index of a batch, with `spare` unused entries at the end.
  struct Index {
    Array tokens, starts, positions;
    EmbeddingIndex refs() const { return {tokens, starts, positions}; }
  };
  Index indexOf(const Array &batch, int spare) {
    std::map<int64_t, std::vector<double>> where;
    for (int64_t n = 0; n < N; ++n)
      where[batch[n]].push_back(n);
    std::vector<double> tokens, starts = {0}, positions;
    for (const auto &[token, list] : where) {
      tokens.push_back(token);
      positions.insert(positions.end(), list.begin(), list.end());
      starts.push_back(positions.size());
    }
    for (int i = 0; i < spare; ++i)
      tokens.push_back(-1), starts.push_back(N);
    const int64_t U = tokens.size();
    return {array({U}, i32, tokens), array({U + 1}, i32, starts), array({N}, i32, positions)};
  }
};

// out[n] = wte[tokens[n]] + wpe[n mod T], with a number of rows that is no multiple of a program's.
TEST_P(EmbeddingTest, GathersTokensAndPositions) {
  Array tokens = integers({N}, i32, 0), wte = integers({V, C}, type(), 50), wpe = integers({T + 2, C}, type(), 50);
  for (int64_t n = 0; n < N; ++n)
    tokens.values[n] = n * 7 % V;
  tokens.reset();
  Array out = unwritten({N, C}, type());
  run(planEmbedding(target(), tokens, wte, wpe, out, T));
  std::vector<double> want;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c)
      want.push_back(wte[tokens[n] * C + c] + wpe[n % T * C + c]);
  expectEqual("out", out.read(), want);
}

// out[n] = drop(scale · wte[tokens[n]] + wpe[position]): without a token zeros, positions in order, given, or none.
TEST_P(EmbeddingTest, AddsWhatItIsAskedFor) {
  Array tokens = integers({N}, i32, 0), given = integers({N}, i32, 0);
  Array wte = integers({V, C}, type(), 20), wpe = integers({T + 2, C}, type(), 20), out = unwritten({N, C}, type());
  for (int64_t n = 0; n < N; ++n) {
    tokens.values[n] = n % 5 == 0 ? -1 : n * 7 % V;
    given.values[n] = n * 3 % (T + 3) - 1;
  }
  tokens.reset();
  given.reset();
  Tensor rngState(device, i64, {2});
  const int64_t numbers[] = {5, 2};
  rngState.upload(numbers, sizeof numbers);
  for (const Places places : {Places::none, Places::in_order, Places::given})
    for (const bool drops : {false, true}) {
      EmbeddingTerms terms = {.scale = 2};
      if (places != Places::none)
        terms.places = wpe.ref();
      if (places == Places::given)
        terms.positions = given.ref();
      if (drops)
        terms.dropout = Dropout{{0.5}, rngState.ref(), T, T};
      run(planEmbeddingSum(target(), tokens, wte, out, T, terms));
      std::vector<double> want;
      for (int64_t n = 0; n < N; ++n)
        for (int64_t c = 0; c < C; ++c) {
          const double position = places == Places::given ? given[n] : n % T;
          const double word = tokens[n] < 0 ? 0 : 2 * wte[tokens[n] * C + c];
          const double place = places == Places::none || position < 0 ? 0 : wpe[position * C + c];
          want.push_back((word + place) * (!drops ? 1 : test::isKept(5, 2 * T + n, C, c, 32768) ? 2 : 0));
        }
      SCOPED_TRACE(testing::Message() << placesNames[static_cast<size_t>(places)] << drops);
      expectEqual("out", out.read(), want);
    }
  given.values[3] = T + 2;
  given.reset();
  expectError([&] { run(planEmbeddingSum(target(), tokens, wte, out, T, {1, wpe.ref(), given.ref()})); },
              {"expected a position of the table, or -1"});
  tokens.values[3] = -2;
  tokens.reset();
  expectError([&] { run(planEmbeddingSum(target(), tokens, wte, out, T, {})); },
              {"expected a token of the vocabulary, or -1"});
}

// A token outside the vocabulary is reported, not read.
TEST_P(EmbeddingTest, AForeignTokenFailsTheCheck) {
  Array tokens = array({2}, i32, {0, double(V)}), wte = integers({V, C}, type(), 5), wpe = integers({T, C}, type(), 5);
  Array out = unwritten({2, C}, type());
  expectError([&] { run(planEmbedding(target(), tokens, wte, wpe, out, T)); }, {"expected a token of the vocabulary"});
}

// Repeated tokens are summed, spare entries ignored, rows of other tokens left alone; with and without accumulation.
TEST_P(EmbeddingTest, TokenGradientSumsRows) {
  std::vector<double> batch;
  for (int64_t n = 0; n < N; ++n)
    batch.push_back(n * n % 7);
  const Index index = indexOf(array({N}, i32, batch), 3);
  Array dout = integers({N, C}, type(), 5);
  for (const bool accumulate : {false, true}) {
    Array dwte = integers({V, C}, type(), 9);
    run(planTokenGradient(target(), index.refs(), dout, dwte, accumulate));
    std::vector<double> want = dwte.values;
    for (int64_t n = 0; n < N && !accumulate; ++n)
      std::fill_n(want.begin() + batch[n] * C, C, 0.0);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t c = 0; c < C; ++c)
        want[batch[n] * C + c] += dout[n * C + c];
    expectEqual("dwte", dwte.read(), want);
  }
}

// Scaled sums, added to the rows.
TEST_P(EmbeddingTest, TokenGradientIsScaled) {
  const Index index = indexOf(array({N}, i32, std::vector<double>(N, 4)), 2);
  Array dout = integers({N, C}, type(), 3), dwte = integers({V, C}, type(), 9);
  run(planTokenGradient(target(), index.refs(), dout, dwte, true, {}, 2));
  std::vector<double> want = dwte.values;
  for (int64_t i = 0; i < N * C; ++i)
    want[4 * C + i % C] += 2 * dout[i];
  expectEqual("dwte", dwte.read(), want);
}

// Sums over the batch. Rows from T on are unchanged, or 0 if the sums replace the present values.
TEST_P(EmbeddingTest, PositionGradientSumsTheBatch) {
  Array dout = integers({N, C}, type(), 5);
  for (const bool accumulate : {false, true}) {
    Array dwpe = integers({T + 2, C}, type(), 9);
    run(planPositionGradient(target(), dout, dwpe, T, accumulate));
    std::vector<double> want = dwpe.values;
    if (!accumulate)
      std::fill(want.begin(), want.end(), 0.0);
    for (int64_t i = 0; i < N * C; ++i)
      want[i % (T * C)] += dout[i];
    expectEqual("dwpe", dwpe.read(), want);
  }
}

// One program per token and a fixed order: the same bits on any number of threads.
TEST_P(EmbeddingTest, TokenGradientIsDeterministic) {
  const Index index = indexOf(array({N}, i32, std::vector<double>(N, 4)), 0);
  Array dout = uniform({N, C}, type()), dwte = uniform({V, C}, type());
  expectSameBits(planTokenGradient(target(), index.refs(), dout, dwte, true), {&dwte});
}

KILN_ON_MACHINES(EmbeddingTest);

} // namespace
} // namespace kiln
