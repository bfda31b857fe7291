// Finds an address among the elements of views, and reads and looks up names of shared memory.

#include "runtime/simulator/PlaceNames.h"

#include "dialect/dsl/Types.h"
#include "lowering/Abi.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <optional>
#include <sstream>
#include <utility>

namespace kiln::simulator {

/// The address of the lowest element: dimensions of negative strides begin at their last index.
static uint64_t lowestAddress(const NamedView &view) {
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
  const auto distance = static_cast<int64_t>(address - lowestAddress(view));
  const auto floorDivide = [](int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  int64_t rest = floorDivide(distance, bytesOf(view.type));
  Shape indices(view.extents.size(), 0);
  for (const size_t dim : byStride(view)) {
    const int64_t stride = std::abs(view.strides[dim]);
    if (stride == 0) // of a repeated dimension: all its indices are one element
      continue;
    indices[dim] = floorDivide(rest, stride);
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
    const uint64_t begin = lowestAddress(view), end = begin + static_cast<uint64_t>(count * bytesOf(view.type));
    const uint64_t distance = address < begin ? begin - address : address - std::min(address, end);
    if (distance < least) {
      least = distance;
      nearest = &view;
    }
  }
  const auto indices = nearest ? indicesOf(*nearest, address, true) : std::nullopt;
  return fmt::format("{:#x}", address) + (indices ? " (" + simulator::textOf(*nearest, *indices) + ")" : "");
}

// --- Shared memory --------------------------------------------------------------------------------------------------

static constexpr std::string_view beginning = abi::sharedPart;

void SharedNames::read(std::string_view text, std::string_view kernel, std::string_view source) {
  for (size_t at = text.find(beginning); at != std::string_view::npos; at = text.find(beginning, at + 1)) {
    const std::string line(text.substr(at, text.find_first_of("\r\n", at) - at));
    std::istringstream words(line.substr(beginning.size()));
    std::string of;
    Part part{};
    words >> of >> part.offset >> part.bytes >> std::ws;
    if (!std::getline(words, part.name) || part.offset < 0 || part.bytes < 1)
      throw Error(fmt::format("{} {}: expected '{}KERNEL OFFSET BYTES NAME', but got '{}'", source,
                              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                              beginning, line));
    if (of == kernel)
      parts.push_back(std::move(part));
  }
}

std::string SharedNames::at(uint32_t offset) const {
  std::string text;
  for (const Part &part : parts)
    if (const int64_t within = offset - part.offset; within >= 0 && within < part.bytes)
      text +=
          fmt::format("{}'{}'{}", text.empty() ? "" : " or ", part.name, within ? fmt::format(" + {}", within) : "");
  return text.empty() ? text : fmt::format(" ({})", text);
}

} // namespace kiln::simulator
