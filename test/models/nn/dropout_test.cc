// Dropout in training: it does not depend on the division into micro-batches. Evaluations use no dropout.

#include "test/devices.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

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
