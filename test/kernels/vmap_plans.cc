#include "test/kernels/vmap_plans.h"

#include "kernels/activate.h"
#include "kernels/adamw.h"
#include "kernels/add.h"
#include "kernels/attention.h"
#include "kernels/cache_append.h"
#include "kernels/column_sums.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gelu.h"
#include "kernels/gradient_norms.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/outliers.h"
#include "kernels/plain_attention.h"
#include "kernels/softmax.h"
#include "kernels/sum.h"

namespace kiln::test {

using Tensors = std::vector<TensorRef>;
/// A plan by a function of kernels/ of the target and the tensors.
#define PLAN(...) [=]([[maybe_unused]] const Target &target, const Tensors &t) { return __VA_ARGS__; }

static std::function<double(int64_t)> list(std::vector<double> numbers) {
  return [numbers = std::move(numbers)](int64_t i) { return numbers.at(static_cast<size_t>(i)); };
}
static Part below(Shape extents, int64_t end, Type type = i32) {
  return {std::move(extents), type, [end](int64_t i) { return static_cast<double>(i * 7 % end); }};
}
static Part shared(Part part) {
  part.isShared = true;
  return part;
}
/// The key of dropout's rngState and the number of the first sequence.
static Part rngState() { return {{2}, i64, list({77, 3})}; }
static Part record() {
  const StepRecord numbers = makeStepRecord({}, {.clip = 1.5, .lossScale = 4});
  return {{stepFields}, f32, [numbers](int64_t i) { return numbers.numbers.at(static_cast<size_t>(i)); }};
}

static void addRows(std::vector<PlanOf> &all, int64_t N, int64_t C) {
  const Part rows{{N, C}}, row{{C}}, column{{N}}, vector{{N * C}};
  all.push_back({"add", {vector, vector}, PLAN(planAdd(target, t[0], t[1], t[0]))});
  all.push_back({"softmax", {rows, rows}, PLAN(planSoftmax(target, t[0], t[1]))});
  all.push_back({"gelu", {vector, vector}, PLAN(planGelu(target, t[0], t[1]))});
  all.push_back({"gelu_backward", {vector, vector, vector}, PLAN(planGeluBackward(target, t[0], t[1], t[2]))});
  all.push_back({"activate",
                 {rows, rows, rngState()},
                 PLAN(planActivate(target, Activation::silu, t[0], t[1], Dropout{{0.25}, t[2], N, N}))});
  all.push_back({"dropout", {rows, rows, rngState()}, PLAN(planDropout(target, t[0], t[1], {{0.5}, t[2], N, N}))});
  all.push_back({"layernorm",
                 {rows, shared(row), row, rows, column, column},
                 PLAN(planLayerNorm(target, t[0], t[1], t[2], t[3], t[4], t[5]))});
  all.push_back({"residual_layernorm",
                 {rows, rows, row, shared(row), rows, column, column},
                 PLAN(planResidualLayerNorm(target, t[0], t[1], t[2], t[3], t[0], t[4], t[5], t[6]))});
  all.push_back({"layernorm_backward",
                 {rows, rows, shared(row), column, column, rows, row, row},
                 PLAN(planLayerNormBackward(target, t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], {.dx = true}))});
  all.push_back({"column_sums", {rows, row}, PLAN(planColumnSums(target, t[0], t[1], true))});
  all.push_back({"total", {vector, {{1}}}, PLAN(planTotal(target, t[0], t[1], 0.5f))});
  all.push_back({"cross_entropy",
                 {rows, shared(below({N}, C - 3)), column, column, {{1}}},
                 PLAN(planCrossEntropy(target, t[0], t[1], t[2], C - 3, 0.25f, ignoreIndex, t[4],
                                       {.smoothing = 0.1f, .correct = t[3]}))});
  all.push_back(
      {"cross_entropy_loss", {rows, below({N}, C), column}, PLAN(planCrossEntropyLoss(target, t[0], t[1], t[2], C))});
}

