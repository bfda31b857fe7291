// The table of settings, and their kinds.

#include "models/train/setting_table.h"
#include "dialect/dsl/Kernel.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/data/json.h"
#include "models/train/number_text.h"
#include "models/train/settings.h"

#include <cmath>
#include <fmt/ranges.h>

namespace kiln {

using Json = nlohmann::ordered_json;

//===-- Ranges --------------------------------------------------------------------------------------------------===//

namespace {
/// A condition for a number, as text and as a predicate.
struct Range {
  std::string text;
  std::function<bool(double, const TrainSettings &)> holds;
};
using Ranges = std::vector<Range>; // all must hold; the first violated one is reported

/// Whether all checkpoints have the field, or only later ones.
enum class Since { first, later };
} // namespace

static Range atLeast(double least) {
  return {fmt::format("at least {}", least), [=](double x, const TrainSettings &) { return x >= least; }};
}
static Range atMost(int64_t most) {
  return {fmt::format("at most {}", most),
          [=](double x, const TrainSettings &) { return x <= static_cast<double>(most); }};
}
static Range above(double low) {
  return {fmt::format("above {}", low), [=](double x, const TrainSettings &) { return x > low; }};
}
static Range between(int64_t least, int64_t most) {
  return {fmt::format("between {} and {}", least, most), [=](double x, const TrainSettings &) {
            return x >= static_cast<double>(least) && x <= static_cast<double>(most);
          }};
}
static const Range share = {"at least 0 and below 1", [](double x, const TrainSettings &) { return x >= 0 && x < 1; }};
static const Range chances = {"at least 0 and below 1, or -1",
                              [](double x, const TrainSettings &) { return (x >= 0 && x < 1) || x == -1; }};
static const Range withinSteps = {"between 0 and --steps", [](double x, const TrainSettings &s) {
                                    return x >= 0 && x <= static_cast<double>(s.steps);
                                  }};
static const Range aboveForExponential = {"above 0 with --schedule exponential", [](double x, const TrainSettings &s) {
                                            return s.schedule != Schedule::exponential || x > 0;
                                          }};
/// The largest z-score in a window that includes the value itself.
static const Range deviations = {
    fmt::format("0, or below {:.1f}, as far as one of {} numbers can be above their mean",
                (outlierWindow - 1) / std::sqrt(outlierWindow), outlierWindow),
    [](double x, const TrainSettings &) { return x >= 0 && x < (outlierWindow - 1) / std::sqrt(outlierWindow); }};
/// Scaling by a power of two is exact.
static const Range lossScales = {"a power of two from 1 to 16777216", [](double x, const TrainSettings &) {
                                   int exponent = 0;
                                   return x >= minLossScale && x <= maxLossScale && std::frexp(x, &exponent) == 0.5;
                                 }};

//===-- Kinds ---------------------------------------------------------------------------------------------------===//

static void expectIn(const Ranges &ranges, const std::string &flag, auto value, const TrainSettings &s) {
  for (const Range &range : ranges)
    if (!range.holds(static_cast<double>(value), s))
      throw Error(fmt::format("expected '--{}' to be {}, but got {}", flag, range.text, value));
}

/// Reads a field that older checkpoints may lack; then the setting keeps its default.
template <class Read> static auto ifThere(const std::string &field, Since since, Read read) {
  return [=](TrainSettings &s, const JsonObject &json) {
    if (since == Since::first || json.has(field))
      read(s, json);
  };
}

template <class T>
static Setting number(const char *flag, const char *field, T TrainSettings::*member, const char *help, Ranges ranges,
                      Since since = Since::first) {
  const std::string name = flag;
  return {flag,
          field,
          help,
          std::is_floating_point_v<T> ? "FLOAT"
          : std::is_signed_v<T>       ? "INT"
                                      : "UINT",
          [=](TrainSettings &s, const std::string &text) { s.*member = numberIn<T>("--" + name, text); },
          [=](const TrainSettings &s) { return Json(s.*member); },
          ifThere(field, since,
                  [=](TrainSettings &s, const JsonObject &json) {
                    if constexpr (std::is_floating_point_v<T>)
                      s.*member = json.number(field);
                    else if constexpr (std::is_signed_v<T>)
                      s.*member = json.integer(field);
                    else
                      s.*member = json.natural(field);
                  }),
          [=](const TrainSettings &s) { expectIn(ranges, name, s.*member, s); }};
}

/// A boolean, 0 or 1 on the command line.
static Setting truth(const char *flag, const char *field, bool TrainSettings::*member, const char *help) {
  const std::string name = flag;
  return {
      flag,
      field,
      help,
      "INT",
      [=](TrainSettings &s, const std::string &text) {
        const auto value = numberIn<int64_t>("--" + name, text);
        if (value != 0 && value != 1)
          throw Error(fmt::format("expected '--{}' to be 0 or 1, but got {}", name, value));
        s.*member = value != 0;
      },
      [=](const TrainSettings &s) { return Json(s.*member); },
      ifThere(field, Since::later, [=](TrainSettings &s, const JsonObject &json) { s.*member = json.truth(field); }),
      [](const TrainSettings &) {}};
}

/// One of several names: `named` parses a name, and throws Error for others; `nameOf` is the name of a value, or null.
template <class T, class Named, class Name>
static Setting choice(const char *flag, const char *field, T TrainSettings::*member, const char *help, Named named,
                      Name nameOf) {
  const std::string name = flag;
  return {flag,
          field,
          help,
          "TEXT",
          [=](TrainSettings &s, const std::string &text) { s.*member = named("--" + name, text); },
          [=](const TrainSettings &s) { return Json(nameOf(s.*member)); },
          ifThere(field, Since::later,
                  [=](TrainSettings &s, const JsonObject &json) { s.*member = named(field, json.text(field)); }),
          [](const TrainSettings &) {}};
}

static Setting dtype(const char *flag, const char *field, Type TrainSettings::*member, const char *help) {
  return choice(flag, field, member, help, dtypeNamed, dtypeName);
}

/// An enumeration with the names of its values, in order.
template <class T, class Names>
static Setting named(const char *flag, const char *field, T TrainSettings::*member, const char *help,
                     const Names &names) {
  return choice(
      flag, field, member, help,
      [&names](const std::string &name, const std::string &text) {
        return static_cast<T>(parseChoice(name, text, {names.begin(), names.end()}));
      },
      [&names](T value) { return names.at(static_cast<size_t>(value)); });
}

static Setting withMemory(Setting setting) {
  setting.decidesMemory = true;
  return setting;
}

static Setting withOrder(Setting setting) {
  setting.decidesOrder = true;
  return setting;
}

/// A line of the table that is no setting: the heading of those after it.
static Setting below(const char *heading) {
  Setting line;
  line.heading = heading;
  return line;
}

/// The settings, each with its heading.
static std::vector<Setting> withHeadings(const std::vector<Setting> &lines) {
  std::vector<Setting> settings;
  std::string heading;
  for (const Setting &line : lines)
    if (line.flag.empty())
      heading = line.heading;
    else
      settings.emplace_back(line).heading = heading;
  return settings;
}

//===-- The table -----------------------------------------------------------------------------------------------===//

static std::vector<Setting> makeTable() {
  using S = TrainSettings;
  const auto later = Since::later;
  return withHeadings({
      below("Batches"),
      withMemory(number("batch", "batch", &S::batch, "sequences in a micro-batch", {atLeast(1), atMost(largestSize)})),
      withOrder(withMemory(number("batch-tokens", "batch_tokens", &S::batchTokens,
                                  "maximum positions of a micro-batch of pairs of similar length, padding included "
                                  "(translate only; 0: no limit)",
                                  {atLeast(0)}, later))),
      withMemory(number("accumulate", "accumulate", &S::accumulate, "micro-batches in a step",
                        {atLeast(1), atMost(largestSize)})),
      below("Memory"),
      withMemory(choice("recompute", "recompute", &S::recompute,
                        "activations that the backward pass recomputes: none, or some of norms, activation, qkv, "
                        "attention, middle, mlp, block (all of them), joined by commas; mlp:4 means those of the first "
                        "4 blocks",
                        recomputeNamed, [](const Recompute &recompute) { return nameOf(recompute); })),
      withMemory(number("loss-chunks", "loss_chunks", &S::lossChunks,
                        "parts in which the logits of a micro-batch are computed, one in memory at a time",
                        {between(1, 4096)}, later)),
      below("Optimisation"),
      number("steps", "steps", &S::steps, "updates, and the length of the schedule", {atLeast(1)}),
      number("warmup", "warmup", &S::warmup, "steps of linear warm-up", {withinSteps}),
      number("lr", "rate", &S::rate, "peak learning rate", {above(0)}),
      number("final-lr", "final_rate", &S::finalRate, "lowest learning rate, as a fraction of the peak",
             {between(0, 1), aboveForExponential}),
      named("schedule", "schedule", &S::schedule,
            "learning rate after the warm-up: cosine-closed (lowest at the last step), cosine and linear (lowest after "
            "it), constant, noam (inverse square root), wsd (constant, then decay over the last fifth), exponential",
            scheduleNames),
      number("decay", "decay", &S::decay, "weight decay", {atLeast(0)}),
      named("decay-on", "decay_on", &S::decayOn,
            "parameters with weight decay: matrices (embeddings included), nonzero (all that are not initialised to "
            "zero), all",
            decayOnNames),
      number("beta1", "beta1", &S::beta1, "AdamW's coefficient of the first moment", {share}),
      number("beta2", "beta2", &S::beta2, "AdamW's coefficient of the second moment", {share}),
      number("epsilon", "epsilon", &S::epsilon, "AdamW's epsilon, added to the root of the second moment", {above(0)}),
      number("clip", "clip", &S::clip, "gradient clipping: largest norm (0: no clipping)", {atLeast(0)}),
      number("skip-loss-z", "skip_loss_z", &S::skipLossZ,
             "skip an update if the z-score of its loss, over the last 128 steps, is above this (0: never)",
             {deviations}, later),
      number("skip-norm-z", "skip_norm_z", &S::skipNormZ,
             "skip an update if the z-score of its gradient norm, over the last 128 steps, is above this (0: never)",
             {deviations}, later),
      below("Regularisation"),
      number("dropout", "dropout", &S::dropout, "dropout rate of the embedding output and of each residual branch",
             {share}, later),
      number("dropout-embedding", "dropout_embedding", &S::dropoutEmbedding,
             "dropout rate of the embedding output (-1: as --dropout)", {chances}, later),
      number("dropout-residual", "dropout_residual", &S::dropoutResidual,
             "dropout rate of each residual branch (-1: as --dropout)", {chances}, later),
      number("dropout-activation", "dropout_activation", &S::dropoutActivation,
             "dropout rate of the outputs of the MLP's activation", {share}, later),
      number("dropout-attention", "dropout_attention", &S::dropoutAttention, "dropout rate of attention weights",
             {share}, later),
      named("dropout-kind", "dropout_kind", &S::dropoutKind,
            "inverted (kept elements are divided by the keep probability) or plain (evaluations multiply by it)",
            dropoutKindNames),
      number("label-smoothing", "label_smoothing", &S::smoothing,
             "fraction of each target's probability that is spread over all tokens, in the training loss", {share},
             later),
      below("Memory"),
      named("attention", "attention", &S::attention,
            "flash, or plain, which keeps the matrix of attention weights in memory", attentionNames),
      below("Batches"),
      withOrder(named("batching", "batching", &S::batching,
                      "how documents become sequences: stream (any consecutive tokens), padded (one document each), "
                      "packed (several documents, which do not attend to each other)",
                      batchingNames)),
      withOrder(named("order", "order", &S::order,
                      "order of the sequences of a stream: shuffled, or llmc, the order of llm.c's loader",
                      dataOrderNames)),
      withOrder(number("pack", "pack", &S::pack,
                       "documents are added to a packed sequence while less than this fraction of it is full",
                       {above(0), atMost(1)}, later)),
      named("positions", "positions", &S::positions,
            "positions of packed documents: restart (from 0 in each document) or run-on (through the sequence)",
            positionsNames),
      below("Evaluation"),
      number("evaluate-every", "evaluate_every", &S::evaluateEvery, "steps between validation losses (0: at the end)",
             {atLeast(0)}),
      below("Optimisation"),
      withOrder(number("seed", "seed", &S::seed, "seed of weights, batches, dropout and rounding", {})),
      below("Precision"),
      choice(
          "precision", "precision", &S::precision,
          "how matrix products of fp32 may round their operands: ieee, tf32, tf32x3, bf16x3 (tf32 on GPUs, ieee on "
          "CPUs; a CPU without AMX computes all as ieee)",
          [](const std::string &name, const std::string &text) {
            return static_cast<Precision>(parseChoice(name, text, precisionNames));
          },
          [](std::optional<Precision> p) { return p ? Json(precisionNames.at(static_cast<size_t>(*p))) : Json(); }),
      withMemory(dtype("dtype", "dtype", &S::type, "type of weights and activations: fp32, bf16, fp16")),
      withMemory(truth("master", "master", &S::master,
                       "1: fp32 master weights; 0: AdamW updates the narrow weights directly")),
      named("rounding", "rounding", &S::rounding, "how --master 0 rounds narrow weights: nearest, stochastic",
            roundingNames),
      number("loss-scale", "loss_scale", &S::lossScale, "initial loss scale of fp16", {lossScales}, later),
      number("scale-window", "scale_window", &S::scaleWindow,
             "updates without overflow after which the loss scale doubles (0: never)", {between(0, largestSize)},
             later),
      below("Evaluation"),
      number("evaluate-sequences", "evaluate_sequences", &S::evaluateSequences,
             "sequences of a validation loss, evenly spaced (translate: micro-batches) (0: all)", {atLeast(0)}, later),
      truth("evaluate-all", "evaluate_all", &S::evaluateAll, "1: the last validation loss takes all sequences"),
      number("samples", "samples", &S::samples, "validation texts that each evaluation continues greedily",
             {between(0, 64)}, later),
      below("Logs and profiles"),
      number("gradient-norms", "gradient_norms", &S::gradientNorms,
             "steps between logs of the gradient norm of each part of the model (0: never)", {atLeast(0)}, later),
      below("Checkpoints"),
      dtype("save-dtype", "save_dtype", &S::saveType, "type of the weights in checkpoints: fp32, bf16, fp16"),
      number("save-every", "save_every", &S::saveEvery, "steps between checkpoints (0: only at the end)", {atLeast(0)},
             later),
      number("keep", "keep", &S::keep, "newest checkpoints to keep", {atLeast(1)}, later),
      number("keep-every", "keep_every", &S::keepEvery,
             "keep the checkpoints of multiples of this step as well (0: none)", {atLeast(0)}, later),
  });
}

const std::vector<Setting> &settingTable() {
  static const std::vector<Setting> table = makeTable();
  return table;
}

} // namespace kiln
