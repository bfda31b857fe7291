// Makes a kernel's object file callable in this process. An object may call the functions of lowering/Abi.h and nothing
// else.

#pragma once

#include "lowering/Abi.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

/// A kernel's code in memory, for as long as this lives.
struct LoadedObject {
  virtual ~LoadedObject() = default;
  abi::CpuKernel function = nullptr;
  int64_t scratchBytes = 0;
};

/// Links objects into the process. From any thread.
class ObjectLoader : public std::enable_shared_from_this<ObjectLoader> {
public:
  ObjectLoader();
  ~ObjectLoader();
  /// Throws Error (internal) when the object is broken, lacks the kernel, or calls another function.
  std::shared_ptr<const LoadedObject> load(const std::string &kernel, const std::vector<char> &object);

private:
  struct Linker;
  std::unique_ptr<Linker> linker;
};

} // namespace kiln
