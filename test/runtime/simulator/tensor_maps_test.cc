// Tensor maps: their creation on the host, as a parameter, and in a kernel.

#include "test/runtime/simulator/machine.h"

#include "runtime/simulator/TensorMap.h"

#include <fmt/format.h>
#include <numeric>

namespace kiln::simulator::test {

static uint64_t address(const void *place) { return reinterpret_cast<uint64_t>(place); }

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
static const char *const registers =
    ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 box[128];\n"
    ".shared .align 128 .b8 made[128];\n.reg .b64 %m, %g;\n.reg .b32 %r<4>;\n.reg .pred %q;";

// A map that is a kernel parameter is used in place.
TEST(TensorMapTest, IsAParameter) {
  const std::string kernelText = hopperKernel(2, registers, loadAndStore);
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
  return hopperKernel(3, registers,
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
