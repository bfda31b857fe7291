// Memory for activations, planned before anything runs: building a model's plans takes and releases buffers in the
// order of the step. A first build measures how long each is needed; that gives every buffer its place in the one that
// backs them all. A second build, over that and real memory, gets the addresses.

#pragma once

#include "dialect/dsl/Plan.h"

namespace kiln {

/// Where buffers lie that a build takes, and for how long.
struct ArenaPlan {
  /// One buffer, in the order taken; `begin` and `end` count takes: the buffer is in use from its own until the one
  /// numbered `end`.
  struct Entry {
    std::string name;
    Type type;
    Shape extents;
    int64_t offset, bytes;
    int64_t begin, end;
  };
  std::vector<Entry> entries;
  int64_t bytes = 0; // largest end of any
};

/// The places of buffers that are as large as the larger of each two. Throws Error (internal) for plans of builds that
/// take and release differently.
ArenaPlan united(const ArenaPlan &one, const ArenaPlan &other);

class Arena {
public:
  /// For measuring: what it gives out tells buffers apart, and is no memory.
  Arena() = default;
  /// The places of `plan` at `base`, for a build that takes and releases as the one that was measured, the same or
  /// less.
  Arena(const ArenaPlan &plan, void *base) : planned(&plan), base(reinterpret_cast<uintptr_t>(base)) {}

  /// Dense memory at a multiple of 256 bytes. `name` is for the printed plan. Throws Error (internal) for a buffer
  /// larger than the planned one.
  TensorRef take(const std::string &name, Type type, Shape extents);
  /// Gives back what take() returned. Throws Error (internal) for what is not in use.
  void release(const TensorRef &tensor);

  /// What was taken so far, each buffer in its place; those that were not released stay to the end.
  ArenaPlan plan() const;

private:
  const ArenaPlan *planned = nullptr;
  uintptr_t base = 0;
  std::vector<ArenaPlan::Entry> taken;
  std::vector<size_t> live; // indices into `taken`
};

} // namespace kiln
