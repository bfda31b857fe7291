// Softmax cross-entropy over rows as wide as a vocabulary. A row stays in the L2 cache while it is read for its
// maximum, for its sum, and for the gradient that overwrites it. A row that fits the registers is read once.

#include "kernels/cross_entropy.h"
#include "kernels/operands.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kiln {

//===-- Kernels -------------------------------------------------------------------------------------------------===//

/// Whether columns v … are part of the vocabulary, if `logits` has padding columns (BV).
static Tile vocabularyMask(Tile v, Tile V, const CrossEntropyConfig &cfg) {
  return cast(v, i32) + iota(cfg.block) < cast(V, i32);
}

/// Columns v … of row n in f32; −∞ past the end, which does not change the softmax.
static Tile loadColumns(View logits, Tile n, Tile v, Tile V, const CrossEntropyConfig &cfg) {
  Tile x = cast(load(logits, {n, v}, {cfg.block}, Padding::neg_inf), f32); // (BV)
  return cfg.padded ? where(vocabularyMask(v, V, cfg), x, -infinity) : x;
}

/// The row's maximum: BV running maxima, then their maximum.
static Tile rowMaximum(View logits, Tile n, Tile V, const CrossEntropyConfig &cfg) {
  Tile top = full(f32, {cfg.block}, -infinity); // (BV)
  for (Tile v : range(0, V, cfg.block))
    top = max(top, loadColumns(logits, n, v, V, cfg));
  return reduce_max(top); // scalar
}

/// exp(x − top), at most 1. The difference is computed first, so that it is exact near the maximum. Results below 2⁻¹²⁶
/// may become 0, compared with 1 for the maximum.
static Tile expDifference(Tile x, Tile top) { return exp2((x - top) * M_LOG2E, Accuracy::fast); }

/// The loss of a row from its target's logit, its maximum and its sum of exponentials; 0 when it is ignored.
static Tile computeLoss(Tile targetLogit, Tile top, Tile total, Tile ignored) {
  return where(ignored, 0.0, top + log(total) - targetLogit);
}

/// Further results of the pass over a row, which a config may request.
struct RowStatistics {
  Tile centred; // (BV) sums of x − top, for the mean log-probability
  Tile first;   // (BV) first columns with the maximum; V if there is none
};

static RowStatistics emptyStatistics(Tile V, const CrossEntropyConfig &cfg) {
  RowStatistics statistics;
  if (cfg.smoothed)
    statistics.centred = zeros(f32, {cfg.block});
  if (cfg.storeCorrect)
    statistics.first = full(i32, {cfg.block}, cast(V, i32));
  return statistics;
}

/// Adds columns v … of a row, given as x; those from V on are −∞.
static void accumulate(RowStatistics &statistics, Tile x, Tile v, Tile V, Tile top, const CrossEntropyConfig &cfg) {
  if (!cfg.smoothed && !cfg.storeCorrect)
    return;
  Tile column = cast(v, i32) + iota(cfg.block); // (BV)
  if (cfg.smoothed)
    statistics.centred += where(column < cast(V, i32), x - top, 0.0); // (BV)
  if (cfg.storeCorrect)
    statistics.first = min(statistics.first, where(x == top, column, cast(V, i32))); // (BV)
}

/// The target of row n, checked. i64 scalar.
static Tile loadTarget(View targets, Tile n, Tile V, Tile ignore) {
  Tile target = cast(load(targets, {n}, {}), i64);
  device_assert((target == ignore) | ((target >= 0) & (target < V)),
                "expected a target of the vocabulary, or the ignored one");
  return target;
}

static void clearRow(View view, Tile n, const CrossEntropyConfig &cfg) {
  for (Tile v : range(0, view.dim(1), cfg.block))
    store(view, {n, v}, zeros(view.type(), {cfg.block}));
}

/// Statistics of a row.
struct Row {
  Tile x;          // (BV) the whole row, if it is one tile
  Tile top, total; // scalars: its maximum, and the sum of exp(x − top)
  Tile mean;       // scalar: of x − top, for label smoothing
  Tile first;      // first columns with the maximum, for parts of the row; V if there is none
};

