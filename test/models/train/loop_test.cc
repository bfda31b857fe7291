// The loop on a model other than GPT-2 (token_mlp.h). Properties of training any model: the loss decreases, the model
// is saved under its own names, and resuming is exact.

#include "models/data/safetensors.h"
#include "models/train/model_links.h"
#include "test/models/train/token_mlp.h"

#include <numeric>

using namespace kiln;

namespace {

// The loss begins near ln 11, that of guessing, and decreases.
TEST_F(LoopTest, LearnsAndValidates) {
  run({.out = folder / "run"});
  const std::vector<std::string> log = rows(folder / "run");
  ASSERT_EQ(log.size(), 24u);
  EXPECT_GT(loss(log.front()), 1.5);
  EXPECT_LT(loss(log.back()), 0.5 * loss(log.front()));
  EXPECT_LT(nlohmann::json::parse(log.back()).at("val_loss").get<double>(), 0.5 * loss(log.front()));
}

/// Twenty validation sequences; records those that were requested.
class Counted : public Counting {
public:
  using Counting::Counting;
  int64_t validationSequences() const override { return 20; }
  HostBatch validation(const std::vector<int64_t> &sequences, int64_t count) const override {
    asked.insert(asked.end(), sequences.begin(), sequences.end());
    return Counting::validation(sequences, count);
  }
  mutable std::vector<int64_t> asked;
};

// A bounded validation uses evenly spaced sequences, equal each time and with micro-batches of any size; an unbounded
// one uses all. Nothing is compiled for it after the trainer's preparation.
TEST_F(LoopTest, ValidationMayBeBounded) {
  const TokenMlp model;
  std::vector<int64_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> losses;
  for (const int64_t batch : {1, 2, 3, 8}) {
    settings.batch = batch;
    Trainer trainer(Device::open(kiln::test::firstDevice()), model, settings);
    trainer.initialize(1);
    trainer.prepare();
    freeze();
    const auto askedFor = [&](int64_t most) {
      Counted data(1);
      const auto means = validate(trainer, data, batch, most, [] { return false; });
      EXPECT_TRUE(means.has_value());
      losses.push_back(means.value_or(Validation()).loss);
      return data.asked;
    };
    EXPECT_EQ(askedFor(0), all) << batch;
    EXPECT_EQ(askedFor(100), all) << batch;
    EXPECT_EQ(askedFor(6), (std::vector<int64_t>{0, 3, 6, 10, 13, 16})) << batch;
    EXPECT_EQ(askedFor(6), (std::vector<int64_t>{0, 3, 6, 10, 13, 16})) << batch;
    EXPECT_EQ(askedFor(1), (std::vector<int64_t>{0})) << batch;
    Counted data(1);
    EXPECT_FALSE(validate(trainer, data, batch, 0, [] { return true; }).has_value());
    freeze(false);
  }
  for (size_t i = 5; i < losses.size(); ++i) // sums of at most 20 sequences in f32
    EXPECT_NEAR(losses[i], losses[i % 5], 1e-6 * losses[i % 5]) << i;
}

// A run that stopped after step 7 and is resumed has the bits of an uninterrupted one, in every file and every row.
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

// The checkpoint with the least validation loss is kept in addition to the newest two, and `best` links to it. A
// resumed run finds it from its log.
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

// A resumed run compares with the checkpoint that `best` links to. A better value in the log, whose checkpoint could
// not be saved, does not count.
TEST_F(LoopTest, ABestThatIsNotSavedDoesNotCountAfterAResume) {
  best = "val_loss";
  run({.out = folder / "run", .stopAfter = 10});
  const std::optional<std::string> before = bestLinked(folder / "run");
  std::string log;
  for (const std::string &row : rows(folder / "run")) {
    nlohmann::ordered_json j = nlohmann::ordered_json::parse(row);
    if (std::filesystem::path(checkpointPath(folder / "run", j.at("step"))).filename() != *before)
      j["val_loss"] = 0;
    log += j.dump() + "\n";
  }
  writeText(folder / "run" + "/log.jsonl", log);
  run({.out = folder / "run", .resume = true});
  EXPECT_NE(bestLinked(folder / "run"), before);
}

// A best checkpoint that is not among the newest is kept until another is better.
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

} // namespace
