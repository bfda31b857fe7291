// Reads a model's config, weights and tokenizer.

#include "models/gpt2/trained_model.h"
#include "models/gpt2/config_json.h"
#include "models/gpt2/network.h"
#include "models/gpt2/tokens_of.h"
#include "models/gpt2/weights.h"
#include "models/train/checkpoint.h"
#include "runtime/Tensor.h"

#include <cmath>
#include <filesystem>
#include <fmt/format.h>

namespace kiln {

/// The model to read, with its config.json.
static Pretrained modelIn(const std::string &folder) {
  const Pretrained found = pretrainedAt(folder);
  if (!found.folder)
    throw Error(fmt::format("expected a folder with a config.json, but got the file '{}'", folder));
  return found;
}

/// Throws for weights that are not finite.
static void verifyFinite(const TrainedModel &model, const ParameterList &list, const std::string &folder) {
  const int64_t bytes = bytesOf(model.config.type);
  for (const Parameter &p : list.all())
    for (const double value : toDoubles(model.weights.data() + p.offset * bytes, model.config.type, p.count()))
      if (!std::isfinite(value))
        throw Error(fmt::format("expected finite weights in '{}', but tensor '{}' has {}", folder, p.name, value));
}

static TrainedModel readModel(const Pretrained &source, Type type) {
  TrainedModel model = {readConfig(*source.folder)};
  model.config.type = type;
  verifyWhole(source);
  if (std::filesystem::exists(*source.folder + "/training.json"))
    model.settings = readRunState(*source.folder).settings;
  model.vocabulary = vocabularyBeside(source);
  if (model.vocabulary)
    verifyTokens(model.config, model.vocabulary);
  const Network network(model.config);
  model.weights = readWeights(source.weights, network.parameters(), model.config.type);
  verifyFinite(model, network.parameters(), *source.folder);
  return model;
}

TrainedModel readTrained(const std::string &folder, const std::optional<std::string> &dtype) {
  while (true) {
    const Pretrained source = modelIn(folder);
    try {
      return readModel(source, dtype ? dtypeNamed("dtype", *dtype) : f32);
    } catch (const Error &error) {
      if (const std::optional<std::string> newest = newestCheckpoint(folder); newest && *newest != *source.folder)
        continue;
      const std::optional<std::string> older = wholeCheckpointBefore(*source.folder);
      if (!older)
        throw;
      throw Error(fmt::format("{}; '{}' is intact", error.what(), *older), error.fault);
    }
  }
}

} // namespace kiln
