// The trainer's network compared with the reference model: gradients of every tensor, and losses over steps. Other
// forms of the layers are those of nn/decoder_test. The devices are a parameter; KILN_TEST_DEVICE names another one.

#include "models/data/batches.h"
#include "models/generate/generator.h"
#include "test/devices.h"
#include "test/models/gpt2/reference.h"

using namespace kiln;
using namespace kiln::test;

namespace {

/// In sequences of `length`, or as long as the context.
void expectGradients(const std::string &device, const Gpt2Config &config, int64_t batch, int64_t length = 0) {
  const Network network(config);
  const BatchShape shape = {batch, length > 0 ? length : config.context};
  Trainer model(Device::open(device), network, chooseSettings(batch), shape);
  const ParameterList &list = network.parameters();
  const HostBuffers buffers = randomBuffers(list, 1);
  model.upload(buffers);
  Batch b = randomBatch(config, batch, 2);
  b.tokens.resize(shape.targets());
  b.targets.resize(shape.targets());
  model.beginStep(1e-3, 1);
  model.addGradient(makeInputs(b), 0);
  const std::vector<float> got = model.gradients();
  reference::Tensors want;
  reference::gradient(config, referenceParameters(list, buffers), b.tokens, b.targets, batch, shape.target, want);
  for (const Parameter &p : list.all()) {
    reference::Tensor difference = part(got.data(), p);
    for (size_t i = 0; i < difference.size(); ++i)
      difference[i] -= want.at(p.name)[i];
    EXPECT_LE(norm(difference), 1e-4 * norm(want.at(p.name))) << p.name << ", of norm " << norm(want.at(p.name));
  }
}

class GradientTest : public DeviceTest {};

// The gradient of every tensor is within 1e-4 of the reference's, in norm: f32 rounds to 6e-8, and the sums of up to 4
// · 16 rows and 4 · 32 columns through two layers lose two to three digits of that. Odd sizes: heads of 7, sequences of
// 13, 37 tokens. Sequences may be shorter than the context. Further options of config.json: another epsilon, and scores
// that are scaled by the block's number, or not at all.
TEST_P(GradientTest, MatchesTheReference) {
  expectGradients(GetParam(), {2, 2, 32, 16, 64}, 4);
  expectGradients(GetParam(), {2, 3, 21, 13, 37}, 3);
  expectGradients(GetParam(), {1, 2, 32, 16, 64}, 2, 1);
  expectGradients(GetParam(), {2, 2, 32, 16, 64, f32, 0.5, true, true}, 4);
  expectGradients(GetParam(), {2, 2, 32, 16, 64, f32, 1e-12, false, false}, 4);
}

// Twenty steps of AdamW with clipping, warm-up and cosine have the reference's losses, to 1e-4.
TEST_P(GradientTest, TwentyStepsHaveTheReferencesLosses) {
  const Gpt2Config config = {2, 2, 32, 16, 64};
  TrainSettings s;
  s.batch = 3;
  s.steps = 20;
  s.warmup = 5;
  s.rate = 3e-3;
  s.precision = Precision::ieee;
  const Network network(config);
  Trainer model(Device::open(GetParam()), network, s);
  const ParameterList &list = network.parameters();
  const HostBuffers buffers = randomBuffers(list, 1);
  model.upload(buffers);
  reference::Tensors parameters = referenceParameters(list, buffers), gradients;
  reference::AdamW adam{s.beta1, s.beta2, s.epsilon, s.decay, s.clip};
  double begin = 0, end = 0;
  for (int64_t step = 0; step < s.steps; ++step) {
    const Batch b = randomBatch(config, s.batch, static_cast<uint32_t>(step % 4));
    model.beginStep(learningRate(s, step), step + 1);
    model.addGradient(makeInputs(b), 0);
    const StepResult got = model.update();
    const double want =
        reference::gradient(config, parameters, b.tokens, b.targets, s.batch, config.context, gradients);
    const double wantNorm = adam.update(parameters, gradients, learningRate(s, step));
    EXPECT_NEAR(got.loss, want, 1e-4) << "step " << step;
    EXPECT_NEAR(got.gradientNorm, wantNorm, 1e-3 * wantNorm) << "step " << step;
    (step == 0 ? begin : end) = got.loss;
  }
  EXPECT_LT(end, begin - 0.5);
}

/// The losses of `steps` steps.
std::vector<double> lossesOf(const std::string &device, Precision precision, int64_t steps) {
  const Gpt2Config config = {2, 2, 64, 32, 256};
  TrainSettings s = chooseSettings(2);
  s.steps = steps;
  s.rate = 3e-3;
  s.precision = precision;
  const Network network(config);
  Trainer model(Device::open(device), network, s);
  model.initialize(7);
  std::vector<double> losses;
  for (int64_t step = 0; step < steps; ++step) {
    model.beginStep(learningRate(s, step), step + 1);
    model.addGradient(makeInputs(randomBatch(config, s.batch, 3)), 0);
    losses.push_back(model.update().loss);
  }
  return losses;
}

// Steps whose products round their operands to tf32 have the losses of exact products, within the effect of rounding.
// Between a token and its loss are 13 products, six in each block and the head. An operand with relative error 2⁻¹¹
// changes a product, and a sum of products as a whole, by no more; each has two operands. With tensor cores, losses do
// differ.
TEST_P(GradientTest, TensorFloatsTrainAsExactProductsDo) {
  constexpr double explained = 13 * 2 * 0x1p-11;
  const std::vector<double> exact = lossesOf("cpu", Precision::ieee, 3), got = lossesOf(GetParam(), Precision::tf32, 3);
  for (size_t step = 0; step < exact.size(); ++step)
    EXPECT_NEAR(got[step], exact[step], explained * exact[step]) << "step " << step;
  if (std::holds_alternative<GpuFacts>(Device::open(GetParam())->target().facts)) {
    EXPECT_NE(got, lossesOf(GetParam(), Precision::ieee, 3));
  }
}

// Validation sums every loss except the ignored ones. Predictions are the reference's logits at the last token.
TEST_P(GradientTest, LossesAndPredictionsMatchTheReference) {
  const Gpt2Config config = {2, 3, 21, 13, 37};
  const Network network(config);
  Trainer model(Device::open(GetParam()), network, chooseSettings(2));
  const ParameterList &list = network.parameters();
  const HostBuffers buffers = randomBuffers(list, 1);
  model.upload(buffers);
  Batch b = randomBatch(config, 2, 5);
  const reference::Tensors parameters = referenceParameters(list, buffers);
  const double mean = reference::loss(config, parameters, b.tokens, b.targets, 2, config.context);
  EXPECT_NEAR(model.lossSum(makeInputs(b)) / 26, mean, 1e-5);
  const reference::Tensor logits = reference::logits(config, parameters, b.tokens, 2, config.context);
  Generator generator(model.machine(), network, model.weights(), {});
  generator.append(0, std::span(b.tokens).first(6));
  const std::vector<float> got = generator.next()[0];
  for (int64_t v = 0; v < config.vocab; ++v)
    EXPECT_NEAR(got[v], logits[5 * config.vocab + v], 1e-4) << v;
  std::fill(b.targets.begin() + 13, b.targets.end(), ignoredTarget);
  const double first = reference::loss(config, parameters, {b.tokens.begin(), b.tokens.begin() + 13},
                                       {b.targets.begin(), b.targets.begin() + 13}, 1, config.context);
  EXPECT_NEAR(model.lossSum(makeInputs(b)) / 13, first, 1e-5);
}

KILN_ON_DEVICES(GradientTest);

} // namespace
