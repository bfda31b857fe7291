// AdamW and the gradient norm, on flat buffers with all parameters.

#include "kernels/adamw.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

#include <bit>
#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// A field of a step's record.
static Tile field(View record, StepField name) { return load(record, {static_cast<int>(name)}, {}); } // scalar

static void setField(View record, StepField name, Tile value) { store(record, {static_cast<int>(name)}, value); }

/// Random numbers for stochastic rounding. One Philox number has 16 bits for each of eight elements.
class RoundingBits {
public:
  static constexpr int parts = 8, length = 256, unit = parts * length;
  static_assert(unit == adamwUnit);

  /// The random numbers for the elements from n on, in the record's step.
  RoundingBits(Tile seed, View record, Tile n)
      : words(random_words(seed, cast(field(record, StepField::draw), i64) * (int64_t(1) << 32) + n / parts +
                                     iota(length, i64))) {}

  /// Uniform numbers in [0, 1) for the elements from n + part · LENGTH on (LENGTH): 16 bits, as many as bf16 drops.
  Tile of(Tile part) const {
    Tile word = where(part < 4, where(part < 2, words[0], words[1]), where(part < 6, words[2], words[3])); // (LENGTH)
    return cast((word >> cast(part % 2 * 16, i32)) & 0xFFFF, f32) * 0x1p-16f;                              // (LENGTH)
  }

private:
  std::array<Tile, 4> words; // (LENGTH) each
};

static bool roundsStochastically(Type type, const AdamWConfig &cfg) {
  return type != f32 && cfg.rounding == WeightRounding::stochastic;
}

/// Elements of a program: a block, rounded up to units of random numbers.
static int64_t elementsPerProgram(Type type, const AdamWConfig &cfg) {
  return roundsStochastically(type, cfg) ? cdiv(cfg.block, RoundingBits::unit) * RoundingBits::unit : cfg.block;
}

/// One block of elements per program. oneMinusBeta = 1 − β, rounded once.
static void adamw(View p, View copy, View g, View m, View v, View record, Tile beta1, Tile oneMinusBeta1, Tile beta2,
                  Tile oneMinusBeta2, Tile epsilon, Tile decay, Tile decayed, Tile seed, Tile offset, AdamWConfig cfg) {
  // `count` elements from n on; `round` converts new weights to the type of p.
  const auto update = [&](Tile n, int64_t count, auto round) {
    const Shape block = {count};
    Tile rate = field(record, StepField::rate);                                                    // scalar
    Tile unbias1 = field(record, StepField::unbias1), unbias2 = field(record, StepField::unbias2); // scalars
    Tile grad = cast(load(g, {n}, block), f32), weight = cast(load(p, {n}, block), f32);           // (COUNT)
    Tile m0 = load(m, {n}, block), v0 = load(v, {n}, block);                                       // (COUNT)
    grad = grad * field(record, StepField::factor);

    // 1. Running averages of the gradient and of its square.
    Tile m1 = m0 * beta1 + grad * oneMinusBeta1;        // (COUNT)
    Tile v1 = v0 * beta2 + grad * grad * oneMinusBeta2; // (COUNT)

    // 2. The update. Weight decay applies to the first `decayed` elements of the buffer: the first `decaying` of these
    //    `count`.
    Tile decaying = cast(clamp(decayed - n, 0, count), i32);   // scalar
    Tile shrink = where(iota(count) < decaying, decay, 0.0);   // (COUNT)
    Tile step = m1 * unbias1 / (sqrt(v1 * unbias2) + epsilon); // (COUNT)
    weight = weight - rate * (step + shrink * weight);         // (COUNT)
    store(p, {n}, round(weight));
    if (cfg.storeCopy)
      store(copy, {n}, cast(weight, copy.type()));
    store(m, {n}, m1);
    store(v, {n}, v1);
  };

  const int64_t block = elementsPerProgram(p.type(), cfg);
  Tile n = program_id() * block;
  if_(field(record, StepField::applied) > 0.0, [&] {
    if (!roundsStochastically(p.type(), cfg))
      return update(n, block, [&](Tile weight) { return cast(weight, p.type()); });
    for (Tile unit : range(n, n + block, RoundingBits::unit)) {
      const RoundingBits bits(seed, record, offset + unit);
      for (Tile part : range(0, RoundingBits::parts))
        update(unit + part * RoundingBits::length, RoundingBits::length,
               [&](Tile weight) { return roundStochastically(weight, p.type(), bits.of(part)); });
    }
  });
  if (cfg.zeroGrad)
    store(g, {n}, zeros(g.type(), {block}));
}

