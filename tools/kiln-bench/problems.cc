// Splits plans into launches.

#include "tools/kiln-bench/problems.h"

#include "kernels/adamw.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/plain_attention.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <numeric>

using namespace kiln;

// --- Names ---------------------------------------------------------------------------------------------------------

static int64_t fieldOf(const std::string &config, const std::string &name) {
  const std::string text = "," + config, key = "," + name + "=";
  const size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoll(text.c_str() + at + key.size(), nullptr, 10);
}

int64_t bench::Problem::field(const std::string &name) const { return fieldOf(launch.config, name); }

static std::string extentsText(const Shape &extents) { return fmt::format("{}", fmt::join(extents, "x")); }

/// The kernel, and the extents of its first two views.
static std::string nameOf(const Launch &launch) {
  std::string name = launch.kernel->name;
  int views = 0;
  for (const Arg &arg : launch.args)
    if (arg.kind != Arg::Kind::scalar && views++ < 2)
      name += " " + extentsText(arg.ref.extents);
  if (!launch.others.empty())
    name += fmt::format(" and {} more", launch.others.size());
  return name;
}

/// Its name in another compiler's rows.
static std::string peerName(const Launch &launch) {
  const std::string &kernel = launch.kernel->name;
  const Shape &first = launch.args[0].ref.extents;
  if (kernel.starts_with("matmul"))
    return std::string("matmul ") + (fieldOf(launch.config, "ta") ? "tn" : fieldOf(launch.config, "tb") ? "nt" : "nn");
  if (kernel == "weight_gradient")
    return "matmul tn";
  if (kernel == "attention" || kernel == "attention_backward_keys" || kernel == "attention_backward_queries")
    return fmt::format("{}{} D={}", kernel, fieldOf(launch.config, "causal") ? " causal" : "", first.back());
  if (kernel == "layernorm" || kernel == "residual_layernorm" || kernel == "layernorm_backward" || kernel == "softmax")
    return fmt::format("{} C={}", kernel == "residual_layernorm" ? "layernorm" : kernel, first.back());
  return kernel == "cross_entropy" || kernel == "gelu" || kernel == "adamw" ? kernel : "";
}

std::vector<bench::Problem> bench::problemsOf(const std::string &set, const Plan &plan, Type type) {
  std::vector<Problem> problems;
  std::map<std::string, size_t> known; // by all properties that distinguish launches
  std::map<std::string, int> names;
  for (const Launch &launch : plan.launches) {
    std::string key = launch.kernel->name + " " + launch.config;
    const auto addKey = [&](const Grid &grid, const std::vector<Arg> &args) {
      key += fmt::format(" {}x{}x{}", grid[0], grid[1], grid[2]);
      for (const Arg &arg : args)
        if (arg.kind != Arg::Kind::scalar)
          key += fmt::format(" {}:{}/{}", kiln::nameOf(arg.ref.type), extentsText(arg.ref.extents),
                             extentsText(arg.ref.strides));
    };
    addKey(launch.grid, launch.args);
    for (const Launch::Problem &other : launch.others)
      addKey(other.grid, other.args);
    const auto [at, isNew] = known.try_emplace(key, problems.size());
    if (!isNew) {
      ++problems[at->second].times;
      continue;
    }
    std::string name = ::nameOf(launch);
    if (const int number = ++names[name]; number > 1)
      name += fmt::format(" #{}", number);
    problems.push_back({set, name, peerName(launch), type, launch, 1, plan.workspaceBytes});
  }
  return problems;
}

// --- Operands ------------------------------------------------------------------------------------------------------

bench::Space bench::Space::of(simulator::Memory &memory) {
  return {[&](int64_t bytes) { return memory.allocate(bytes); },
          [](void *to, const void *from, int64_t bytes) { std::memcpy(to, from, static_cast<size_t>(bytes)); }};
}

bench::Space bench::Space::imagined() {
  return {[region = workspaceRegion](int64_t bytes) mutable { return imaginedRegion(++region, bytes); },
          [](void *, const void *, int64_t) {}};
}

