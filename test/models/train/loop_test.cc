// The loop on a model that is no GPT-2: a residual layer of two products on tokens, with names and data of its own.
// What holds here holds for any model: it learns, it is saved under its own names, and it goes on to the bit.

#include "kernels/add.h"
#include "kernels/cross_entropy.h"
#include "models/data/json.h"
#include "models/data/random.h"
#include "models/data/safetensors.h"
#include "models/nn/embedding.h"
#include "models/nn/head.h"
#include "models/nn/mlp.h"
#include "models/train/loop.h"
#include "models/train/model_links.h"
#include "models/train/validation.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <filesystem>
#include <sstream>

using namespace kiln;

namespace {

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
    mlp.begin(b, [=](Build &) { return x; }, rows, saved);
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

/// The same in f16, with a gradient that no loss scale keeps from overflowing.
class Overflowing : public TokenMlp {
public:
  Overflowing() : TokenMlp(f16, 1e9f) {}
};

/// Sequences in which a token t is followed by 3 t + `shift`, modulo the vocabulary, from a random first token.
class Counting : public TrainData {
public:
  explicit Counting(uint64_t seed, int32_t shift = 1) : random(seed, Stream::batches), shift(shift) {}
  DataIdentity identity() const override { return {"counting", 7, static_cast<uint64_t>(shift)}; }
  HostBatch training(int64_t first, int64_t count) override { return batch(first, count, count); }
  int64_t trainingTargets(int64_t, int64_t count) override { return count * context; }
  int64_t validationSequences() const override { return 3; }
  int64_t validationTargets(int64_t first, int64_t count) const override {
    return std::min<int64_t>(count, 3 - first) * context;
  }
  HostBatch validation(int64_t first, int64_t count) const override {
    return batch(1000 + first, std::min<int64_t>(count, 3 - first), count);
  }

private:
  /// `present` sequences from number `first` on, and behind them some without targets up to `count`.
  HostBatch batch(int64_t first, int64_t present, int64_t count) const {
    std::vector<int32_t> tokens(count * context, 0), targets(count * context, TokenMlp::missing);
    for (int64_t s = 0; s < present; ++s)
      for (int64_t i = 0, t = static_cast<int64_t>(random.below(vocab, first + s)); i < context; ++i) {
        tokens[s * context + i] = static_cast<int32_t>(t);
        targets[s * context + i] = static_cast<int32_t>(t = (3 * t + shift) % vocab);
      }
    return languageBatch(tokens, targets);
  }
  Random random;
  int32_t shift;
};

/// The same, with a file that cannot be read any more: the sequences to validate on, or those to train on from a number
/// on.
class Failing : public Counting {
public:
  Failing(uint64_t seed, bool validationFails, int64_t readable)
      : Counting(seed), validationFails(validationFails), readable(readable) {}
  HostBatch training(int64_t first, int64_t count) override {
    if (first + count > readable)
      throw Error("cannot read the sequences", Fault::device);
    return Counting::training(first, count);
  }
  HostBatch validation(int64_t first, int64_t count) const override {
    if (validationFails)
      throw Error("expected other sequences");
    return Counting::validation(first, count);
  }

private:
  const bool validationFails;
  const int64_t readable;
};

class LoopTest : public testing::Test {
protected:
  /// 24 steps of `model`, two micro-batches each, or those that `o` lets it take.
  void run(const RunOptions &o, const Model &model, int32_t shift = 1) {
    Counting data(settings.seed, shift);
    run(o, model, data);
  }
  void run(RunOptions o, const Model &model, TrainData &data) {
    o.machine = {.device = kiln::test::firstDevice(), .threads = 2};
    o.saveEvery = 5;
    verify(o);
    RunFolder held(o);
    RunState state{.settings = settings};
    if (held.checkpoint())
      state = held.read(readRunState);
    train(kiln::Run{.options = o,
                    .folder = held,
                    .model = model,
                    .data = data,
                    .state = state,
                    .begin = [](Trainer &trainer) { trainer.initialize(settings.seed); },
                    .notes = {},
                    .best = best});
  }
  /// The log but for what depends on the clock.
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

