// Finds an address among the elements of views.

#include "runtime/simulator/ViewNames.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <utility>

namespace kiln::simulator {

/// The dimensions of a view, that of the greatest stride first.
static std::vector<size_t> byStride(const NamedView &view) {
  std::vector<size_t> order(view.extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return view.strides[a] > view.strides[b]; });
  return order;
}

/// The indices of the element at an address. `isOpen`: the dimension of the greatest stride may have any index. Nothing
/// if the address is that of no element.
static std::optional<Shape> indicesOf(const NamedView &view, uint64_t address, bool isOpen) {
  const auto distance = static_cast<int64_t>(address - view.data);
  const auto floorOf = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  int64_t rest = floorOf(distance, bytesOf(view.type));
  Shape indices(view.extents.size(), 0);
  for (const size_t dim : byStride(view)) {
    const int64_t stride = view.strides[dim];
    if (stride <= 0) // of a repeated dimension: all its indices are one element
      continue;
    indices[dim] = floorOf(rest, stride);
    rest -= indices[dim] * stride;
    if (!std::exchange(isOpen, false) && (indices[dim] < 0 || indices[dim] >= view.extents[dim]))
      return {};
  }
  if (rest != 0)
    return {};
  return indices;
}

static std::string textOf(const NamedView &view, uint64_t address, const Shape &indices) {
  return fmt::format("{:#x} ({}[{}] of {}[{}])", address, view.name, fmt::join(indices, ", "), nameOf(view.type),
                     kiln::textOf(view.extents));
}

std::string ViewNames::textOf(uint64_t address) const {
  for (const NamedView &view : views)
    if (const auto indices = indicesOf(view, address, false))
      return simulator::textOf(view, address, *indices);
  return fmt::format("{:#x}", address);
}

std::string ViewNames::textOutside(uint64_t address) const {
  const NamedView *nearest = nullptr;
  uint64_t least = uint64_t{1} << 20; // an address farther away comes from elsewhere
  for (const NamedView &view : views) {
    int64_t count = 1;
    for (size_t dim = 0; dim < view.extents.size(); ++dim)
      count += std::max<int64_t>(view.extents[dim] - 1, 0) * std::max<int64_t>(view.strides[dim], 0);
    const uint64_t end = view.data + static_cast<uint64_t>(count * bytesOf(view.type));
    const uint64_t distance = address < view.data ? view.data - address : address - std::min(address, end);
    if (distance < least) {
      least = distance;
      nearest = &view;
    }
  }
  const auto indices = nearest ? indicesOf(*nearest, address, true) : std::nullopt;
  return indices ? simulator::textOf(*nearest, address, *indices) : fmt::format("{:#x}", address);
}

} // namespace kiln::simulator
