// Data uploaded to a trainer's device is downloaded unchanged; a size other than the tensor's is an error.

#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "test/devices.h"
#include "test/expect_error.h"

#include <cstring>
#include <fmt/format.h>
#include <numeric>

using namespace kiln;

namespace {

class TransfersTest : public test::DeviceTest {
protected:
  /// A trainer of micro-batches of 16 tokens.
  static Trainer trainerOn(const std::string &device, const Network &network) {
    return Trainer(Device::open(device), network, TrainSettings{.batch = 2});
  }
  const Network network{{1, 2, 16, 8, 32}};
};

// Weights and moments are read back bit for bit, each from its own buffer.
TEST_P(TransfersTest, BuffersComeBack) {
  Trainer trainer = trainerOn(GetParam(), network);
  std::vector<float> numbers(network.parameters().count());
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  HostBuffers sent;
  sent.values.resize(numbers.size() * sizeof(float));
  std::memcpy(sent.values.data(), numbers.data(), sent.values.size());
  for (float number : numbers) {
    sent.first.push_back(-number);
    sent.second.push_back(0.5f * number);
  }
  trainer.upload(sent);
  const HostBuffers got = trainer.download();
  EXPECT_EQ(got.type, f32);
  EXPECT_EQ(got.values, sent.values);
  EXPECT_EQ(got.first, sent.first);
  EXPECT_EQ(got.second, sent.second);
}

// The error for weights of the wrong size has both numbers.
TEST_P(TransfersTest, WeightsOfAnotherSizeAreAnError) {
  Trainer trainer = trainerOn(GetParam(), network);
  const int64_t bytes = network.parameters().count() * bytesOf(f32);
  expectError([&] { trainer.uploadWeights(std::vector<char>(bytes - 1)); },
              {fmt::format("expected {} bytes of weights, but got {}", bytes, bytes - 1)});
}

// The error for an input of the wrong length has its name.
TEST_P(TransfersTest, AnInputOfAnotherSizeIsAnError) {
  Trainer trainer = trainerOn(GetParam(), network);
  trainer.beginStep(1e-3, 1);
  for (const size_t count : {15, 17})
    expectError(
        [&] { trainer.addGradient(languageBatch(std::vector<int32_t>(16, 3), std::vector<int32_t>(count, 5)), 0); },
        {fmt::format("expected 64 bytes of input 'targets', but got {}", 4 * count)});
}

KILN_ON_DEVICES_AND_DRIVER(TransfersTest);

} // namespace