static void addTables(std::vector<PlanOf> &all, int64_t N, int64_t C) {
  const int64_t V = 9, T = N / 2; // two sequences
  const Part rows{{N, C}}, table{{V, C}}, places{{T, C}};
  all.push_back({"embedding",
                 {below({N}, V), shared(table), places, rows},
                 PLAN(planEmbedding(target, t[0], t[1], t[2], t[3], T))});
  all.push_back({"embedding_sum",
                 {below({N}, V), table, rows, shared(places), below({N}, T), rngState()},
                 PLAN(planEmbeddingSum(target, t[0], t[1], t[2], T, {2, t[3], t[4], Dropout{{0.25}, t[5], T, T}}))});
  const double count = static_cast<double>(N);
  all.push_back({"token_gradient",
                 {shared({{3}, i32, list({4, 1, 7})}), {{4}, i32, list({0, 3, 5, count})}, below({N}, N), rows, table},
                 PLAN(planTokenGradient(target, {t[0], t[1], t[2]}, t[3], t[4], true))});
  all.push_back({"position_gradient", {rows, places}, PLAN(planPositionGradient(target, t[0], t[1], T, false))});
}

static void addSteps(std::vector<PlanOf> &all, int64_t n) {
  const Part vector{{n}};
  all.push_back({"adamw",
                 {vector, vector, vector, vector, record()},
                 PLAN(planAdamW(target, t[0], t[1], t[2], t[3], t[4], {.decayed = n / 2, .zeroGrad = true}))});
  all.push_back({"grad_norm",
                 {vector, record()},
                 PLAN(planGradNorm(target, t[0], t[1], SquaresConfig{.block = 8, .chunk = 16}))});
  const double end = static_cast<double>(n);
  all.push_back({"gradient_norms",
                 {vector,
                  {{3}, i64, list({0, 4, 9})},
                  shared({{3}, i64, list({4, 9, end})}),
                  {{3}, i64, list({0, 1, 3})},
                  record(),
                  {{2}}},
                 PLAN(planGradientNorms(target, t[0], t[1], t[2], t[3], t[4], t[5]))});
  all.push_back({"outliers", {record(), {outlierWindowShape}}, PLAN(planOutliers(t[0], t[1], 1, {}))});
}

static void addProducts(std::vector<PlanOf> &all, int64_t M, int64_t N, int64_t K) {
  const Part a{{M, K}}, b{{K, N}}, c{{M, N}}, bias{{N}}, aTurned{{K, M}}, bTurned{{N, K}};
  all.push_back({"matmul", {a, b, c}, PLAN(planMatmul(target, Layout::nn, t[0], t[1], t[2], true))});
  all.push_back({"matmul_nt", {a, shared(bTurned), c}, PLAN(planMatmul(target, Layout::nt, t[0], t[1], t[2]))});
  all.push_back({"matmul_tn", {shared(aTurned), b, c}, PLAN(planMatmul(target, Layout::tn, t[0], t[1], t[2]))});
  all.push_back({"matmul_bias", {a, b, bias, c}, PLAN(planMatmulBias(target, Layout::nn, t[0], t[1], t[2], t[3]))});
  all.push_back({"matmul_gelu",
                 {a, bTurned, shared(bias), c, c},
                 PLAN(planMatmulGelu(target, Layout::nt, t[0], t[1], t[2], t[3], t[4]))});
  all.push_back(
      {"matmul_residual", {a, b, bias, c}, PLAN(planMatmulResidual(target, Layout::nn, t[0], t[1], t[2], t[3], t[3]))});
  all.push_back(
      {"matmul_gelu_backward", {a, b, c, c}, PLAN(planMatmulGeluBackward(target, Layout::nn, t[0], t[1], t[2], t[3]))});
  all.push_back({"linear",
                 {a, b, c, bias, c, c, rngState()},
                 PLAN(planLinear(target, Layout::nn, t[0], t[1], t[2],
                                 {t[3], Activation::silu, t[4], Dropout{{0.25}, t[6], M, M}, t[5]}))});
  all.push_back({"linear_backward",
                 {a, bTurned, c, c, rngState()},
                 PLAN(planLinearBackward(target, Layout::nt, t[0], t[1], t[2],
                                         {Activation::silu, t[3], Dropout{{0.25}, t[4], M, M}}))});
  all.push_back({"weight_gradients",
                 {aTurned, b, c, bias, b, c},
                 PLAN(planWeightGradients(target, {{t[0], t[1], t[2], t[3]}, {t[0], t[4], t[5]}}))});
  all.push_back({"weight_gradient_split", {aTurned, b, c, bias}, [](const Target &target, const Tensors &t) {
                   MatmulConfig config = pickMatmul(target, Layout::tn, t[2].extents[0], t[2].extents[1], 16);
                   config.split = config.bk = 16;
                   return planWeightGradient(target, t[0], t[1], t[2], t[3], false, config);
                 }});
}

