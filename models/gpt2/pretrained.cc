// Finds and reads trained models.

#include "models/gpt2/pretrained.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/tokens/files.h"
#include "models/train/checkpoint.h"
#include "models/train/run_state.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace kiln {

//===-- What a user names ---------------------------------------------------------------------------------------===//

namespace fs = std::filesystem;

namespace {

/// An unsupported format, recognised by a file of this name or extension.
struct OtherForm {
  const char *name, *what, *cure;
};

} // namespace

static const OtherForm otherForms[] = {
    {"model.safetensors.index.json", "weights in shards",
     "save_pretrained(FOLDER, max_shard_size='1TB') of Hugging Face's library writes one file"},
    {"pytorch_model.bin", "pickled weights", "save_pretrained(FOLDER) of Hugging Face's library writes safetensors"},
    {"pytorch_model.bin.index.json", "pickled weights in shards",
     "save_pretrained(FOLDER, max_shard_size='1TB') of Hugging Face's library writes one safetensors file"},
};

[[noreturn]] static void reject(const std::string &path, const OtherForm &form) {
  throw Error(
      fmt::format("expected weights as one safetensors file, but '{}' holds {}; {}", path, form.what, form.cure));
}

static Pretrained fileAt(const std::string &path) {
  for (const OtherForm &form : otherForms)
    if (fs::path(path).filename() == form.name)
      reject(path, form);
  return {path, {}};
}

Pretrained pretrainedAt(const std::string &path) {
  if (fs::is_regular_file(path))
    return fileAt(path);
  if (!fs::exists(path))
    throw Error(fmt::format("expected a folder with a model, but '{}' does not exist", path));
  const std::string folder = newestCheckpoint(path).value_or(path), weights = folder + "/model.safetensors";
  if (!fs::exists(folder + "/config.json"))
    throw Error(fmt::format("expected checkpoints or a config.json in '{}', but there are none", folder));
  if (!fs::exists(weights))
    for (const OtherForm &form : otherForms)
      if (fs::exists(folder + "/" + form.name))
        reject(folder + "/" + form.name, form);
  return {weights, folder};
}

void verifyWhole(const Pretrained &model) {
  const auto holds = [&](const char *name) { return fs::exists(*model.folder + "/" + name); };
  if (model.folder && holds("training.json") && holds("optimizer.safetensors"))
    verifyParts(*model.folder);
}

//===-- Weights -------------------------------------------------------------------------------------------------===//

static const std::string tokenTable = "wte.weight";

/// Whether `name` is a mask, such as `h.0.attn.bias` or `h.0.attn.masked_bias`, of an attention layer of `parameters`.
static bool isMask(const std::string &name, const std::set<std::string> &parameters) {
  for (const std::string kind : {".bias", ".masked_bias"})
    if (name.size() > kind.size() && name.compare(name.size() - kind.size(), kind.size(), kind) == 0)
      return parameters.count(name.substr(0, name.size() - kind.size()) + ".c_attn.weight") > 0;
  return false;
}

/// Throws unless the file's head, if present, equals the token embedding, because this network ties them.
static void verifyHead(const std::string &path, const Safetensors &file, const ParameterList &list, Type type,
                       const std::vector<char> &values) {
  if (!file.has(headWeight))
    return;
  const auto table =
      std::find_if(list.all().begin(), list.all().end(), [](const Parameter &p) { return p.name == tokenTable; });
  std::vector<char> own(table->count() * bytesOf(type));
  file.read(headWeight, type, table->shape, own.data());
  if (std::memcmp(own.data(), values.data() + table->offset * bytesOf(type), own.size()) != 0)
    throw Error(fmt::format(
        "expected '{}' in '{}' to equal '{}', but it differs: config.json says that the head shares that table",
        headWeight, path, tokenTable));
}

/// The name without Hugging Face's prefix.
static std::string bare(const std::string &name) {
  return name.starts_with(transformerPrefix) ? name.substr(transformerPrefix.size()) : name;
}

std::vector<char> readWeights(const std::string &path, const ParameterList &list, Type type) {
  const Safetensors file(path);
  const std::string prefix = file.has(transformerPrefix + tokenTable) ? transformerPrefix : "";
  const NameInFile nameOf = [&](const std::string &name) {
    return name.starts_with("lm_head.") ? name : prefix + bare(name);
  };
  std::set<std::string> parameters;
  bool isTied = true;
  for (const Parameter &p : list.all()) {
    parameters.insert(nameOf(p.name));
    isTied &= p.name != headWeight;
  }
  verifyNames(path, file.names(), list, nameOf,
              [&](const std::string &name) { return (isTied && name == headWeight) || isMask(name, parameters); });
  std::vector<char> values(list.count() * bytesOf(type));
  readTensors(file, list, nameOf, type, values.data());
  if (isTied)
    verifyHead(path, file, list, type, values);
  return values;
}

//===-- Tokens --------------------------------------------------------------------------------------------------===//

std::optional<Vocabulary> vocabularyBeside(const Pretrained &model) {
  if (!model.folder)
    return {};
  if (fs::exists(fs::path(*model.folder) / "spiece.model"))
    throw Error(fmt::format("'{}/spiece.model' is no byte-pair tokenizer; expected tokenizer.json, or vocab.json and "
                            "merges.txt",
                            *model.folder));
  const bool isCheckpoint = fs::exists(fs::path(*model.folder) / "training.json");
  for (const std::string &folder : {*model.folder, fs::absolute(*model.folder).parent_path().string()})
    if ((folder == *model.folder || isCheckpoint) && hasVocabulary(folder))
      return readVocabulary(folder);
  return {};
}

DocumentMarks documentMarks(const std::optional<Vocabulary> &vocabulary) {
  const Vocabulary known = vocabulary.value_or(Vocabulary());
  const std::optional<int32_t> begin = documentMark(known);
  if (!begin)
    throw Error(fmt::format("the tokenizer does not say which token begins a document; expected <|endoftext|>, <s>, or "
                            "exactly one special token, but got {} special tokens",
                            known.specials.size()));
  return {*begin, documentEnd(known)};
}

void setBatching(LanguageSource &source, Gpt2Config &config, const TrainSettings &settings,
                 const std::optional<Vocabulary> &vocabulary) {
  const bool isPacked = settings.batching == Batching::packed;
  config.givesRanges = isPacked;
  config.givesPositions = isPacked && settings.positions == Positions::restart;
  if (settings.batching != Batching::stream)
    source.documents = documentMarks(vocabulary);
  source.pack = isPacked ? settings.pack : 0;
  source.givesPlaces = config.givesPositions;
}

void verifyTokens(const Gpt2Config &config, const std::optional<Vocabulary> &vocabulary) {
  if (!vocabulary)
    return verifyBytes(config);
  if (config.vocab < vocabulary->size())
    throw Error(fmt::format("expected a vocabulary of at least {}, the size of the tokenizer, but got {}",
                            vocabulary->size(), config.vocab));
}

//===-- All of it -----------------------------------------------------------------------------------------------===//

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
