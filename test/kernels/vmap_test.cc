// vmap in cases that vmap_registry_test.cc, which has every kernel and every plan, does not reach: a batch of examples
// has the bits of a launch for each of them; and the errors for batches that do not match.

#include "kernels/add.h"
#include "kernels/cross_entropy.h"
#include "kernels/gelu.h"
#include "kernels/layernorm.h"
#include "kernels/softmax.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"

namespace kiln {
namespace {

constexpr int64_t examples = 3;
constexpr std::optional<int> together;

/// One tensor of a plan: that of an example, and its dimension of examples.
struct Part {
  Shape extents;
  std::optional<int> axis = 0;
  Type type = f32;

  Shape all() const {
    Shape shape = extents;
    if (axis)
      shape.insert(shape.begin() + *axis, examples);
    return shape;
  }
};

class Vmap : public KernelTest {
protected:
  using One = std::function<Plan(const std::vector<TensorRef> &)>;

  /// Expects the plan for all examples to write the same bytes to every tensor as a plan for each.
  void expectLoop(const One &one, const std::vector<Part> &parts) {
    std::vector<Array> arrays, wants;
    std::vector<Batched> tensors;
    for (const Part &part : parts) {
      arrays.push_back(part.type == f32 ? uniform(part.all(), f32) : integers(part.all(), part.type, 2));
      if (part.type != f32)
        for (double &number : arrays.back().values) // such as places in a table
          number = std::abs(number);
      arrays.back().reset();
      wants.push_back(array(part.all(), part.type, arrays.back().values));
    }
    for (size_t i = 0; i < parts.size(); ++i)
      tensors.push_back({arrays[i].ref(), parts[i].axis});
    run(vmap(one, tensors));
    for (int64_t example = 0; example < examples; ++example) {
      std::vector<TensorRef> own;
      for (size_t i = 0; i < parts.size(); ++i)
        own.push_back(parts[i].axis ? wants[i].ref().select(*parts[i].axis, example) : wants[i].ref());
      run(one(own));
    }
    for (size_t i = 0; i < parts.size(); ++i)
      EXPECT_EQ(arrays[i].bytes(), wants[i].bytes()) << "tensor " << i;
  }
};

// A shared tensor may be in the memory between the elements of one example: columns 0 to 2 of a matrix are examples,
// and column 5 is shared.
TEST_P(Vmap, SharedTensorsMayLieAmongExamples) {
  const Array x = uniform({40, 8}, f32), out = unwritten({examples, 40}, f32), want = unwritten({examples, 40}, f32);
  const TensorRef shared = x.ref().select(1, 5), all = x.ref().slice(1, 0, examples);
  const auto one = [&](const auto &t) { return planAdd(target(), t[0], t[1], t[2]); };
  run(vmap(one, {{all, 1}, {shared, together}, {out.ref(), 0}}));
  for (int64_t example = 0; example < examples; ++example)
    run(one(std::vector<TensorRef>{all.select(1, example), shared, want.ref().select(0, example)}));
  EXPECT_EQ(out.bytes(), want.bytes());
}

// Parts without elements, and examples without rows, belong to every example: a kernel may store there.
TEST_P(Vmap, PlansOfTensorsWithoutElements) {
  const auto losses = [&](const auto &t) { return planCrossEntropy(target(), t[0], t[1], t[2], 30, 0.5f); };
  for (const int64_t rows : {1, 2})
    expectLoop(losses, {{{rows, 30}}, {{rows}, 0, i32}, {{rows}}}); // no padding behind a row
  const auto backward = [&](const auto &t) {
    return planLayerNormBackward(target(), t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], {});
  };
  expectLoop(backward, {{{0, 48}}, {{0, 48}}, {{48}, together}, {{0}}, {{0}}, {{0, 48}}, {{48}}, {{48}}});
  const auto products = [&](const auto &t) { return planMatmul(target(), Layout::nn, t[0], t[1], t[2]); };
  expectLoop(products, {{{20, 0}}, {{0, 17}}, {{20, 17}}});
  expectLoop(products, {{{0, 20}}, {{20, 17}, together}, {{0, 17}}});
}

struct ScaleConfig {
  int block = 16;
};

/// out[i, j] = x[i, j] · by + the total that the last program along axis 2 reads; the first program counts itself in
/// total.
void scale(View x, View out, View total, Tile by, ScaleConfig cfg) {
  Tile row = program_id(0), column = program_id(1) * cfg.block;
  Tile y = load(x, {row, column}, {cfg.block}) * by + cast(program_id(2) + 10 * num_programs(2), f32);
  if_(program_id(2) == num_programs(2) - 1, [&] { store(out, {row, column}, y); });
  if_(program_id(2) == 0, [&] { atomic_add(total, {0}, 1); });
}
const Kernel scaleKernel =
    kernel("scale", scale, {"x (M, N)", "out (M, N)", "total (1)", "by"}, {field("block", &ScaleConfig::block)});

// A scalar of each example is an element of a view. Programs along axis 2 belong to the example. Batches nest. Atomics
// change the shared elements.
TEST_P(Vmap, KernelsNestWithScalarsOfTheirOwn) {
  const Kernel batch = vmap(scaleKernel, {0, 1, together, 0}), nest = vmap(batch, {2, 0, together, together});
  Array x = uniform({2, 5, 3, 40}, f32), out = unwritten({3, 5, 2, 40}, f32), total = integers({1}, i32, 0),
        by = uniform({2}, f32);
  // x (b, M, c, N) with b by the inner batch; out (c, M, b, N).
  launch(*device, nest, {5, 3, 2 * 3 * 2}, {x.ref(), out.ref(), total.ref(), by.ref()});
  device->synchronize();
  Array want = unwritten({3, 5, 2, 40}, f32);
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t c = 0; c < 3; ++c)
      launch(*device, scaleKernel, {5, 3, 2},
             {x.ref().select(2, c).select(0, b), want.ref().select(2, b).select(0, c), total.ref(), float(by[b])});
  device->synchronize();
  EXPECT_EQ(out.bytes(), want.bytes());
  EXPECT_EQ(total.read()[0], 2 * 5 * 3 * 6);
}

