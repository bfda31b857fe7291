// Finds an address among the elements of views.

#include "runtime/simulator/ViewNames.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <utility>

namespace kiln::simulator {

/// The address of the lowest element: dimensions of negative strides begin at their last index.
static uint64_t lowestOf(const NamedView &view) {
  int64_t offset = 0;
  for (size_t dim = 0; dim < view.extents.size(); ++dim)
    offset += std::max<int64_t>(view.extents[dim] - 1, 0) * std::min<int64_t>(view.strides[dim], 0);
  return view.data + static_cast<uint64_t>(offset * bytesOf(view.type));
}

/// The dimensions of a view, that of the greatest distance between elements first.
static std::vector<size_t> byStride(const NamedView &view) {
  std::vector<size_t> order(view.extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return std::abs(view.strides[a]) > std::abs(view.strides[b]); });
  return order;
}

/// The indices of the element at an address. `isOpen`: the first dimension in memory may have any index. Nothing
/// if the address is that of no element.
static std::optional<Shape> indicesOf(const NamedView &view, uint64_t address, bool isOpen) {
  const auto distance = static_cast<int64_t>(address - lowestOf(view));
  const auto floorOf = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  int64_t rest = floorOf(distance, bytesOf(view.type));
  Shape indices(view.extents.size(), 0);
  for (const size_t dim : byStride(view)) {
    const int64_t stride = std::abs(view.strides[dim]);
    if (stride == 0) // of a repeated dimension: all its indices are one element
      continue;
    indices[dim] = floorOf(rest, stride);
    rest -= indices[dim] * stride;
    if (!std::exchange(isOpen, false) && (indices[dim] < 0 || indices[dim] >= view.extents[dim]))
      return {};
    if (view.strides[dim] < 0)
      indices[dim] = view.extents[dim] - 1 - indices[dim];
  }
  if (rest != 0)
    return {};
  return indices;
}

static std::string textOf(const NamedView &view, const Shape &indices) {
  return fmt::format("{}[{}] of {}[{}]", view.name, fmt::join(indices, ", "), nameOf(view.type),
                     kiln::textOf(view.extents));
}

std::string ViewNames::textOf(uint64_t address) const {
  std::vector<std::string> texts;
  for (const NamedView &view : views)
    if (const auto indices = indicesOf(view, address, false))
      texts.push_back(simulator::textOf(view, *indices));
  return texts.empty() ? fmt::format("{:#x}", address)
                       : fmt::format("{:#x} ({})", address, fmt::join(texts, ", also "));
}

std::string ViewNames::textOutside(uint64_t address) const {
  const NamedView *nearest = nullptr;
  uint64_t least = uint64_t{1} << 20; // an address farther away comes from elsewhere
  for (const NamedView &view : views) {
    int64_t count = 1;
    for (size_t dim = 0; dim < view.extents.size(); ++dim)
      count += std::max<int64_t>(view.extents[dim] - 1, 0) * std::abs(view.strides[dim]);
    const uint64_t begin = lowestOf(view), end = begin + static_cast<uint64_t>(count * bytesOf(view.type));
    const uint64_t distance = address < begin ? begin - address : address - std::min(address, end);
    if (distance < least) {
      least = distance;
      nearest = &view;
    }
  }
  const auto indices = nearest ? indicesOf(*nearest, address, true) : std::nullopt;
  return fmt::format("{:#x}", address) + (indices ? " (" + simulator::textOf(*nearest, *indices) + ")" : "");
}

} // namespace kiln::simulator
