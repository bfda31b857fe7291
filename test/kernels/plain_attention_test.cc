// Plain attention, whose weights are matrices in memory, with each option of flash attention, compared with the same
// formulas.

#include "kernels/plain_attention.h"
#include "test/expect_error.h"
#include "test/kernels/attention_problem.h"

namespace kiln {
namespace {

class PlainAttentionTest : public AttentionProblemTest {
protected:
  void checkPlain(const Problem &p) {
    const ProblemSize &s = p.s;
    SCOPED_TRACE(testing::Message() << s.B << " x " << s.H << " of " << s.Hk << ", " << s.Tq << " see " << s.Tk
                                    << (p.mask.causal ? " causal" : "") << (p.mask.dropout ? " dropped" : ""));
    const Array weights = unwritten({s.B, s.H, s.Tq, s.Tk}, f32);
    run(planPlainAttention(target(), p.q, p.k, p.v, p.o, weights, p.scale(), p.mask));
    const PlainAttentionSaved saved = {p.q, p.k, p.v, weights, p.dout};
    run(planPlainAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask));
    expectRight(p, /*hasSums=*/false);
  }
};

// Short and long rows, and head sizes that tiles do not divide.
TEST_P(PlainAttentionTest, EveryExtent) {
  for (const ProblemSize &s :
       taken<ProblemSize>(GetParam(), {{2, 3, 3, 37, 37, 7}, {1, 1, 1, 1, 1, 8}, {1, 1, 1, 70, 70, 64}}, 1))
    for (const bool causal : {true, false})
      checkPlain(problem(s, causal));
}

// Different lengths, grouped heads, ranges, arbitrary masks with rows that see nothing, and dropout of each kind.
TEST_P(PlainAttentionTest, EveryForm) {
  checkPlain(problem({1, 2, 2, 20, 50, 8}, true));
  checkPlain(problem({1, 4, 2, 40, 20, 8}, true));
  Problem windows = problem({1, 2, 2, 33, 33, 8}, false), some = problem({2, 2, 1, 19, 37, 8}, false);
  Ranges ranges;
  for (int32_t i = 0; i < 33; ++i)
    ranges.insert(ranges.end(), {std::max(0, i - 9), i + 1});
  setRanges(windows, ranges);
  setDropout(windows, {0.2}, 77, 3, 64);
  checkPlain(windows);
  setMask(some, 1, 2, randomMask(2, 19, 37));
  checkPlain(some);
  Problem plain = problem({1, 3, 1, 21, 21, 8}, true);
  setDropout(plain, {0.2, DropoutKind::plain}, 77, 3, 64);
  checkPlain(plain);
  plain.mask.dropout->rngState = {};
  checkPlain(plain);
}

KILN_ON_PRODUCT_MACHINES(PlainAttentionTest);

// Weights are a matrix of f32 for each head.
TEST(PlainAttention, WantsItsWeights) {
  const TensorRef heads = TensorRef::dense(nullptr, f32, {2, 3, 10, 64});
  EXPECT_EQ(errorOf([&] {
              planPlainAttention(Target(), heads, heads, heads, heads, TensorRef::dense(nullptr, f32, {2, 3, 10}), 1);
            }),
            "'plain_attention': expected 'weights' of shape 2x3x10x10, but got 2x3x10");
}

} // namespace
} // namespace kiln
