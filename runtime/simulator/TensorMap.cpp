// Conditions of tensor maps, and the iteration over a box.

#include "runtime/simulator/TensorMap.h"

#include "dialect/dsl/Nearest.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::simulator {

static constexpr const char *elementNames[tensorElements] = {"u8",  "u16",     "u32", "s32",  "u64",  "s64",     "f16",
                                                             "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz"};

ptx::Type typeOf(TensorElement element) {
  using ptx::Type;
  static constexpr Type types[tensorElements] = {Type::u8,   Type::u16, Type::u32, Type::s32, Type::u64,
                                                 Type::s64,  Type::f16, Type::f32, Type::f32, Type::f64,
                                                 Type::bf16, Type::f32, Type::f32};
  return types[static_cast<int>(element)];
}

TensorElement tensorElementNamed(const std::string &name) {
  for (int i = 0; i < tensorElements; ++i)
    if (name == elementNames[i])
      return static_cast<TensorElement>(i);
  throw Error(unknownName("element type of a tensor map", name, {std::begin(elementNames), std::end(elementNames)}));
}

uint32_t TensorMap::boxElements(int dimension) const {
  const auto d = static_cast<size_t>(dimension);
  return dimension == 0 ? box[0] : (box[d] + elementStrides[d] - 1) / elementStrides[d];
}

uint32_t TensorMap::boxBytes() const {
  auto bytes = static_cast<uint32_t>(elementBytes());
  for (int i = 0; i < rank(); ++i)
    bytes *= boxElements(i);
  return bytes;
}

// --- Conditions ----------------------------------------------------------------------------------------------------

static std::string faultOfDimension(const TensorMap &map, int i) {
  const auto d = static_cast<size_t>(i);
  if (map.dims[d] < 1 || map.dims[d] > uint64_t{1} << 32)
    return fmt::format("expected dimension {} of 1 to 2^32 elements, but got {}", i, map.dims[d]);
  if (map.box[d] < 1 || map.box[d] > 256)
    return fmt::format("expected a box of 1 to 256 elements along dimension {}, but got {}", i, map.box[d]);
  if (map.elementStrides[d] < 1 || map.elementStrides[d] > 8)
    return fmt::format("expected an element stride of 1 to 8 along dimension {}, but got {}", i, map.elementStrides[d]);
  if (i > 0 && (map.strides[d - 1] % 16 != 0 || map.strides[d - 1] >= uint64_t{1} << 40))
    return fmt::format("expected a stride of dimension {} that is a multiple of 16 below 2^40, but got {}", i,
                       map.strides[d - 1]);
  return {};
}

std::string findFault(const TensorMap &map) {
  if (map.mark != TensorMap::markOfMap)
    return "expected a tensor map, but got other bytes";
  if (map.rank() > maxTensorRank)
    return fmt::format("expected a rank of 1 to 5, but got {}", map.rank());
  if (map.element >= tensorElements)
    return fmt::format("expected an element type from 0 to {}, but got {}", tensorElements - 1, map.element);
  if (map.interleave != 0)
    return fmt::format("interleaved layouts are not supported by the simulator, but got layout {}", map.interleave);
  if (map.swizzle > static_cast<uint8_t>(Swizzle::bytes128))
    return fmt::format("expected a swizzle mode from 0 to 3, but got {}", map.swizzle);
  if (map.address % 16 != 0)
    return fmt::format("expected an array at a multiple of 16, but got {:#x}", map.address);
  for (int i = 0; i < map.rank(); ++i)
    if (const std::string fault = faultOfDimension(map, i); !fault.empty())
      return fault;
  const uint32_t row = map.box[0] * static_cast<uint32_t>(map.elementBytes());
  if (row % 16 != 0)
    return fmt::format("expected a box whose rows are multiples of 16 bytes, but got {}", row);
  const uint32_t width = bytesOf(static_cast<Swizzle>(map.swizzle));
  if (width && row > width)
    return fmt::format("expected a box whose rows have at most the {} bytes of the swizzle, but got {}", width, row);
  if (map.nanFill > 1 || (map.nanFill && !ptx::isFloat(typeOf(map.elementType()))))
    return "filling with NaN requires floating-point elements";
  return {};
}