TensorRef bench::Operands::operator()(const Shape &extents, Type type) {
  TensorRef tensor = TensorRef::dense(nullptr, type, extents);
  tensor.data = space.allocate(tensor.bytes());
  return tensor;
}

std::vector<Arg> bench::Operands::of(const Kernel &kernel, const NamedExtents &extents, Type type,
                                     const Content &content) {
  std::vector<Arg> args;
  size_t scalar = 0;
  for (const ArgumentForm &form : argumentForms(kernel)) {
    if (!form.isView()) {
      args.push_back(content.scalars.at(scalar++));
      continue;
    }
    const TensorRef tensor = (*this)(form.shape(extents), form.type(type));
    if (const auto at = content.integers.find(form.name); at != content.integers.end()) {
      const Progression &numbers = at->second;
      const int64_t each = bytesOf(tensor.type);
      std::string bytes;
      for (int64_t i = 0; i < tensor.count(); ++i) {
        const int64_t next = numbers.first + i * numbers.step;
        const auto number = static_cast<int32_t>(numbers.modulus ? next % numbers.modulus : next);
        bytes.append(reinterpret_cast<const char *>(&number), static_cast<size_t>(each)); // little-endian
      }
      space.write(tensor.data, bytes.data(), tensor.bytes());
    }
    args.push_back(tensor);
  }
  return args;
}

/// A step record whose step is applied.
static void writeRecord(const bench::Space &space, void *to) {
  const std::vector<float> ones(stepFields, 1);
  space.write(to, ones.data(), stepFields * bytesOf(f32));
}

TensorRef bench::Operands::record() {
  const TensorRef tensor = (*this)({stepFields}, f32);
  writeRecord(space, tensor.data);
  return tensor;
}

/// Inputs that affect control flow: a step that is applied, and distinct tokens.
static void fillRegions(const std::map<int, void *> &regions, const bench::Space &space, int64_t tokens) {
  writeRecord(space, regions.at(bench::recordRegion));
  std::vector<int32_t> starts(static_cast<size_t>(tokens + 1));
  std::iota(starts.begin(), starts.end(), 0);
  space.write(regions.at(bench::startsRegion), starts.data(), std::ssize(starts) * bytesOf(i32));
  space.write(regions.at(bench::distinctRegion), starts.data(), tokens * bytesOf(i32));
}

std::vector<bench::Problem> bench::stepProblems(const Target &target, const Gpt2Config &config, int64_t sequences,
                                                const Space &space) {
  std::map<int, void *> regions;
  const auto region = [&](int number, int64_t bytes) {
    void *&place = regions[number];
    if (!place)
      place = space.allocate(bytes);
    return place;
  };
  const Network network(config);
  const Plan plan = stepPlan(target, network, {.batch = sequences}, region, /*evaluates=*/false);
  fillRegions(regions, space, std::min(config.vocab, sequences * config.context));
  return problemsOf("step", plan, config.type);
}

std::vector<bench::Problem> bench::tokenProblems(const Target &target, const Gpt2Config &config, int64_t texts,
                                                 Operands &make) {
  return problemsOf("token", tokenPlan(target, config, texts, make), config.type);
}

// --- Defaults ------------------------------------------------------------------------------------------------------

static constexpr int64_t T = 1024;

/// A part of a packed (B, T, parts, H, D), as (B, H, T, D).
static TensorRef headsOf(const TensorRef &packed, int part) { return packed.select(2, part).permute({0, 2, 1, 3}); }

std::vector<bench::Problem> bench::defaultProblems(const Target &target, Type type, Operands &make) {
  constexpr int64_t N = 4 * T;
  return problemsOf(
      "default",
      kernelPlans(target, type,
                  {.N = N, .T = T, .losses = N, .activations = N * 768, .weights = N * 768, .defaults = true}, make),
      type);
}

// --- Tiles ---------------------------------------------------------------------------------------------------------

