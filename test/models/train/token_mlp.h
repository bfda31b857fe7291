// A model other than GPT-2: a residual layer of two products on tokens, with its own names and data; and runs of it.

#pragma once

#include "kernels/add.h"
#include "kernels/cross_entropy.h"
#include "models/data/json.h"
#include "models/data/random.h"
#include "models/nn/decoder.h"
#include "models/nn/embedding.h"
#include "models/nn/layers.h"
#include "models/train/evaluation.h"
#include "models/train/loop.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <sstream>

namespace kiln {

constexpr int64_t vocab = 11, width = 8, context = 5;

/// logits = table · (x + down · gelu(up · x)) with x = table[token] + places[position].
class TokenMlp : public Model {
public:
  /// The gradient is multiplied by `scale`.
  explicit TokenMlp(Type type = f32, float scale = 1)
      : element(type), scale(scale),
        embedding(list, {"table", "places"}, {vocab, context, width}, {.tokenInit = begun, .positionInit = begun}, {}),
        mlp(list, {{"up", "up offset"}, {"down", "down offset"}}, width, {}, {0.3, 0.3}, {}, context),
        head(list, {}, vocab, width, embedding.tokenTable(), {}, {}) {
    list.place();
  }
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return element; }
  std::vector<Input> inputs(const BatchShape &shape) const override {
    const int64_t rows = shape.targets();
    std::vector<Input> all = {{"tokens", i32, {rows}}, {"targets", i32, {rows}}};
    for (const Embedding::Array &array : embedding.arrays(rows))
      all.push_back({array.name, i32, array.extents});
    return all;
  }
  BatchShape shape(int64_t sequences) const override { return {sequences, context}; }
  void derive(HostBatch &batch, const BatchShape &) const override { embedding.derive(batch); }

  void gradient(Build &b, const MicroBatch &micro) const override {
    const int64_t rows = micro.losses.count();
    const TensorRef x = b.take("x", {rows, width}), y = b.take("y", {rows, width}), logits = take(b, rows);
    const TensorRef dx = b.take("dx", {rows, width}), dy = b.take("dy", {rows, width});
    Mlp::Saved saved;
    embedding.forward(b, inputsIn(micro), context, x);
    mlp.begin(b, [=](Build &) { return x; }, rows, /*time=*/1, saved);
    mlp.finish(b, x, saved, y);
    head.forward(b, y, logits);
    b.plan += planCrossEntropy(b.target, logits, micro["targets"], micro.losses, vocab, scale, missing, b.lossWeight);
    head.backward(b, logits, y, dy);
    mlp.backward(b, dy, saved, dx, /*add=*/false);
    b.plan += planAdd(b.target, dx.reshape({rows * width}), dy.reshape({rows * width}), dx.reshape({rows * width}));
    embedding.backward(b, inputsIn(micro), dx, context);
    for (const TensorRef &taken : {x, y, logits, dx, dy})
      b.release(taken);
  }
  void losses(Build &b, const MicroBatch &micro) const override {
    const int64_t rows = micro.losses.count();
    const TensorRef x = b.take("x", {rows, width}), logits = take(b, rows);
    embedding.forward(b, inputsIn(micro), context, x);
    mlp.infer(b, x, x, x);
    head.forward(b, x, logits);
    b.plan += planCrossEntropyLoss(b.target, logits, micro["targets"], micro.losses, vocab, missing);
    b.release(x);
    b.release(logits);
  }

  double flops(const BatchShape &shape) const override { return 6.0 * shape.targets() * (8 * width * width); }
  std::string text() const override { return "a layer on tokens"; }
  nlohmann::ordered_json configJson(Type) const override { return {{"kind", "token_mlp"}, {"width", width}}; }

  static constexpr int32_t missing = -1;

private:
  static constexpr Init begun = {Init::Kind::normal, 0.5};
  static Embedding::Inputs inputsIn(const MicroBatch &micro) {
    return [&](const std::string &name) -> const TensorRef & { return micro[name]; };
  }
  static TensorRef take(Build &b, int64_t rows) { return b.take("logits", {rows, vocab}); }

