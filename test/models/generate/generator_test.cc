// Texts that grow: with the cache a model gives the logits that it gives without.

#include "models/generate/generator.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class GeneratorTest : public DeviceTest {
protected:
  void SetUp() override { device = Device::open(GetParam()); }
  bool isSlow() const { return !GetParam().starts_with("cpu") || GetParam() == oracleDevice; }

  /// The model's weights on the device.
  Tensor weightsOf(const DecoderModel &model, uint32_t seed) {
    const HostBuffers buffers = randomBuffers(model.parameters(), seed, model.type());
    std::vector<float> numbers(model.parameters().count());
    std::memcpy(numbers.data(), buffers.values.data(), buffers.values.size());
    Tensor weights(device, model.type(), {model.parameters().count()});
    weights.uploadFloats(numbers);
    return weights;
  }

  /// Logits after `tokens`, recomputed for all of them.
  std::vector<float> whole(const DecoderModel &model, const TensorRef &weights, const std::vector<int32_t> &tokens) {
    const int64_t count = std::ssize(tokens);
    Tensor given(device, i32, {count}), positions(device, i32, {count}),
        logits(device, model.type(), {1, model.options.vocab});
    std::vector<int32_t> inOrder;
    for (int32_t i = 0; i < count; ++i)
      inOrder.push_back(i);
    given.upload(tokens.data(), given.bytes());
    positions.upload(inOrder.data(), positions.bytes());
    Target target = device->target();
    target.precision = Precision::ieee;
    const auto planned = [&](Arena &arena) {
      Build b{target, arena, model.parameters(), ParameterBuffers{weights, weights}, model.type()};
      const auto input = [&](const std::string &name) -> const TensorRef & {
        return name == "tokens" ? given.ref() : positions.ref();
      };
      const TensorRef hidden = model.layers().hidden(b, input, count, count);
      model.layers().logits(b, hidden.slice(0, count - 1, 1), logits);
      return std::move(b.plan);
    };
    Arena measured;
    const Tensor workspace(device, i8, {planned(measured).workspaceBytes});
    const ArenaPlan places = measured.plan();
    const Tensor memory(device, i8, {places.bytes});
    Arena arena(places, memory.data());
    run(*device, planned(arena), workspace);
    device->synchronize();
    return logits.downloadFloats();
  }

  /// Tolerance 1e-4 of their norm: f32 rounds to 6e-8, and the two orders of summation lose two to three digits of that
  /// in the blocks.
  void expectLogits(const std::vector<float> &got, const std::vector<float> &want, double tolerance = 1e-4) {
    ASSERT_EQ(got.size(), want.size());
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
      size += static_cast<double>(want[i]) * want[i];
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size));
  }

  std::shared_ptr<Device> device;
};

DecoderOptions plain(int64_t context = 9) {
  DecoderOptions o = {.layers = 2, .width = 12, .context = context, .vocab = 11};
  o.block.attention.heads = 3;
  return o;
}

std::vector<int32_t> randomTokens(std::mt19937 &engine, int64_t count, int64_t vocab) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<int32_t>(engine() % vocab));
  return tokens;
}

/// Options that change a layer's results in evaluation, each alone.
std::vector<DecoderOptions> eachAlone() {
  std::vector<DecoderOptions> all;
  const auto add = [&](auto change) {
    all.push_back(plain());
    change(all.back());
  };
  add([](DecoderOptions &) {});
  add([](DecoderOptions &o) { o.block.order = BlockOrder::mlp_first; });
  add([](DecoderOptions &o) { o.block.place = NormPlace::post; });
  add([](DecoderOptions &o) { o.lastNorm = false; });
  add([](DecoderOptions &o) { o.head = {.tied = false, .bias = true}; });
  add([](DecoderOptions &o) { o.embedding.scale = 3; });
  add([](DecoderOptions &o) { o.embedding.positions = PositionTable::none; });
  add([](DecoderOptions &o) { o.embedding.positions = PositionTable::sinusoids; });
  add([](DecoderOptions &o) { o.embedding.givesPositions = true; });
  add([](DecoderOptions &o) { o.dropout = {0.1, 0.2, 0.3, 0.2, DropoutKind::plain}; });
  return all;
}

