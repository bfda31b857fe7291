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

/// The target of row n, checked. i64 scalar.
static Tile targetOf(View targets, Tile n, Tile V, Tile ignore) {
  Tile target = cast(load(targets, {n}, {}), i64);
  check((target == ignore) | ((target >= 0) & (target < V)), "expected a target of the vocabulary, or the ignored one");
  return target;
}

/// Losses, and the gradient in place of the logits. logits (N, V) without the padding, which is (N, Vpadded − V).
static void crossEntropy(View logits, View padding, View targets, View losses, View lossScale, Tile scale, Tile ignore,
                         CrossEntropyConfig cfg) {
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
    for (Tile v : range(0, V, cfg.block)) {
      Tile e = relative(columns(logits, n, v, cfg), top); // (BV)
      if (keep)
        store(logits, {n, v}, e);
      running += e;
    }
    Tile total = sum(running); // scalar
    store(losses, {n}, lossOf(hit, top, total, ignored));

    // 3. Gradient: softmax times scale; the target's own element loses `scale`.
    Tile weight = where(ignored, 0.0, scale); // scalar
    Tile factor = weight / total;             // scalar
    for (Tile v : range(0, V, cfg.block)) {
      Tile x = columns(logits, n, v, cfg); // (BV)
      Tile e = keep ? x : relative(x, top);
      store(logits, {n, v}, cast(e * factor, logits.type()));
    }
    Tile own = (relative(hit, top) / total - 1.0) * weight; // scalar
    store(logits, {n, target}, cast(own, logits.type()));   // outside, when ignored: nothing is written

    // 4. Padding columns.
    for (Tile v : range(0, padding.dim(1), cfg.block))
      store(padding, {n, v}, zeros(padding.type(), {cfg.block}));
  }
}

/// Losses alone.
static void crossEntropyLoss(View logits, View targets, View losses, Tile ignore, CrossEntropyConfig cfg) {
  Tile begin = program_id() * cfg.rows, end = min(begin + cfg.rows, logits.dim(0));
  Tile V = logits.dim(1);
  for (Tile n : range(begin, end)) {
    Tile target = targetOf(targets, n, V, ignore);       // scalar
    Tile hit = cast(load(logits, {n, target}, {}), f32); // scalar
    Tile top = rowMaximum(logits, n, cfg);               // scalar
    Tile running = zeros(f32, {cfg.block});              // (BV)
    for (Tile v : range(0, V, cfg.block))
      running += relative(columns(logits, n, v, cfg), top);
    store(losses, {n}, lossOf(hit, top, sum(running), target == ignore));
  }
}

static std::vector<Field> fields() {
  return {field("block", &CrossEntropyConfig::block, "columns a tile"),
          field("rows", &CrossEntropyConfig::rows, "rows a program"),
          field("scaled", &CrossEntropyConfig::scaled, "the gradient is multiplied by loss_scale too")};
}
const Kernel crossEntropyKernel =
    kernel("cross_entropy", crossEntropy,
           {"logits (N, V), replaced by their gradient", "padding (N, P), the columns after V, set to 0",
            "targets (N) i32", "losses (N) f32", "loss_scale (1) f32, read when scaled", "scale f32, of the gradient",
            "ignore i64, the target of a row without one"},
           fields());
const Kernel crossEntropyLossKernel = kernel(
    "cross_entropy_loss", crossEntropyLoss,
    {"logits (N, V)", "targets (N) i32", "losses (N) f32", "ignore i64, the target of a row without one"}, fields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// The operands that both plans share.
static void expectRows(const char *plan, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                       int64_t V) {
  expectRank(plan, "logits", logits, 2);
  expectFloat(plan, "logits", logits);
  expectShape(plan, "targets", targets, {logits.extents[0]});
  expectType(plan, "targets", targets, {i32});
  expectShape(plan, "losses", losses, {logits.extents[0]});
  expectType(plan, "losses", losses, {f32});
  if (V < 1 || V > logits.extents[1])
    throw Error("'" + std::string(plan) + "': expected a vocabulary of 1 … " + std::to_string(logits.extents[1]) +
                " columns, but got " + std::to_string(V));
}

CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t V) {
  return {.block = pickBlock(target, V, 256), .rows = pickRows(target, 1)};
}

Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore, const std::optional<TensorRef> &lossScale,
                      const std::optional<CrossEntropyConfig> &config) {
  expectRows("cross_entropy", logits, targets, losses, V);
  if (lossScale) {
    expectShape("cross_entropy", "lossScale", *lossScale, {1});
    expectType("cross_entropy", "lossScale", *lossScale, {f32});
  }
  CrossEntropyConfig chosen = config.value_or(pickCrossEntropy(target, V));
  chosen.scaled = lossScale.has_value();
  const TensorRef real = logits.slice(1, 0, V), padding = logits.slice(1, V, logits.extents[1] - V);
  return {.launches = {{&crossEntropyKernel,
                        textOf(crossEntropyKernel.fields, chosen),
                        programs(ceildiv(logits.extents[0], chosen.rows)),
                        {real, padding, targets, losses, lossScale.value_or(losses), scale, ignore}}}};
}

Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore,
                          const std::optional<CrossEntropyConfig> &config) {
  expectRows("cross_entropy_loss", logits, targets, losses, V);
  const CrossEntropyConfig chosen = config.value_or(pickCrossEntropy(target, V));
  return {.launches = {{&crossEntropyLossKernel,
                        textOf(crossEntropyLossKernel.fields, chosen),
                        programs(ceildiv(logits.extents[0], chosen.rows)),
                        {logits.slice(1, 0, V), targets, losses, ignore}}}};
}

} // namespace kiln
