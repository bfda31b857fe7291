// Bulk tensor copies: boxes of one to five dimensions, swizzles, edges, strides, reductions.

#include "runtime/simulator/TensorMap.h"
#include "test/runtime/simulator/machine.h"

#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

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

// --- Maps that kernels make -----------------------------------------------------------------------------------------
//
// Tensor maps: their creation on the host, as a parameter, and in a kernel.

/// A good description, 64 × 32 halves in boxes of 32 × 8, with a change.
static std::string faultOf(const std::function<void(TensorMapDescription &)> &change) {
  TensorMapDescription description{
      .element = TensorElement::f16, .address = 4096, .dims = {64, 32}, .strides = {128}, .box = {32, 8}};
  change(description);
  try {
    makeTensorMap(description);
    return "";
  } catch (const Error &error) {
    return error.what();
  }
}

// Every condition of cuTensorMapEncodeTiled, at its edge.
TEST(TensorMapTest, HasConditions) {
  using D = TensorMapDescription;
  EXPECT_EQ(faultOf([](D &) {}), "");
  EXPECT_EQ(faultOf([](D &d) { d.address = 4104; }),
            "tensor map: expected an array at a multiple of 16, but got 0x1008");
  EXPECT_EQ(faultOf([](D &d) { d.dims[1] = 0; }), "tensor map: expected dimension 1 of 1 to 2^32 elements, but got 0");
  EXPECT_EQ(faultOf([](D &d) { d.dims[1] = uint64_t{1} << 32; }), "");
  EXPECT_EQ(faultOf([](D &d) { d.dims[1] = (uint64_t{1} << 32) + 1; }),
            "tensor map: expected dimension 1 of 1 to 2^32 elements, but got 4294967297");
  EXPECT_EQ(faultOf([](D &d) { d.strides[0] = 136; }),
            "tensor map: expected a stride of dimension 1 that is a multiple of 16 below 2^40, but got 136");
  EXPECT_EQ(faultOf([](D &d) { d.strides[0] = uint64_t{1} << 40; }),
            "tensor map: expected a stride of dimension 1 that is a multiple of 16 below 2^40, but got 1099511627776");
  EXPECT_EQ(faultOf([](D &d) { d.box[1] = 256; }), "");
  EXPECT_EQ(faultOf([](D &d) { d.box[1] = 257; }),
            "tensor map: expected a box of 1 to 256 elements along dimension 1, but got 257");
  EXPECT_EQ(faultOf([](D &d) { d.box[0] = 12; }),
            "tensor map: expected a box whose rows are multiples of 16 bytes, but got 24");
  EXPECT_EQ(faultOf([](D &d) { d.elementStrides = {1, 9}; }),
            "tensor map: expected an element stride of 1 to 8 along dimension 1, but got 9");
  EXPECT_EQ(faultOf([](D &d) { d.swizzle = Swizzle::bytes64; }), "");
  EXPECT_EQ(faultOf([](D &d) { d.swizzle = Swizzle::bytes32; }),
            "tensor map: expected a box whose rows have at most the 32 bytes of the swizzle, but got 64");
  EXPECT_EQ(faultOf([](D &d) { d.nanFill = true; }), "");
  EXPECT_EQ(faultOf([](D &d) { d.element = TensorElement::u16, d.nanFill = true; }),
            "tensor map: filling with NaN requires floating-point elements");
  EXPECT_EQ(faultOf([](D &d) { d.dims.clear(); }), "expected a tensor map of 1 to 5 dimensions, but got 0");
  EXPECT_EQ(faultOf([](D &d) { d.box.push_back(1); }),
            "expected a tensor map of 2 dimensions to have 1 strides and a box of 2, but got 1 and 3");
}

static const std::string loadAndStore =
    "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.proxy.async.shared::cta;\n"
    "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [box], [%m, {4, 1}], [bar];\n"
    "W:\nmbarrier.try_wait.parity.shared::cta.b64 %q, [bar], 0;\n@!%q bra W;\n"
    "ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [box];\nst.global.v4.u32 [%p1], {%r0, %r1, %r2, %r3};\n";
static const char *const mapRegisters =
    ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 box[128];\n"
    ".shared .align 128 .b8 made[128];\n.reg .b64 %m, %g;\n.reg .b32 %r<4>;\n.reg .pred %q;";

