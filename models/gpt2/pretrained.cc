// Recognises the format of a pretrained model by its files.

#include "models/gpt2/pretrained.h"
#include "models/train/checkpoint.h"
#include "models/train/identity.h"

#include <filesystem>
#include <fmt/format.h>

namespace kiln {

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

} // namespace kiln
