// Hashes a checkpoint's parts, and compares their identities.

#include "models/train/identity.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "runtime/Files.h"

#include <fmt/format.h>

namespace kiln {

static const std::string identityKey = "kiln.checkpoint", stepKey = "kiln.step", seedKey = "kiln.seed";

/// The hash of parts without an identity.
static std::string hashOf(const IdentifiedParts &parts) {
  std::string all = parts.config + '\0' + parts.training;
  for (const Metadata *metadata : {&parts.weights, &parts.moments})
    for (const auto &[key, value] : *metadata)
      all += '\0' + key + '\0' + value;
  return checksum(all);
}

void identify(IdentifiedParts &parts, int64_t step, uint64_t seed) {
  for (Metadata *metadata : {&parts.weights, &parts.moments}) {
    metadata->emplace(stepKey, std::to_string(step));
    metadata->emplace(seedKey, std::to_string(seed));
  }
  const std::string identity = hashOf(parts);
  parts.training.replace(parts.training.find(noIdentity), noIdentity.size(), identity);
  parts.weights.emplace(identityKey, identity);
  parts.moments.emplace(identityKey, identity);
}

/// The value of `key` in `metadata`, or `none`.
static std::string valueOf(const Metadata &metadata, const std::string &key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "none" : found->second;
}

void verifyParts(const std::string &checkpoint) {
  const std::string path = checkpoint + "/training.json";
  IdentifiedParts parts;
  parts.config = readFile(checkpoint + "/config.json", mostJsonBytes);
  parts.training = readFile(path, mostJsonBytes);
  const JsonObject training(path, parts.training);
  const bool identified = training.integer("format") > 1;
  const std::string identity = identified ? training.text("checkpoint") : "none";
  for (const auto &[name, metadata] :
       {std::pair("model.safetensors", &parts.weights), std::pair("optimizer.safetensors", &parts.moments)}) {
    *metadata = Safetensors(checkpoint + "/" + name).metadata();
    if (const std::string theirs = valueOf(*metadata, identityKey); theirs != identity)
      throw Error(fmt::format("checkpoint '{}' mixes files of different checkpoints: '{}' is of checkpoint {} (step "
                              "{}, seed {}) and 'training.json' of {} (step {}, seed {})",
                              checkpoint, name, theirs, valueOf(*metadata, stepKey), valueOf(*metadata, seedKey),
                              identity, training.integer("step"), training.object("settings").natural("seed")));
    metadata->erase(identityKey);
  }
  if (!identified)
    return;
  if (const size_t place = parts.training.find(identity); place != std::string::npos)
    parts.training.replace(place, identity.size(), noIdentity);
  if (const std::string got = hashOf(parts); got != identity)
    throw Error(fmt::format("expected the files of checkpoint '{}' to have the hash {}, as when they were written, but "
                            "got {}: one of them was changed",
                            checkpoint, identity, got));
}

} // namespace kiln