// A map that is a kernel parameter is used in place.
TEST(TensorMapTest, IsAParameter) {
  const std::string kernelText = hopperKernel(2, mapRegisters, loadAndStore);
  std::string text = kernelText;
  const std::string first = ".param .u64 k0", load = "ld.param.u64 %p0, [k0];\n";
  text.replace(text.find(first), first.size(), ".param .align 64 .b8 k0[128]");
  text.replace(text.find(load), load.size(), "mov.b64 %g, k0;\ncvta.param.u64 %m, %g;\n");
  Machine machine(text);
  std::vector<uint32_t> values(32);
  std::iota(values.begin(), values.end(), 0u);
  const uint32_t *array = machine.buffer(values), *out = machine.buffer(std::vector<uint32_t>(4));
  const TensorMap map = makeTensorMap(
      {.element = TensorElement::u32, .address = address(array), .dims = {8, 4}, .strides = {32}, .box = {4, 1}});
  std::vector<char> block(136);
  const uint64_t result = address(out);
  std::memcpy(block.data(), &map, sizeof(map));
  std::memcpy(block.data() + 128, &result, 8);
  machine.runBlock("k", {1, 1, 1}, {1, 1, 1}, block);
  EXPECT_EQ(machine.found(), std::vector<std::string>{});
  EXPECT_EQ(std::vector<uint32_t>(out, out + 4), (std::vector<uint32_t>{12, 13, 14, 15}));
}

/// A warp makes a map in shared memory, publishes it at %p0 and loads by it. `fence` is between the two.
static std::string making(const std::string &fence) {
  const auto replace = [](const char *field, const char *type, const std::string &value) {
    return fmt::format("@%q tensormap.replace.tile.{}.shared::cta.b1024.{} [made], {};\n", field, type, value);
  };
  const std::string zeros =
      "mov.u32 %r0, made;\nshl.b32 %r1, %t, 2;\nadd.u32 %r0, %r0, %r1;\nst.shared.u32 [%r0], 0;\n";
  return hopperKernel(3, mapRegisters,
                      zeros +
                          "bar.warp.sync -1;\nsetp.eq.u32 %q, %t, 0;\nmov.u32 %r0, 8;\nmov.u32 %r1, 4;\nmov.u32 %r2, "
                          "1;\nmov.u64 %g, 32;\n" +
                          replace("global_address", "b64", "%p2") + replace("rank", "b32", "1") +
                          replace("box_dim", "b32", "0, %r1") + replace("box_dim", "b32", "1, %r2") +
                          replace("global_dim", "b32", "0, %r0") + replace("global_dim", "b32", "1, %r1") +
                          replace("global_stride", "b64", "0, %g") + replace("element_stride", "b32", "0, %r2") +
                          replace("element_stride", "b32", "1, %r2") + replace("elemtype", "b32", "2") +
                          replace("interleave_layout", "b32", "0") + replace("swizzle_mode", "b32", "0") +
                          replace("fill_mode", "b32", "0") + "bar.warp.sync -1;\n" +
                          "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                          "[%p0], [made], 128;\n" +
                          fence + "mov.u64 %m, %p0;\n@!%q bra END;\n" + loadAndStore + "END:\n");
}

static std::vector<std::string> make(const std::string &text, std::vector<uint32_t> *out) {
  Machine machine(text);
  std::vector<uint32_t> values(32);
  std::iota(values.begin(), values.end(), 0u);
  const uint32_t *array = machine.buffer(values), *result = machine.buffer(std::vector<uint32_t>(4));
  const char *map = machine.buffer(std::vector<char>(128));
  machine.run("k", {1, 1, 1}, {32, 1, 1}, {address(map), address(result), address(array)});
  out->assign(result, result + 4);
  return machine.found();
}

// A kernel may make a map; it may be used once the proxy fence has acquired it.
TEST(TensorMapTest, IsMadeByAKernel) {
  std::vector<uint32_t> out;
  EXPECT_EQ(make(making("fence.proxy.tensormap::generic.acquire.gpu [%p0], 128;\n"), &out), std::vector<std::string>{});
  EXPECT_EQ(out, (std::vector<uint32_t>{12, 13, 14, 15}));
  const std::vector<std::string> found = make(making(""), &out);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("tensor-map: uses the tensor map at 0x")) << found[0];
  EXPECT_TRUE(found[0].ends_with("which has been changed and not been acquired since by fence.proxy.tensormap"));
}

} // namespace kiln::simulator::test