/// Stores the further results in the row.
static void setStatistics(Row &row, const RowStatistics &statistics, Tile V, const CrossEntropyConfig &cfg) {
  if (cfg.smoothed)
    row.mean = sum(statistics.centred) / cast(V, f32);
  if (cfg.storeCorrect)
    row.first = statistics.first;
}

/// A row that is one tile.
static Row readWholeRow(View logits, Tile n, Tile V, const CrossEntropyConfig &cfg) {
  Row row = {.x = loadColumns(logits, n, 0, V, cfg)};
  row.top = reduce_max(row.x);
  row.total = sum(expDifference(row.x, row.top));
  RowStatistics statistics = emptyStatistics(V, cfg);
  accumulate(statistics, row.x, 0, V, row.top, cfg);
  setStatistics(row, statistics, V, cfg);
  return row;
}

/// A row read once: BU running maxima, each of E adjacent columns of a tile, and sums of exponentials relative to them,
/// rescaled when a maximum grows. On a GPU, E are the columns that a thread loads at once, so few sums are rescaled.
/// Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018.
static Row readOnline(View logits, Tile n, Tile V, const CrossEntropyConfig &cfg) {
  const int64_t threads = int64_t{32} * cfg.warps;
  int64_t E = 16 / bytesOf(logits.type());
  while (E > 1 && cfg.block % (threads * E) != 0)
    E /= 2;
  const int64_t BU = cfg.block % (threads * E) == 0 ? threads : cfg.block / E;
  const Shape block = {cfg.block / (BU * E), BU, E};
  Tile top = full(f32, {BU}, std::numeric_limits<float>::lowest()), running = zeros(f32, {BU}); // (BU)
  Tile sums = zeros(f32, {BU}), first = full(i32, {BU}, cast(V, i32));                          // (BU)
  for (Tile v : range(0, V, cfg.block)) {
    Tile x = reshape(loadColumns(logits, n, v, V, cfg), block);                    // (BV / (BU · E), BU, E)
    Tile blockMax = reduce_max(reduce_max(x, 0), -1), newMax = max(top, blockMax); // (BU)
    Tile terms = expDifference(x, unsqueeze(newMax, -1));                          // (BV / (BU · E), BU, E)
    running = running * expDifference(top, newMax) + sum(sum(terms, 0), -1);
    if (cfg.smoothed)
      sums += sum(sum(reshape(where(vocabularyMask(v, V, cfg), reshape(x, {cfg.block}), 0.0), block), 0), -1);
    if (cfg.storeCorrect) {
      Tile column = reshape(cast(v, i32) + iota(cfg.block), block);             // (BV / (BU · E), BU, E)
      Tile columns = where(x == unsqueeze(blockMax, -1), column, cast(V, i32)); // (BV / (BU · E), BU, E)
      first = where(blockMax > top, reduce_min(reduce_min(columns, 0), -1), first);
    }
    top = newMax;
  }
  Row row = {.top = reduce_max(top)};
  row.total = sum(running * expDifference(top, row.top));
  row.mean = sum(sums) / cast(V, f32) - row.top;
  row.first = where(top == row.top, first, cast(V, i32));
  return row;
}

/// A row read for its maximum, and again for the sum of exponentials, which replace the logits with `keep`.
static Row readTwice(View logits, Tile n, Tile V, bool keep, const CrossEntropyConfig &cfg) {
  Row row = {.top = rowMaximum(logits, n, V, cfg)};
  RowStatistics statistics = emptyStatistics(V, cfg);
  Tile running = zeros(f32, {cfg.block}); // (BV)
  for (Tile v : range(0, V, cfg.block)) {
    Tile x = loadColumns(logits, n, v, V, cfg); // (BV)
    Tile e = expDifference(x, row.top);         // (BV)
    accumulate(statistics, x, v, V, row.top, cfg);
    if (keep)
      store(logits, {n, v}, e);
    running += e;
  }
  row.total = sum(running);
  setStatistics(row, statistics, V, cfg);
  return row;
}

