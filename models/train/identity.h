// The identity of a checkpoint. Every part names the checkpoint by a hash of all parts. So a mixture of two
// checkpoints, or an edited one, is found whatever caused it.

#pragma once

#include "models/data/safetensors.h"

#include <map>
#include <string>

namespace kiln {

/// The metadata of a safetensors file.
using Metadata = std::map<std::string, std::string>;

/// The texts of a checkpoint's JSON files and the metadata of its weights and moments, each with the identity in it.
struct IdentifiedParts {
  std::string config, training;
  Metadata weights, moments;
};

/// Puts the identity into the parts. `training`, the text of a JSON object, must have noIdentity in its field
/// `checkpoint`, which is replaced. Both metadata, which hold the tensors' checksums, also get `step` and `seed`.
void identify(IdentifiedParts &parts, int64_t step, uint64_t seed);
/// Placeholder of an identity that is not known yet.
inline const std::string noIdentity(16, '0');

/// Throws Error unless the parts of `checkpoint` belong together and are unchanged. The tensors themselves are checked
/// when they are read. Checkpoints of format 1 have no identity and pass.
void verifyParts(const std::string &checkpoint);

} // namespace kiln
