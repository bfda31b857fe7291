// A model's tensors in a safetensors file: all of its parameters, by name.

#pragma once

#include "models/data/safetensors.h"
#include "models/nn/parameters.h"

#include <functional>

namespace kiln {

/// Maps the name of a parameter to its name in a file.
using NameInFile = std::function<std::string(const std::string &)>;
/// Prepends `prefix` to the name.
NameInFile prefixed(const std::string &prefix);

/// Copies every parameter of `list` to its place in the flat buffer `to` of `type`. Throws Error that names the first
/// missing or unsuitable tensor.
void readTensors(const Safetensors &file, const ParameterList &list, const NameInFile &nameOf, Type type, void *to);

/// Throws Error unless `held`, the names in the file `path`, are those of the parameters of `list`, and otherwise only
/// names that `mayBeThere` accepts.
void verifyNames(const std::string &path, const std::vector<std::string> &held, const ParameterList &list,
                 const NameInFile &nameOf, const std::function<bool(const std::string &)> &mayBeThere = {});

} // namespace kiln
