// Bulk tensor copies: boxes of one to five dimensions, swizzles, edges, strides, reductions.

#include "test/runtime/simulator/machine.h"

#include "runtime/simulator/TensorMap.h"

#include <bit>
#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

static uint64_t address(const void *place) { return reinterpret_cast<uint64_t>(place); }

static std::string joined(const std::vector<int> &numbers) {
  std::string text;
  for (const int number : numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

static const char *const registers =
    ".shared .align 8 .b64 bar[1];\n.shared .align 1024 .b8 box[16384];\n.reg .b64 %s;\n"
    ".reg .b32 %r<4>;\n.reg .pred %q<2>;";

/// One thread loads the box at these coordinates and copies the bytes of shared memory to global memory.
static std::string loadText(const std::vector<int> &at, uint32_t bytes) {
  return hopperKernel(
      2, registers,
      fmt::format(
          "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {0};\n"
          "cp.async.bulk.prefetch.tensor.{1}d.L2.global.tile [%p0, {{{2}}}];\n"
          "cp.async.bulk.tensor.{1}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [box], [%p0, {{{2}}}], "
          "[bar];\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %q0, [bar], 0;\n@!%q0 bra W;\nmov.u32 %r0, 0;\n"
          "L:\nmov.u32 %r1, box;\nadd.u32 %r1, %r1, %r0;\nld.shared.u32 %r2, [%r1];\ncvt.u64.u32 %s, %r0;\n"
          "add.u64 %s, %s, %p1;\nst.global.u32 [%s], %r2;\nadd.u32 %r0, %r0, 4;\nsetp.lt.u32 %q1, %r0, {0};\n"
          "@%q1 bra L;\n",
          bytes, at.size(), joined(at)));
}

/// An array of T in memory, and the offsets of its elements.
template <class T> struct Array {
  std::vector<uint64_t> dims, strides; // strides in elements
  std::vector<T> values;
  /// An element, or nothing outside.
  const T *at(const std::vector<int64_t> &index) const {
    uint64_t place = 0;
    for (size_t i = 0; i < dims.size(); ++i) {
      if (index[i] < 0 || index[i] >= static_cast<int64_t>(dims[i]))
        return nullptr;
      place += static_cast<uint64_t>(index[i]) * (i ? strides[i - 1] : 1);
    }
    return &values[place];
  }
};

template <class T> static Array<T> counting(std::vector<uint64_t> dims, std::vector<uint64_t> strides) {
  Array<T> array{std::move(dims), std::move(strides), {}};
  array.values.resize(array.dims.size() == 1 ? array.dims[0] : array.strides.back() * array.dims.back());
  std::iota(array.values.begin(), array.values.end(), T(1));
  return array;
}

/// The expected result of a load: the box's elements in order, the first dimension fastest.
template <class T>
static std::vector<T> boxOf(const Array<T> &array, const std::vector<int> &at, const std::vector<uint32_t> &box,
                            const std::vector<uint32_t> &steps, T fill) {
  std::vector<T> elements;
  std::vector<int64_t> index(at.size());
  std::vector<uint32_t> counter(at.size());
  for (;;) {
    for (size_t i = 0; i < at.size(); ++i)
      index[i] = at[i] + int64_t{counter[i]} * (i ? steps[i] : 1);
    const T *element = array.at(index);
    elements.push_back(element ? *element : fill);
    size_t i = 0;
    for (; i < at.size() && ++counter[i] == (i ? (box[i] + steps[i] - 1) / steps[i] : box[0]); ++i)
      counter[i] = 0;
    if (i == at.size())
      return elements;
  }
}

struct LoadCase {
  std::vector<uint64_t> dims, strides; // strides in elements, multiples of 16 bytes
  std::vector<uint32_t> box;
  std::vector<int> at;
  std::vector<uint32_t> steps = {1, 1, 1, 1, 1};
  Swizzle swizzle = Swizzle::none;
  bool nanFill = false;
};

/// The byte of a box at a byte of shared memory. Rows of 128 bytes form groups of eight, and the number of a 16-byte
/// chunk in a row is exclusive-ored with the row's number. Narrower swizzles count two or four of their rows as one.
static uint32_t unswizzled(uint32_t place, Swizzle swizzle) {
  const uint32_t row = place / 128 % 8, chunk = place / 16 % 8;
  const uint32_t mask = swizzle == Swizzle::bytes128  ? 7
                        : swizzle == Swizzle::bytes64 ? 3
                        : swizzle == Swizzle::bytes32 ? 1
                                                      : 0;
  return place / 128 * 128 + (chunk ^ (row & mask)) * 16 + place % 16;
}

template <class T> static void expectLoad(const LoadCase &c, TensorElement element, T fill) {
  const Array<T> array = counting<T>(c.dims, c.strides);
  const std::vector<T> want = boxOf(array, c.at, c.box, c.steps, fill);
  const auto bytes = static_cast<uint32_t>(want.size() * sizeof(T));
  const std::string text = loadText(c.at, bytes);
  for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random}) {
    Machine machine(text);
    const T *values = machine.buffer(array.values);
    TensorMapDescription description{.element = element, .address = address(values), .dims = c.dims, .box = c.box};
    for (const uint64_t stride : c.strides)
      description.strides.push_back(stride * sizeof(T));
    description.elementStrides.assign(c.steps.begin(), c.steps.begin() + static_cast<std::ptrdiff_t>(c.dims.size()));
    description.swizzle = c.swizzle;
    description.nanFill = c.nanFill;
    const TensorMap *map = machine.buffer<TensorMap>({makeTensorMap(description)});
    const char *out = machine.buffer(std::vector<char>(bytes));
    machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(map), address(out)}, 0, {.delivery = delivery});
    EXPECT_EQ(machine.found(), std::vector<std::string>{});
    int wrong = 0;
    for (uint32_t place = 0; place < bytes && wrong < 3; ++place) {
      const uint32_t from = unswizzled(place, c.swizzle);
      const char expected = reinterpret_cast<const char *>(want.data())[from];
      if (out[place] != expected && ++wrong)
        ADD_FAILURE() << fmt::format("byte {} of shared memory: got {}, want {}", place, out[place], expected);
    }
  }
}

