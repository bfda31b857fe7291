// Which checkpoint a file is a part of. Every part of a checkpoint names it by a hash of all of them, so that parts of
// two, or one that was changed, are found however that came to be.

#pragma once

#include "models/data/safetensors.h"

#include <map>
#include <string>

namespace kiln {

/// The metadata of a safetensors file.
using Metadata = std::map<std::string, std::string>;

/// The texts of a checkpoint's JSON files and the metadata of its weights and moments, each with the checkpoint's
/// identity in it.
struct IdentifiedParts {
  std::string config, training;
  Metadata weights, moments;
};

/// Puts the identity into the parts: into `training`, the text of a JSON object, as its field `checkpoint`, which it
/// must have as noIdentity; and into both metadata, beside the checksums of the tensors that are there, with `step` and
/// `seed`.
void identify(IdentifiedParts &parts, int64_t step, uint64_t seed);
/// In place of an identity that is not known yet.
inline const std::string noIdentity(16, '0');

/// Throws Error unless the parts of `checkpoint` belong together and are as they were written; the tensors themselves
/// are checked when they are read. Checkpoints of format 1 had no identity and pass.
void verifyParts(const std::string &checkpoint);

} // namespace kiln