// Two texts of different lengths, one with several initial tokens and one with a single one, grow token by token. After
// each token the logits equal those of the whole text.
TEST_P(GeneratorTest, HasTheLogitsOfWholeTexts) {
  for (const DecoderOptions &o : eachAlone()) {
    const DecoderModel model(o);
    const Tensor weights = weightsOf(model, 1);
    std::mt19937 engine(2);
    std::vector<std::vector<int32_t>> texts = {randomTokens(engine, 5, o.vocab), randomTokens(engine, 1, o.vocab)};
    Generator generator(device, model, weights, {.sequences = 2});
    generator.append(0, texts[0]);
    generator.append(1, texts[1]);
    for (int64_t round = 0; round < (isSlow() ? 2 : 4); ++round) {
      const std::vector<std::vector<float>> logits = generator.next();
      for (size_t s = 0; s < texts.size(); ++s) {
        expectLogits(logits[s], whole(model, weights, texts[s]));
        texts[s].push_back(static_cast<int32_t>(engine() % o.vocab));
        generator.append(static_cast<int64_t>(s), {&texts[s].back(), 1});
      }
    }
  }
}

// Prompts that take several passes, of both lengths, and one that fills the context to its last position.
TEST_P(GeneratorTest, ReadsLongPrompts) {
  const int64_t context = isSlow() ? 20 : 300;
  const DecoderModel model(plain(context));
  const Tensor weights = weightsOf(model, 3);
  std::mt19937 engine(4);
  for (const int64_t count : {context - 14, context}) {
    const std::vector<int32_t> text = randomTokens(engine, count, 11);
    Generator generator(device, model, weights, {});
    generator.append(0, text);
    expectLogits(generator.next()[0], whole(model, weights, text));
  }
}

// In bf16 a number is rounded to 2⁻⁸ about thirty times, and the two orders of summation round differently.
TEST_P(GeneratorTest, ComputesInNarrowTypes) {
  const DecoderModel model(plain(), bf16);
  const Tensor weights = weightsOf(model, 5);
  const std::vector<int32_t> text = {1, 7, 3, 3, 10};
  Generator generator(device, model, weights, {});
  generator.append(0, text);
  expectLogits(generator.next()[0], whole(model, weights, text), 30 * 0x1p-8);
}

// A text that grows beyond the context continues from its last half, with one message. A longer initial text keeps as
// much of its end as fits.
TEST_P(GeneratorTest, GoesOnFromTheLastHalf) {
  const DecoderOptions o = plain();
  const DecoderModel model(o);
  const Tensor weights = weightsOf(model, 6);
  std::mt19937 engine(7);
  std::vector<int32_t> text = randomTokens(engine, 12, o.vocab);
  int restarts = 0;
  Generator generator(device, model, weights, {.restarts = [&] { ++restarts; }});
  generator.append(0, text);
  expectLogits(generator.next()[0], whole(model, weights, {text.end() - 9, text.end()}));
  EXPECT_EQ(restarts, 0);
  text.push_back(5);
  generator.append(0, {&text.back(), 1});
  expectLogits(generator.next()[0], whole(model, weights, {text.end() - 4, text.end()}));
  EXPECT_EQ(restarts, 1);
}

// A leading token is at the first position of a text, and of the part from which a text continues. Here it is −1, no
// token, which a model with an untied head accepts.
TEST_P(GeneratorTest, KeepsATokenInFront) {
  DecoderOptions o = plain();
  o.head.tied = false;
  const DecoderModel model(o);
  const Tensor weights = weightsOf(model, 8);
  std::mt19937 engine(9);
  std::vector<int32_t> text = randomTokens(engine, 8, o.vocab);
  const auto behind = [](std::vector<int32_t> tokens) {
    tokens.insert(tokens.begin(), -1);
    return tokens;
  };
  Generator generator(device, model, weights, {.front = -1});
  expectLogits(generator.next()[0], whole(model, weights, {-1}));
  generator.append(0, text);
  expectLogits(generator.next()[0], whole(model, weights, behind(text)));
  text.push_back(2);
  generator.append(0, {&text.back(), 1});
  expectLogits(generator.next()[0], whole(model, weights, behind({text.end() - 3, text.end()})));
}

// A text that has not grown has no new logits, and one without tokens has none. A cleared text restarts.
TEST_P(GeneratorTest, LooksAtTextsThatGrow) {
  const DecoderModel model(plain());
  const Tensor weights = weightsOf(model, 10);
  Generator generator(device, model, weights, {.sequences = 2});
  const std::vector<int32_t> first = {1, 2, 3}, second = {4};
  generator.append(0, first);
  expectError([&] { generator.next(); }, {"expected text 1 to have at least one token, but got none"});
  generator.append(1, second);
  generator.next();
  generator.append(1, second);
  const std::vector<std::vector<float>> logits = generator.next();
  EXPECT_TRUE(logits[0].empty());
  expectLogits(logits[1], whole(model, weights, {4, 4}));
  generator.clear(0);
  generator.append(0, second);
  expectLogits(generator.next()[0], whole(model, weights, second));
}
KILN_ON_DEVICES(GeneratorTest);

} // namespace