static Plan productOf(const Target &target, Type type, Layout layout, const MatmulConfig &tile, bench::Operands &make) {
  constexpr int64_t size = 2048, length = 1024;
  MatmulConfig config = tile;
  config.precision = target.precisionOf(type);
  const TensorRef a = make(layout == Layout::tn ? Shape{length, size} : Shape{size, length}, type);
  const TensorRef b = make(layout == Layout::nt ? Shape{size, length} : Shape{length, size}, type);
  return planMatmul(target, layout, a, b, make({size, size}, type == i8 ? i32 : type), false, config);
}

static Plan attentionOf(const Target &target, int64_t heads, const AttentionConfig &config, bool backward,
                        bench::Operands &make) {
  constexpr Type type = bf16;
  const TensorRef qkv = make({1, T, 3, 2, heads}, type), dqkv = make({1, T, 3, 2, heads}, type);
  const TensorRef o = make({1, T, 2, heads}, type).permute({0, 2, 1, 3}), lse = make({1, 2, T}, f32);
  const TensorRef q = headsOf(qkv, 0), k = headsOf(qkv, 1), v = headsOf(qkv, 2);
  const float scale = 1 / std::sqrt(static_cast<float>(heads));
  if (!backward)
    return planAttention(target, q, k, v, o, lse, scale, {.causal = config.causal}, config);
  const AttentionSaved saved{q, k, v, o, lse, make({1, T, 2, heads}, type).permute({0, 2, 1, 3})};
  return planAttentionBackward(target, saved, headsOf(dqkv, 0), headsOf(dqkv, 1), headsOf(dqkv, 2), scale,
                               {.causal = config.causal}, config);
}

std::vector<bench::Problem> bench::tileProblems(const Target &target, Operands &make) {
  std::vector<Problem> problems;
  const auto add = [&](const Plan &plan, Type type) {
    for (Problem &problem : problemsOf("tile", plan, type)) {
      if (problem.peer.empty())
        continue;
      problem.name = fmt::format("{} {}x{}", problem.peer, problem.field("bm"), problem.field("bn"));
      if (const int64_t bk = problem.field("bk"))
        problem.name += fmt::format("x{}", bk);
      problem.name += fmt::format(", {} warps", problem.field("warps"));
      problems.push_back(std::move(problem));
    }
  };
  const auto tile = [](int bm, int bn, int bk, int warps) {
    return MatmulConfig{.bm = bm, .bn = bn, .bk = bk, .warps = warps};
  };
  for (const Layout layout : {Layout::nn, Layout::nt, Layout::tn}) {
    for (const MatmulConfig &config :
         {tile(128, 128, 64, 4), tile(128, 256, 64, 8), tile(128, 128, 32, 4), tile(128, 128, 32, 8)})
      add(productOf(target, bf16, layout, config, make), bf16);
    add(productOf(target, f16, layout, tile(128, 128, 64, 4), make), f16);
    add(productOf(target, f32, layout, tile(128, 64, 32, 4), make), f32);
    if (layout != Layout::tn)
      add(productOf(target, i8, layout, tile(128, 64, 64, 4), make), i8);
  }
  for (const bool causal : {false, true}) {
    const auto heads = [&](int bm, int warps) { // longest first if causal, as in plans
      return AttentionConfig{
          .bm = bm, .bn = 64, .warps = warps, .whole = false, .longestFirst = causal, .causal = causal};
    };
    add(attentionOf(target, 64, heads(128, 4), false, make), bf16);
    add(attentionOf(target, 128, heads(128, 8), false, make), bf16);
    add(attentionOf(target, 64, heads(64, 4), true, make), bf16);
  }
  return problems;
}

// --- Forms of attention, with heads of GPT-2 124M ------------------------------------------------------------------

static constexpr int64_t B = 2, H = 12, D = 64;

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

static std::vector<Form> attentionForms(bench::Operands &make) {
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
  const std::vector<Form> forms = attentionForms(make);
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
