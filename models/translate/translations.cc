// Translates files, and computes their BLEU.

#include "models/generate/bleu.h"
#include "models/train/checkpoint.h"
#include "models/train/configured.h"
#include "models/translate/commands.h"
#include "models/translate/run_tokens.h"
#include "models/translate/translator.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <numeric>

namespace kiln::translate {

namespace {
/// A run's newest model, on a device.
struct Trained {
  explicit Trained(const TranslateOptions &o)
      : checkpoint(newestCheckpoint(o.folder).value_or(o.folder)), tokenizers(readRunTokens(checkpoint)),
        network(configured(readTranslationConfig(checkpoint), inF32(readRunState(checkpoint).settings))),
        device(openDevice(o.machine)), weights(uploaded(device, network, readBuffers(checkpoint, network).values)),
        translator(device, network, weights, tokenizers) {}

  const std::string checkpoint;
  const PairTokenizers tokenizers;
  const TranslationNetwork network;
  const std::shared_ptr<Device> device;
  const Tensor weights;
  const Translator translator;

private:
  /// The settings of the run, in f32. Their dropout matters: plain dropout scales activations in evaluation.
  static TrainSettings inF32(TrainSettings settings) {
    settings.type = f32;
    return settings;
  }
};
} // namespace

/// A translation of each line; lines of similar length are batched.
static std::vector<std::string> translated(const Trained &model, const TranslateOptions &o,
                                           const std::vector<std::string> &lines) {
  std::vector<size_t> order(lines.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lines[a].size() < lines[b].size(); });
  std::vector<std::string> all(lines.size());
  for (size_t begin = 0; begin < order.size(); begin += o.batch) {
    const size_t end = std::min(begin + static_cast<size_t>(o.batch), order.size());
    std::vector<std::string> some;
    for (size_t i = begin; i < end; ++i)
      some.push_back(lines[order[i]]);
    const std::vector<std::string> made = model.translator.translate(some);
    for (size_t i = begin; i < end; ++i)
      all[order[i]] = made[i - begin];
  }
  return all;
}

/// The lines of standard input.
static std::vector<std::string> inputLines() {
  std::vector<std::string> lines;
  for (std::string line; std::getline(std::cin, line);)
    lines.push_back(line);
  if (lines.empty())
    throw Error("expected lines of text on standard input, but it is empty");
  return lines;
}

void translate(const TranslateOptions &options) {
  expectBetween("--batch", options.batch, largestSize);
  const Trained model(options);
  std::string text;
  for (const std::string &line :
       translated(model, options, options.source == "-" ? inputLines() : readLines(options.source)))
    text += line + "\n";
  writeResult(text);
}

/// The translations, and their references.
static std::pair<std::vector<std::string>, std::vector<std::string>> judged(const EvalOptions &options) {
  const int named = (options.folder.empty() ? 0 : 1) + (options.source == "-" ? 0 : 1);
  if (named != (options.translations ? 0 : 2))
    throw Error("eval requires --out, a run's folder, and --source, a file of lines; or --translations without both");
  if (options.translations)
    return readLinePairs(*options.translations, *options.target);
  const Trained model(options);
  const auto [sources, references] = readLinePairs(options.source, *options.target);
  return {translated(model, options, sources), references};
}

void eval(const EvalOptions &options) {
  expectBetween("--batch", options.batch, largestSize);
  const auto [lines, references] = judged(options);
  const Bleu bleu = bleuOf(lines, references,
                           {options.tokenized ? BleuWords::spaces : BleuWords::v13a, /*lowerCase=*/!options.cased});
  writeResult(fmt::format("BLEU         {:.2f} ({:.1f}, {:.1f}, {:.1f} and {:.1f} of runs of 1 to 4 words; brevity "
                          "{:.3f}; {} words, {} in the references; {} lines)\n",
                          bleu.score, bleu.precisions[0], bleu.precisions[1], bleu.precisions[2], bleu.precisions[3],
                          bleu.brevity, bleu.length, bleu.referenceLength, lines.size()));
}

} // namespace kiln::translate
