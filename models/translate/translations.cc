// Translates files, and computes their BLEU.

#include "models/generate/bleu.h"
#include "models/generate/generator.h"
#include "models/train/checkpoint.h"
#include "models/train/settings.h"
#include "models/translate/commands.h"
#include "models/translate/network.h"
#include "models/translate/pair_data.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <fmt/format.h>
#include <iostream>
#include <numeric>

namespace kiln {

//===-- Translator ----------------------------------------------------------------------------------------------===//
// Greedy translation with a trained model: each source is encoded once, and the target is generated with a KV cache.

namespace {
class Translator {
public:
  /// `weights` is the flat buffer of the network's parameters, on the device. It and the network must outlive it.
  Translator(std::shared_ptr<Device> device, const TranslationNetwork &network, const TensorRef &weights,
             const PairTokenizers &tokenizers)
      : device(std::move(device)), network(network), weights(weights), tokenizers(tokenizers),
        marks(findMarks(tokenizers)) {}

  /// A translation of each line, in one batch; an empty one for a line without tokens. Lines longer than the model's
  /// context are cut.
  std::vector<std::string> translate(std::span<const std::string> lines) const;

private:
  std::shared_ptr<Device> device;
  const TranslationNetwork &network;
  TensorRef weights;
  const PairTokenizers &tokenizers;
  PairMarks marks;
};

/// Sources on a device, with their keys and values for the decoder's blocks.
struct Sources {
  Tensor tokens, ranges, kv; // (B · S), (B, 2); (layers, B · S, 2C)
  std::vector<CrossKvCache> caches;
};
} // namespace

/// Encodes `rows`, each followed by an end mark, padded to one length.
static Sources read(const std::shared_ptr<Device> &device, const TranslationNetwork &network, const TensorRef &weights,
                    const std::vector<std::vector<int32_t>> &rows) {
  const int64_t count = std::ssize(rows), layers = network.config().layers, width = network.config().width;
  int64_t length = 0;
  for (const std::vector<int32_t> &row : rows)
    length = std::max(length, std::ssize(row));
  std::vector<int32_t> tokens, ranges;
  for (std::vector<int32_t> row : rows) {
    ranges.insert(ranges.end(), {0, static_cast<int32_t>(row.size())});
    row.resize(length, row.back());
    tokens.insert(tokens.end(), row.begin(), row.end());
  }
  Sources all = {Tensor(device, i32, {count * length}),
                 Tensor(device, i32, {count, 2}),
                 Tensor(device, network.type(), {layers, count * length, 2 * width}),
                 {}};
  all.tokens.upload(tokens.data(), all.tokens.bytes());
  all.ranges.upload(ranges.data(), all.ranges.bytes());
  for (int64_t l = 0; l < layers; ++l)
    all.caches.push_back({all.kv.ref().select(0, l), all.ranges});
  const std::map<std::string, TensorRef> inputs = {{"source tokens", all.tokens}, {"source ranges", all.ranges}};
  Target target = device->target();
  target.precision = Precision::ieee; // as in Generator
  target.elastic = true;
  const ReadyPlan reading(device, [&](Arena &arena) {
    Build b{target, arena, network.parameters(), ParameterBuffers{weights, weights}, network.type()};
    network.read(
        b, [&](const std::string &name) -> const TensorRef & { return inputs.at(name); }, count, length, all.caches);
    return std::move(b.plan);
  });
  reading.launches.run();
  device->synchronize();
  return all;
}

std::vector<std::string> Translator::translate(std::span<const std::string> lines) const {
  const int64_t most = network.config().context;
  std::vector<std::vector<int32_t>> rows, made(lines.size());
  std::vector<bool> ended;
  for (const std::string &line : lines) {
    std::vector<int32_t> row = tokenizers.source.encode(line);
    ended.push_back(row.empty());
    row.resize(std::min(std::ssize(row), most - 1));
    row.push_back(marks.sourceEnd);
    rows.push_back(std::move(row));
  }
  const Sources sources = read(device, network, weights, rows);
  Generator generator(device, network, weights,
                      {.sequences = std::ssize(lines), .front = marks.begin, .crossCaches = sources.caches});
  for (int64_t length = 1;
       length < most && !std::all_of(ended.begin(), ended.end(), [](bool end) { return end; }); ++length) {
    const std::vector<std::vector<float>> logits = generator.next();
    for (size_t i = 0; i < lines.size(); ++i) {
      if (ended[i])
        continue;
      const auto first = logits[i].begin(), last = first + tokenizers.target.size(); // the rest is padding
      const auto token = static_cast<int32_t>(std::max_element(first, last) - first);
      ended[i] = token == marks.end;
      if (ended[i])
        continue;
      made[i].push_back(token);
      generator.append(static_cast<int64_t>(i), {&token, 1});
    }
  }
  std::vector<std::string> texts;
  for (const std::vector<int32_t> &tokens : made) {
    texts.push_back(tokenizers.target.decode(tokens));
    while (!texts.back().empty() && texts.back().back() == ' ') // after the last word
      texts.back().pop_back();
  }
  return texts;
}

} // namespace kiln

namespace kiln::translate {

//===-- The commands --------------------------------------------------------------------------------------------===//

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
  const Bleu bleu = computeBleu(
      lines, references, {options.tokenized ? BleuWords::spaces : BleuWords::v13a, /*lowerCase=*/!options.cased});
  writeResult(fmt::format("BLEU         {:.2f} ({:.1f}, {:.1f}, {:.1f} and {:.1f} of runs of 1 to 4 words; brevity "
                          "{:.3f}; {} words, {} in the references; {} lines)\n",
                          bleu.score, bleu.precisions[0], bleu.precisions[1], bleu.precisions[2], bleu.precisions[3],
                          bleu.brevity, bleu.length, bleu.referenceLength, lines.size()));
}

} // namespace kiln::translate
