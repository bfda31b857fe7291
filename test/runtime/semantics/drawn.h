// Shared by tests of random cases: shapes, and views with strides and gaps, which tiles extend past. Whatever is
// drawn follows from the number of the case, so that a case can be run again alone.

#pragma once

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

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

/// Accessible pages between two inaccessible ones. A GPU accesses only its own memory, so there, and in the simulator,
/// no pages surround it.
class GuardedPages {
public:
  /// Whole pages of elements.
  GuardedPages(Device &device, Type type, const Raw &words)
      : device(device), isGpu(std::holds_alternative<GpuFacts>(device.target().facts)),
        size(std::ssize(words) * bytesOf(type)), whole(size + 2 * ::sysconf(_SC_PAGESIZE)) {
    if (isGpu) {
      first = static_cast<char *>(device.allocate(size));
    } else {
      first = static_cast<char *>(::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) +
              ::sysconf(_SC_PAGESIZE);
      EXPECT_EQ(::mprotect(first, size, PROT_READ | PROT_WRITE), 0);
    }
    const std::vector<char> bytes = packed(type, words);
    device.upload(first, bytes.data(), size);
  }
  ~GuardedPages() {
    if (isGpu)
      device.release(first);
    else
      ::munmap(first - ::sysconf(_SC_PAGESIZE), whole);
  }
  GuardedPages(const GuardedPages &) = delete;
  char *data() const { return first; }

  Raw read(Type type) const {
    EXPECT_NO_THROW(device.synchronize()); // a simulated GPU reports races and the like
    std::vector<char> bytes(size);
    device.download(bytes.data(), first, size);
    return unpacked(type, bytes);
  }

private:
  Device &device;
  const bool isGpu;
  const int64_t size, whole;
  char *first = nullptr;
};

/// A view of whole pages, which begins where they begin or ends where they end.
struct Window {
  Shape extents, strides;
  int64_t begin = 0, size = 0; // the first element's position, and the elements of the pages

  int64_t placeOf(const Shape &at) const { return std::inner_product(at.begin(), at.end(), strides.begin(), begin); }
  /// Whether no element of the buffer is named twice.
  bool isOnce() const { return std::ranges::find(strides, 0) == strides.end(); }
  TensorRef of(const GuardedPages &pages, Type type) const {
    return {pages.data() + begin * bytesOf(type), type, extents, strides};
  }
};

/// A view for a tile, sometimes smaller than the tile.
inline Window drawWindow(const Shape &tile, Type type, bool isRead, Draw &draw) {
  Window window{tile, Shape(tile.size())};
  for (int64_t &extent : window.extents)
    extent = std::max<int64_t>(extent - (draw.chance(15) ? draw.between(1, 3) : 0), 1);
  std::vector<int> order(tile.size()); // the innermost dimension first
  std::iota(order.rbegin(), order.rend(), 0);
  if (draw.chance(15))
    std::swap(order[0], order[draw.between(0, std::ssize(order) - 1)]);
  const bool isDense = draw.chance(50);
  int64_t pitch = 1, low = 0, high = 0; // the positions of the first and the last element
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t extent = window.extents[order[i]];
    const int64_t step = isDense || !draw.chance(i == 0 ? 35 : 10) ? 1 : draw.pick({2, -1, 3, -2, 14});
    int64_t &stride = window.strides[order[i]] = step * pitch;
    (step < 0 ? low : high) += (extent - 1) * stride;
    pitch *= std::abs(step) * extent;
    if (!isDense) // rows that begin at whole vectors, or do not
      pitch = draw.chance(35) ? (pitch + 15) / 16 * 16 : pitch + draw.pick({0, 3, 5});
    if (extent == 1 && draw.chance(10)) // has no effect
      stride = draw.pick({-9, 7, int64_t(1) << 29, -(int64_t(1) << 40), int64_t(1) << 61});
  }
  const int64_t page = ::sysconf(_SC_PAGESIZE) / bytesOf(type);
  window.size = (high - low + page) / page * page;
  window.begin = draw.chance(50) ? -low : window.size - 1 - high;
  if (isRead && draw.chance(5)) {
    const int axis = draw.axis(tile);
    window.strides[axis] = 0;
    if (draw.chance(40)) // more than 32 bits count
      window.extents[axis] += int64_t(1) << 31;
  }
  return window;
}

/// Small numbers, which every type holds exactly, also changed four times, for the places of a buffer.
inline int64_t numberAt(Type type, int64_t place) {
  const int64_t number = place * 7 % 53; // a prime: rows of drawn extents differ
  return type == boolean ? number % 3 == 1 : isFloat(type) && bytesOf(type) == 1 ? number % 4 : number;
}
inline int64_t changedNumber(Type type, int64_t number) { return type == boolean ? !number : number + 1; }