  inline static const TrainSettings settings = {
      .batch = 2, .accumulate = 2, .steps = 24, .warmup = 2, .rate = 0.1, .evaluateEvery = 8, .seed = 3};
  /// The same of a layer in f32.
  void run(const RunOptions &o, int32_t shift = 1) { run(o, TokenMlp(), shift); }

  const TemporaryFolder folder;
  std::optional<std::string> best = {};
};

// It begins near the loss of guessing, ln 11, and learns what follows what.
TEST_F(LoopTest, LearnsAndValidates) {
  run({.out = folder / "run"});
  const std::vector<std::string> log = rows(folder / "run");
  ASSERT_EQ(log.size(), 24u);
  EXPECT_GT(loss(log.front()), 1.5);
  EXPECT_LT(loss(log.back()), 0.5 * loss(log.front()));
  EXPECT_LT(nlohmann::json::parse(log.back()).at("val_loss").get<double>(), 0.5 * loss(log.front()));
}

/// Twenty sequences to validate on; it writes down which were asked for.
class Counted : public Counting {
public:
  using Counting::Counting;
  int64_t validationSequences() const override { return 20; }
  int64_t validationTargets(int64_t, int64_t count) const override { return count * context; }
  HostBatch validation(int64_t first, int64_t count) const override {
    asked.push_back(first);
    return Counting::validation(0, count);
  }
  mutable std::vector<int64_t> asked;
};

// A bounded validation takes batches that lie evenly apart, the same each time; without a bound all. Nothing is
// compiled for it, once the trainer is ready.
TEST_F(LoopTest, ValidationMayBeBounded) {
  const TokenMlp model;
  Trainer trainer(Device::open(kiln::test::firstDevice()), model, settings);
  trainer.initialize(1);
  trainer.prepare();
  freeze();
  const auto askedFor = [&](int64_t most, int64_t parts = 1) {
    Counted data(1);
    EXPECT_TRUE(validate(trainer, data, 2, parts, most, [] { return false; }).has_value());
    return data.asked;
  };
  EXPECT_EQ(askedFor(0), (std::vector<int64_t>{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}));
  EXPECT_EQ(askedFor(3), (std::vector<int64_t>{0, 6, 12}));
  EXPECT_EQ(askedFor(3), (std::vector<int64_t>{0, 6, 12}));
  EXPECT_EQ(askedFor(100), askedFor(0));
  // Of four sequences in two parts there are five, the same ones as in one part.
  EXPECT_EQ(askedFor(2, 2), (std::vector<int64_t>{0, 2, 8, 10}));
  EXPECT_EQ(askedFor(0, 2), askedFor(0));
  EXPECT_EQ(askedFor(1, 6), (std::vector<int64_t>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(askedFor(2, 6), askedFor(0));
  Counted data(1);
  EXPECT_FALSE(validate(trainer, data, 2, 1, 0, [] { return true; }).has_value());
  freeze(false);
}

// A run that stopped after step 7 and goes on ends with the bits of one that did not stop, in every file and every row.
TEST_F(LoopTest, GoesOnToTheBit) {
  run({.out = folder / "whole"});
  run({.out = folder / "parts", .stopAfter = 7});
  EXPECT_EQ(rows(folder / "parts").size(), 7u);
  run({.out = folder / "parts", .resume = true});
  for (const char *name : {"config.json", "model.safetensors", "optimizer.safetensors", "training.json"})
    EXPECT_TRUE(readText(checkpointPath(folder / "whole", 24) + "/" + name) ==
                readText(checkpointPath(folder / "parts", 24) + "/" + name))
        << name;
  EXPECT_EQ(rows(folder / "whole"), rows(folder / "parts"));
}

// A checkpoint speaks of the model in the model's words.
TEST_F(LoopTest, SavesUnderTheModelsNames) {
  run({.out = folder / "run", .stopAfter = 1});
  const std::string checkpoint = checkpointPath(folder / "run", 1);
  EXPECT_EQ(Safetensors(checkpoint + "/model.safetensors").names(),
            (std::vector<std::string>{"down", "down offset", "places", "table", "up", "up offset"}));
  EXPECT_EQ(readJsonObject(checkpoint + "/config.json").text("kind"), "token_mlp");
}

// The checkpoint with the least loss of an evaluation is kept beside the newest two, and `best` points at it; a run
// that goes on knows it from its log.
TEST_F(LoopTest, KeepsTheBestCheckpoint) {
  best = "val_loss";
  run({.out = folder / "run", .stopAfter = 10});
  run({.out = folder / "run", .resume = true});
  int64_t step = 0;
  double least = 1e9;
  for (const std::string &row : rows(folder / "run")) {
    const nlohmann::json j = nlohmann::json::parse(row);
    if (j.contains("val_loss") && j.at("val_loss").get<double>() < least) {
      least = j.at("val_loss");
      step = j.at("step");
    }
  }
  EXPECT_EQ(bestLinked(folder / "run"),
            std::filesystem::path(checkpointPath(folder / "run", step)).filename().string());
  EXPECT_EQ(readRunState(folder / "run" + "/best").step, step);
  run({.out = folder / "run", .stopAfter = 1, .overwrite = true});
  EXPECT_EQ(bestLinked(folder / "run"), std::nullopt);
}

// One that is not among the newest stays until another is better.
TEST_F(LoopTest, TheBestCheckpointOutlivesNewerOnes) {
  run({.out = folder / "run", .stopAfter = 5});
  linkBest(folder / "run", "checkpoint-00000005");
  run({.out = folder / "run", .resume = true});
  EXPECT_EQ(readRunState(folder / "run" + "/best").step, 5);
  EXPECT_TRUE(std::filesystem::exists(checkpointPath(folder / "run", 24)));
  EXPECT_FALSE(std::filesystem::exists(checkpointPath(folder / "run", 10)));
}

TEST_F(LoopTest, GoesOnWithTheSameDataOnly) {
  run({.out = folder / "run", .stopAfter = 1});
  expectError([&] { run({.out = folder / "run", .resume = true}, /*shift=*/2); },
              {"expected the data that the checkpoint was trained on ('counting', 7 bytes, hash 0000000000000001)"});
}

// A scale of 65536 halves sixteen times, in steps that are skipped and logged; an overflow with a scale of 1, which no
// other can cure, ends the run with an error and a checkpoint.
TEST_F(LoopTest, OverflowsThatDoNotEndAreAnError) {
  const std::string text = errorOf([&] { run({.out = folder / "run"}, Overflowing()); });
  EXPECT_NE(text.find("expected a finite loss and gradient at step 17, but got "), std::string::npos) << text;
  EXPECT_NE(text.find(" with a loss scale of 1; a lower --lr may help; step 16 is saved"), std::string::npos) << text;
  const std::vector<std::string> log = rows(folder / "run");
  ASSERT_EQ(log.size(), 16u);
  for (const std::string &row : log)
    EXPECT_TRUE(nlohmann::json::parse(row).at("skipped").get<bool>()) << row;
  EXPECT_EQ(readRunState(checkpointPath(folder / "run", 16)).updates, 0);
}

// An error in an evaluation, or in reading a batch, ends the run with what it had done by then.
TEST_F(LoopTest, AnErrorSavesTheSteps) {
  Failing validation(3, /*validationFails=*/true, /*readable=*/1000);
  std::string text = errorOf([&] { run({.out = folder / "validation"}, TokenMlp(), validation); });
  EXPECT_EQ(text.find("expected other sequences; step 8 is saved in '"), 0u) << text;
  EXPECT_EQ(readRunState(checkpointPath(folder / "validation", 8)).step, 8);
  Failing training(3, /*validationFails=*/false, /*readable=*/4 * 6 + 2); // the seventh step has two micro-batches
  text = errorOf([&] { run({.out = folder / "training"}, TokenMlp(), training); });
  EXPECT_EQ(text.find("cannot read the sequences; step 6 is saved in '"), 0u) << text;
  run({.out = folder / "training", .resume = true});
  run({.out = folder / "whole"});
  EXPECT_TRUE(readText(checkpointPath(folder / "whole", 24) + "/model.safetensors") ==
              readText(checkpointPath(folder / "training", 24) + "/model.safetensors"));
}

} // namespace
