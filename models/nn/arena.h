// Memory for activations, planned before anything runs. Building a model's plans takes and releases buffers in the
// order of the step. A first build records the lifetime of each buffer, from which its offset in a common block of
// memory follows. A second build, with these offsets and real memory, gets the addresses.

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

/// Offsets and lifetimes of the buffers of a build.
struct ArenaPlan {
  /// One buffer, in the order of take(). `begin` and `end` count calls of take(): the buffer is live from its own call
  /// until the call numbered `end`.
  struct Entry {
    std::string name;
    Type type;
    Shape extents;
    int64_t offset, bytes;
    int64_t begin, end;
  };
  std::vector<Entry> entries;
  int64_t bytes = 0; // end of the last buffer
};

/// A plan for two builds: each buffer has the larger of its two sizes. Throws Error (internal) if the builds take and
/// release differently.
ArenaPlan united(const ArenaPlan &one, const ArenaPlan &other);

class Arena {
public:
  /// For measuring: the tensors that it returns have distinct addresses and no memory.
  Arena() = default;
  /// Offsets of `plan` from `base`, for a build that takes and releases as the measured one did, with equal or smaller
  /// sizes.
  Arena(const ArenaPlan &plan, void *base) : planned(&plan), base(reinterpret_cast<uintptr_t>(base)) {}

  /// Dense memory at a multiple of 256 bytes. `name` appears in the printed plan. Throws Error (internal) for a buffer
  /// larger than planned.
  TensorRef take(const std::string &name, Type type, Shape extents);
  /// Releases a buffer of take(). Throws Error (internal) if it is not in use.
  void release(const TensorRef &tensor);

  /// The plan of all buffers taken so far; unreleased ones live to the end.
  ArenaPlan plan() const;

private:
  const ArenaPlan *planned = nullptr;
  uintptr_t base = 0;
  std::vector<ArenaPlan::Entry> taken;
  std::vector<size_t> live; // indices into `taken`
};

} // namespace kiln
