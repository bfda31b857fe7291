// A model's tensors in a safetensors file: all of its parameters, by their names.

#pragma once

#include "models/data/safetensors.h"
#include "models/nn/parameters.h"

#include <functional>

namespace kiln {

/// What a file calls a parameter of this name.
using NameInFile = std::function<std::string(const std::string &)>;
/// `prefix` and the name.
NameInFile prefixed(const std::string &prefix);

/// Copies every parameter of `list` to its place in the flat buffer `to` of `type`. Throws Error that names the first
/// tensor that is missing or other than the model wants it.
void readTensors(const Safetensors &file, const ParameterList &list, const NameInFile &nameOf, Type type, void *to);

/// Throws Error unless `held`, the names in the file `path`, are those of the parameters of `list`, and beside them
/// only names that `mayBeThere`.
void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                 const NameInFile &nameOf, const std::function<bool(const std::string &)> &mayBeThere = {});

} // namespace kiln