void tally(View x, View total) {
  atomic_add(total, {0}, sum(load(x, {0}, {16})), Order::relaxed, {.scope = Scope::block});
}
const Kernel tallyKernel = kernel("tally", tally, {"x (16)", "total (1)"}, {});

// An atomic whose scope is one program reaches the programs of all examples where they share the view.
TEST_P(Vmap, AtomicsOnASharedViewReachAllExamples) {
  const Array x = integers({6, 16}, i32, 9), total = integers({1}, i32, 0);
  launch(*device, vmap(tallyKernel, {0, together}), {1, 1, 6}, {x.ref(), total.ref()});
  device->synchronize();
  double want = 0;
  for (int64_t i = 0; i < 6 * 16; ++i)
    want += x[i];
  EXPECT_EQ(total.read()[0], want);
}

// One kernel for one list of axes, and one compilation for any number of examples.
TEST_P(Vmap, OneCompilationForAnyBatch) {
  const auto one = [&](const auto &t) { return planGelu(target(), t[0], t[1]); };
  const auto runBatch = [&](int64_t count) {
    const Array x = uniform({count, 64}, f32), y = unwritten({count, 64}, f32);
    run(vmap(one, {{x.ref(), 0}, {y.ref(), 0}}));
  };
  runBatch(4);
  const int64_t before = compileStatistics().compiled + compileStatistics().fromDisk;
  runBatch(20);
  runBatch(4);
  runBatch(0);
  EXPECT_EQ(compileStatistics().compiled + compileStatistics().fromDisk, before);
  EXPECT_EQ(vmap(scaleKernel, {0, 0, together, 0}).identity, vmap(scaleKernel, {0, 0, together, 0}).identity);
  EXPECT_NE(vmap(scaleKernel, {0, 0, together, 0}).identity, vmap(scaleKernel, {1, 0, together, 0}).identity);
}

