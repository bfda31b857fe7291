// gpt2 on models that others trained: beginning with their weights, sampling from them, and leaving their folders
// alone.

#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/train/checkpoint.h"
#include "test/models/gpt2/hand_written.h"
#include "test/models/gpt2/program.h"

namespace {

using kiln::f32;

/// A model in Hugging Face's layout, with ProgramTest's sizes, whose files are written by the test.
class InitTest : public ProgramTest {
protected:
  InitTest() : network({1, 2, 16, 8, 256}) {
    std::filesystem::create_directory(model);
    writeConfig(256, "");
    writeText(model + "/model.safetensors", handWrittenFile(handWrittenModel(network.parameters(), "transformer.")));
  }
  void writeConfig(int vocab, const std::string &more) {
    writeText(model + "/config.json", R"({"model_type": "gpt2", "n_layer": 1, "n_head": 2, "n_embd": 16, )"
                                      R"("n_positions": 8, "vocab_size": )" +
                                          std::to_string(vocab) + more + "}");
  }
  /// Trains without a word about sizes.
  Result trainFrom(const std::string &init, std::vector<std::string> more) {
    const std::vector<std::string> words =
        joined({"train", "--data", data, "--out", out, "--init", init, "--device", kiln::test::firstDevice()}, more);
    return gpt2(words);
  }
  Result sample(const std::string &from) {
    return gpt2({"sample", "--out", from, "--prompt", "line ", "--tokens", "4", "--device", kiln::test::firstDevice()});
  }
  /// The flat buffer of the run's checkpoint of `step`.
  std::vector<char> trained(int64_t step) {
    return kiln::readWeights(kiln::checkpointPath(out, step) + "/model.safetensors", network.parameters(), f32);
  }

  const kiln::Network network;
  const std::string model = folder / "model";
  /// A step whose changes are too small for f32 to hold.
  const std::vector<std::string> still = {"--steps", "1", "--lr", "1e-30"};
};

// The weights keep their bits through loading, a step that changes nothing, and saving.
TEST_F(InitTest, BeginsWithAFoldersWeights) {
  const Result r = trainFrom(model, still);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(trained(1), handWrittenBuffer(network.parameters()));
  EXPECT_EQ(kiln::readConfig(kiln::checkpointPath(out, 1)), network.config());
}

TEST_F(InitTest, BeginsWithHalfPrecision) {
  writeText(model + "/model.safetensors", handWrittenFile(handWrittenModel(network.parameters(), "", "BF16")));
  const Result r = trainFrom(model, still);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(trained(1), handWrittenBuffer(network.parameters()));
}

// For a single file, flags set the sizes.
TEST_F(InitTest, BeginsWithAFilesWeights) {
  const std::string file = model + "/model.safetensors";
  ASSERT_EQ(train(out, {"--steps", "1", "--lr", "1e-30", "--init", file}).status, 0);
  EXPECT_EQ(trained(1), handWrittenBuffer(network.parameters()));
  expectMistake(train(folder / "other", {"--width", "32", "--init", file}),
                "expected tensor 'transformer.wte.weight' of '" + file + "' to be F32 256x32, but got F32 256x16");
}

// Weights alone are taken over, no optimiser and no position: a run's folder and the file in it begin alike.
TEST_F(InitTest, TheOptimiserIsFresh) {
  ASSERT_EQ(trainFrom(model, {"--steps", "3"}).status, 0);
  const std::string file = kiln::checkpointPath(out, 3) + "/model.safetensors";
  ASSERT_EQ(train(folder / "a", {"--model", "nano", "--steps", "2", "--init", out}).status, 0);
  ASSERT_EQ(train(folder / "b", {"--model", "nano", "--steps", "2", "--init", file}).status, 0);
  const auto a = kiln::readBuffers(kiln::checkpointPath(folder / "a", 2), network),
             b = kiln::readBuffers(kiln::checkpointPath(folder / "b", 2), network);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.first, b.first);
  EXPECT_EQ(a.second, b.second);
  EXPECT_EQ(rows(folder / "a").at(0).at("step"), 1);
}

// A run resumes from its own checkpoint, not from its initial weights.
TEST_F(InitTest, ARunThatBeganSoIsResumed) {
  ASSERT_EQ(trainFrom(model, {"--steps", "4", "--stop-after", "2"}).status, 0);
  const std::vector<std::string> resume = {"train", "--data",   data,       "--out",
                                           out,     "--resume", "--device", kiln::test::firstDevice()};
  const Result r = gpt2(resume);
  ASSERT_EQ(r.status, 0) << r.output;
  EXPECT_EQ(rows(out).size(), 4u);
}

// Checkpoints record the initial weights' source, also after the run was resumed; not if they were random.
TEST_F(InitTest, CheckpointsSayWhatTheRunBeganWith) {
  ASSERT_EQ(trainFrom(model, {"--steps", "4", "--stop-after", "2"}).status, 0);
  EXPECT_EQ(kiln::readRunState(kiln::checkpointPath(out, 2)).init, model + "/model.safetensors");
  ASSERT_EQ(resume().status, 0);
  EXPECT_EQ(kiln::readRunState(kiln::checkpointPath(out, 4)).init, model + "/model.safetensors");
  ASSERT_EQ(train(folder / "random", {"--steps", "1"}).status, 0);
  EXPECT_EQ(kiln::readRunState(kiln::checkpointPath(folder / "random", 1)).init, "");
}

