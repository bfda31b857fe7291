// Looks up an input.

#include "models/train/model.h"

#include <fmt/format.h>

namespace kiln {

const TensorRef &MicroBatch::operator[](const std::string &name) const {
  const auto found = inputs.find(name);
  if (found == inputs.end())
    throw Error(fmt::format("expected an input '{}' of a micro-batch, but there is none", name), Fault::internal);
  return found->second;
}

} // namespace kiln
