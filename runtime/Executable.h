// A kernel made ready to run on a device.

#pragma once

#include "runtime/Signature.h"

namespace kiln {

/// A compiled kernel. Immutable; shared by every launch with the same specialisation.
class Executable {
public:
  virtual ~Executable() = default;
  virtual const std::string &kernel() const = 0;
  virtual const Signature &signature() const = 0;
};

} // namespace kiln