/// Label smoothing: `loss` (−log p of the target) and the mean of all −log p, weighted by `smoothing`.
static Tile smoothedLoss(Tile loss, const Row &row, Tile targetLogit, Tile ignored, Tile smoothing) {
  return where(ignored, 0.0, loss + smoothing * ((targetLogit - row.top) - row.mean)); // scalar
}

/// 1 if the first column of the maximum is the target, else 0.
static Tile isCorrect(const Row &row, Tile target, Tile ignored) {
  return where(ignored | (cast(reduce_min(row.first), i64) != target), 0.0, Tile(1.0f));
}

static Row readRow(View logits, Tile n, Tile V, bool keep, const CrossEntropyConfig &cfg) {
  if (cfg.whole)
    return readWholeRow(logits, n, V, cfg);
  return cfg.padded ? readOnline(logits, n, V, cfg) : readTwice(logits, n, V, keep, cfg);
}

/// The number of columns of `logits` without padding.
static Tile vocabularySize(View logits, View padding, const CrossEntropyConfig &cfg) {
  return cfg.padded ? Tile(logits.extent(1) - padding.extent(1)) : logits.dim(1);
}

/// Losses, and the gradient in place of the logits. logits (N, V) without the padding, (N, Vpadded − V), or with it if
/// `padded`.
static void crossEntropy(View logits, View padding, View targets, View losses, View lossScale, View correct, Tile scale,
                         Tile ignore, Tile smoothing, CrossEntropyConfig cfg) {
  // f32 logits are overwritten by the exponentials between passes 1 and 2.
  const bool keep = logits.type() == f32 && !cfg.padded;
  if (cfg.scaled)
    scale = scale * load(lossScale, {0}, {}); // scalar
  Tile begin = program_id() * cfg.rows, end = min(begin + cfg.rows, logits.dim(0));
  Tile V = vocabularySize(logits, padding, cfg);
  for (Tile n : range(begin, end)) {
    Tile target = loadTarget(targets, n, V, ignore);             // scalar
    Tile ignored = target == ignore;                             // scalar
    Tile targetLogit = cast(load(logits, {n, target}, {}), f32); // scalar

    // 1. Maximum, sum of exponentials, and the loss.
    const Row row = readRow(logits, n, V, keep, cfg);
    Tile top = row.top, total = row.total;                     // scalars
    Tile loss = computeLoss(targetLogit, top, total, ignored); // scalar
    if (cfg.smoothed)
      loss = smoothedLoss(loss, row, targetLogit, ignored, smoothing);
    store(losses, {n}, loss);
    if (cfg.storeCorrect)
      store(correct, {n}, isCorrect(row, target, ignored));

    // 2. Gradient: softmax times scale, minus `scale` at the target. Smoothing distributes a part of the subtracted
    //    `scale` over all columns.
    Tile weight = where(ignored, 0.0, scale); // scalar
    Tile factor = weight / total;             // scalar
    Tile share, left = 1.0f;                  // scalars
    if (cfg.smoothed) {
      share = weight * smoothing / cast(V, f32);
      left = 1.0f - smoothing;
    }
    const auto write = [&](Tile v, Tile x) {
      Tile d = (keep ? x : expDifference(x, top)) * factor; // (BV)
      if (cfg.smoothed)
        d = cfg.padded ? where(vocabularyMask(v, V, cfg), d - share, 0.0) : d - share;
      store(logits, {n, v}, cast(d, logits.type()));
    };
    if (cfg.whole)
      write(0, row.x);
    else
      for (Tile v : range(0, logits.dim(1), cfg.block))
        write(v, loadColumns(logits, n, v, V, cfg));
    Tile own = (expDifference(targetLogit, top) / total - left) * weight; // scalar
    if (cfg.smoothed)
      own = own - share;
    store(logits, {n, target}, cast(own, logits.type())); // an ignored target is outside: nothing is written

    // 3. Padding columns.
    if (!cfg.padded)
      clearRow(padding, n, cfg);
  }
}

