// Models of all options: their gradients against a tape in double precision, each option alone and many together.

#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/nn/decoder_model.h"

#include <fmt/format.h>
#include <tuple>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Blocks of width 12 in three heads, with all other options at their defaults.
DecoderOptions plain(int64_t layers = 2) {
  DecoderOptions o = {.layers = layers, .width = 12, .context = 9, .vocab = 11};
  o.block.attention.heads = 3;
  return o;
}

std::string textOf(const DecoderOptions &o) {
  const BlockOptions &b = o.block;
  return fmt::format(
      "width {}, heads {}, inner {}, {}, biases {}{}{}, {} {}, norm ddof {} epsilon {} outside {} affine {}, last {}, "
      "embedding x {} positions {}{}, ranges {}, attention {}, head tied {}, dropout {} {} {} {} {}",
      o.width, b.attention.heads, b.mlp.inner, activationNames[static_cast<size_t>(b.mlp.activation)],
      b.attention.linear.bias, b.mlp.linear.bias, o.head.bias, static_cast<int>(b.order), static_cast<int>(b.place),
      b.norm.ddof, b.norm.epsilon, b.norm.epsOutsideSqrt, b.norm.affine, o.lastNorm, o.embedding.scale,
      static_cast<int>(o.embedding.positions), o.embedding.givesPositions, o.givesRanges,
      attentionNames[static_cast<size_t>(b.attention.form)], o.head.tied, o.dropout.embedding, o.dropout.residual,
      o.dropout.activation, o.dropout.attention, static_cast<int>(o.dropout.kind));
}

/// The gradient and the loss of a batch of `sequences` of `time`, compared with the tape's. With `halves`, it has two
/// micro-batches; in a third of these, the last sequence has no targets.
void expectGradient(const std::string &device, const DecoderOptions &o, int64_t sequences, int64_t time, uint32_t seed,
                    bool halves = false, Type type = f32) {
  SCOPED_TRACE(textOf(o));
  const DecoderModel model(o, type);
  const int64_t micros = halves ? 2 : 1, each = sequences / micros;
  TrainSettings settings = settingsOf(each, micros);
  settings.type = type;
  settings.lossScale = 1;
  // The recomputed activations, and the rows of logits at a time: each policy in turn.
  static const std::vector<std::string> policies = {"none", "norms,activation", "block", "mlp,attention:1",
                                                    "qkv,middle"};
  settings.recompute = recomputeNamed("recompute", policies[seed % policies.size()]);
  settings.lossChunks = 1 + seed % 3;
  SCOPED_TRACE(policies[seed % policies.size()]);
  Trainer trainer(Device::open(device), model, settings, {each, time});
  const HostBuffers buffers = randomBuffers(model.parameters(), seed, type);
  trainer.upload(buffers);
  DecoderBatch batch = randomBatch(o, sequences, time, seed);
  if (halves && seed % 3 == 0)
    std::fill(batch.targets.end() - time, batch.targets.end(), ignoredTarget);
  const DropoutOptions &d = o.dropout;
  batch.mask = [&](int64_t site, int64_t rows, int64_t columns) {
    const int64_t first = d.of(d.embedding).threshold() > 0 ? 1 : 0;
    std::vector<double> rates; // of a block's sites
    for (const double rate : {d.residual, d.attention, d.activation, d.residual})
      if (rate > 0)
        rates.push_back(rate);
    const double rate = site < first ? d.embedding : rates[(site - first) % std::ssize(rates)];
    return maskOf(o, d.of(rate), 3, site, time, rows, columns);
  };
  const TapeGradient want = tapeGradient(model, buffers, batch, type);
  poison(trainer);
  trainer.beginStep(1e-3, 3, presentIn(batch));
  for (int64_t micro = 0; micro < micros; ++micro)
    trainer.addGradient(makeInputs(batch, micro * each, each), micro);
  expectGradients(model, trainer.gradients(), want, type);
  if (type == f32)
    EXPECT_NEAR(trainer.update().loss, want.loss, 1e-5);
}

class DecoderTest : public DeviceTest {};