// A box within the array, of one to five dimensions.
TEST(TensorCopyTest, LoadsBoxes) {
  expectLoad<uint32_t>({{100}, {}, {16}, {20}}, TensorElement::u32, 0);
  expectLoad<uint16_t>({{40, 9}, {40}, {8, 4}, {16, 3}}, TensorElement::f16, 0);
  expectLoad<uint32_t>({{8, 5, 4}, {8, 48}, {4, 2, 3}, {4, 1, 1}}, TensorElement::s32, 0);
  expectLoad<uint8_t>({{16, 3, 2, 3}, {32, 96, 192}, {16, 2, 2, 2}, {0, 1, 0, 1}}, TensorElement::u8, 0);
  expectLoad<uint64_t>({{4, 3, 3, 2, 2}, {4, 12, 36, 72}, {2, 2, 3, 1, 2}, {2, 1, 0, 1, 0}}, TensorElement::u64, 0);
}

// Out-of-bounds elements, on either side and along every dimension, are 0; the barrier still counts the whole box.
TEST(TensorCopyTest, FillsOutside) {
  expectLoad<uint16_t>({{21, 5}, {24}, {16, 4}, {16, 3}}, TensorElement::u16, 0);
  expectLoad<uint16_t>({{21, 5}, {24}, {16, 4}, {-3, -2}}, TensorElement::bf16, 0);
  expectLoad<uint32_t>({{4, 3, 3}, {4, 12}, {8, 4, 4}, {-2, 1, -1}}, TensorElement::f32, 0);
  expectLoad<uint32_t>({{4, 3}, {4}, {4, 2}, {0, 100}}, TensorElement::f32, 0);
}

