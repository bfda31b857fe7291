// Documents packed into sequences have the gradients of each document alone.

#include "models/data/documents.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/models/nn/decoder_model.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int32_t mark = 10;
constexpr int64_t context = 9;

/// A model whose positions count from 0 in each document, where they are packed.
DecoderOptions options(bool packed) {
  DecoderOptions o = {.layers = 2, .width = 12, .context = context, .vocab = 11};
  o.block.attention.heads = 3;
  o.givesRanges = o.embedding.givesPositions = packed;
  return o;
}

/// Ten documents of 1 to 8 targets; no row of nine positions cuts any of them.
std::shared_ptr<const Documents> documents(bool packed) {
  std::vector<int32_t> tokens;
  for (const int32_t length : {3, 2, 4, 8, 1, 1, 5, 2, 1, 6}) {
    tokens.push_back(mark);
    for (int32_t i = 1; i < length; ++i)
      tokens.push_back((3 * i + length) % 10);
  }
  tokens.push_back(mark);
  const auto stream = std::make_shared<MemoryTokens<int32_t>>(tokens);
  return std::make_shared<Documents>(stream, findDocuments(*stream, {mark}, "'documents'"), context,
                                     Packing{packed ? 0.99 : 0});
}

/// Rows of documents as a batch.
HostBatch rowsOf(const Documents &documents, int64_t first, int64_t count, bool packed) {
  Batch batch = documents.padding(count);
  for (int64_t i = 0; i < count; ++i)
    documents.read(first + i, batch, i);
  HostBatch inputs = languageBatch(batch.tokens, batch.targets);
  if (packed)
    inputs.merge(
        HostBatch{{"positions", batch.positions}, {"ranges", batch.ranges}, {"column ranges", batch.queryRanges}});
  return inputs;
}

class PackingTest : public DeviceTest {
protected:
  /// The gradient of all documents in micro-batches of `each` rows.
  std::vector<float> gradient(bool packed, int64_t each) {
    const DecoderModel model(options(packed));
    const auto all = documents(packed);
    const int64_t micros = all->sequences() / each;
    EXPECT_EQ(micros * each, all->sequences());
    Trainer trainer(Device::open(GetParam()), model, settingsOf(each, micros));
    trainer.upload(randomBuffers(model.parameters(), 1));
    poison(trainer);
    int64_t targets = 0;
    for (int64_t i = 0; i < all->sequences(); ++i)
      targets += all->targets(i);
    EXPECT_EQ(targets, 33);
    trainer.beginStep(1e-3, 1, targets);
    for (int64_t micro = 0; micro < micros; ++micro)
      trainer.addGradient(rowsOf(*all, micro * each, each, packed), micro);
    evaluated = 0;
    for (int64_t micro = 0; micro < micros; ++micro)
      evaluated += trainer.lossSum(rowsOf(*all, micro * each, each, packed));
    return trainer.gradients();
  }
  static void expectSame(const std::vector<float> &got, const std::vector<float> &want) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
      size += std::pow(static_cast<double>(want[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), 1e-6 * std::sqrt(size));
  }
  double evaluated = 0; // the sum of the losses of what gradient() was given
};

// Four packed rows, at once and as micro-batches of unequal numbers of targets, have the gradient and the losses of the
// ten documents alone, except for the order of sums.
TEST_P(PackingTest, PackedDocumentsAreAsAlone) {
  const std::vector<float> alone = gradient(false, 10);
  const double losses = evaluated;
  ASSERT_EQ(documents(true)->sequences(), 4);
  for (const int64_t each : {4, 2, 1}) {
    SCOPED_TRACE(each);
    expectSame(gradient(true, each), alone);
    EXPECT_NEAR(evaluated, losses, 1e-6 * losses);
  }
}

// The tokens of one document do not affect another document of its row.
TEST_P(PackingTest, ADocumentSeesNoOther) {
  const DecoderModel model(options(true));
  Trainer trainer(Device::open(GetParam()), model, settingsOf(1));
  trainer.upload(randomBuffers(model.parameters(), 1));
  const HostBatch batch = rowsOf(*documents(true), 0, 1, true);
  const std::vector<int32_t> targets = batch.at("targets").numbers<int32_t>();
  const auto lossOf = [&](int64_t from, int64_t to, int32_t changed) { // of the targets in between
    HostBatch some = batch;
    std::vector<int32_t> only(targets.size(), ignoredTarget), tokens = batch.at("tokens").numbers<int32_t>();
    std::copy(targets.begin() + from, targets.begin() + to, only.begin() + from);
    tokens[1] = changed; // in the first document, which has three places
    some["targets"] = only;
    some["tokens"] = tokens;
    return trainer.lossSum(some);
  };
  EXPECT_NE(lossOf(0, 3, 1), lossOf(0, 3, 2));
  EXPECT_EQ(lossOf(3, context, 1), lossOf(3, context, 2));
}

// A step without a target has no mean.
TEST_P(PackingTest, AStepWantsTargets) {
  const DecoderModel model(options(false));
  Trainer trainer(Device::open(GetParam()), model, settingsOf(1));
  expectError([&] { trainer.beginStep(1e-3, 4, 0); }, {"expected targets in step 4, but all are missing"});
}

// The reported operations of a step are those of each document's own square: 161 of 4 · 9² pairs of positions.
TEST_P(PackingTest, OperationsAreThoseOfTheDocuments) {
  const DecoderModel model(options(true));
  Trainer trainer(Device::open(GetParam()), model, settingsOf(4));
  const auto ofAttention = [](const std::vector<Trainer::NamedLaunch> &launches) {
    double all = 0;
    for (const Trainer::NamedLaunch &launch : launches)
      all += launch.isAttention ? launch.flops : 0;
    return all;
  };
  double told = 0;
  trainer.watch([&](const auto &launches) { told += ofAttention(launches); });
  trainer.beginStep(1e-3, 1, 33);
  trainer.addGradient(rowsOf(*documents(true), 0, 4, true), 0);
  EXPECT_GT(told, 0);
  EXPECT_NEAR(told, ofAttention(trainer.launches()) * 161 / (4 * 9 * 9), 1e-9 * told);
}

KILN_ON_DEVICES(PackingTest);

} // namespace