/// Each option that differs from the plain model's, alone.
std::vector<DecoderOptions> eachAlone() {
  std::vector<DecoderOptions> all;
  const auto add = [&](auto change) {
    all.push_back(plain());
    change(all.back());
  };
  add([](DecoderOptions &) {});
  for (const Activation activation :
       {Activation::none, Activation::gelu_erf, Activation::relu, Activation::relu2, Activation::silu})
    add([=](DecoderOptions &o) { o.block.mlp.activation = activation; });
  add([](DecoderOptions &o) { o.block.mlp.inner = 20; });
  add([](DecoderOptions &o) { o.block.mlp.linear.bias = false; });
  add([](DecoderOptions &o) { o.block.attention.linear.bias = false; });
  add([](DecoderOptions &o) { o.block.norm.ddof = 1; });
  add([](DecoderOptions &o) { o.block.norm.epsilon = 0; });
  add([](DecoderOptions &o) { o.block.norm = {.epsilon = 0.1, .epsOutsideSqrt = true}; });
  add([](DecoderOptions &o) { o.block.norm.affine = false; });
  add([](DecoderOptions &o) { o.block.order = BlockOrder::mlp_first; });
  add([](DecoderOptions &o) { o.block.place = NormPlace::post; });
  add([](DecoderOptions &o) { o.lastNorm = false; });
  add([](DecoderOptions &o) { o.head.tied = false; });
  add([](DecoderOptions &o) { o.head.bias = true; });
  add([](DecoderOptions &o) { o.embedding.scale = 3; });
  add([](DecoderOptions &o) { o.embedding.positions = PositionTable::none; });
  add([](DecoderOptions &o) { o.embedding.positions = PositionTable::sinusoids; });
  add([](DecoderOptions &o) { o.embedding.givesPositions = true; });
  add([](DecoderOptions &o) { o.givesRanges = true; });
  add([](DecoderOptions &o) { o.block.attention.form = AttentionForm::plain; });
  add([](DecoderOptions &o) { o.dropout.embedding = 0.2; });
  add([](DecoderOptions &o) { o.dropout.residual = 0.2; });
  add([](DecoderOptions &o) { o.dropout.activation = 0.2; });
  add([](DecoderOptions &o) { o.dropout.attention = 0.2; });
  add([](DecoderOptions &o) { o.dropout = {0.1, 0.2, 0.3, 0.4, DropoutKind::plain}; });
  return all;
}

// The gradient of every tensor equals the tape's within the rounding of each number (decoder_model.h).
TEST_P(DecoderTest, EachOptionAloneHasTheTapesGradient) {
  const std::vector<DecoderOptions> all = eachAlone();
  for (uint32_t seed = 1; seed <= all.size(); ++seed) {
    const DecoderOptions &o = all[seed - 1];
    if (Tier::asked().takes(seed))
      expectGradient(GetParam(), o, 2, 7, seed, /*halves=*/o.dropout.residual > 0 || !o.head.tied);
  }
}

// No state of an earlier step with longer sequences and every token affects a step, nor do initial contents of memory.
// The gradient, the updated weights and a loss with these have the bits of a new trainer.
TEST_P(DecoderTest, AStepDoesNotDependOnEarlierOnes) {
  const std::vector<DecoderOptions> all = eachAlone();
  for (size_t i = 0; i < all.size(); ++i) {
    const DecoderOptions &o = all[i];
    if (!Tier::asked().takes(static_cast<int64_t>(i)) || // plain attention's kernels are of one shape
        o.block.attention.form == AttentionForm::plain)
      continue;
    SCOPED_TRACE(textOf(o));
    const DecoderModel model(o);
    const std::vector<BatchShape> shapes = {{3, 9}, {2, 4}};
    const auto stepAfter = [&](bool hasEarlier) {
      HostBatch last;
      Trainer trainer(Device::open(GetParam()), model, settingsOf(2), shapes);
      trainer.upload(randomBuffers(model.parameters(), 1));
      for (const BatchShape &shape : hasEarlier ? shapes : std::vector{shapes.back()}) {
        const DecoderBatch batch = randomBatch(o, shape.sequences, shape.target, 2);
        HostBatch inputs = makeInputs(batch, 0, shape.sequences);
        inputs.shape = shape;
        if (hasEarlier)
          poison(trainer);
        trainer.beginStep(1e-3, 3, presentIn(batch));
        trainer.addGradient(inputs, 0);
        last = inputs;
      }
      const std::vector<float> gradients = trainer.gradients();
      trainer.update();
      if (hasEarlier)
        poison(trainer);
      return std::tuple(gradients, trainer.download().values, trainer.lossSum(last));
    };
    EXPECT_TRUE(stepAfter(true) == stepAfter(false));
  }
}

