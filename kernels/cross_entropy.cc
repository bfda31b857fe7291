// Softmax cross-entropy over rows as wide as a vocabulary: a row stays in the second-level cache while it is read for
// its maximum, for its sum, and once more to become its own gradient.

#include "kernels/cross_entropy.h"
#include "kernels/blocks.h"
#include "kernels/expect.h"

#include <cmath>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// Columns v … of row n in f32; −∞, which counts for nothing in a softmax, past the end.
static Tile columns(View logits, Tile n, Tile v, const CrossEntropyConfig &cfg) {
  return cast(load(logits, {n, v}, {cfg.block}, Padding::neg_inf), f32); // (BV)
}

/// The row's maximum: BV running maxima side by side, then these together.
static Tile rowMaximum(View logits, Tile n, const CrossEntropyConfig &cfg) {
  Tile top = full(f32, {cfg.block}, -infinity); // (BV)
  for (Tile v : range(0, logits.dim(1), cfg.block))
    top = max(top, columns(logits, n, v, cfg));
  return reduce_max(top); // scalar
}

/// exp(x − top), at most 1. The difference is taken first: it is exact where it matters, near the maximum.
static Tile relative(Tile x, Tile top) { return exp2((x - top) * M_LOG2E); }

/// The loss of a row from its target's logit, its maximum and its sum of exponentials; 0 when it is ignored.
static Tile lossOf(Tile hit, Tile top, Tile total, Tile ignored) { return where(ignored, 0.0, top + log(total) - hit); }

/// What is found beside the sum of exponentials when a config asks for it.
struct Beside {
  Tile centred; // (BV) sums of x − top, for the mean of a row's logarithms of probabilities
  Tile first;   // (BV) the first columns that hold the maximum; V where there is none
};

static Beside nothingBeside(Tile V, const CrossEntropyConfig &cfg) {
  Beside beside;
  if (cfg.smoothed)
    beside.centred = zeros(f32, {cfg.block});
  if (cfg.counted)
    beside.first = full(i32, {cfg.block}, cast(V, i32));
  return beside;
}

/// Adds columns v … of a row, which are x; those from V on are −∞.
static void look(Beside &beside, Tile x, Tile v, Tile V, Tile top, const CrossEntropyConfig &cfg) {
  if (!cfg.smoothed && !cfg.counted)
    return;
  Tile column = cast(v, i32) + iota(cfg.block); // (BV)
  if (cfg.smoothed)
    beside.centred += where(column < cast(V, i32), x - top, 0.0); // (BV)
  if (cfg.counted)
    beside.first = min(beside.first, where(x == top, column, cast(V, i32))); // (BV)
}

/// `loss`, which is −log p of the target, and the mean of all −log p, as much of each as `smoothing` says.
static Tile smoothed(Tile loss, const Beside &beside, Tile hit, Tile top, Tile V, Tile ignored, Tile smoothing) {
  Tile mean = sum(beside.centred) / cast(V, f32);                      // scalar
  return where(ignored, 0.0, loss + smoothing * ((hit - top) - mean)); // scalar
}

/// 1 where the first column of the maximum is the target's, else 0.
static Tile isHit(const Beside &beside, Tile target, Tile ignored) {
  return where(ignored | (cast(reduce_min(beside.first), i64) != target), 0.0, Tile(1.0f));
}

/// The target of row n, checked. i64 scalar.
static Tile targetOf(View targets, Tile n, Tile V, Tile ignore) {
  Tile target = cast(load(targets, {n}, {}), i64);
  check((target == ignore) | ((target >= 0) & (target < V)), "expected a target of the vocabulary, or the ignored one");
  return target;
}

static void clearRow(View view, Tile n, const CrossEntropyConfig &cfg) {
  for (Tile v : range(0, view.dim(1), cfg.block))
    store(view, {n, v}, zeros(view.type(), {cfg.block}));
}