// Floats may be filled with NaN.
TEST(TensorCopyTest, FillsWithNaN) {
  LoadCase c{{21, 5}, {24}, {16, 4}, {16, 3}};
  c.nanFill = true;
  expectLoad<uint16_t>(c, TensorElement::f16, 0x7fff);
  expectLoad<uint32_t>({{6, 5}, {8}, {8, 4}, {4, 3}, {1, 1}, Swizzle::none, true}, TensorElement::f32, 0x7fffffff);
}

// Chunks are permuted by their row, for all widths of the box's rows.
TEST(TensorCopyTest, Swizzles) {
  for (const Swizzle swizzle : {Swizzle::bytes32, Swizzle::bytes64, Swizzle::bytes128}) {
    const uint32_t width = bytesOf(swizzle) / 2;
    expectLoad<uint16_t>({{72, 40}, {72}, {width, 32}, {8, 4}, {1, 1}, swizzle}, TensorElement::f16, 0);
    expectLoad<uint16_t>({{72, 40}, {72}, {width, 16}, {40, 30}, {1, 1}, swizzle}, TensorElement::f16, 0);
  }
}

// With an element stride a box holds every second (third) row that it spans; the first dimension has none.
TEST(TensorCopyTest, SkipsElements) {
  expectLoad<uint32_t>({{8, 12}, {8}, {4, 8}, {4, 1}, {1, 2}}, TensorElement::u32, 0);
  expectLoad<uint32_t>({{8, 12, 4}, {8, 96}, {4, 7, 4}, {4, 1, 0}, {1, 3, 2}}, TensorElement::u32, 0);
  expectLoad<uint32_t>({{8, 12}, {8}, {4, 8}, {4, 7}, {1, 2}}, TensorElement::u32, 0);
}

// --- Out -----------------------------------------------------------------------------------------------------------

/// A box of 8 × 4 words, 1000 and up, is stored to 10 × 5 words with rows of 12, at (x, y), by `instruction`.
static std::vector<uint32_t> stored(const std::string &instruction, int x, int y, uint32_t old, Delivery delivery,
                                    TensorElement element = TensorElement::u32) {
  Machine machine(hopperKernel(
      1, registers,
      fmt::format(
          "mov.u32 %r0, 0;\nL:\nmov.u32 %r1, box;\nshl.b32 %r2, %r0, 2;\nadd.u32 %r1, %r1, %r2;\n"
          "add.u32 %r2, %r0, 1000;\nst.shared.u32 [%r1], %r2;\nadd.u32 %r0, %r0, 1;\nsetp.lt.u32 %q1, %r0, 32;\n"
          "@%q1 bra L;\nfence.proxy.async.shared::cta;\n{} [%p0, {{{}, {}}}], [box];\n"
          "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
          instruction, x, y)));
  const uint32_t *array = machine.buffer(std::vector<uint32_t>(60, old));
  const TensorMap *map = machine.buffer<TensorMap>({makeTensorMap(
      {.element = element, .address = address(array), .dims = {10, 5}, .strides = {48}, .box = {8, 4}})});
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(map)}, 0, {.delivery = delivery});
  EXPECT_EQ(machine.found(), std::vector<std::string>{}) << instruction;
  return {array, array + 60};
}

/// The array after such a copy: `word(old, new)` for elements that are in the box.
static std::vector<uint32_t> wanted(int x, int y, uint32_t old, uint32_t (*word)(uint32_t, uint32_t)) {
  std::vector<uint32_t> array(60, old);
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 8; ++column)
      if (x + column >= 0 && x + column < 10 && y + row >= 0 && y + row < 5)
        array[static_cast<size_t>(12 * (y + row) + x + column)] =
            word(old, static_cast<uint32_t>(1000 + 8 * row + column));
  return array;
}

