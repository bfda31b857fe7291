// Recomputed activations: which, to the bit, in how much less memory; and logits a part at a time.

#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

DecoderOptions threeBlocks() {
  DecoderOptions o = {.layers = 3, .width = 12, .context = 9, .vocab = 11};
  o.block.attention.heads = 3;
  return o;
}

/// Models whose backward passes read different tensors, each with dropout everywhere and without.
std::vector<DecoderOptions> models() {
  std::vector<DecoderOptions> all;
  const auto add = [&](auto change) {
    for (const DropoutOptions &dropout : {DropoutOptions(), DropoutOptions{0.1, 0.2, 0.3, 0.4, DropoutKind::plain}}) {
      all.push_back(threeBlocks());
      all.back().dropout = dropout;
      change(all.back());
    }
  };
  add([](DecoderOptions &) {});
  add([](DecoderOptions &o) { o.block.place = NormPlace::post; });
  add([](DecoderOptions &o) { o.block.order = BlockOrder::mlp_first; });
  add([](DecoderOptions &o) { o.block.mlp.activation = Activation::relu; });
  add([](DecoderOptions &o) { o.block.mlp.activation = Activation::none; });
  add([](DecoderOptions &o) {
    o.block.mlp = {.activation = Activation::silu, .linear = {.bias = false}};
    o.block.place = NormPlace::post;
    o.block.order = BlockOrder::mlp_first;
  });
  add([](DecoderOptions &o) { o.block.attention.form = AttentionForm::plain; });
  add([](DecoderOptions &o) { o.givesRanges = o.embedding.givesPositions = true; });
  return all;
}

const std::vector<std::string> policies = {"norms",
                                           "activation",
                                           "qkv",
                                           "attention",
                                           "middle",
                                           "mlp",
                                           "block",
                                           "block:1",
                                           "norms,activation",
                                           "mlp:2,qkv,norms:1",
                                           "middle,attention,activation:2"};

/// The gradient of two micro-batches, the second added to the first's, and the losses' mean.
std::vector<float> gradientOf(const std::string &device, const DecoderModel &model, const TrainSettings &settings) {
  Trainer trainer(Device::open(device), model, settings);
  trainer.upload(randomBuffers(model.parameters(), 1, model.type()));
  const DecoderBatch batch = randomBatch(model.options, 2 * settings.batch, 9, 2);
  trainer.beginStep(1e-3, 7, presentIn(batch));
  for (int64_t micro = 0; micro < settings.accumulate; ++micro)
    trainer.addGradient(makeInputs(batch, micro * settings.batch, settings.batch), micro);
  std::vector<float> result = trainer.gradients();
  result.push_back(static_cast<float>(trainer.update().loss));
  return result;
}

class RecomputeTest : public DeviceTest {};

// Whatever is recomputed, gradients are those of a step that keeps everything, to the bit, dropout included: masks are
// found out again from their keys.
TEST_P(RecomputeTest, EveryPolicyHasTheSameGradientToTheBit) {
  const bool isFast = GetParam() == "cpu";
  const std::vector<DecoderOptions> all = models();
  const size_t every = isFast ? 1 : 5;
  for (size_t i = 0; i < all.size(); i += every) {
    if (!Tier::asked().takes(static_cast<int64_t>(i / every), 4))
      continue;
    const Type type = std::array{f32, bf16, f16}[i % 3]; // by turns
    const DecoderModel model(all[i], type);
    TrainSettings settings = settingsOf(2, 2);
    settings.type = type;
    settings.lossScale = 1;
    const std::vector<float> want = gradientOf(GetParam(), model, settings);
    for (size_t p = isFast ? 0 : i % 3; p < policies.size(); p += isFast ? 1 : 3) {
      settings.recompute = recomputeNamed("recompute", policies[p]);
      EXPECT_TRUE(gradientOf(GetParam(), model, settings) == want)
          << policies[p] << ", " << nameOf(type) << ", model " << i;
    }
  }
}