/// Losses, and the gradient in place of the logits. logits (N, V) without the padding, which is (N, Vpadded − V).
static void crossEntropy(View logits, View padding, View targets, View losses, View lossScale, View hits, Tile scale,
                         Tile ignore, Tile smoothing, CrossEntropyConfig cfg) {
  const bool keep = logits.type() == f32; // wide enough to hold the exponentials between passes 2 and 3
  if (cfg.scaled)
    scale = scale * load(lossScale, {0}, {}); // scalar
  Tile begin = program_id() * cfg.rows, end = min(begin + cfg.rows, logits.dim(0));
  Tile V = logits.dim(1);
  for (Tile n : range(begin, end)) {
    Tile target = targetOf(targets, n, V, ignore);       // scalar
    Tile ignored = target == ignore;                     // scalar
    Tile hit = cast(load(logits, {n, target}, {}), f32); // scalar

    // 1. Maximum.
    Tile top = rowMaximum(logits, n, cfg); // scalar

    // 2. Sum of exponentials; they take the logits' place.
    Tile running = zeros(f32, {cfg.block}); // (BV)
    Beside beside = nothingBeside(V, cfg);
    for (Tile v : range(0, V, cfg.block)) {
      Tile x = columns(logits, n, v, cfg); // (BV)
      Tile e = relative(x, top);           // (BV)
      look(beside, x, v, V, top, cfg);
      if (keep)
        store(logits, {n, v}, e);
      running += e;
    }
    Tile total = sum(running);                    // scalar
    Tile loss = lossOf(hit, top, total, ignored); // scalar
    if (cfg.smoothed)
      loss = smoothed(loss, beside, hit, top, V, ignored, smoothing);
    store(losses, {n}, loss);
    if (cfg.counted)
      store(hits, {n}, isHit(beside, target, ignored));

    // 3. Gradient: softmax times scale; the target's own element loses `scale`. Smoothing moves a part of what the
    //    target loses to all columns alike.
    Tile weight = where(ignored, 0.0, scale); // scalar
    Tile factor = weight / total;             // scalar
    Tile share, left = 1.0f;                  // scalars
    if (cfg.smoothed) {
      share = weight * smoothing / cast(V, f32);
      left = 1.0f - smoothing;
    }
    for (Tile v : range(0, V, cfg.block)) {
      Tile x = columns(logits, n, v, cfg); // (BV)
      Tile e = keep ? x : relative(x, top);
      Tile d = e * factor; // (BV)
      if (cfg.smoothed)
        d = d - share;
      store(logits, {n, v}, cast(d, logits.type()));
    }
    Tile own = (relative(hit, top) / total - left) * weight; // scalar
    if (cfg.smoothed)
      own = own - share;
    store(logits, {n, target}, cast(own, logits.type())); // outside, when ignored: nothing is written

    // 4. Padding columns.
    clearRow(padding, n, cfg);
  }
}

/// Losses alone.
static void crossEntropyLoss(View logits, View targets, View losses, View hits, Tile ignore, Tile smoothing,
                             CrossEntropyConfig cfg) {
  Tile begin = program_id() * cfg.rows, end = min(begin + cfg.rows, logits.dim(0));
  Tile V = logits.dim(1);
  for (Tile n : range(begin, end)) {
    Tile target = targetOf(targets, n, V, ignore);       // scalar
    Tile hit = cast(load(logits, {n, target}, {}), f32); // scalar
    Tile top = rowMaximum(logits, n, cfg);               // scalar
    Tile running = zeros(f32, {cfg.block});              // (BV)
    Beside beside = nothingBeside(V, cfg);
    for (Tile v : range(0, V, cfg.block)) {
      Tile x = columns(logits, n, v, cfg); // (BV)
      look(beside, x, v, V, top, cfg);
      running += relative(x, top);
    }
    Tile ignored = target == ignore;                     // scalar
    Tile loss = lossOf(hit, top, sum(running), ignored); // scalar
    if (cfg.smoothed)
      loss = smoothed(loss, beside, hit, top, V, ignored, smoothing);
    store(losses, {n}, loss);
    if (cfg.counted)
      store(hits, {n}, isHit(beside, target, ignored));
  }
}

