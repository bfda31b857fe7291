// First fit among the live buffers, which are kept in order of their offsets.

#include "models/nn/arena.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

static constexpr int64_t alignment = 256;

TensorRef Arena::take(const std::string &name, Type type, Shape extents) {
  int64_t count = 1;
  for (int64_t extent : extents)
    count *= extent;
  const int64_t bytes = ceildiv(count * bytesOf(type), alignment) * alignment;
  int64_t offset = 0;
  auto place = live.begin();
  for (; place != live.end() && all[*place].offset < offset + bytes; ++place)
    offset = all[*place].offset + all[*place].bytes;
  live.insert(place, all.size());
  const int64_t now = static_cast<int64_t>(all.size());
  all.push_back({name, type, extents, offset, bytes, now, -1});
  highest = std::max(highest, offset + bytes);
  return TensorRef::dense(reinterpret_cast<void *>(base + static_cast<uintptr_t>(offset)), type, std::move(extents));
}

void Arena::release(const TensorRef &tensor) {
  const int64_t offset = static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data) - base);
  const auto found = std::find_if(live.begin(), live.end(), [&](size_t i) { return all[i].offset == offset; });
  if (found == live.end())
    throw Error(fmt::format("released a buffer at offset {} that is not in use", offset), Fault::internal);
  all[*found].end = static_cast<int64_t>(all.size());
  live.erase(found);
}

} // namespace kiln
