// The difference between the two stub drivers: one runs kernels in the simulator. The other does nothing at a launch,
// so measurements see only the caller's time.

#pragma once

#include "runtime/cuda/Driver.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace kiln::stub {

using cuda::Result;

/// A kernel with its module.
class Code {
public:
  virtual ~Code() = default;
  virtual bool hasKernel(const std::string &name) const = 0;
  /// The variable's memory; null if there is none.
  virtual void *variable(const std::string &name) const = 0;
  /// Numbers that a launch must have: bytes of parameters, and threads; −1: any number.
  virtual int64_t parameterBytes() const { return -1; }
  virtual int64_t threads() const { return -1; }
  /// Runs a launch; returns false after an error that would stop a GPU, which is printed on standard error.
  virtual bool run(const std::array<unsigned, 3> &grid, const std::array<unsigned, 3> &block, unsigned dynamicShared,
                   const std::vector<char> &parameters) = 0;
  virtual bool doesRun() const { return true; }
};

/// Device memory without values; null if there is none.
void *allocateDevice(size_t bytes);
void releaseDevice(void *place);
/// Whether the device owns these bytes.
bool ownsDevice(const void *place, size_t bytes);
/// Code from an image; null, with a message in `log`, if the image is not supported.
std::unique_ptr<Code> loadImage(const char *image, std::string &log);

} // namespace kiln::stub
