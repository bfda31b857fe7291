// The records of a step's launches: their part of the network, their FLOPs and their bytes.

#include "models/gpt2/network.h"
#include "models/train/memory.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

#include <map>

using namespace kiln;

namespace {

const Gpt2Config config = {2, 2, 32, 16, 64};
constexpr int64_t sequences = 4;

std::vector<LaunchCost> launchesOn(const Target &target) {
  const Network network(config);
  return planMemory(target, network, network.shape(sequences), {.batch = sequences}).launches;
}

// Every launch of a gradient has a label. Those of the first block name its layers, in order.
TEST(Launches, AreLabelledByTheirPlace) {
  std::vector<std::string> first;
  for (const LaunchCost &launch : launchesOn({"cpu", CpuFacts()})) {
    EXPECT_FALSE(launch.label.empty()) << launch.kernel;
    if (launch.label.starts_with("block 0 "))
      first.push_back(launch.label.substr(8) + ": " + launch.kernel);
  }
  const std::vector<std::string> want = {"attention norm: layernorm",
                                         "attention: matmul_bias",
                                         "attention: attention",
                                         "attention: matmul_residual",
                                         "mlp norm: layernorm",
                                         "mlp: matmul_gelu",
                                         "mlp: matmul_residual",
                                         "mlp backward: weight_gradient",
                                         "mlp backward: matmul_gelu_backward",
                                         "mlp backward: weight_gradient",
                                         "mlp backward: matmul",
                                         "mlp backward norm: layernorm_backward",
                                         "mlp backward norm: sum_pair",
                                         "attention backward: weight_gradient",
                                         "attention backward: matmul",
                                         "attention backward: attention_backward",
                                         "attention backward: weight_gradient",
                                         "attention backward: matmul",
                                         "attention backward norm: layernorm_backward",
                                         "attention backward norm: sum_pair"};
  EXPECT_EQ(first, want);
}

// The operations of all launches are those reported for a step, and the scores of attention once more for every pass
// that recomputes them. A CPU has one such pass. On a GPU the gradients of keys and queries are two passes, each of
// which multiplies dout by v too.
TEST(Launches, ComputeWhatAStepTakes) {
  const auto flopsOn = [](const Target &target) {
    double all = 0;
    for (const LaunchCost &launch : launchesOn(target))
      all += launch.flops;
    return all;
  };
  const double product =
      static_cast<double>(config.layers * sequences * config.context * config.context * config.width);
  EXPECT_EQ(flopsOn({"cpu", CpuFacts()}), flopsOfStep(config, sequences) + product);
  EXPECT_EQ(flopsOn({"gpu", GpuFacts()}), flopsOfStep(config, sequences) + 3 * product);
}

// A GPU idles between launches, so gradients of parameters that are read only at the end of a step are computed
// together. A step of GPT-2 124M has 15 launches for each of its twelve blocks, 9 outside of them, 3 for the weights of
// four blocks each, and 2 for all norms. (The mean loss, the gradients' norm and the update are 4 more.)
TEST(Launches, OfAGpuAreFew) {
  const Network network({.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocab = 50257});
  const MemoryPlan memory = planMemory({"gpu", GpuFacts()}, network, network.shape(8), {.batch = 8});
  EXPECT_LE(memory.launches.size(), 12 * 15 + 9 + 3 + 2);
  std::map<std::string, int> kernels;
  for (const LaunchCost &launch : memory.launches)
    ++kernels[launch.kernel];
  EXPECT_EQ(kernels["sum_pair"], 2);
  EXPECT_EQ(kernels["weight_gradient"], 4); // and the head's
}

// A launch's bytes are those of its views, including its workspace; scalars have none.
TEST(Launches, GoThroughTheirViews) {
  const TensorRef x = TensorRef::dense(nullptr, bf16, {3, 5}), column = TensorRef::dense(nullptr, f32, {7});
  const Launch launch = {.args = {x, column.slice(0, 2, 4), Arg::workspace(64, f32, {2, 2}), 1.0f, 7}};
  EXPECT_EQ(launch.bytes(), 3 * 5 * 2 + 4 * 4 + 4 * 4);
}

} // namespace
