// Models of all options: their gradients against a tape in double precision, each option alone and many together.

#include "test/devices.h"
#include "test/models/nn/decoder_model.h"

#include <fmt/format.h>

#include <tuple>
#include <vector>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Two blocks of width 12 in three heads, with all other options at their defaults.
DecoderOptions plain() {
  DecoderOptions o = {.layers = 2, .width = 12, .context = 9, .vocab = 11};
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

/// The gradient of a batch of `sequences` of `time`, compared with the tape's. It has two micro-batches if there are
/// two sequences or more and `halves`. The loss of an evaluation is compared as well, if there is no dropout.
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
        expectGradient(GetParam(), all[i], 2, 7, 1, false, type);
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

} // namespace
