// The launches of one decoding step of GPT-2: a pass of models/generate/generator.h.

#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/step_plans.h"

using namespace kiln;

Plan bench::tokenPlan(const Target &target, const Gpt2Config &config, int64_t texts, Operands &make) {
  Target exact = target;
  exact.precision = Precision::ieee;
  const Network network(config);
  const Type type = network.type();
  const TensorRef weights = make({network.parameters().count()}, type);
  const int64_t T = config.context, H = config.heads, D = config.width / H;
  const auto count = static_cast<size_t>(texts), last = static_cast<size_t>(T - 1);
  // Each text's new position is the cache's last one, and sees all others.
  const std::vector<int32_t> places(count, static_cast<int32_t>(last));
  std::vector<int32_t> seen;
  for (size_t text = 0; text < count; ++text)
    seen.insert(seen.end(), {0, static_cast<int32_t>(T)});
  const TensorRef tokens = make({texts}, i32), positions = make.of({texts}, i32, places),
                  starts = make.of({texts}, i32, places), ranges = make.of({texts, 1, 2}, i32, seen);
  std::vector<KvCache> caches;
  for (int64_t layer = 0; layer < config.layers; ++layer)
    caches.push_back({make({texts, H, T, D}, type), make({texts, H, T, D}, type), starts, ranges});
  const TensorRef logits = make({texts, config.vocab}, type);
  const auto planned = [&](Arena &arena) {
    Build build{exact, arena, network.parameters(), ParameterBuffers{weights, weights}, type};
    const TensorRef hidden = network.layers().extend(build, tokens, positions, caches);
    network.logits(build, hidden, logits);
    build.release(hidden);
    return std::move(build.plan);
  };
  Arena measured;
  planned(measured);
  const ArenaPlan where = measured.plan();
  Arena arena(where, make({where.bytes}, i8).data);
  return planned(arena);
}

std::vector<bench::Problem> bench::tokenProblems(const Target &target, const Gpt2Config &config, int64_t texts,
                                                 Operands &make) {
  return problemsOf("token", tokenPlan(target, config, texts, make), config.type);
}

double bench::bytesOfToken(const Gpt2Config &config, int64_t texts) {
  const int64_t caches = texts * config.layers * 2 * config.context * config.width;
  return static_cast<double>((Network(config).parameters().count() + caches) * bytesOf(config.type));
}