/// The kernel that computes only the losses.
static void crossEntropyLoss(View logits, View padding, View targets, View losses, View correct, Tile ignore,
                             Tile smoothing, CrossEntropyConfig cfg) {
  Tile begin = program_id() * cfg.rows, end = min(begin + cfg.rows, logits.dim(0));
  Tile V = vocabularySize(logits, padding, cfg);
  for (Tile n : range(begin, end)) {
    Tile target = loadTarget(targets, n, V, ignore);             // scalar
    Tile ignored = target == ignore;                             // scalar
    Tile targetLogit = cast(load(logits, {n, target}, {}), f32); // scalar
    const Row row = readRow(logits, n, V, /*keep=*/false, cfg);
    Tile loss = computeLoss(targetLogit, row.top, row.total, ignored); // scalar
    if (cfg.smoothed)
      loss = smoothedLoss(loss, row, targetLogit, ignored, smoothing);
    store(losses, {n}, loss);
    if (cfg.storeCorrect)
      store(correct, {n}, isCorrect(row, target, ignored));
  }
}

static std::vector<Field> fields() {
  return {field("block", &CrossEntropyConfig::block, "columns a tile"),
          field("rows", &CrossEntropyConfig::rows, "rows a program"),
          field("warps", &CrossEntropyConfig::warps, "warps of a program, on a GPU"),
          field("padded", &CrossEntropyConfig::padded, "rows of logits are padded beyond their V columns"),
          field("whole", &CrossEntropyConfig::whole, "a tile is a whole row, which is read and written once"),
          field("scaled", &CrossEntropyConfig::scaled, "the gradient is multiplied by loss_scale too"),
          field("smoothed", &CrossEntropyConfig::smoothed, "label smoothing"),
          field("store_correct", &CrossEntropyConfig::storeCorrect, "stores correct")};
}
const Kernel crossEntropyKernel =
    kernel("cross_entropy", crossEntropy,
           {"logits (N, V), replaced by their gradient; (N, V + P) when padded",
            "padding (N, P), the columns after V, set to 0", "targets (N) i32", "losses (N) f32",
            "loss_scale (1) f32, read when scaled",
            "correct (N) f32, written with store_correct: 1 if the argmax of the row is its target, else 0",
            "scale f32, factor of the gradient", "ignore_index i64, the target of rows that are ignored",
            "label_smoothing f32, read when smoothed"},
           fields());
const Kernel crossEntropyLossKernel = kernel(
    "cross_entropy_loss", crossEntropyLoss,
    {"logits (N, V), or (N, V + P) when padded", "padding (N, P), the columns after V", "targets (N) i32",
     "losses (N) f32", "correct (N) f32, written with store_correct: 1 if the argmax of the row is its target, else 0",
     "ignore_index i64, the target of rows that are ignored", "label_smoothing f32, read when smoothed"},
    fields());

//===-- Plans ---------------------------------------------------------------------------------------------------===//

/// Checks the options common to both plans.
static void expectOptions(const char *plan, const TensorRef &logits, int64_t V, const CrossEntropyOptions &options) {
  if (!(options.smoothing >= 0 && options.smoothing <= 1))
    throw Error("'" + std::string(plan) + "': expected 'smoothing' to be from 0 to 1, but got " +
                std::to_string(options.smoothing));
  if (V < 1 || V > logits.extents[1])
    throw Error("'" + std::string(plan) + "': expected a vocabulary of 1 to " + std::to_string(logits.extents[1]) +
                " columns, but got " + std::to_string(V));
}

namespace {
/// Tiles of a row on a GPU. `kiln-bench static` predicts the times of the vocabulary of GPT-2, a wide row.
struct CrossEntropyTiles {
  int wideBlock = 4096, wideWarps = 32; // columns and warps of a wide row
  uint64_t minBlock = 128;              // columns of a narrow row: one for each thread of 4 warps
  uint64_t threadBytes = 32;            // at most, of a narrow row in each thread: two loads
};
constexpr CrossEntropyTiles rowTiles;
} // namespace

