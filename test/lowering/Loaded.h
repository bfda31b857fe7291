// A kernel written as .mlir text, compiled and loaded into this process, for the tests of lowering/.

#pragma once

#include "lowering/Driver.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace llvm::orc {
class LLJIT;
}

namespace kiln::test {

/// The object that a module becomes on a target. Throws kiln::Error like lowering::compile; also for a parse error.
std::vector<char> objectOf(const std::string &mlir, const std::string &target = "cpu",
                           const lowering::StageSink &sink = {});

/// The argument block of lowering/Abi.h, slot by slot.
struct ArgumentBlock {
  std::vector<int64_t> slots;
  ArgumentBlock(int64_t x = 1, int64_t y = 1, int64_t z = 1) : slots{x, y, z} {}
  ArgumentBlock &pointer(void *data) { return integer(reinterpret_cast<int64_t>(data)); }
  ArgumentBlock &integer(int64_t value) {
    slots.push_back(value);
    return *this;
  }
  ArgumentBlock &real(float value);
};

/// An object in this process.
class Loaded {
public:
  Loaded(const std::vector<char> &object, const std::string &kernel);
  ~Loaded();
  int64_t scratchBytes() const { return bytes; }
  /// Runs every program of the block's grid, in order, with scratch memory that holds garbage at first.
  void run(const ArgumentBlock &block) const;

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
  void (*function)(const void *, int64_t, void *) = nullptr;
  int64_t bytes = 0;
};

} // namespace kiln::test
