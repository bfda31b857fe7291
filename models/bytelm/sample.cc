// Bytes from a trained model, one at a time: those before the next one stand one place on, behind none.

#include "models/bytelm/commands.h"
#include "models/bytelm/network.h"
#include "models/generate/predictor.h"
#include "models/train/checkpoint.h"
#include "models/train/dropout_options.h"
#include "runtime/Streams.h"

namespace kiln::bytelm {

void sample(const SampleOptions &options) {
  verify(options.sampling, "byte");
  const std::string checkpoint = newestCheckpoint(options.folder).value_or(options.folder);
  const RunState state = readRunState(checkpoint);
  ByteConfig config = readByteConfig(checkpoint);
  config.dropout = dropoutOf(state.settings);
  const ByteNetwork network(config);
  Predictor predictor(openDevice(options.machine), network, readBuffers(checkpoint, network).values);
  std::vector<int32_t> bytes;
  for (const char byte : options.prompt)
    bytes.push_back(static_cast<unsigned char>(byte));
  writeResult(options.prompt);
  const auto logitsAfter = [&](const std::vector<int32_t> &all) {
    const int64_t seen = std::min<int64_t>(config.context - 1, std::ssize(all));
    std::vector<int32_t> shifted = {-1};
    shifted.insert(shifted.end(), all.end() - seen, all.end());
    return predictor.logitsAfter(shifted);
  };
  goOn(options.sampling, bytes, logitsAfter,
       [](int32_t byte) { writeResult(std::string(1, static_cast<char>(byte))); });
  writeResult("\n");
}

} // namespace kiln::bytelm
