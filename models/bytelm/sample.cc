// Samples bytes. The inputs are the previous bytes shifted by one position; the first input is empty.

#include "models/bytelm/commands.h"
#include "models/bytelm/network.h"
#include "models/generate/sample_command.h"
#include "models/train/checkpoint.h"
#include "models/train/configured.h"

namespace kiln::bytelm {

void sample(const SampleOptions &options) {
  const std::string checkpoint = newestCheckpoint(options.folder).value_or(options.folder);
  const RunState state = readRunState(checkpoint);
  ByteConfig config = readByteConfig(checkpoint);
  config.dropout = dropoutOf(state.settings);
  const ByteNetwork network(config);
  const std::shared_ptr<Device> device = openDevice(options.machine);
  const Tensor weights = uploaded(device, network, readBuffers(checkpoint, network).values);
  const auto generator = [&](Generator::Options texts) {
    texts.front = -1;
    return Generator(device, network, weights, std::move(texts));
  };
  write("bytelm", generator,
        {.encode =
             [](const std::string &text) {
               const auto *bytes = reinterpret_cast<const unsigned char *>(text.data());
               return std::vector<int32_t>(bytes, bytes + text.size());
             },
         .decode = [](std::span<const int32_t> bytes) { return std::string(bytes.begin(), bytes.end()); },
         .size = ByteConfig::vocab,
         .beginsAlone = true},
        options.writing);
}

} // namespace kiln::bytelm
