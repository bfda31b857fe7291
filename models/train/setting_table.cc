// The table of settings, and their kinds.

#include "models/train/setting_table.h"
#include "dialect/dsl/Kernel.h"
#include "kernels/adamw.h"
#include "kernels/outliers.h"
#include "models/data/json.h"
#include "models/train/number_text.h"

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
                                   return x >= leastLossScale && x <= mostLossScale && std::frexp(x, &exponent) == 0.5;
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

/// Reads one of the names of an enumeration's values, for choice().
template <class T> static auto oneOf(const std::vector<std::string> &names) {
  return [&names](const std::string &name, const std::string &text) {
    return static_cast<T>(parseChoice(name, text, names));
  };
}

static Setting dtype(const char *flag, const char *field, Type TrainSettings::*member, const char *help) {
  return choice(flag, field, member, help, dtypeNamed, dtypeOf);
}

/// An enumeration with the names of its values, in order.
template <class T, size_t N>
static Setting named(const char *flag, const char *field, T TrainSettings::*member, const char *help,
                     const std::array<const char *, N> &names) {
  return choice(
      flag, field, member, help,
      [=](const std::string &name, const std::string &text) {
        for (size_t i = 0; i < N; ++i)
          if (text == names[i])
            return static_cast<T>(i);
        throw Error(fmt::format("expected '{}' to be {}, but got '{}'", name, fmt::join(names, " or "), text));
      },
      [=](T value) { return names.at(static_cast<size_t>(value)); });
}

static Setting withMemory(Setting setting) {
  setting.decidesMemory = true;
  return setting;
}

static Setting withOrder(Setting setting) {
  setting.decidesOrder = true;
  return setting;
}

//===-- The table -----------------------------------------------------------------------------------------------===//

