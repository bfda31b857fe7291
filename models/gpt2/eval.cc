// Evaluates endings of HellaSwag tasks, and losses of a text, in batches.

#include "models/gpt2/eval.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "models/data/shards.h"
#include "models/data/text.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/pretrained.h"
#include "models/train/evaluation.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

namespace kiln {

//===-- HellaSwag's tasks ---------------------------------------------------------------------------------------===//

/// The lines of a text without their line ends; a last line without an end counts if it is not empty.
static std::vector<std::string> splitLines(const std::string &text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r')
      lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

/// The index of the correct ending; `where` names the line in errors.
static int rightIn(const std::string &text, const std::string &where) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > 3)
    throw Error(fmt::format("expected the right ending's number, from 0 to 3, in {}, but got '{}'", where, text));
  return number;
}

static HellaSwagTask readTask(const JsonObject &json, const std::string &where) {
  HellaSwagTask task = {.context = json.text("ctx")};
  const std::vector<std::string> endings = json.textList("endings");
  if (endings.size() != task.endings.size())
    json.reject("endings", "a list of 4 texts");
  std::copy(endings.begin(), endings.end(), task.endings.begin());
  task.right = rightIn(json.isNumber("label") ? std::to_string(json.integer("label")) : json.text("label"), where);
  return task;
}

std::vector<HellaSwagTask> readHellaSwag(const std::string &path) {
  const std::vector<std::string> lines = splitLines(readUnpacked(path, mostTextBytes()));
  std::vector<HellaSwagTask> tasks;
  const bool isJson = path.find(".jsonl") != std::string::npos;
  constexpr size_t linesOfTask = 6;
  if (!isJson && lines.size() % linesOfTask != 0)
    throw Error(
        fmt::format("expected {} lines for each task of '{}', but got {} lines", linesOfTask, path, lines.size()));
  for (size_t i = 0; i < lines.size(); i += isJson ? 1 : linesOfTask) {
    const std::string where = fmt::format("{}:{}", path, i + 1);
    if (isJson) {
      tasks.push_back(readTask(JsonObject(where, lines[i]), where));
      continue;
    }
    HellaSwagTask &task = tasks.emplace_back(HellaSwagTask{.context = lines[i]});
    task.right = rightIn(lines[i + 1], fmt::format("{}:{}", path, i + 2));
    std::copy_n(lines.begin() + static_cast<int64_t>(i) + 2, task.endings.size(), task.endings.begin());
  }
  if (tasks.empty())
    throw Error(fmt::format("expected tasks in '{}', but there are none", path));
  return tasks;
}

//===-- Losses --------------------------------------------------------------------------------------------------===//

Evaluator::Evaluator(std::shared_ptr<Device> opened, const Network &network, const std::vector<char> &weights,
                     int64_t sequences)
    : device(std::move(opened)), network(network), shape(network.shape(sequences)),
      value(device, network.type(), {network.parameters().count()}), losses(device, f32, {shape.targets()}),
      hits(device, f32, {shape.targets()}) {
  for (const Input &input : network.inputs(shape))
    inputs.emplace(input.name, Tensor(device, input.type, input.extents));
  value.upload(weights.data(), std::ssize(weights));
  ready = ReadyPlan(device, [this](Arena &placed) { return plan(placed); });
}

Plan Evaluator::plan(Arena &placed) const {
  Target target = device->target();
  target.precision = Precision::ieee; // scores of endings may differ little
  Build b{target, placed, network.parameters(), ParameterBuffers{value, value}, network.type()};
  MicroBatch batch = {.shape = shape, .inputs = {}, .losses = losses, .hits = hits.ref()};
  for (const auto &[name, input] : inputs)
    batch.inputs.emplace(name, input.ref());
  network.losses(b, batch);
  return std::move(b.plan);
}

Evaluator::Result Evaluator::evaluate(const HostBatch &batch) {
  for (const auto &[name, array] : batch)
    inputs.at(name).upload(array.bytes().data(), std::ssize(array.bytes()));
  ready.launches.run();
  device->synchronize();
  return {losses.downloadFloats(), hits.downloadFloats()};
}

//===-- HellaSwag's scores, and the command ---------------------------------------------------------------------===//