DecoderOptions drawn(std::mt19937 &engine) {
  const auto chance = [&](unsigned n) { return engine() % n == 0; };
  DecoderOptions o = {.layers = static_cast<int64_t>(1 + engine() % 2), .width = 12, .context = 9, .vocab = 11};
  o.block.attention.heads = 3;
  if (chance(3))
    o.width = 20, o.block.attention.heads = 2;
  o.block.order = static_cast<BlockOrder>(engine() % 2);
  o.block.place = static_cast<NormPlace>(engine() % 2);
  o.block.norm = {.ddof = static_cast<int>(engine() % 2),
                  .epsilon = chance(2) ? 1e-5 : 0.1,
                  .epsOutsideSqrt = chance(2),
                  .affine = !chance(3)};
  o.block.attention.linear.bias = !chance(2);
  o.block.mlp = {chance(2) ? 20 : 0, static_cast<Activation>(engine() % 6), {!chance(2)}};
  o.lastNorm = !chance(2);
  o.head = {!chance(2), chance(2)};
  o.embedding.scale = chance(2) ? 1 : std::sqrt(static_cast<double>(o.width));
  o.embedding.positions = static_cast<PositionTable>(engine() % 3);
  o.embedding.givesPositions = chance(2) && o.embedding.positions != PositionTable::none;
  o.givesRanges = chance(4);
  o.block.attention.form = chance(4) ? AttentionForm::plain : AttentionForm::flash;
  if (chance(2))
    o.dropout = {chance(2) ? 0.1 : 0, chance(2) ? 0.1 : 0, chance(2) ? 0.1 : 0, chance(2) ? 0.1 : 0,
                 static_cast<DropoutKind>(engine() % 2)};
  return o;
}

// For random combinations of options.
TEST_P(DecoderTest, ManyOptionsTogetherHaveTheTapesGradient) {
  const int64_t count = GetParam() == "cpu" ? 174 : GetParam() == oracleDevice ? 12 : 20;
  std::mt19937 engine(1);
  for (int64_t i = 0; i < count; ++i) {
    const DecoderOptions options = drawn(engine);
    if (Tier::asked().takes(i))
      expectGradient(GetParam(), options, 2, i % 3 == 0 ? 9 : 5, static_cast<uint32_t>(i), i % 2 == 0);
  }
}

// In narrow types: within five deviations of rounding each number to them (decoder_model.h).
TEST_P(DecoderTest, NarrowTypesHaveTheTapesGradient) {
  if (GetParam() == oracleDevice)
    GTEST_SKIP() << "its programs are the CPU's";
  const std::vector<DecoderOptions> all = eachAlone();
  for (size_t i = 0; i < all.size(); ++i)
    for (const Type type : {bf16, f16}) {
      const bool isTaken =
          GetParam() == "cpu" ? i % 2 == (type == bf16 ? 0 : 1) : i % 8 == (type == bf16 ? 0 : 4); // the types by turns
      if (isTaken && Tier::asked().takes(static_cast<int64_t>(i)) && all[i].block.norm.epsilon > 0)
        expectGradient(GetParam(), all[i], 2, 7, 1, /*halves=*/i % 4 < 2 && i % 16 < 8, type);
    }
}

/// Losses of the steps of a run that repeats four batches, with dropped attention weights.
std::vector<double> losses(const std::string &device, AttentionForm form, int64_t steps) {
  DecoderOptions o = plain();
  o.block.attention.form = form;
  o.dropout.attention = 0.1;
  const DecoderModel model(o);
  Trainer trainer(Device::open(device), model, settingsOf(4));
  trainer.upload(randomBuffers(model.parameters(), 1));
  std::vector<double> all;
  for (int64_t step = 1; step <= steps; ++step) {
    const DecoderBatch batch = randomBatch(o, 4, 9, static_cast<uint32_t>(step % 4));
    trainer.beginStep(1e-3, step, presentIn(batch));
    trainer.addGradient(makeInputs(batch, 0, 4), 0);
    all.push_back(trainer.update().loss);
  }
  return all;
}

// After a hundred steps, with dropped weights, the losses of flash and plain attention differ by at most the effect of
// rounding; on slow devices after ten.
TEST_P(DecoderTest, FlashAndPlainAttentionHaveOneCurve) {
  const int64_t steps = GetParam() == "cpu" ? 100 : 10;
  const std::vector<double> flash = losses(GetParam(), AttentionForm::flash, steps),
                            plain = losses(GetParam(), AttentionForm::plain, steps);
  for (int64_t i = 0; i < steps; ++i)
    EXPECT_NEAR(flash[i], plain[i], 1e-4) << i;
  EXPECT_LT(flash.back(), flash.front() - 0.1);
}

KILN_ON_DEVICES(DecoderTest);

// --- Recomputed activations: which, to the bit, in how much less memory; and logits a part at a time -----------------