static std::vector<Setting> makeTable() {
  using S = TrainSettings;
  const auto later = Since::later;
  return {
      withMemory(number("batch", "batch", &S::batch, "sequences in a micro-batch", {atLeast(1), atMost(largestSize)})),
      withOrder(withMemory(
          number("batch-tokens", "batch_tokens", &S::batchTokens,
                 "places of a micro-batch at most, where sequences of like lengths are put together (0: any)",
                 {atLeast(0)}, later))),
      withMemory(number("accumulate", "accumulate", &S::accumulate, "micro-batches in a step",
                        {atLeast(1), atMost(largestSize)})),
      withMemory(choice(
          "recompute", "recompute", &S::recompute,
          "activations that the backward pass makes again: none, or out of norms, activation, qkv, attention, middle, "
          "mlp and block (all of them), joined by commas, each of all blocks or as mlp:4 of the first 4 (none)",
          recomputeNamed, [](const Recompute &recompute) { return nameOf(recompute); })),
      withMemory(number("loss-chunks", "loss_chunks", &S::lossChunks,
                        "parts of a micro-batch's places, of which one at a time has logits in memory (1)",
                        {between(1, 4096)}, later)),
      number("steps", "steps", &S::steps, "updates, and the length of the schedule", {atLeast(1)}),
      number("warmup", "warmup", &S::warmup, "steps of linear warm-up", {withinSteps}),
      number("lr", "rate", &S::rate, "highest learning rate", {above(0)}),
      number("final-lr", "final_rate", &S::finalRate, "lowest learning rate, as a share of the highest",
             {between(0, 1), aboveForExponential}),
      named(
          "schedule", "schedule", &S::schedule,
          "how the learning rate falls behind the warm-up: cosine-closed (lowest at the last step), cosine and linear "
          "(lowest behind it), constant, noam (as one over the root of the steps), wsd (over the last fifth), "
          "exponential "
          "(cosine-closed)",
          scheduleNames),
      number("decay", "decay", &S::decay, "weight decay", {atLeast(0)}),
      named("decay-on", "decay_on", &S::decayOn,
            "what decays: matrices (and tables), nonzero (all but what begins at zero), all (matrices)", decayOnNames),
      number("beta1", "beta1", &S::beta1, "AdamW's first coefficient", {share}),
      number("beta2", "beta2", &S::beta2, "AdamW's second coefficient", {share}),
      number("epsilon", "epsilon", &S::epsilon, "what AdamW adds to the root of the second moment", {above(0)}),
      number("clip", "clip", &S::clip, "largest gradient norm (0: any)", {atLeast(0)}),
      number("skip-loss-z", "skip_loss_z", &S::skipLossZ,
             "deviations above the mean of the last 128 losses at which a step is left out (0: none is)", {deviations},
             later),
      number("skip-norm-z", "skip_norm_z", &S::skipNormZ, "the same of the gradient norm (0: none is)", {deviations},
             later),
      number("dropout", "dropout", &S::dropout, "chance of dropout of embeddings and of what joins the stream", {share},
             later),
      number("dropout-embedding", "dropout_embedding", &S::dropoutEmbedding,
             "the same of embeddings alone (-1: as --dropout)", {chances}, later),
      number("dropout-residual", "dropout_residual", &S::dropoutResidual,
             "the same of what joins the stream alone (-1: as --dropout)", {chances}, later),
      number("dropout-activation", "dropout_activation", &S::dropoutActivation,
             "the same of what comes out of an activation", {share}, later),
      number("dropout-attention", "dropout_attention", &S::dropoutAttention, "the same of attention's weights", {share},
             later),
      choice("dropout-kind", "dropout_kind", &S::dropoutKind,
             "inverted (kept numbers are divided by their share), plain (evaluations multiply by it) (inverted)",
             oneOf<DropoutKind>(dropoutKindNames),
             [](DropoutKind kind) { return dropoutKindNames.at(static_cast<size_t>(kind)); }),
      number("label-smoothing", "label_smoothing", &S::smoothing,
             "share of a target that all tokens have alike, in the loss to train by (0)", {share}, later),
      named("attention", "attention", &S::attention, "flash, or plain, whose weights are matrices in memory (flash)",
            attentionNames),
      withOrder(named(
          "batching", "batching", &S::batching,
          "how a text becomes sequences: stream (end to end), padded (each document alone), packed (several in one, "
          "none of which sees another) (stream)",
          batchingNames)),
      withOrder(
          named("order", "order", &S::order,
                "of the sequences of a stream: shuffled, or llmc, as llm.c's loader takes files of tokens (shuffled)",
                dataOrderNames)),
      withOrder(number("pack", "pack", &S::pack,
                       "share of a packed sequence below which it takes one document more (0.75)",
                       {above(0), atMost(1)}, later)),
      named("positions", "positions", &S::positions,
            "of packed documents: restart (each counts from 0), run-on (through the sequence) (restart)",
            positionsNames),
      number("evaluate-every", "evaluate_every", &S::evaluateEvery, "steps between validation losses (0: at the end)",
             {atLeast(0)}),
      withOrder(number("seed", "seed", &S::seed, "seed of weights and batches", {})),
      choice("precision", "precision", &S::precision,
             "how products of f32 may be rounded: ieee, tf32, tf32x3, bf16x3 (tf32 on GPUs, ieee on CPUs; those "
             "without AMX compute all as ieee)",
             oneOf<Precision>(precisionNames),
             [](std::optional<Precision> p) { return p ? Json(precisionNames.at(static_cast<size_t>(*p))) : Json(); }),
      withMemory(dtype("dtype", "dtype", &S::type, "type of weights and activations: fp32, bf16, fp16")),
      withMemory(
          truth("master", "master", &S::master, "1: updates change f32 weights, of which narrow ones are copies (1)")),
      choice("rounding", "rounding", &S::rounding, "of narrow weights without those: nearest, stochastic (nearest)",
             oneOf<WeightRounding>(roundingNames),
             [](WeightRounding rounding) { return roundingNames.at(static_cast<size_t>(rounding)); }),
      number("loss-scale", "loss_scale", &S::lossScale, "what fp16 multiplies its loss by at first (65536)",
             {lossScales}, later),
      number("scale-window", "scale_window", &S::scaleWindow, "updates after which that doubles (2000; 0: never)",
             {between(0, largestSize)}, later),
      number("evaluate-batches", "evaluate_batches", &S::evaluateBatches,
             "micro-batches that a validation loss takes, spread evenly (0: all)", {atLeast(0)}, later),
      truth("evaluate-all", "evaluate_all", &S::evaluateAll, "1: the last validation loss takes all (0)"),
      number("samples", "samples", &S::samples, "texts that each evaluation has the model go on with, greedily (0)",
             {between(0, 64)}, later),
      number("gradient-norms", "gradient_norms", &S::gradientNorms,
             "steps between logs of the gradient norm of each layer (0: never)", {atLeast(0)}, later),
      dtype("save-dtype", "save_dtype", &S::saveType, "type of the weights in checkpoints: fp32, bf16, fp16 (fp32)"),
  };
}

const std::vector<Setting> &settingTable() {
  static const std::vector<Setting> table = makeTable();
  return table;
}

} // namespace kiln