namespace {
/// An ending after its context, as the model sees it.
struct Sequence {
  std::vector<int32_t> tokens;
  int64_t judged = 0; // number of the last tokens, which are the ending's
  bool isCut = false;
};

/// The endings of several tasks, as rows of a batch.
struct Endings {
  std::vector<int32_t> tokens, targets;
  std::vector<std::array<int64_t, 4>> judged; // for each task
};
} // namespace

static Sequence makeSequence(const Tokenizer &tokenizer, const std::vector<int32_t> &context, const std::string &ending,
                             int64_t length) {
  const std::vector<int32_t> own = tokenizer.encode(" " + ending);
  std::vector<int32_t> all = context;
  all.insert(all.end(), own.begin(), own.end());
  all.erase(all.begin(), all.end() - std::min(std::ssize(all), length + 1));
  const int64_t judged = std::min(std::ssize(own), std::ssize(all) - 1);
  return {std::move(all), judged, judged < std::ssize(own)};
}

static Endings encodeEndings(const Tokenizer &tokenizer, std::span<const HellaSwagTask> tasks, int64_t rows,
                             int64_t length, HellaSwagScore &score) {
  Endings endings = {std::vector<int32_t>(rows * length, 0), std::vector<int32_t>(rows * length, ignoredTarget), {}};
  for (int64_t i = 0; i < 4 * std::ssize(tasks); ++i) {
    const HellaSwagTask &task = tasks[i / 4];
    const Sequence s = makeSequence(tokenizer, tokenizer.encode(task.context), task.endings[i % 4], length);
    std::copy(s.tokens.begin(), s.tokens.end() - 1, endings.tokens.begin() + i * length);
    std::copy(s.tokens.end() - s.judged, s.tokens.end(),
              endings.targets.begin() + i * length + std::ssize(s.tokens) - 1 - s.judged);
    if (i % 4 == 0)
      endings.judged.emplace_back();
    endings.judged.back()[i % 4] = s.judged;
    score.cut += s.isCut;
  }
  return endings;
}

/// Adds the losses of a task's four endings, which are consecutive rows.
static void judge(HellaSwagScore &score, std::span<const float> losses, const std::array<int64_t, 4> &judged,
                  int right) {
  std::array<double, 4> sums = {}, means = {};
  const int64_t length = std::ssize(losses) / 4;
  for (int64_t e = 0; e < 4; ++e) {
    const auto begin = losses.begin() + e * length;
    sums[e] = std::accumulate(begin, begin + length, 0.0);
    means[e] = sums[e] / static_cast<double>(judged[e]);
  }
  const auto least = [](const std::array<double, 4> &all) {
    return std::min_element(all.begin(), all.end()) - all.begin();
  };
  score.bySum += least(sums) == right;
  score.byMean += least(means) == right;
  score.sums.push_back(sums);
  score.judged.push_back(judged);
}

HellaSwagScore scoreHellaSwag(Evaluator &evaluator, const Tokenizer &tokenizer,
                              const std::vector<HellaSwagTask> &given) {
  std::vector<HellaSwagTask> tasks;
  std::copy_if(given.begin(), given.end(), std::back_inserter(tasks),
               [&](const HellaSwagTask &task) { return !tokenizer.encode(task.context).empty(); });
  HellaSwagScore score = {.tasks = std::ssize(tasks), .skipped = std::ssize(given) - std::ssize(tasks)};
  const int64_t length = evaluator.length(), together = evaluator.sequences() / 4;
  for (int64_t first = 0; first < score.tasks; first += together) {
    const int64_t count = std::min(together, score.tasks - first);
    const Endings endings =
        encodeEndings(tokenizer, std::span(tasks).subspan(first, count), evaluator.sequences(), length, score);
    const std::vector<float> losses = evaluator.evaluate(languageBatch(endings.tokens, endings.targets)).losses;
    for (int64_t t = 0; t < count; ++t)
      judge(score, std::span(losses).subspan(4 * t * length, 4 * length), endings.judged[t], tasks[first + t].right);
  }
  return score;
}

