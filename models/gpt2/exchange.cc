// Converts llm.c's files to checkpoints, and back.

#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/gpt2/llmc.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/tokens/files.h"
#include "models/train/run_folder.h"
#include "runtime/Streams.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

void importModel(const ImportOptions &options) {
  const Gpt2Config config = readLlmcConfig(options.model);
  std::optional<Vocabulary> vocabulary;
  if (options.tokens && *options.tokens != "bytes")
    vocabulary = readVocabulary(*options.tokens);
  if (options.tokens)
    verifyTokens(config, vocabulary);
  const Network network(config);
  const LlmcTraining training = readLlmc(options.model, options.state, config, network.parameters());
  if (const std::optional<std::string> newest = newestCheckpoint(options.out))
    throw Error(fmt::format("expected a folder without checkpoints, but '{}' exists", *newest));
  const RunOptions run = {.out = options.out};
  verify(run);
  const RunFolder folder(run);
  RunState state = {.settings = gpt2Named("llmc-124m").settings, .step = training.steps, .updates = training.steps};
  state.settings.type = config.type;
  state.settings.steps = std::max(state.settings.steps, training.steps);
  state.init = options.model;
  const std::string checkpoint = saveCheckpoint(folder.path(), state, network, readFrom(training.buffers));
  if (vocabulary)
    writeVocabulary(folder.path(), *vocabulary);
  writeResult(fmt::format("{}, {}, after {} steps: '{}'\n", textOf(config), dtypeName(config.type), training.steps,
                          checkpoint));
}

/// The tensors of a checkpoint as f32, moments included.
static LlmcTraining trainingIn(const std::string &checkpoint, const Network &network) {
  return {readBuffers(checkpoint, network, f32), readRunState(checkpoint).step};
}

/// The weights of a model that may have no moments.
static LlmcTraining weightsIn(const std::string &folder, const Network &network) {
  LlmcTraining training;
  training.buffers.values = readTrained(folder, std::nullopt).weights;
  training.buffers.first = training.buffers.second = std::vector<float>(network.parameters().count());
  return training;
}

void exportModel(const ExportOptions &options) {
  const Pretrained source = pretrainedAt(options.folder);
  if (!source.folder)
    throw Error(fmt::format("expected a folder with a config.json, but got the file '{}'", options.folder));
  const bool isCheckpoint = std::filesystem::exists(*source.folder + "/training.json");
  if (options.state && !isCheckpoint)
    throw Error(fmt::format("--state requires a run or a checkpoint, but '{}' has only weights", *source.folder));
  Gpt2Config config = readConfig(*source.folder);
  config.type = f32;
  verifyLlmc(config);
  const Network network(config); // with f32 weights
  const LlmcTraining training = isCheckpoint ? trainingIn(*source.folder, network) : weightsIn(options.folder, network);
  if (options.dtype)
    config.type = dtypeNamed("dtype", *options.dtype);
  else if (isCheckpoint && readRunState(*source.folder).settings.type == bf16)
    config.type = bf16;
  writeLlmcModel(options.model, config, network.parameters(), training.buffers);
  if (options.state)
    writeLlmcState(*options.state, config, network.parameters(), training.buffers, training.steps);
  writeResult(fmt::format("{}, {}, after {} steps: '{}'\n", textOf(config), dtypeName(config.type), training.steps,
                          options.model));
}

} // namespace kiln
