// Training in bf16 and fp16 compared with the reference model, and the loss scale of fp16.

#include "test/devices.h"
#include "test/models/gpt2/reference.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

/// Unit roundoff.
double unit(Type type) { return type == bf16 ? 0x1p-8 : 0x1p-11; }

/// The narrow types.
constexpr Type narrowTypes[] = {bf16, f16};

Gpt2Config configOf(Type type) {
  Gpt2Config config = {2, 2, 32, 16, 64};
  config.type = type;
  return config;
}

/// The distance of a gradient from the exact one by rounding, in units of roundoff u. Rounding to nearest has a
/// relative error of 0.43 u at the root of the mean square, for the usual distribution of digits. Between a parameter's
/// gradient and the loss, at most 41 tensors are rounded. 19 are forward: the embedding; in each of two blocks two
/// norms, the projection to heads, probabilities, their mix, both sums of the residual stream and the MLP's activation;
/// the last norm, logits. 22 are backward: three from logits to the residual stream, nine in each block, the gradient
/// itself. The errors are independent, so √41 · 0.43 u = 2.8 u, if a layer passes on errors like signals. Norms magnify
/// components orthogonal to a row, up to 1.8 times here.
constexpr double gradientBound = 5;

class PrecisionTest : public DeviceTest {};

/// The error of a batch's mean loss by rounding, in units of roundoff u. Before it 32 tensors are rounded, 19 of
/// activations as above and 13 of weights. Each changes a logit by 0.43 u of its size. A token's loss is the difference
/// of a logit and a mean of logits, and the errors of tokens are independent. Six deviations are permitted.
double lossBound(const Gpt2Config &config, const reference::Tensors &parameters, const Batch &b, int64_t batch) {
  const reference::Tensor logits = reference::logits(config, parameters, b.tokens, batch, config.context);
  const double size = norm(logits) / std::sqrt(static_cast<double>(logits.size()));
  return 6 * std::sqrt(32.0) * 0.43 * size * std::sqrt(2.0 / static_cast<double>(b.tokens.size()));
}

// Twenty steps have the reference's losses, within the rounding of a step and of the steps before. Their decrease of
// the loss has the relative error of their gradients.
TEST_P(PrecisionTest, TwentyStepsHaveTheReferencesLosses) {
  for (const Type type : narrowTypes) {
    const Gpt2Config config = configOf(type);
    TrainSettings s = chooseSettings(3);
    s.steps = 20;
    s.warmup = 5;
    s.rate = 3e-3;
    const Network network(config);
    Trainer model(Device::open(GetParam()), network, s);
    const HostBuffers buffers = randomBuffers(network.parameters(), 1);
    model.upload(buffers);
    reference::Tensors parameters = referenceParameters(network.parameters(), buffers), gradients;
    reference::AdamW adam{s.beta1, s.beta2, s.epsilon, s.decay, s.clip};
    double begin = 0, last = 0;
    for (int64_t step = 0; step < s.steps; ++step) {
      const Batch b = randomBatch(config, s.batch, static_cast<uint32_t>(step % 4));
      const double bound = lossBound(config, parameters, b, s.batch);
      model.beginStep(learningRate(s, step), step + 1);
      model.addGradient(makeInputs(b), 0);
      last = model.update().loss;
      const double want =
          reference::gradient(config, parameters, b.tokens, b.targets, s.batch, config.context, gradients);
      adam.update(parameters, gradients, learningRate(s, step));
      begin = step == 0 ? want : begin;
      EXPECT_NEAR(last, want, (bound + gradientBound * (begin - want)) * unit(type)) << nameOf(type) << " " << step;
    }
    EXPECT_LT(last, begin - 0.5);
  }
}

/// All that a step may change, as bytes.
std::vector<std::vector<char>> stateOf(const Trainer &model) {
  const HostBuffers host = model.download();
  const auto bytes = [](const std::vector<float> &x) {
    const char *begin = reinterpret_cast<const char *>(x.data());
    return std::vector<char>(begin, begin + x.size() * sizeof(float));
  };
  return {host.values, bytes(host.first), bytes(host.second)};
}

// A step whose gradient overflows changes only the loss scale, bit for bit: neither weights nor masters, moments, or
// later steps. Two runs, one of which has such a step in between, take equal other steps.
TEST_P(PrecisionTest, ASkippedStepChangesNothingButTheScale) {
  Gpt2Config config = {1, 2, 16, 8, 32};
  config.type = f16;
  const Network network(config);
  for (const bool master : {true, false}) {
    TrainSettings s = chooseSettings(2);
    s.type = f16;
    s.master = master;
    s.lossScale = 256;
    Trainer plain(Device::open(GetParam()), network, s), skipping(Device::open(GetParam()), network, s);
    const auto step = [&](Trainer &model, int64_t number) {
      model.beginStep(1e-2, number);
      model.addGradient(makeInputs(randomBatch(config, 2, static_cast<uint32_t>(number))), 0);
      return model.update();
    };
    for (Trainer *model : {&plain, &skipping}) {
      model->initialize(3);
      EXPECT_TRUE(step(*model, 1).applied);
    }
    const auto before = stateOf(skipping);
    const LossScale kept = skipping.lossScale();
    skipping.setLossScale({0x1p24, 5});
    const StepResult result = step(skipping, 2);
    EXPECT_FALSE(result.applied);
    EXPECT_TRUE(std::isfinite(result.loss));
    EXPECT_EQ(skipping.lossScale().scale, 0x1p23);
    EXPECT_EQ(skipping.lossScale().good, 0);
    EXPECT_TRUE(stateOf(skipping) == before);
    skipping.setLossScale(kept);
    EXPECT_EQ(step(skipping, 2).loss, step(plain, 2).loss);
    EXPECT_TRUE(stateOf(skipping) == stateOf(plain));
  }
}

KILN_ON_DEVICES(PrecisionTest);

} // namespace
