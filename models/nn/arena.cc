// Measures lifetimes of buffers, and assigns addresses by them.

#include "models/nn/arena.h"
#include "lowering/analysis/Lifetimes.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

static constexpr int64_t alignment = 256;

TensorRef Arena::take(const std::string &name, Type type, Shape extents) {
  const int64_t bytes = cdiv(TensorRef::dense(nullptr, type, extents).bytes(), alignment) * alignment;
  const size_t now = taken.size();
  int64_t offset = static_cast<int64_t>(now) * alignment; // identifies the buffer until it has an address
  if (planned) {
    if (now >= planned->entries.size() || planned->entries[now].bytes < bytes)
      throw Error(fmt::format("took buffer {} ('{}') of {} bytes, which is not the planned one", now, name, bytes),
                  Fault::internal);
    offset = planned->entries[now].offset;
  }
  live.push_back(now);
  taken.push_back({name, type, extents, offset, bytes, static_cast<int64_t>(now), -1});
  return TensorRef::dense(reinterpret_cast<void *>(base + static_cast<uintptr_t>(offset)), type, std::move(extents));
}

void Arena::release(const TensorRef &tensor) {
  const int64_t offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data) - base);
  const auto found = std::find_if(live.begin(), live.end(), [&](size_t i) { return taken[i].offset == offset; });
  if (found == live.end())
    throw Error(fmt::format("released a buffer at offset {} that is not in use", offset), Fault::internal);
  taken[*found].end = static_cast<int64_t>(taken.size());
  live.erase(found);
}

/// Assigns an offset to each buffer.
static void placeAll(ArenaPlan &plan) {
  std::vector<lowering::Lifetime> lives;
  for (const ArenaPlan::Entry &entry : plan.entries)
    lives.push_back({entry.bytes, entry.begin, entry.end - 1});
  const lowering::Placement placement = lowering::place(lives);
  for (size_t i = 0; i < lives.size(); ++i)
    plan.entries[i].offset = placement.offsets[i];
  plan.bytes = placement.bytes;
}

ArenaPlan Arena::plan() const {
  ArenaPlan plan{taken, 0};
  for (ArenaPlan::Entry &entry : plan.entries)
    if (entry.end < 0)
      entry.end = std::ssize(taken);
  placeAll(plan);
  return plan;
}

ArenaPlan united(const ArenaPlan &one, const ArenaPlan &other) {
  ArenaPlan plan = one;
  if (one.entries.size() != other.entries.size())
    throw Error(
        fmt::format("expected plans of as many buffers, but got {} and {}", one.entries.size(), other.entries.size()),
        Fault::internal);
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const ArenaPlan::Entry &b = other.entries[i];
    ArenaPlan::Entry &a = plan.entries[i];
    if (a.name != b.name || a.begin != b.begin || a.end != b.end)
      throw Error(fmt::format("expected plans of the same buffers, but got '{}' and '{}'", a.name, b.name),
                  Fault::internal);
    if (b.bytes > a.bytes)
      a = b;
  }
  placeAll(plan);
  return plan;
}

} // namespace kiln