// A store omits elements outside the array; the padding of its rows is unchanged.
TEST(TensorCopyTest, StoresBoxes) {
  for (const Delivery delivery : {Delivery::late, Delivery::early, Delivery::random})
    for (const auto &[x, y] : {std::pair{0, 0}, std::pair{2, 1}, std::pair{5, 3}, std::pair{-3, -2}})
      EXPECT_EQ(stored("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", x, y, 7, delivery),
                wanted(x, y, 7, [](uint32_t, uint32_t b) { return b; }));
}

TEST(TensorCopyTest, Reduces) {
  const auto reduction = [](const char *name) {
    return fmt::format("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{}.tile.bulk_group", name);
  };
  EXPECT_EQ(stored(reduction("add"), 5, 3, 7, Delivery::late),
            wanted(5, 3, 7, [](uint32_t a, uint32_t b) { return a + b; }));
  EXPECT_EQ(stored(reduction("min"), 0, 0, 1010, Delivery::early),
            wanted(0, 0, 1010, [](uint32_t a, uint32_t b) { return std::min(a, b); }));
  EXPECT_EQ(stored(reduction("max"), 0, 0, 1010, Delivery::late),
            wanted(0, 0, 1010, [](uint32_t a, uint32_t b) { return std::max(a, b); }));
  EXPECT_EQ(stored(reduction("and"), 0, 0, 0x3f0, Delivery::late),
            wanted(0, 0, 0x3f0, [](uint32_t a, uint32_t b) { return a & b; }));
  EXPECT_EQ(stored(reduction("or"), 0, 0, 1, Delivery::late),
            wanted(0, 0, 1, [](uint32_t a, uint32_t b) { return a | b; }));
  EXPECT_EQ(stored(reduction("xor"), 0, 0, 1, Delivery::late),
            wanted(0, 0, 1, [](uint32_t a, uint32_t b) { return a ^ b; }));
  EXPECT_EQ(stored(reduction("inc"), 0, 0, 1010, Delivery::late),
            wanted(0, 0, 1010, [](uint32_t a, uint32_t b) { return a >= b ? 0 : a + 1; }));
}

// --- What is wrong -------------------------------------------------------------------------------------------------

/// The findings of a load by this map; the box has 64 bytes.
static std::vector<std::string> faultsOf(const std::function<void(TensorMap &)> &change) {
  Machine machine(loadText({0, 0}, 64));
  const uint32_t *array = machine.buffer(std::vector<uint32_t>(64));
  TensorMap map = makeTensorMap(
      {.element = TensorElement::u32, .address = address(array), .dims = {8, 8}, .strides = {32}, .box = {8, 2}});
  change(map);
  const TensorMap *place = machine.buffer<TensorMap>({map});
  const char *out = machine.buffer(std::vector<char>(64));
  machine.run("k", {1, 1, 1}, {1, 1, 1}, {address(place), address(out)}, 0);
  std::vector<std::string> found;
  for (const std::string &text : machine.found())
    if (!text.starts_with("deadlock"))
      found.push_back(text);
  return found;
}

TEST(TensorCopyTest, WantsATensorMap) {
  EXPECT_EQ(faultsOf([](TensorMap &) {}), std::vector<std::string>{});
  EXPECT_EQ(faultsOf([](TensorMap &map) { map.mark = 0; }).at(0),
            "tensor-map: expected a tensor map, but got other bytes");
  EXPECT_EQ(faultsOf([](TensorMap &map) {
              map.rankLessOne = 2;
              map.dims[2] = map.box[2] = map.elementStrides[2] = 1;
            }).at(0),
            "tensor-map: expected a tensor map of rank 2, but got 3");
}

// The array of a map must be allocated, as far as the box overlaps it.
TEST(TensorCopyTest, StaysInsideMemory) {
  const std::vector<std::string> found = faultsOf([](TensorMap &map) { map.strides[0] = 1 << 20; });
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("bounds: the tensor map describes 32 bytes at ")) << found[0];
}

} // namespace kiln::simulator::test