/// On a GPU, lanes access 8 or 16 bytes at a time, which requires padded rows. The second read should hit the L2 cache.
/// So a wide row has the maximum number of warps, and the concurrent rows fit the cache.
CrossEntropyConfig pickCrossEntropy(const Target &target, int64_t width, Type type) {
  return target.visit(
      [](const CpuFacts &) { return CrossEntropyConfig{}; },
      [&](const GpuFacts &) {
        const uint64_t most = rowTiles.threadBytes / bytesOf(type) * rowTiles.minBlock;
        const auto all = std::bit_ceil(static_cast<uint64_t>(width));
        if (all > rowTiles.wideBlock)
          return CrossEntropyConfig{.block = rowTiles.wideBlock, .warps = rowTiles.wideWarps, .padded = true};
        return CrossEntropyConfig{.block = static_cast<int>(std::clamp(all, rowTiles.minBlock, most)), .padded = true};
      });
}

static CrossEntropyConfig choose(const Target &target, const TensorRef &logits, const CrossEntropyOptions &options,
                                 const std::optional<CrossEntropyConfig> &config) {
  CrossEntropyConfig chosen = config.value_or(pickCrossEntropy(target, logits.extents[1], logits.type));
  chosen.smoothed = options.smoothing > 0;
  chosen.storeCorrect = options.correct.has_value();
  const bool takesRegisters = chosen.smoothed || chosen.storeCorrect;
  if (!config && chosen.warps == rowTiles.wideWarps && takesRegisters) {
    chosen.warps /= 2;
    chosen.block *= 2;
  }
  return chosen;
}

/// The logits in the form of the kernels, and the padding after the V columns.
static std::pair<TensorRef, TensorRef> checkOperandsOfRows(const TensorRef &logits, int64_t V,
                                                           const CrossEntropyConfig &chosen) {
  return {chosen.padded ? logits : logits.slice(1, 0, V), logits.slice(1, V, logits.extents[1] - V)};
}

Plan planCrossEntropy(const Target &target, const TensorRef &logits, const TensorRef &targets, const TensorRef &losses,
                      int64_t V, float scale, int64_t ignore, const std::optional<TensorRef> &lossScale,
                      const CrossEntropyOptions &options, const std::optional<CrossEntropyConfig> &config) {
  checkOperands(crossEntropyKernel, {logits, {}, targets, losses, lossScale, options.correct});
  expectOptions("cross_entropy", logits, V, options);
  CrossEntropyConfig chosen = choose(target, logits, options, config);
  chosen.scaled = lossScale.has_value();
  const auto [read, padding] = checkOperandsOfRows(logits, V, chosen);
  return {
      .launches = {makeLaunch(crossEntropyKernel, chosen, programs(cdiv(logits.extents[0], chosen.rows)),
                              {read, padding, target.varying(targets), target.varying(losses),
                               target.varying(lossScale.value_or(losses)),
                               target.varying(options.correct.value_or(losses)), scale, ignore, options.smoothing})}};
}

Plan planCrossEntropyLoss(const Target &target, const TensorRef &logits, const TensorRef &targets,
                          const TensorRef &losses, int64_t V, int64_t ignore, const CrossEntropyOptions &options,
                          const std::optional<CrossEntropyConfig> &config) {
  checkOperands(crossEntropyLossKernel, {logits, {}, targets, losses, options.correct});
  expectOptions("cross_entropy_loss", logits, V, options);
  const CrossEntropyConfig chosen = choose(target, logits, options, config);
  const auto [read, padding] = checkOperandsOfRows(logits, V, chosen);
  return {.launches = {makeLaunch(crossEntropyLossKernel, chosen, programs(cdiv(logits.extents[0], chosen.rows)),
                                  {read, padding, target.varying(targets), target.varying(losses),
                                   target.varying(options.correct.value_or(losses)), ignore, options.smoothing})}};
}

} // namespace kiln