  Type element;
  float scale;
  ParameterList list;
  Embedding embedding;
  Mlp mlp;
  Head head;
};

/// The model in f16, with a gradient that overflows at every loss scale.
class Overflowing : public TokenMlp {
public:
  Overflowing() : TokenMlp(f16, 1e9f) {}
};

/// Sequences in which a token t is followed by 3 t + `shift`, modulo the vocabulary, from a random first token.
class Counting : public TrainData {
public:
  explicit Counting(uint64_t seed, int32_t shift = 1) : random(seed, Stream::batches), shift(shift) {}
  DataIdentity identity() const override { return {"counting", 7, static_cast<uint64_t>(shift)}; }
  HostBatch training(int64_t first, int64_t count) override {
    return batch(evenlySpaced(first, count, first + count, first + count), 0, count);
  }
  int64_t trainingTargets(int64_t, int64_t count) override { return count * context; }
  int64_t validationSequences() const override { return 3; }
  int64_t validationTargets(const std::vector<int64_t> &sequences) const override {
    return std::ssize(sequences) * context;
  }
  HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const override {
    return batch(sequences, 1000, count);
  }

private:
  /// The sequences of these numbers after `base`, followed by sequences without targets up to `count`.
  HostBatch batch(const std::vector<int64_t> &sequences, int64_t base, int64_t count) const {
    std::vector<int32_t> tokens(count * context, 0), targets(count * context, TokenMlp::missing);
    for (int64_t s = 0; s < std::ssize(sequences); ++s)
      for (int64_t i = 0, t = static_cast<int64_t>(random.below(vocab, base + sequences[s])); i < context; ++i) {
        tokens[s * context + i] = static_cast<int32_t>(t);
        targets[s * context + i] = static_cast<int32_t>(t = (3 * t + shift) % vocab);
      }
    return languageBatch(tokens, targets);
  }
  Random random;
  int32_t shift;
};

class LoopTest : public testing::Test {
protected:
  /// 24 steps of `model` with two micro-batches each, or as many as `o` permits.
  void run(const RunOptions &o, const Model &model, int32_t shift = 1) {
    Counting data(settings.seed, shift);
    run(o, model, data);
  }
  void run(RunOptions o, const Model &model, TrainData &data) {
    o.machine = {.device = kiln::test::firstDevice(), .threads = 2};
    verify(o);
    RunFolder held(o);
    RunState state{.settings = settings};
    if (held.checkpoint())
      state = held.read(readRunState);
    state.settings.saveEvery = 5;
    train(kiln::Run{.options = o,
                    .folder = held,
                    .model = model,
                    .data = data,
                    .state = state,
                    .begin =
                        [&](Trainer &trainer) {
                          trainer.initialize(settings.seed);
                          if (begun)
                            begun(trainer);
                        },
                    .notes = {},
                    .samples = samples,
                    .best = best});
  }
  /// The log without fields that depend on the clock.
  static std::vector<std::string> rows(const std::string &out) {
    std::istringstream lines(readText(out + "/log.jsonl"));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json row = nlohmann::json::parse(line);
      for (const char *clock : {"tokens_per_s", "peak_share", "seconds"})
        row.erase(clock);
      all.push_back(row.dump());
    }
    return all;
  }
  static double loss(const std::string &row) { return nlohmann::json::parse(row).at("loss"); }

  TrainSettings settings = {
      .batch = 2, .accumulate = 2, .steps = 24, .warmup = 2, .rate = 0.1, .evaluateEvery = 8, .seed = 3};
  /// The layer's results in f32.
  void run(const RunOptions &o, int32_t shift = 1) { run(o, TokenMlp(), shift); }

  const TemporaryFolder folder;
  std::optional<std::string> best = {};
  std::function<void(Trainer &)> begun = {}; // is called when a new run has its weights
  std::function<std::vector<std::string>(Trainer &, int64_t)> samples = {};
};

} // namespace kiln
