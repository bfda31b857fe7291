// Variants of attention, with heads of GPT-2 124M.

#include "kernels/plain_attention.h"
#include "tools/kiln-bench/problems.h"

#include <fmt/format.h>

using namespace kiln;

static constexpr int64_t B = 2, H = 12, T = 1024, D = 64;

namespace {
/// A name, the number of key heads, and the mask.
struct Form {
  const char *name;
  int64_t keyHeads;
  AttentionMask mask;
};
} // namespace

/// Four documents in each sequence.
static std::vector<int32_t> packedRanges() {
  std::vector<int32_t> ranges;
  for (int32_t i = 0; i < B * T; ++i) {
    const auto at = static_cast<int32_t>(i % T), each = static_cast<int32_t>(T / 4);
    ranges.insert(ranges.end(), {at / each * each, at + 1});
  }
  return ranges;
}

static std::vector<Form> formsOf(bench::Operands &make) {
  const std::vector<int32_t> ranges = packedRanges();
  const AttentionMask packed = {.causal = false,
                                .ranges = make.of({B, T, 2}, i32, ranges),
                                .queryRanges = make.of({B, T, 2}, i32, queryRanges(ranges, T, T))};
  const AttentionMask free = {.causal = false, .mask = make.of({1, 1, T, T}, i8, std::vector<int8_t>(T * T, 1))};
  const Dropout dropout = {{0.1}, make.of({2}, i64, std::vector<int64_t>{77, 0}), T, T};
  AttentionMask both = packed;
  both.dropout = dropout;
  return {{"packed", H, packed},
          {"masked", H, free},
          {"dropout", H, {.dropout = dropout}},
          {"packed dropout", H, both},
          {"grouped", H / 3, {}}};
}

std::vector<bench::Problem> bench::formProblems(const Target &target, Type type, Operands &make) {
  std::vector<Problem> problems;
  const auto heads = [&](int64_t count) { return make({B, T, count, D}, type).permute({0, 2, 1, 3}); };
  const auto add = [&](const std::string &form, const Plan &plan) {
    for (Problem &problem : problemsOf("form", plan, type)) {
      problem.name = fmt::format("{} {}", form, problem.name);
      problem.peer.clear();
      problems.push_back(std::move(problem));
    }
  };
  const TensorRef q = heads(H), o = heads(H), dout = heads(H), dq = heads(H), lse = make({B, H, T}, f32);
  const std::vector<Form> forms = formsOf(make);
  for (const Form &form : forms) {
    const TensorRef k = heads(form.keyHeads), v = heads(form.keyHeads), dk = heads(form.keyHeads),
                    dv = heads(form.keyHeads);
    Plan plan = planAttention(target, q, k, v, o, lse, 0.125f, form.mask);
    plan += planAttentionBackward(target, {q, k, v, o, lse, dout}, dq, dk, dv, 0.125f, form.mask);
    add(form.name, plan);
  }
  const TensorRef k = heads(H), v = heads(H), dk = heads(H), dv = heads(H), weights = make({B, H, T, T}, f32);
  const AttentionMask dropping = {.dropout = forms[2].mask.dropout};
  Plan plain = planPlainAttention(target, q, k, v, o, weights, 0.125f, dropping);
  plain += planPlainAttentionBackward(target, {q, k, v, weights, dout}, dq, dk, dv, 0.125f, dropping);
  add("plain", plain);
  return problems;
}
