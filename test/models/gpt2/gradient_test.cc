// The trainer's network compared with the reference model: gradients of every tensor, losses over steps, and sums of
// gradients over micro-batches. The devices are a parameter; KILN_TEST_DEVICE names another one.

#include "models/data/batches.h"
#include "models/generate/generator.h"
#include "test/devices.h"
#include "test/models/gpt2/reference.h"

#include <array>
#include <cmath>

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
// · 16 rows and 4 · 32 columns through two layers lose two to three digits of that.
TEST_P(GradientTest, MatchesTheReference) { expectGradients(GetParam(), {2, 2, 32, 16, 64}, 4); }

// Odd sizes: heads of 7, sequences of 13, 37 tokens.
TEST_P(GradientTest, MatchesTheReferenceAtRaggedSizes) { expectGradients(GetParam(), {2, 3, 21, 13, 37}, 3); }

// Sequences that are shorter than the context: their positions are the first, and the others' rows have no gradient.
TEST_P(GradientTest, MatchesTheReferenceInShorterSequences) {
  expectGradients(GetParam(), {2, 2, 32, 16, 64}, 3, 11);
  expectGradients(GetParam(), {1, 2, 32, 16, 64}, 2, 1);
}

// Further options of config.json: another epsilon, and scores that are scaled by the block's number, or not at all.
TEST_P(GradientTest, MatchesTheReferenceWithOtherScalings) {
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

// Four sequences at once and twice two have one gradient, except for the order of the sums.
TEST_P(GradientTest, DoesNotDependOnTheMicroBatches) {
  const Gpt2Config config = {1, 2, 16, 8, 32};
  const Network network(config);
  Trainer whole(Device::open(GetParam()), network, chooseSettings(4));
  Trainer halves(Device::open(GetParam()), network, chooseSettings(2, 2));
  const HostBuffers buffers = randomBuffers(network.parameters(), 1);
  whole.upload(buffers);
  halves.upload(buffers);
  const Batch b = randomBatch(config, 4, 2);
  const auto half = [&](int64_t which) {
    const int64_t count = 2 * config.context;
    const auto cut = [&](const std::vector<int32_t> &v) {
      return std::vector<int32_t>(v.begin() + which * count, v.begin() + (which + 1) * count);
    };
    return languageBatch(cut(b.tokens), cut(b.targets));
  };
  whole.beginStep(1e-3, 1);
  halves.beginStep(1e-3, 1);
  for (int repeat = 0; repeat < 2; ++repeat) { // the second time on top of what the first left
    whole.addGradient(makeInputs(b), 0);
    halves.addGradient(half(0), 0);
    halves.addGradient(half(1), 1);
  }
  const std::vector<float> one = whole.gradients(), two = halves.gradients();
  double difference = 0, size = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    difference += std::pow(double(one[i]) - two[i], 2);
    size += std::pow(double(one[i]), 2);
  }
  EXPECT_LE(std::sqrt(difference), 1e-5 * std::sqrt(size));
}

// Missing targets decrease neither the loss nor the gradient: both are means over the present ones, for any
// distribution over one, two or four micro-batches.
TEST_P(GradientTest, IsThatOfTheTargetsThatAreThere) {
  const Gpt2Config config = {1, 2, 16, 8, 32};
  const Network network(config);
  const HostBuffers buffers = randomBuffers(network.parameters(), 1);
  Batch b = randomBatch(config, 4, 2);
  int64_t present = 0;
  for (int64_t i = 0; i < std::ssize(b.targets); ++i) // 8, 6, 1 and 0 in the four sequences
    if (i % 8 < std::array{8, 6, 1, 0}[i / 8])
      ++present;
    else
      b.targets[i] = ignoredTarget;
  reference::Tensors want;
  const double loss = reference::gradient(config, referenceParameters(network.parameters(), buffers), b.tokens,
                                          b.targets, 4, config.context, want);
  for (const int64_t micros : {1, 2, 4}) {
    Trainer model(Device::open(GetParam()), network, chooseSettings(4 / micros, micros));
    model.upload(buffers);
    model.beginStep(1e-3, 1, present);
    const int64_t count = config.context * 4 / micros;
    for (int64_t micro = 0; micro < micros; ++micro) {
      const auto cut = [&](const std::vector<int32_t> &v) {
        return std::vector<int32_t>(v.begin() + micro * count, v.begin() + (micro + 1) * count);
      };
      model.addGradient(languageBatch(cut(b.tokens), cut(b.targets)), micro);
    }
    const std::vector<float> got = model.gradients();
    for (const Parameter &p : network.parameters().all()) {
      reference::Tensor difference = part(got.data(), p);
      for (size_t i = 0; i < difference.size(); ++i)
        difference[i] -= want.at(p.name)[i];
      EXPECT_LE(norm(difference), 1e-4 * norm(want.at(p.name))) << micros << ": " << p.name;
    }
    EXPECT_NEAR(model.update().loss, loss, 1e-5) << micros;
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

// For any number of threads, three steps give equal bits.
TEST_P(GradientTest, DoesNotDependOnTheThreads) {
  const Gpt2Config config = {2, 2, 32, 16, 64};
  TrainSettings s;
  s.batch = 4;
  s.steps = 3;
  s.rate = 1e-2;
  const Network network(config);
  std::vector<std::vector<char>> results;
  for (const int threads : {1, 2, 3}) {
    const std::shared_ptr<Device> device = Device::open(GetParam());
    device->setThreads(threads);
    Trainer model(device, network, s);
    model.initialize(7);
    for (int64_t step = 0; step < s.steps; ++step) {
      model.beginStep(s.rate, step + 1);
      model.addGradient(makeInputs(randomBatch(config, s.batch, static_cast<uint32_t>(step))), 0);
      model.update();
    }
    results.push_back(model.download().values);
    device->setThreads(2);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

KILN_ON_DEVICES(GradientTest);

} // namespace