static void addAttention(std::vector<PlanOf> &all, int64_t T, int64_t D) {
  const Part heads{{2, 2, T, D}}, keys{{2, 1, T, D}}, rows{{2, 2, T}}, weights{{2, 2, T, T}};
  const double end = static_cast<double>(T);
  const Part ranges{{2, T, 2}, i32, [end](int64_t i) { return i % 2 ? end : 0; }};
  const Part mask{{2, 2, T, T}, i8, [](int64_t i) { return i % 5 != 0; }};
  all.push_back({"attention",
                 {heads, heads, shared(heads), heads, rows},
                 PLAN(planAttention(target, t[0], t[1], t[2], t[3], t[4], 0.25f))});
  all.push_back({"attention_masked",
                 {heads, keys, keys, heads, rows, shared(ranges), mask, rngState()},
                 PLAN(planAttention(target, t[0], t[1], t[2], t[3], t[4], 0.25f,
                                    {.ranges = t[5], .mask = t[6], .dropout = Dropout{{0.25}, t[7], T, T}}))});
  all.push_back(
      {"attention_splits", {heads, heads, shared(heads), heads, rows}, [](const Target &target, const Tensors &t) {
         AttentionConfig config = pickAttention(target, t[0].extents[2], t[0].extents[3], t[0].type);
         config.kvSplits = 2;
         return planAttention(target, t[0], t[1], t[2], t[3], t[4], 0.25f, {}, config);
       }});
  for (const bool whole : {true, false})
    all.push_back({whole ? "attention_backward" : "attention_backward_apart",
                   {heads, keys, keys, heads, rows, heads, heads, keys, keys},
                   [whole](const Target &target, const Tensors &t) {
                     AttentionConfig config =
                         pickAttentionBackward(target, t[0].extents[2], t[0].extents[3], t[0].type);
                     config.whole = whole;
                     return planAttentionBackward(target, {t[0], t[1], t[2], t[3], t[4], t[5]}, t[6], t[7], t[8], 0.25f,
                                                  {}, config);
                   }});
  all.push_back({"plain_attention",
                 {heads, keys, keys, heads, weights},
                 PLAN(planPlainAttention(target, t[0], t[1], t[2], t[3], t[4], 0.25f))});
  all.push_back({"plain_attention_backward",
                 {heads, keys, keys, weights, heads, heads, keys, keys},
                 PLAN(planPlainAttentionBackward(target, {t[0], t[1], t[2], t[3], t[4]}, t[5], t[6], t[7], 0.25f))});
  const Part fresh{{2, 2, 4, D}};
  all.push_back({"cache_append",
                 {fresh, fresh, {{2}, i32, list({1, end - 2})}, heads, heads},
                 PLAN(planCacheAppend(target, t[0], t[1], t[2], t[3], t[4]))});
}

std::vector<PlanOf> everyPlan(int64_t unit) {
  const auto size = [unit](int64_t least) { return cdiv(least, unit) * unit; };
  std::vector<PlanOf> all;
  addRows(all, size(10), size(21));
  addTables(all, 2 * size(5), size(13));
  addSteps(all, size(37));
  addProducts(all, size(19), size(17), size(33));
  addAttention(all, size(21), 16);
  return all;
}

} // namespace kiln::test