/// Models whose backward passes read different tensors, each with dropout everywhere and without.
std::vector<DecoderOptions> models() {
  std::vector<DecoderOptions> all;
  const auto add = [&](auto change) {
    for (const DropoutOptions &dropout : {DropoutOptions(), DropoutOptions{0.1, 0.2, 0.3, 0.4, DropoutKind::plain}}) {
      all.push_back(plain(3));
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

// Logits of some rows at a time: losses and gradients are equal except for the order of f32 sums. A product of few rows
// may add in another order than one of many.
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
      EXPECT_NEAR(got.back(), want.back(), 1e-6 * want.back()) << chunks;
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

// --- Dropout in training: it does not depend on the division into micro-batches. Evaluations use no dropout ----------

DecoderOptions dropping(DropoutKind kind = DropoutKind::inverted) {
  DecoderOptions o = {.layers = 2, .width = 12, .context = 9, .vocab = 11};
  o.block.attention.heads = 3;
  o.dropout = {0.1, 0.1, 0.1, 0.1, kind};
  return o;
}

class DropoutTest : public DeviceTest {};

// Eight sequences at once and as 2, 4 and 8 micro-batches have one gradient, except for the order of sums, with some
// targets missing.
TEST_P(DropoutTest, TheGradientDoesNotDependOnTheMicroBatches) {
  const DecoderModel model(dropping());
  const HostBuffers buffers = randomBuffers(model.parameters(), 1);
  const DecoderBatch batch = randomBatch(model.options, 8, 9, 2);
  std::vector<float> whole;
  for (const int64_t micros : {1, 2, 4, 8}) {
    Trainer trainer(Device::open(GetParam()), model, settingsOf(8 / micros, micros));
    trainer.upload(buffers);
    trainer.beginStep(1e-3, 7, presentIn(batch));
    for (int64_t micro = 0; micro < micros; ++micro)
      trainer.addGradient(makeInputs(batch, micro * 8 / micros, 8 / micros), micro);
    const std::vector<float> got = trainer.gradients();
    if (micros == 1)
      whole = got;
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - whole[i], 2);
      size += std::pow(static_cast<double>(whole[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size)) << micros;
  }
}

// Two steps drop different elements; a repeated step drops the same ones.
TEST_P(DropoutTest, EachStepDropsNumbersOfItsOwn) {
  const DecoderModel model(dropping());
  Trainer trainer(Device::open(GetParam()), model, settingsOf(2));
  trainer.upload(randomBuffers(model.parameters(), 1));
  const DecoderBatch batch = randomBatch(model.options, 2, 9, 2);
  const auto gradient = [&](int64_t number, std::optional<int64_t> step = {}) {
    trainer.beginStep(1e-3, number, {}, step);
    trainer.addGradient(makeInputs(batch, 0, 2), 0);
    return trainer.gradients();
  };
  const std::vector<float> first = gradient(1), second = gradient(2);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, gradient(1));
  EXPECT_EQ(second, gradient(1, 2)); // the step after one that was skipped is the same update, and drops others
}

// Evaluations drop nothing. With inverted dropout they equal those of the model without dropout. With plain dropout
// they equal the tape's, where every site multiplies by the keep probability.
TEST_P(DropoutTest, EvaluationsDropNothing) {
  for (const DropoutKind kind : {DropoutKind::inverted, DropoutKind::plain}) {
    const DecoderModel model(dropping(kind));
    Trainer trainer(Device::open(GetParam()), model, settingsOf(2));
    const HostBuffers buffers = randomBuffers(model.parameters(), 1);
    trainer.upload(buffers);
    DecoderBatch batch = randomBatch(model.options, 2, 9, 2);
    const double share = model.options.dropout.of(0.1).evaluationScale();
    EXPECT_NEAR(share, kind == DropoutKind::plain ? 0.9 : 1, 1e-4);
    batch.mask = [&](int64_t, int64_t rows, int64_t columns) { return std::vector<double>(rows * columns, share); };
    const double want = tapeGradient(model, buffers, batch).loss;
    const double first = trainer.lossSum(makeInputs(batch, 0, 2));
    EXPECT_NEAR(first / static_cast<double>(presentIn(batch)), want, 1e-5);
    trainer.beginStep(1e-3, 1);
    trainer.addGradient(makeInputs(batch, 0, 2), 0);
    EXPECT_EQ(trainer.lossSum(makeInputs(batch, 0, 2)), first);
  }
}

// Masks take no memory except two numbers a site. Compared with the model without dropout, a step's activations are
// larger by at most one gradient, that of the mask in use.
TEST_P(DropoutTest, MasksTakeNoMemory) {
  DecoderOptions without = dropping();
  without.dropout = {};
  const Target target = Device::open(GetParam())->target();
  const BatchShape shape = {4, 9};
  const int64_t more = planMemory(target, DecoderModel(dropping()), shape).training.bytes -
                       planMemory(target, DecoderModel(without), shape).training.bytes;
  EXPECT_LE(more, cdiv(4 * 9 * 12 * 4, 256) * 256);
}

KILN_ON_DEVICES(DropoutTest);

} // namespace