/// partials[p] = Σ g² over the p-th chunk.
static void squares(View g, View partials, SquaresConfig cfg) {
  Tile p = program_id();
  Tile begin = p * cfg.chunk, end = min(begin + cfg.chunk, g.dim(0));
  Tile running = zeros(f32, {cfg.block}); // (BLOCK)
  for (Tile n : range(begin, end, cfg.block)) {
    Tile x = cast(load(g, {n}, {cfg.block}), f32); // (BLOCK)
    running += x * x;
  }
  store(partials, {p}, sum(running));
}

/// The gradient norm, and the record's fields that depend on it.
static void norm(View partials, View record, SquaresConfig cfg) {
  Tile running = zeros(f32, {cfg.block}); // (BLOCK)
  for (Tile n : range(0, partials.dim(0), cfg.block))
    running += load(partials, {n}, {cfg.block});
  Tile unscale = field(record, StepField::unscale), clip = field(record, StepField::clip); // scalars
  Tile total = sqrt(sum(running)) * unscale;                                               // scalar
  Tile applied = total < infinity;                                                         // scalar, false for NaN too
  setField(record, StepField::norm, total);
  setField(record, StepField::factor, where(total > clip, clip / total, 1.0) * unscale);
  setField(record, StepField::applied, cast(applied, f32));

  // The loss scale of the next step.
  Tile scale = field(record, StepField::scale), window = field(record, StepField::window); // scalars
  Tile good = where(applied, field(record, StepField::good) + 1.0, 0.0);                   // scalar
  Tile doubles = (good >= window) & (window > 0.0) & applied;                              // scalar
  Tile grown = where(doubles, min(scale * 2.0, maxLossScale), scale);                      // scalar
  setField(record, StepField::scale, where(applied, grown, max(scale * 0.5, minLossScale)));
  setField(record, StepField::good, where(doubles, 0.0, good));
}

const Kernel adamwKernel =
    kernel("adamw", adamw,
           {"p (n), the parameters", "copy (n) bf16 or f16, p in a narrow type, written with store_copy",
            "g (n), the gradient", "m (n) f32, first moment", "v (n) f32, second moment",
            "record (16) f32, state of the step: learning rate, loss scale, …", "beta1 f32",
            "one_minus_beta1 f32, 1 − β1", "beta2 f32", "one_minus_beta2 f32, 1 − β2", "epsilon f32",
            "weight_decay f32", "decayed i64, number of leading elements with weight decay",
            "seed i64, of stochastic rounding", "offset i64, index of p[0] in the whole buffer, of which p is a shard"},
           {field("block", &AdamWConfig::block, "elements a program"),
            field("zero_grad", &AdamWConfig::zeroGrad, "sets g to zero"),
            field("store_copy", &AdamWConfig::storeCopy, "stores copy"),
            field("rounding", &AdamWConfig::rounding, roundingNames, "rounding of a narrow p: nearest or stochastic")});
static std::vector<Field> squaresFields() {
  return {field("block", &SquaresConfig::block, "parallel partial sums"),
          field("chunk", &SquaresConfig::chunk, "elements a program")};
}
const Kernel squaresKernel =
    kernel("squares", squares, {"g (n)", "partials (P) f32, sums of the squares of chunks"}, squaresFields());