/// Mean loss and accuracy on the validation part of the source.
static std::string heldOut(Evaluator &evaluator, const LanguageData &data) {
  double loss = 0, hits = 0;
  int64_t targets = 0;
  const int64_t all = data.validationSequences();
  for (int64_t first = 0; first < all; first += evaluator.sequences()) {
    const std::vector<int64_t> sequences = evenlySpaced(first, evaluator.sequences(), all, all);
    const Evaluator::Result result = evaluator.evaluate(data.validation(sequences, evaluator.sequences()));
    loss += std::accumulate(result.losses.begin(), result.losses.end(), 0.0);
    hits += std::accumulate(result.hits.begin(), result.hits.end(), 0.0);
    targets += data.validationTargets(sequences);
  }
  const auto count = static_cast<double>(targets);
  if (!std::isfinite(loss))
    throw Error(fmt::format("expected a finite loss over {} tokens, but got {}", targets, loss / count));
  return fmt::format("loss {:.4f}, accuracy {:.4f} over {} tokens", loss / count, hits / count, targets);
}

/// As above, for the data that the options name, batched as in the model's run.
static std::string heldOut(const EvalOptions &options, const TrainedModel &model, const Tokenizer &tokenizer,
                           const std::shared_ptr<Device> &device) {
  const TrainSettings settings = replaced(options.batching, model.settings);
  expectEffect(options.batching, settings);
  LanguageSource source = {.data = options.data ? *options.data : *options.validation,
                           .held = options.validation,
                           .tokenizer = model.vocabulary ? &tokenizer : nullptr,
                           .vocab = model.config.vocab};
  Gpt2Config config = model.config;
  setBatching(source, config, settings, model.vocabulary);
  const Network network(config);
  const LanguageData data(source, config.context, 1);
  Evaluator evaluator(device, network, model.weights, options.batch);
  return heldOut(evaluator, data) + (settings.batching == Batching::padded   ? ", each document alone\n"
                                     : settings.batching == Batching::packed ? ", documents packed\n"
                                                                             : "\n");
}

std::string formatScores(const HellaSwagScore &score) {
  std::string lines;
  for (size_t t = 0; t < score.sums.size(); ++t)
    lines += nlohmann::ordered_json{{"sums", score.sums[t]}, {"tokens", score.judged[t]}}.dump() + "\n";
  return lines;
}

void evaluate(const EvalOptions &options) {
  if (!options.data && !options.validation && !options.hellaSwag)
    throw Error("eval requires --data, --validation or --hellaswag");
  if (options.scores && !options.hellaSwag)
    throw Error("--scores requires --hellaswag");
  if (options.tasks < 0)
    throw Error(fmt::format("expected '--tasks' to be at least 0, but got {}", options.tasks));
  if (options.batch < 4 || options.batch % 4 != 0)
    throw Error(fmt::format("expected '--batch' to be a multiple of 4, but got {}", options.batch));
  if (!options.data && !options.validation && !options.batching.given.empty())
    throw Error(fmt::format("--{} requires --data or --validation", options.batching.given.begin()->first));
  const TrainedModel model = readTrained(options.folder, options.dtype);
  const auto isText = [](const std::optional<std::string> &path) { return path && !namesShards(*path); };
  if (options.hellaSwag || isText(options.data) || isText(options.validation))
    verifyTokens(model.config, model.vocabulary);
  const Tokenizer tokenizer(model.vocabulary.value_or(byteVocabulary()));
  const std::shared_ptr<Device> device = openDevice(options.machine);
  if (options.data || options.validation)
    writeResult(heldOut(options, model, tokenizer, device));
  if (!options.hellaSwag)
    return;
  const Network network(model.config);
  Evaluator evaluator(device, network, model.weights, options.batch);
  std::vector<HellaSwagTask> tasks = readHellaSwag(*options.hellaSwag);
  if (options.tasks > 0 && options.tasks < std::ssize(tasks))
    tasks.resize(options.tasks);
  const HellaSwagScore score = scoreHellaSwag(evaluator, tokenizer, tasks);
  const auto share = [&](int64_t right) {
    return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(score.tasks, 1));
  };
  writeResult(fmt::format("hellaswag {:.4f} by mean loss, {:.4f} by its sum, of {} tasks\n", share(score.byMean),
                          share(score.bySum), score.tasks));
  if (score.cut > 0)
    writeResult(fmt::format("{} of {} endings are longer than the model's context and were truncated on the left\n",
                            score.cut, 4 * score.tasks));
  if (score.skipped > 0)
    writeResult(fmt::format("{} tasks without a context are left out\n", score.skipped));
  if (options.scores)
    replaceFile(*options.scores, formatScores(score));
}

} // namespace kiln