// Defaults for trained weights are those of fine-tuning, unless flags set them.
TEST_F(InitTest, FineTunesAFoldersWeights) {
  const auto taken = [&](const std::vector<std::string> &flags) {
    EXPECT_EQ(trainFrom(model, flags).status, 0);
    return kiln::readRunState(kiln::checkpointPath(out, 1)).settings;
  };
  const kiln::TrainSettings gentle = taken({"--steps", "1"});
  EXPECT_EQ(gentle.rate, 3e-5);
  EXPECT_EQ(gentle.schedule, kiln::Schedule::constant);
  EXPECT_EQ(gentle.warmup, 0);
  EXPECT_EQ(taken({"--steps", "1", "--lr", "0.5", "--overwrite"}).rate, 0.5);
}

// The scalings of a config.json are written to the checkpoint's config.json.
TEST_F(InitTest, KeepsTheScalings) {
  writeConfig(256, R"(, "layer_norm_epsilon": 0.25, "scale_attn_weights": false)");
  ASSERT_EQ(trainFrom(model, still).status, 0);
  const kiln::Gpt2Config config = kiln::readConfig(kiln::checkpointPath(out, 1));
  EXPECT_EQ(config.epsilon, 0.25);
  EXPECT_FALSE(config.scalesScores);
}

// Training uses the dropout of config.json, unless a flag sets it, and prints it.
TEST_F(InitTest, TakesItsDropout) {
  writeConfig(256, R"(, "attn_pdrop": 0.125, "embd_pdrop": 0.25, "resid_pdrop": 0.5)");
  expectResult(trainFrom(model, still), 0,
               {"dropout rates from its config.json: embedding 0.25, residual 0.5, attention 0.125"});
  const kiln::TrainSettings taken = kiln::readRunState(kiln::checkpointPath(out, 1)).settings;
  EXPECT_EQ(taken.dropoutEmbedding, 0.25);
  EXPECT_EQ(taken.dropoutResidual, 0.5);
  EXPECT_EQ(taken.dropoutAttention, 0.125);
  ASSERT_EQ(trainFrom(model, {"--steps", "1", "--dropout", "0", "--overwrite"}).status, 0);
  EXPECT_EQ(kiln::dropoutIn(kiln::checkpointPath(out, 1)).residual, 0);
}

// An untied head and an inner width survive a checkpoint and Hugging Face's names: sampling gives equal text. If a
// tensor contradicts config.json, the error names it.
TEST_F(InitTest, AHeadOfItsOwnAndAnInnerWidthComeBack) {
  const std::string first = folder / "first";
  ASSERT_EQ(train(first, {"--steps", "3", "--lr", "0.1", "--untied", "--inner", "24"}).status, 0);
  const kiln::Safetensors file(first + "/model.safetensors");
  for (const char *name : {"lm_head.weight", "transformer.h.0.mlp.c_fc.weight"})
    EXPECT_TRUE(file.has(name)) << name;
  ASSERT_EQ(trainFrom(first, still).status, 0);
  EXPECT_EQ(sample(first).output, sample(out).output);
  EXPECT_EQ(kiln::readConfig(out), kiln::readConfig(first));
  expectMistake(train(folder / "b", {"--steps", "1", "--inner", "24", "--init", first + "/model.safetensors"}),
                "expected 'lm_head.weight' in");
  expectMistake(train(folder / "c", {"--steps", "1", "--untied", "--init", first + "/model.safetensors"}),
                "expected tensor 'transformer.h.0.mlp.c_fc.weight'");
}

TEST_F(InitTest, FlagsThatContradictItAreRefused) {
  expectMistake(trainFrom(model, {"--layers", "2"}), "has 1 layers, 2 heads, width 16");
  expectMistake(trainFrom(model, {"--resume"}), "--resume and --init exclude each other");
  expectMistake(trainFrom(folder / "none", {}), "expected a folder with a model");
  ASSERT_EQ(trainFrom(model, still).status, 0);
  expectMistake(trainFrom(out, {"--overwrite"}), "because --overwrite removes its checkpoints");
  EXPECT_TRUE(kiln::newestCheckpoint(out).has_value());
}

// A run in a folder with another model would hide that model from users who sample from the folder.
TEST_F(InitTest, AnothersFolderIsLeftAlone) {
  const std::string before = readText(model + "/model.safetensors");
  for (const char *how : {"--steps=1", "--overwrite"})
    expectMistake(train(model, {how}), "config.json' is of another model");
  EXPECT_EQ(readText(model + "/model.safetensors"), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(model), {}), 2);
}

// The run's folder, its checkpoint and the folder of its initial weights have one model.
TEST_F(InitTest, SamplesFromAnothersFolder) {
  ASSERT_EQ(trainFrom(model, still).status, 0);
  const Result text = sample(model);
  EXPECT_EQ(text.status, 0) << text.output;
  EXPECT_EQ(text.output.size(), 5u + 4 + 1);
  EXPECT_EQ(text.output, sample(out).output);
  EXPECT_EQ(text.output, sample(kiln::checkpointPath(out, 1)).output);
}

// Without a tokenizer, text is bytes: other vocabularies are refused, and so is an invalid tokenizer.
TEST_F(InitTest, AVocabularyThatIsNotBytesIsRefused) {
  writeConfig(257, "");
  expectMistake(trainFrom(model, {}), "expected a vocabulary of 256 for text as bytes, but got 257");
  writeConfig(256, "");
  writeText(model + "/tokenizer.json", "{}");
  for (const Result &r : {sample(model), trainFrom(model, {})})
    expectMistake(r, "expected a field 'model' in '" + model + "/tokenizer.json', but there is none");
}

} // namespace
