// Bytes from a trained model, one at a time: those before the next one stand one place on, behind none.

#include "models/bytelm/commands.h"
#include "models/bytelm/network.h"
#include "models/gpt2/sampler.h"
#include "models/train/checkpoint.h"
#include "models/train/dropout_options.h"
#include "models/train/trainer.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::bytelm {

namespace {

/// A model on a device that predicts.
class Predictor {
public:
  Predictor(std::shared_ptr<Device> opened, const ByteNetwork &network, const std::vector<char> &weights)
      : device(std::move(opened)), network(network), value(device, f32, {network.parameters().count()}),
        tokens(device, i32, {network.config().context}), logits(device, f32, {1, ByteConfig::vocab}) {
    value.upload(weights.data(), std::ssize(weights));
    Arena measured;
    workspace = Tensor(device, i8, {plan(measured, 0).workspaceBytes});
    places = measured.plan();
    arena = Tensor(device, i8, {places.bytes});
  }

  /// Logits of the byte after these, of which there are fewer than a sequence has.
  std::vector<float> logitsAfter(const std::vector<int32_t> &given) {
    std::vector<int32_t> shifted = {-1};
    shifted.insert(shifted.end(), given.begin(), given.end());
    shifted.resize(network.config().context, -1);
    uploadAll(tokens, shifted);
    Arena placed(places, arena.data());
    run(*device, plan(placed, std::ssize(given)), workspace);
    device->synchronize();
    return logits.downloadFloats();
  }

private:
  Plan plan(Arena &placed, int64_t row) const {
    Target target = device->target();
    target.precision = Precision::ieee;
    Build b{target, placed, network.parameters(), ParameterBuffers{value, value}, f32};
    const int64_t context = network.config().context;
    const TensorRef hidden = network.layers().hidden(
        b, [&](const std::string &) -> const TensorRef & { return tokens.ref(); }, context, context);
    network.layers().logits(b, hidden.slice(0, row, 1), logits);
    return std::move(b.plan);
  }

  std::shared_ptr<Device> device;
  const ByteNetwork &network;
  Tensor value, tokens, logits, arena, workspace;
  ArenaPlan places;
};

} // namespace

static void verify(const SampleOptions &o) {
  if (o.bytes < 1)
    throw Error(fmt::format("expected 'bytes' to be at least 1, but got {}", o.bytes));
  if (!(o.temperature >= 0))
    throw Error(fmt::format("expected 'temperature' to be at least 0, but got {}", o.temperature));
  if (o.topK < 0)
    throw Error(fmt::format("expected 'top-k' to be at least 0, but got {}", o.topK));
}

void sample(const SampleOptions &options) {
  verify(options);
  const std::string checkpoint = newestCheckpoint(options.folder).value_or(options.folder);
  const RunState state = readRunState(checkpoint);
  ByteConfig config = readByteConfig(checkpoint);
  config.dropout = dropoutOf(state.settings);
  const ByteNetwork network(config);
  Predictor predictor(openDevice(options.machine), network, readBuffers(checkpoint, network).values);
  const Random random(options.seed, Stream::sampling);
  std::vector<int32_t> bytes;
  for (const char byte : options.prompt)
    bytes.push_back(static_cast<unsigned char>(byte));
  writeResult(options.prompt);
  for (int64_t i = 0; i < options.bytes; ++i) {
    const int64_t seen = std::min<int64_t>(config.context - 1, std::ssize(bytes));
    const std::vector<float> logits = predictor.logitsAfter({bytes.end() - seen, bytes.end()});
    bytes.push_back(static_cast<int32_t>(choose(logits, options.temperature, options.topK, random.uniform(i))));
    writeResult(std::string(1, static_cast<char>(bytes.back())));
  }
  writeResult("\n");
}

} // namespace kiln::bytelm