// Logits of some rows at a time: the losses are equal, and the gradients except for the order of their f32 sums.
TEST_P(RecomputeTest, ChunksOfTheLossHaveTheSameGradientButForTheOrderOfItsSums) {
  for (const Type type : {f32, bf16}) {
    const DecoderModel model(models()[1], type);
    TrainSettings settings = settingsOf(2, 2);
    settings.type = type;
    const std::vector<float> want = gradientOf(GetParam(), model, settings);
    for (const int64_t chunks : {2, 7, 4096}) { // of 18 rows
      settings.lossChunks = chunks;
      const std::vector<float> got = gradientOf(GetParam(), model, settings);
      double difference = 0, size = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
        size += std::pow(static_cast<double>(want[i]), 2);
      }
      EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size)) << chunks;
      EXPECT_EQ(got.back(), want.back()) << chunks;
    }
  }
}

KILN_ON_DEVICES(RecomputeTest);

/// With 4 blocks, wide enough that the alignment of buffers does not matter.
MemoryPlan planned(const std::string &policy, int64_t chunks = 1) {
  DecoderOptions o = {.layers = 4, .width = 64, .context = 64, .vocab = 1000};
  o.block.attention.heads = 2;
  const DecoderModel model(o);
  TrainSettings settings = settingsOf(2);
  settings.recompute = recomputeNamed("recompute", policy);
  settings.lossChunks = chunks;
  return planMemory(Device::open("cpu")->target(), model, {2, 64}, settings);
}

// The memory saved is that of the dropped tensors. In rows of 128, norms are 2 · 64 numbers a block, and activations 4
// · 64. If the peak is at the logits, all kept tensors are alive there, so the total decreases by the dropped ones. If
// the peak is in the backward pass, one recomputed block is alive again.
TEST(Recompute, SavesWhatItDrops) {
  const int64_t row = 128 * 64 * 4; // bytes of (128, 64)
  const int64_t all = planned("none").training.bytes;
  EXPECT_EQ(all - planned("norms").training.bytes, 4 * 2 * row);
  EXPECT_EQ(all - planned("activation").training.bytes, 4 * 4 * row);
  EXPECT_EQ(all - planned("activation:3").training.bytes, 3 * 4 * row);
  EXPECT_EQ(all - planned("norms,activation").training.bytes, 4 * 6 * row);
}

// If only the inputs of blocks are kept, with few logits at a time, the peak is that of a block's backward pass: every
// block's input, and one block.
TEST(Recompute, KeepsBlocksInputsAlone) {
  const int64_t row = 128 * 64 * 4;
  const int64_t inputs = 5 * row, inOneBlock = (2 + 3 + 1 + 1 + 8) * row, gradients = (1 + 1 + 1 + 3) * row,
                statistics = 4 * 128 * 4 * 4 + 2 * 2 * 64 * 4 * 4;
  EXPECT_LE(planned("block", 16).training.bytes, inputs + inOneBlock + gradients + statistics);
  EXPECT_LT(planned("block", 16).training.bytes, planned("block").training.bytes);
}

TEST(Recompute, IsNamedByTheShortestText) {
  for (const auto &[text, name] :
       std::vector<std::pair<std::string, std::string>>{{"none", "none"},
                                                        {"norms", "norms"},
                                                        {"activation,norms:3", "norms:3,activation"},
                                                        {"block", "block"},
                                                        {"block:2", "block:2"},
                                                        {"block:2,mlp", "block:2,mlp"},
                                                        {"norms,activation,qkv,attention,middle,mlp", "block"}})
    EXPECT_EQ(nameOf(recomputeNamed("recompute", text)), name) << text;
}

TEST(Recompute, RefusesWhatItDoesNotKnow) {
  const std::pair<const char *, const char *> cases[] = {
      {"", ""}, {"norm", "norm"}, {"norms,", ""}, {"all", "all"}, {"block,none", "none"}};
  for (const auto &[text, wrong] : cases)
    EXPECT_EQ(
        errorOf([&, text = text] { recomputeNamed("recompute", text); }),
        std::string("'") + wrong +
            "' in 'recompute' is no activation to recompute; expected none, or a list of norms, activation, qkv, "
            "attention, middle, mlp and block, joined by commas, each with or without ':' and a number of blocks");
  for (const char *number : {"", "0", "-1", "2x", "two"})
    EXPECT_EQ(errorOf([&] { recomputeNamed("recompute", std::string("mlp:") + number); }),
              std::string("expected 'recompute' to have a number of blocks of at least 1 after ':', but got '") +
                  number + "'");
}

} // namespace
