// The calls of a step to a device, recorded by a device of the test, and copies between host and device.

#include "models/gpt2/network.h"
#include "models/train/trainer.h"
#include "runtime/Executable.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/forwarding_device.h"

#include <cstring>
#include <fmt/format.h>
#include <numeric>

using namespace kiln;

namespace {

/// Another device that records its calls: u(pload), d(ownload), c(opy), z(ero), l(aunch), s(ynchronize).
class Recorder : public test::ForwardingDevice {
public:
  using ForwardingDevice::ForwardingDevice;
  void upload(void *to, const void *from, int64_t bytes) override {
    events += 'u';
    ForwardingDevice::upload(to, from, bytes);
  }
  void download(void *to, const void *from, int64_t bytes) override {
    events += 'd';
    ForwardingDevice::download(to, from, bytes);
  }
  void copy(void *to, const void *from, int64_t bytes) override {
    events += 'c';
    ForwardingDevice::copy(to, from, bytes);
  }
  void fillZero(void *memory, int64_t bytes) override {
    events += 'z';
    ForwardingDevice::fillZero(memory, bytes);
  }
  void launch(const Executable &executable, const uint64_t *block) override {
    events += 'l';
    launched.push_back(&executable);
    ForwardingDevice::launch(executable, block);
  }
  void synchronize() override {
    events += 's';
    ForwardingDevice::synchronize();
  }

  std::string events;
  std::vector<const Executable *> launched;
};

class TrainerTest : public test::DeviceTest {
protected:
  /// One step of two micro-batches; small gradients are clipped with a limit of 1e-3.
  void step(int64_t number) {
    device->events.clear();
    device->launched.clear();
    trainer->beginStep(1e-3, number);
    for (int64_t micro = 0; micro < 2; ++micro)
      trainer->addGradient(languageBatch(std::vector<int32_t>(16, 3), std::vector<int32_t>(16, 5)), micro);
    result = trainer->update();
  }
  /// A model of `type` with its first weights.
  void begin(Type type) {
    Gpt2Config config = {1, 2, 16, 8, 32};
    config.type = type;
    network.emplace(config);
    trainer.emplace(device, *network, TrainSettings{.batch = 2, .accumulate = 2, .clip = 1e-3});
    trainer->initialize(1);
  }

  const std::shared_ptr<Recorder> device = std::make_shared<Recorder>(Device::open(GetParam()));
  std::optional<Network> network;
  std::optional<Trainer> trainer;
  StepResult result;
};

// No wait and no download occurs until the last launch of a step, even with clipping and loss scaling; then there is
// one.
TEST_P(TrainerTest, AStepReadsTheDeviceAtItsEndOnly) {
  for (const Type type : {f32, f16}) {
    begin(type);
    step(1);
    EXPECT_GT(result.gradientNorm, 1e-3);
    const size_t last = device->events.find_last_of('l');
    ASSERT_NE(last, std::string::npos);
    EXPECT_EQ(device->events.find_first_not_of("ul"), last + 1) << device->events;
    EXPECT_EQ(device->events.substr(last + 1), "sd");
  }
}

// Every step launches the same kernels in the same order, for any learning rate and norm, and also if its update is
// skipped.
TEST_P(TrainerTest, StepsAreTheSameLaunches) {
  for (const Type type : {f32, f16}) {
    begin(type);
    step(1);
    const std::vector<const Executable *> first = device->launched;
    trainer->setLossScale({type == f16 ? 0x1p24 : 1, 0});
    step(2);
    EXPECT_EQ(result.applied, type == f32);
    EXPECT_EQ(device->launched, first);
  }
}

// Inputs of a batch have names and types: an unknown input, or one of another type, is an error.
TEST_P(TrainerTest, AnInputThatTheModelHasNotIsAnError) {
  begin(f32);
  trainer->beginStep(1e-3, 1);
  HostBatch batch = languageBatch(std::vector<int32_t>(16, 3), std::vector<int32_t>(16, 5));
  batch["mask"] = std::vector<int32_t>(16, 1);
  expectError([&] { trainer->addGradient(batch, 0); }, {"expected an input of the model, but got 'mask' of i32"});
  batch.erase("mask");
  batch["targets"] = HostArray(f32, std::vector<float>(16, 5));
  expectError([&] { trainer->addGradient(batch, 0); }, {"but got 'targets' of f32"});
}

KILN_ON_DEVICES_AND_DRIVER(TrainerTest);

// Steps whose numbers are equal in f32 have different random numbers for rounding.
TEST(StepRecord, NeighboursDrawDifferently) {
  const auto drawOf = [](int64_t step) { return makeStepRecord(AdamWSettings(), {.step = step})[StepField::draw]; };
  const int64_t most = int64_t{1} << 24;
  for (int64_t step = most - 2; step < most + 4; ++step)
    EXPECT_NE(drawOf(step), drawOf(step + 1)) << step;
}

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