/// The text of the error of `call`, without its source line.
template <class Call> std::string messageOf(Call call) {
  const std::string text = errorOf(call);
  const size_t at = text.find("error: ");
  return at == std::string::npos ? text : text.substr(at + 7);
}

// Each mistake, with the expected and the given values.
TEST_P(Vmap, Mistakes) {
  EXPECT_EQ(messageOf([] { vmap(scaleKernel, {0, 0}); }),
            "'vmap' expected an axis, or none, for each of the 4 arguments of kernel 'scale', but got 2");
  EXPECT_EQ(messageOf([] { vmap(scaleKernel, {together, together, together, together}); }),
            "'vmap' expected an argument of kernel 'scale' with examples, but got none");
  EXPECT_EQ(messageOf([] { vmap(scaleKernel, {-1, 0, together, together}); }),
            "'vmap' expected a dimension from 0 for 'x' of kernel 'scale', but got -1");
  EXPECT_EQ(messageOf([] { vmap(scaleKernel, {0, 0, together, 1}); }),
            "'vmap' expected dimension 0 for the scalar 'by' of kernel 'scale', but got 1");
  const Array x = uniform({3, 5, 40}, f32), two = uniform({2, 5, 40}, f32), total = integers({1}, i32, 0);
  const auto launched = [&](const std::vector<std::optional<int>> &axes, const TensorRef &a, const TensorRef &b) {
    return messageOf([&] { launch(*device, vmap(scaleKernel, axes), {5, 3, 3}, {a, b, total.ref(), 1.0f}); });
  };
  EXPECT_EQ(
      launched({0, 0, together, together}, x.ref(), two.ref()),
      "kernel 'vmap_scale': expected 'out' to have 3 examples along dimension 0, as 'x' has, but got f32[2x5x40]");
  EXPECT_EQ(launched({3, 0, together, together}, x.ref(), x.ref()),
            "'vmap' expected 'x' to have a dimension 3 with its examples, but got rank 3");
  EXPECT_EQ(
      launched({0, together, together, together}, x.ref(), x.ref().select(0, 0)),
      "'store' expected a view that vmap batches, but got 'out', which all examples would write; batch it, or add "
      "to it by atomic_add()");
  const Array deep = uniform({1, 1, 1, 1, 5, 40}, f32);
  EXPECT_EQ(launched({0, 0, together, together}, deep.ref(), deep.ref()),
            "kernel 'vmap_scale': expected 'x' to be of rank 1 to 5, but got rank 6");
  const auto planned = [&](const std::vector<Batched> &tensors) {
    return messageOf([&] { vmap([&](const auto &t) { return planSoftmax(target(), t[0], t[1]); }, tensors); });
  };
  const Array cube = uniform({5, 5, 40}, f32);
  EXPECT_EQ(planned({{x.ref(), 0}, {two.ref(), 0}}),
            "'vmap' expected the same number of examples in each batched tensor, but got 3 and 2");
  EXPECT_EQ(planned({{x.ref(), 3}, {x.ref(), 0}}),
            "'vmap' expected a dimension below the rank 3 of a batched tensor, but got 3");
  EXPECT_EQ(planned({{x.ref(), together}, {x.ref(), together}}),
            "'vmap' expected a tensor with examples, but got none");
  EXPECT_EQ(planned({{x.ref().select(0, 0), together}, {x.ref(), 0}}),
            "'vmap': unbatched tensor 0 begins in the first example of batched tensor 1; give it memory of its own, or "
            "batch it");
  EXPECT_EQ(planned({{cube.ref(), 0}, {cube.ref(), 1}}),
            "'vmap': a tensor of a launch lies in two batched tensors, whose examples are 800 and 160 bytes apart");
}

INSTANTIATE_TEST_SUITE_P(Cpu, Vmap, testing::Values(Machine{"cpu", f32}), machineName);

} // namespace
} // namespace kiln
