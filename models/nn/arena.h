// Memory for activations, planned before anything runs: building a model's plans takes and releases buffers in the
// order of the step, each at the lowest offset that is free for as long as it is needed. The peak is the size of the
// one buffer that backs them all. A first build over a null address finds the peak, a second one over real memory gives
// the addresses.

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

class Arena {
public:
  explicit Arena(void *base = nullptr) : base(reinterpret_cast<uintptr_t>(base)) {}

  /// Dense memory at a multiple of 256 bytes. `name` is for the printed plan.
  TensorRef take(const std::string &name, Type type, Shape extents);
  /// Gives back what take() returned.
  void release(const TensorRef &tensor);

  /// Largest end of any buffer so far, in bytes.
  int64_t peak() const { return highest; }

  /// One buffer of the plan, in the order taken; `end` counts takes and is when it was released.
  struct Entry {
    std::string name;
    Type type;
    Shape extents;
    int64_t offset, bytes;
    int64_t begin, end;
  };
  const std::vector<Entry> &entries() const { return all; }

private:
  uintptr_t base;
  int64_t highest = 0;
  std::vector<Entry> all;
  std::vector<size_t> live; // indices into `all`, by offset
};

} // namespace kiln