TensorMap makeTensorMap(const TensorMapDescription &description) {
  const size_t rank = description.dims.size();
  if (rank < 1 || rank > maxTensorRank)
    throw Error(fmt::format("expected a tensor map of 1 to 5 dimensions, but got {}", rank));
  if (description.strides.size() + 1 != rank || description.box.size() != rank ||
      (!description.elementStrides.empty() && description.elementStrides.size() != rank))
    throw Error(
        fmt::format("expected a tensor map of {} dimensions to have {} strides and a box of {}, but got {} and {}",
                    rank, rank - 1, rank, description.strides.size(), description.box.size()));
  TensorMap map;
  map.mark = TensorMap::markOfMap;
  map.element = static_cast<uint8_t>(description.element);
  map.rankLessOne = static_cast<uint8_t>(rank - 1);
  map.swizzle = static_cast<uint8_t>(description.swizzle);
  map.nanFill = description.nanFill;
  map.address = description.address;
  std::copy(description.dims.begin(), description.dims.end(), map.dims.begin());
  std::copy(description.strides.begin(), description.strides.end(), map.strides.begin());
  std::copy(description.box.begin(), description.box.end(), map.box.begin());
  for (size_t i = 0; i < rank; ++i)
    map.elementStrides[i] = static_cast<uint8_t>(
        description.elementStrides.empty() ? 1 : std::min<uint32_t>(description.elementStrides[i], 255));
  if (const std::string fault = findFault(map); !fault.empty())
    throw Error(fmt::format("tensor map: {}", fault));
  return map;
}

// --- The box -------------------------------------------------------------------------------------------------------

/// One row of the box: the parts before, in and after the array.
static void visitRow(const TensorMap &map, int64_t first, uint64_t row, uint32_t shared,
                     const std::function<void(const BoxRun &)> &visit) {
  const int64_t bytes = map.elementBytes(), elements = map.box[0];
  const auto swizzle = static_cast<Swizzle>(map.swizzle);
  const int64_t begin = row ? std::clamp<int64_t>(-first, 0, elements) : elements;
  const int64_t end = row ? std::clamp<int64_t>(static_cast<int64_t>(map.dims[0]) - first, begin, elements) : elements;
  const auto run = [&](int64_t from, int64_t to, bool inside) {
    for (int64_t at = from * bytes; at < to * bytes;) {
      const auto place = static_cast<uint32_t>(shared + at);
      const int64_t chunk =
          swizzle == Swizzle::none ? to * bytes - at : std::min<int64_t>(16 - place % 16, to * bytes - at);
      visit({.shared = swizzled(place, swizzle),
             .global = inside ? row + static_cast<uint64_t>(first * bytes + at) : 0,
             .bytes = static_cast<uint32_t>(chunk)});
      at += chunk;
    }
  };
  run(0, begin, false);
  run(begin, end, true);
  run(end, elements, false);
}

void forEachRun(const TensorMap &map, const std::array<int32_t, maxTensorRank> &coordinates, uint32_t shared,
                const std::function<void(const BoxRun &)> &visit) {
  std::array<uint32_t, maxTensorRank> index{};
  const uint32_t rowBytes = map.box[0] * static_cast<uint32_t>(map.elementBytes());
  for (uint32_t place = shared;; place += rowBytes) {
    uint64_t row = map.address;
    for (size_t i = 1; i < static_cast<size_t>(map.rank()); ++i) {
      const int64_t at = coordinates[i] + int64_t{index[i]} * map.elementStrides[i];
      if (at < 0 || at >= static_cast<int64_t>(map.dims[i]))
        row = 0;
      if (row)
        row += static_cast<uint64_t>(at) * map.strides[i - 1];
    }
    visitRow(map, coordinates[0], row, place, visit);
    int i = 1;
    for (; i < map.rank() && ++index[static_cast<size_t>(i)] == map.boxElements(i); ++i)
      index[static_cast<size_t>(i)] = 0;
    if (i >= map.rank())
      return;
  }
}

// --- Changes -------------------------------------------------------------------------------------------------------

void TensorMapChanges::changed(uint64_t address) {
  const std::lock_guard lock(mutex);
  ++versions[address];
}

int64_t TensorMapChanges::version(uint64_t address) const {
  const std::lock_guard lock(mutex);
  const auto at = versions.find(address);
  return at == versions.end() ? 0 : at->second;
}

} // namespace kiln::simulator