/// The ways to write the mask of a triangle of the last two dimensions: column − row ≤ limit (0 to 2), and row − column
/// ≤ limit (3 and 4). The limit is i32 or i64.
constexpr int triangleForms = 5;
inline Tile triangle(const Shape &shape, const Tile &limit, int form) {
  const Tile row = unsqueeze(iota(shape.end()[-2]), -1), column = unsqueeze(iota(shape.back()), 0);
  const Tile distance = cast(form < 3 ? column - row : row - column, limit.type());
  switch (form) {
  case 1:
    return distance < limit + 1;
  case 2:
    return limit >= distance;
  case 4:
    return (limit + 1 > distance) & (column >= 0);
  default:
    return distance <= limit;
  }
}
inline bool isInTriangle(const Shape &at, int64_t limit, int form) {
  return (form < 3 ? at.back() - at.end()[-2] : at.end()[-2] - at.back()) <= limit;
}

/// a + b, which wraps: a position near an end of 64 bits is outside on either side.
inline int64_t wrappedSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

enum class Source { constant, argument, loaded, extent, program };

/// A scalar, and where a kernel has it from: code, an argument, memory, an extent plus a constant, or a program's
/// number, 0.
struct Number {
  int64_t value = 0;
  Source source = Source::constant;
  size_t index = 0; // of an argument, or of the list in memory
};

constexpr size_t numArguments = 4;

/// The numbers of a case that are not in the code.
struct Numbers {
  Shape arguments, loaded;

  /// Fills the lists up after the last number.
  void complete() {
    arguments.resize(numArguments);
    loaded.push_back(0);
  }
  Raw words() const { return {loaded.begin(), loaded.end()}; }

  Number draw(int64_t value, Draw &draw, bool isOffset = false) {
    Number number{value, static_cast<Source>(draw.between(0, isOffset ? 4 : 2))};
    if (number.source == Source::argument && arguments.size() == numArguments)
      number.source = Source::loaded;
    if (number.source == Source::argument || number.source == Source::loaded) {
      Shape &list = number.source == Source::argument ? arguments : loaded;
      number.index = list.size();
      list.push_back(value);
    }
    return number;
  }
};

/// What a kernel makes numbers of.
struct Sources {
  std::vector<Tile> arguments;
  View list;

  Tile tile(const Number &number, const std::optional<View> &view = {}, int axis = 0, int64_t extent = 0) const {
    switch (number.source) {
    case Source::argument:
      return arguments[number.index];
    case Source::loaded:
      return load(list, {static_cast<int64_t>(number.index)}, {});
    case Source::extent:
      return view->dim(axis) + wrappedSum(number.value, -extent);
    case Source::program:
      return program_id(1) + number.value;
    case Source::constant:
      break;
    }
    return Tile(number.value);
  }
};

/// The elements plus 1, and the negated truth value.
inline Tile changed(const Tile &t) { return t.type() == boolean ? !t : cast(t + 1, t.type()); }
inline uint64_t changedWord(Type type, uint64_t word) {
  return isFloat(type) ? rawOfReal(type, toDouble(type, word) + 1)
                       : rawOfInteger(type, type == boolean ? !word : integerOf(type, word) + 1);
}

/// The drawn cases 0 to count − 1 that run on each device: all, or in the quick tier every third, others at each turn.
/// Every two GPUs share them, because they differ little.
inline std::vector<std::tuple<std::string, int>> takenCases(const std::vector<std::string> &devices, int count) {
  const auto isGpu = [](const std::string &device) { return !device.starts_with("cpu"); };
  const auto gpus = static_cast<int>(std::ranges::count_if(devices, isGpu));
  std::vector<std::tuple<std::string, int>> taken;
  Tier tier = Tier::asked();
  tier.turn += tier.turn / 6; // devices change with the turn, too
  int gpu = 0;
  for (const std::string &device : devices) {
    for (int number = 0; number < count; ++number)
      if (tier.takes(number, 3) && (!isGpu(device) || number % std::min(gpus, 2) == gpu % 2))
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

#define KILN_ON_CASES(suite, count, reach)                                                                             \
  INSTANTIATE_TEST_SUITE_P(                                                                                            \
      On, suite,                                                                                                       \
      testing::ValuesIn(kiln::test::takenCases(kiln::test::testDevices(#suite, kiln::test::Reach::reach), count)),     \
      [](const auto &info) {                                                                                           \
        return kiln::test::deviceLabel(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));       \
      })