static std::vector<Field> fields() {
  return {field("block", &CrossEntropyConfig::block, "columns a tile"),
          field("rows", &CrossEntropyConfig::rows, "rows a program"),
          field("scaled", &CrossEntropyConfig::scaled, "the gradient is multiplied by loss_scale too"),
          field("smoothed", &CrossEntropyConfig::smoothed, "a part of a target is shared by all columns"),
          field("counted", &CrossEntropyConfig::counted, "hits are written")};
}
const Kernel crossEntropyKernel = kernel(
    "cross_entropy", crossEntropy,
    {"logits (N, V), replaced by their gradient", "padding (N, P), the columns after V, set to 0", "targets (N) i32",
     "losses (N) f32", "loss_scale (1) f32, read when scaled",
     "hits (N) f32, written when counted: 1 where the first of the largest logits is the target's",
     "scale f32, of the gradient", "ignore i64, the target of a row without one", "smoothing f32, read when smoothed"},
    fields());
const Kernel crossEntropyLossKernel =
    kernel("cross_entropy_loss", crossEntropyLoss,
           {"logits (N, V)", "targets (N) i32", "losses (N) f32", "hits (N) f32, written when counted",
            "ignore i64, the target of a row without one", "smoothing f32, read when smoothed"},
           fields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// The operands that both plans share.
static void expectRows(const char *plan, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                       int64_t V, const CrossEntropyOptions &options) {
  expectRank(plan, "logits", logits, 2);
  expectFloat(plan, "logits", logits);
  expectShape(plan, "targets", targets, {logits.extents[0]});
  expectType(plan, "targets", targets, {i32});
  expectShape(plan, "losses", losses, {logits.extents[0]});
  expectType(plan, "losses", losses, {f32});
  if (options.hits) {
    expectShape(plan, "hits", *options.hits, {logits.extents[0]});
    expectType(plan, "hits", *options.hits, {f32});
  }
  if (!(options.smoothing >= 0 && options.smoothing <= 1))
    throw Error("'" + std::string(plan) + "': expected 'smoothing' to be from 0 to 1, but got " +
                std::to_string(options.smoothing));
  if (V < 1 || V > logits.extents[1])
    throw Error("'" + std::string(plan) + "': expected a vocabulary of 1 … " + std::to_string(logits.extents[1]) +
                " columns, but got " + std::to_string(V));
}

CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t V) {
  return {.block = pickBlock(target, V, 256), .rows = pickRows(target, 1)};
}

static CrossEntropyConfig choose(const Target &target, int64_t V, const CrossEntropyOptions &options,
                                 const std::optional<CrossEntropyConfig> &config) {
  CrossEntropyConfig chosen = config.value_or(pickCrossEntropy(target, V));
  chosen.smoothed = options.smoothing > 0;
  chosen.counted = options.hits.has_value();
  return chosen;
}

Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore, const std::optional<TensorRef> &lossScale,
                      const CrossEntropyOptions &options, const std::optional<CrossEntropyConfig> &config) {
  expectRows("cross_entropy", logits, targets, losses, V, options);
  if (lossScale) {
    expectShape("cross_entropy", "lossScale", *lossScale, {1});
    expectType("cross_entropy", "lossScale", *lossScale, {f32});
  }
  CrossEntropyConfig chosen = choose(target, V, options, config);
  chosen.scaled = lossScale.has_value();
  const TensorRef real = logits.slice(1, 0, V), padding = logits.slice(1, V, logits.extents[1] - V);
  return {.launches = {{&crossEntropyKernel,
                        textOf(crossEntropyKernel.fields, chosen),
                        programs(ceildiv(logits.extents[0], chosen.rows)),
                        {real, padding, targets, losses, lossScale.value_or(losses), options.hits.value_or(losses),
                         scale, ignore, options.smoothing}}}};
}

Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore, const CrossEntropyOptions &options,
                          const std::optional<CrossEntropyConfig> &config) {
  expectRows("cross_entropy_loss", logits, targets, losses, V, options);
  const CrossEntropyConfig chosen = choose(target, V, options, config);
  return {.launches = {
              {&crossEntropyLossKernel,
               textOf(crossEntropyLossKernel.fields, chosen),
               programs(ceildiv(logits.extents[0], chosen.rows)),
               {logits.slice(1, 0, V), targets, losses, options.hits.value_or(losses), ignore, options.smoothing}}}};
}

} // namespace kiln