const Kernel normKernel =
    kernel("norm", norm, {"partials (P) f32", "record (16) f32, completed by this kernel"}, squaresFields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

StepRecord makeStepRecord(const AdamWSettings &settings, const AdamWStep &step) {
  if (step.step < 1)
    throw Error("'adamw': expected 'step' to be at least 1, but got " + std::to_string(step.step));
  const auto unbias = [&](double beta) { return static_cast<float>(1 / (1 - std::pow(beta, step.step))); };
  StepRecord record;
  record[StepField::scale] = static_cast<float>(step.lossScale);
  record[StepField::factor] = record[StepField::unscale] = static_cast<float>(1 / step.lossScale);
  if (step.targets > 0) // without targets there is no loss
    record[StepField::weight] = 1.0f / static_cast<float>(step.targets) * static_cast<float>(step.lossScale);
  record[StepField::good] = static_cast<float>(step.good);
  record[StepField::window] = static_cast<float>(step.window);
  record[StepField::draw] = static_cast<float>(step.step % (int64_t{1} << 24)); // exact in f32
  record[StepField::applied] = 1;
  record[StepField::rate] = static_cast<float>(step.rate);
  record[StepField::unbias1] = unbias(settings.beta1);
  record[StepField::unbias2] = unbias(settings.beta2);
  record[StepField::clip] = static_cast<float>(step.clip);
  return record;
}

AdamWConfig pickAdamW(const Target &target, int64_t n) { return {.block = pickBlock(target, n, /*onCpu=*/8192)}; }

SquaresConfig pickSquares(const Target &target) {
  return {.block = pickBlock(target, SquaresConfig{}.chunk, /*onCpu=*/1024)};
}

Plan planAdamW(const Target &target, const TensorRef &p, const TensorRef &g, const TensorRef &m, const TensorRef &v,
               const TensorRef &record, const AdamWSettings &settings, const std::optional<TensorRef> &copy,
               const std::optional<AdamWConfig> &config) {
  checkOperands(adamwKernel, {p, copy, g, m, v, record});
  if (copy && p.type != f32)
    throw Error("'adamw': expected 'p' of type f32 with 'copy', but got " + std::string(nameOf(p.type)));
  if (settings.offset % adamwUnit != 0)
    throw Error("'adamw': expected 'offset' to be a multiple of " + std::to_string(adamwUnit) + ", but got " +
                std::to_string(settings.offset));
  AdamWConfig chosen = config.value_or(pickAdamW(target, p.extents[0]));
  chosen.zeroGrad = settings.zeroGrad;
  chosen.storeCopy = copy.has_value();
  chosen.rounding = settings.rounding;

  // 1 − β is computed in double, because 1 − 0.999f has a relative error of 5e-5.
  auto scalar = [](double value) { return Arg(static_cast<float>(value)); };
  return {.launches = {makeLaunch(adamwKernel, chosen, programs(cdiv(p.extents[0], elementsPerProgram(p.type, chosen))),
                                  {p, copy.value_or(p), g, m, v, record, scalar(settings.beta1),
                                   scalar(1 - settings.beta1), scalar(settings.beta2), scalar(1 - settings.beta2),
                                   scalar(settings.epsilon), scalar(settings.decay), settings.decayed,
                                   std::bit_cast<int64_t>(settings.seed), settings.offset})}};
}

/// The config of a norm.
static SquaresConfig chooseSquares(const Target &target, const std::optional<SquaresConfig> &config) {
  return config.value_or(pickSquares(target));
}

int64_t countPartialSums(const Target &target, int64_t n) { return cdiv(n, pickSquares(target).chunk); }

Plan planSquares(const Target &target, const TensorRef &g, const Arg &partials,
                 const std::optional<SquaresConfig> &config) {
  checkOperands(squaresKernel, {g, partials.ref});
  const SquaresConfig chosen = chooseSquares(target, config);
  const int64_t P = cdiv(g.extents[0], chosen.chunk);
  expectShape("squares", "partials", partials.ref, {P});
  return {.launches = {makeLaunch(squaresKernel, chosen, programs(P), {g, partials})}};
}

Plan planNorm(const Target &target, const Arg &partials, const TensorRef &record,
              const std::optional<SquaresConfig> &config) {
  checkOperands(normKernel, {partials.ref, record});
  return {.launches = {makeLaunch(normKernel, chooseSquares(target, config), programs(1), {partials, record})}};
}

Plan planGradNorm(const Target &target, const TensorRef &g, const TensorRef &record,
                  const std::optional<SquaresConfig> &config) {
  checkOperands(squaresKernel, {g}, "grad_norm");
  checkOperands(normKernel, {{}, record}, "grad_norm");
  const int64_t P = cdiv(g.extents[0], chooseSquares(target, config).chunk);
  const Arg partials = Arg::workspace(0, f32, {P});
  Plan plan = planSquares(target, g, partials, config);
  plan += planNorm(target, partials, record, config);
  plan.workspaceBytes = P * bytesOf(f32);
  return plan;
}

} // namespace kiln
