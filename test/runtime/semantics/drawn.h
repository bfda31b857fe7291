// Shared by tests of random cases: shapes, and views with strides and gaps, which tiles extend past. Whatever is
// drawn follows from the number of the case, so that a case can be run again alone.

#pragma once

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <numeric>

namespace kiln::test {

inline int64_t countOf(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
}

/// The row-major number of an index, and back.
inline int64_t numberOf(const Shape &at, const Shape &shape) {
  int64_t number = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    number = number * shape[axis] + at[axis];
  return number;
}

inline Shape indexOf(int64_t number, const Shape &shape) {
  Shape at(shape.size());
  for (size_t axis = shape.size(); axis-- > 0; number /= shape[axis])
    at[axis] = number % shape[axis];
  return at;
}

/// Choices that follow from a seed.
class Draw {
public:
  explicit Draw(uint64_t seed) : random(seed) {}
  int64_t between(int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); }
  bool chance(int percent) { return between(1, 100) <= percent; }
  int64_t pick(const Shape &list) { return list[between(0, std::ssize(list) - 1)]; }
  int axis(const Shape &shape) { return static_cast<int>(between(0, std::ssize(shape) - 1)); }

  /// Extents of whole vectors, of parts of one, and of neither.
  Shape shape(int64_t most) {
    const int64_t rank = pick({1, 2, 2, 2, 3, 3, 4, 5});
    Shape result;
    while (std::ssize(result) < rank) {
      const int64_t left = most / countOf(result);
      int64_t extent = pick({1, 2, 3, 4, 5, 7, 8, 16, 17, 24, 32, 33, 40, 64, 64, 100, 150, 258});
      while (extent > left)
        extent = (extent + 1) / 2;
      result.push_back(extent);
    }
    return result;
  }

private:
  std::mt19937_64 random;
};

/// A view of a buffer.
struct Window {
  Shape extents, strides;
  int64_t begin = 0, size = 1; // the first element's position, and the buffer's elements

  int64_t placeOf(const Shape &at) const { return std::inner_product(at.begin(), at.end(), strides.begin(), begin); }
  /// Whether no element of the buffer is named twice.
  bool isOnce() const { return std::ranges::find(strides, 0) == strides.end(); }
  TensorRef of(const Tensor &buffer) const {
    TensorRef view = buffer.ref().slice(0, begin, 1);
    view.extents = extents;
    view.strides = strides;
    return view;
  }
};

/// A view for a tile, sometimes smaller than the tile.
inline Window drawWindow(const Shape &tile, bool isRead, Draw &draw) {
  Window window{tile, Shape(tile.size())};
  for (int64_t &extent : window.extents)
    extent = std::max<int64_t>(extent - (draw.chance(15) ? draw.between(1, 3) : 0), 1);
  std::vector<int> order(tile.size()); // the innermost dimension first
  std::iota(order.rbegin(), order.rend(), 0);
  if (draw.chance(15))
    std::swap(order[0], order[draw.between(0, std::ssize(order) - 1)]);
  const bool isDense = draw.chance(50);
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t extent = window.extents[order[i]];
    const int64_t step = isDense || !draw.chance(i == 0 ? 35 : 10) ? 1 : draw.pick({2, -1, 3, -2, 14});
    window.strides[order[i]] = step * window.size;
    if (step < 0)
      window.begin -= (extent - 1) * step * window.size;
    window.size *= std::abs(step) * extent;
    if (!isDense)
      window.size += draw.pick({0, 3, 5});
  }
  window.size += 64; // a margin, in which a write behind the view is seen
  if (isRead && draw.chance(5))
    window.strides[draw.axis(tile)] = 0;
  return window;
}

inline uint64_t wordOf(Type type, int64_t number) {
  return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
}

/// The elements plus 1, and the negated truth value.
inline Tile changed(const Tile &t) { return t.type() == boolean ? !t : cast(t + 1, t.type()); }
inline uint64_t changedWord(Type type, uint64_t word) {
  return isFloat(type) ? rawOfReal(type, realOf(type, word) + 1)
                       : rawOfInteger(type, type == boolean ? !word : integerOf(type, word) + 1);
}

/// The drawn cases 0 to count − 1 that run on each device: all, or in the quick tier every third, others at each turn.
/// Two GPUs share them, because they differ little in moves and folds.
inline std::vector<std::tuple<std::string, int>> takenCases(const std::vector<std::string> &devices, int count) {
  const auto isGpu = [](const std::string &device) { return !device.starts_with("cpu"); };
  const auto gpus = static_cast<int>(std::ranges::count_if(devices, isGpu));
  std::vector<std::tuple<std::string, int>> taken;
  Tier tier = Tier::asked();
  tier.turn += tier.turn / 6; // devices change with the turn, too
  int gpu = 0;
  for (const std::string &device : devices) {
    for (int number = 0; number < count; ++number)
      if (tier.takes(number, 3) && (!isGpu(device) || number % gpus == gpu))
        taken.emplace_back(device, number);
    gpu += isGpu(device);
  }
  return taken;
}

/// A test of one case on one device.
class Drawn : public SemanticsOn, public testing::TestWithParam<std::tuple<std::string, int>> {
protected:
  Drawn() : SemanticsOn(std::get<0>(GetParam())) {}
  const int number = std::get<1>(GetParam());
};

} // namespace kiln::test

#define KILN_ON_CASES(suite, count)                                                                                    \
  INSTANTIATE_TEST_SUITE_P(On, suite,                                                                                  \
                           testing::ValuesIn(kiln::test::takenCases(                                                   \
                               kiln::test::testDevices(#suite, kiln::test::Reach::processors), count)),                \
                           [](const auto &info) {                                                                      \
                             return kiln::test::deviceLabel(std::get<0>(info.param)) + "_" +                           \
                                    std::to_string(std::get<1>(info.param));                                           \
                           })
