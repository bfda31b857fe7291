// Kernels with optional views and lists of views: each number of views is a specialisation.

#include "runtime/Arguments.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

struct TileConfig {
  int bm = 16, bn = 16, bk = 16;
};
Tile product(View a, View b, Tile m, Tile n, TileConfig cfg) {
  Tile acc = zeros(f32, {cfg.bm, cfg.bn});
  for (Tile k : range(0, a.dim(1), cfg.bk))
    acc = dot(load(a, {m, k}, {cfg.bm, cfg.bk}), load(b, {k, n}, {cfg.bk, cfg.bn}), acc);
  return acc;
}

/// out = x · w + bias.
void linear(View x, View w, std::optional<View> bias, View out, TileConfig cfg) {
  Tile m = program_id(0) * cfg.bm, n = program_id(1) * cfg.bn, y = product(x, w, m, n, cfg);
  if (bias)
    y = y + load(*bias, {n}, {cfg.bn});
  store(out, {m, n}, y);
}
const Kernel linearKernel = kernel("linear", linear, {"x (M, K)", "w (K, N)", "bias (N)", "out (M, N)"});

/// c[i] = a[i] · b[i]. Programs of axis 0 compute the tiles of one problem after the other.
void groupedMatmul(std::vector<View> a, std::vector<View> b, std::vector<View> c, TileConfig cfg) {
  Tile tile = program_id(0); // of problem i, if it has so many
  for (size_t i = 0; i < c.size(); ++i) {
    Tile columns = cdiv(c[i].dim(1), cfg.bn), tiles = cdiv(c[i].dim(0), cfg.bm) * columns;
    if_((tile >= 0) & (tile < tiles), [&] {
      Tile m = tile / columns * cfg.bm, n = tile % columns * cfg.bn;
      store(c[i], {m, n}, product(a.at(i), b.at(i), m, n, cfg));
    });
    tile = tile - tiles;
  }
}
const Kernel groupedKernel =
    kernel("grouped", groupedMatmul, {"a (M, K) of each problem", "b (K, N) of each", "c (M, N) of each"});

/// out = 100 · first + 10 · second, of those that are there.
void choose(std::optional<View> first, std::optional<View> second, View out) {
  Tile sum = zeros(f32, {4});
  if (first)
    sum = sum + 100 * load(*first, {0}, {4});
  if (second)
    sum = sum + 10 * load(*second, {0}, {4});
  store(out, {0}, sum);
}
const Kernel chooseKernel = kernel("choose", choose, {"first", "second", "out"});

/// out = by · (the sum of xs − the sum of ys).
void difference(std::vector<View> xs, Tile by, std::vector<View> ys, View out) {
  Tile sum = zeros(f32, {4});
  for (View x : xs)
    sum = sum + load(x, {0}, {4});
  for (View y : ys)
    sum = sum - load(y, {0}, {4});
  store(out, {0}, sum * by);
}
const Kernel differenceKernel = kernel("difference", difference, {"xs", "by", "ys", "out"});

int64_t compilations() { return compileStatistics().compiled + compileStatistics().fromDisk; }

class Variadic : public DeviceTest {
protected:
  std::shared_ptr<Device> device = Device::open(GetParam());

  /// Small integers, whose sums of products are exact.
  Tensor integers(const Shape &extents, int seed) {
    Tensor tensor(device, f32, extents);
    std::vector<float> values(tensor.count());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 7 + static_cast<size_t>(seed) * 3) % 11) - 5;
    tensor.uploadFloats(values);
    return tensor;
  }
  Tensor filled(float value) {
    Tensor tensor(device, f32, {4});
    tensor.uploadFloats(std::vector<float>(4, value));
    return tensor;
  }
  /// The first element of out after a launch of one program.
  float first(const Kernel &kernel, std::vector<Arg> args) {
    const Tensor out = filled(-1);
    args.emplace_back(out);
    launch(*device, kernel, 1, args);
    return out.downloadFloats()[0];
  }
};

/// a · b, row by row, and a row that is added to each of the product.
std::vector<float> plainProduct(const Tensor &a, const Tensor &b, const std::vector<float> &bias = {}) {
  const int64_t rows = a.extents()[0], inner = a.extents()[1], columns = b.extents()[1];
  const std::vector<float> x = a.downloadFloats(), w = b.downloadFloats();
  std::vector<float> result;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; ++n) {
      float sum = bias.empty() ? 0 : bias[n];
      for (int64_t k = 0; k < inner; ++k)
        sum += x[m * inner + k] * w[k * columns + n];
      result.push_back(sum);
    }
  return result;
}

TEST_P(Variadic, ABiasIsAddedIfItIsThere) {
  const Tensor x = integers({33, 40}, 1), w = integers({40, 20}, 2), bias = integers({20}, 3),
               out = integers({33, 20}, 4);
  launch(*device, linearKernel, {3, 2}, {x, w, std::nullopt, out});
  EXPECT_EQ(out.downloadFloats(), plainProduct(x, w));
  launch(*device, linearKernel, {3, 2}, {x, w, bias, out});
  EXPECT_EQ(out.downloadFloats(), plainProduct(x, w, bias.downloadFloats()));
  launch(*device, linearKernel, {3, 2}, {x, w, std::optional<TensorRef>(), out});
  EXPECT_EQ(out.downloadFloats(), plainProduct(x, w));
}

// One launch computes problems of different shapes, in a list of any length.
TEST_P(Variadic, AListIsAnyNumberOfProblems) {
  const std::vector<std::array<int64_t, 3>> shapes = {{33, 20, 40}, {5, 50, 17}, {64, 16, 16}}; // M, N, K
  std::vector<Tensor> a, b, c;
  int64_t programs = 0;
  for (const auto &[m, n, k] : shapes) {
    const int seed = static_cast<int>(a.size());
    a.push_back(integers({m, k}, seed));
    b.push_back(integers({k, n}, seed + 5));
    c.push_back(integers({m, n}, seed + 9));
    programs += cdiv(m, 16) * cdiv(n, 16);
    launch(*device, groupedKernel, programs, {a, b, c});
    for (size_t i = 0; i < a.size(); ++i)
      EXPECT_EQ(c[i].downloadFloats(), plainProduct(a[i], b[i])) << "problem " << i << " of " << a.size();
  }
  launch(*device, groupedKernel, 2, {Arg::list({}), Arg::list({}), Arg::list({})});
  device->synchronize();
}

// Equal arguments in other places are other specialisations.
TEST_P(Variadic, PlacesAreNotMixedUp) {
  const Tensor one = filled(1), two = filled(2);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(first(chooseKernel, {one, std::nullopt}), 100);
    EXPECT_EQ(first(chooseKernel, {std::nullopt, one}), 10);
    EXPECT_EQ(first(chooseKernel, {one, two}), 120);
    EXPECT_EQ(first(chooseKernel, {std::nullopt, std::nullopt}), 0);
    EXPECT_EQ(first(differenceKernel, {Arg::list({one, two}), 2.0f, Arg::list({one})}), 4);
    EXPECT_EQ(first(differenceKernel, {Arg::list({one}), 2.0f, Arg::list({two, one})}), -4);
    EXPECT_EQ(first(differenceKernel, {Arg::list({}), 2.0f, Arg::list({one, two, one})}), -8);
  }
}

// A form is compiled once, for all copies of the kernel.
TEST_P(Variadic, EachNumberOfViewsIsCompiledOnce) {
  const Kernel copy = chooseKernel;
  const Tensor one = filled(1), out = filled(0);
  const auto compiled = [&](const Kernel &kernel, const Arg &a, const Arg &b) {
    return compile(*device, kernel, {a, b, out});
  };
  const auto left = compiled(chooseKernel, one, std::nullopt), right = compiled(chooseKernel, std::nullopt, one);
  EXPECT_NE(left, right);
  const int64_t before = compilations();
  EXPECT_EQ(left, compiled(copy, one, std::nullopt));
  EXPECT_EQ(right, compiled(copy, std::nullopt, one));
  EXPECT_EQ(compilations(), before);
  EXPECT_EQ(left->signature().parameters[0].name, "first");
  EXPECT_EQ(right->signature().parameters[0].name, "second");
  EXPECT_EQ(compile(*device, differenceKernel, {Arg::list({one, one}), 1.0f, Arg::list({}), out})
                ->signature()
                .parameters[1]
                .name,
            "xs[1]");
}

TEST_P(Variadic, PlansHaveThem) {
  const Tensor one = filled(1), two = filled(2), out = filled(0), other = filled(0);
  const auto makeLaunch = [&](std::vector<Arg> args) { return Launch{&chooseKernel, "", 1, std::move(args)}; };
  Plan plan{.launches = {makeLaunch({one, std::nullopt, out}), makeLaunch({std::nullopt, two, other})}};
  run(*device, plan);
  EXPECT_EQ(out.downloadFloats()[0], 100);
  EXPECT_EQ(other.downloadFloats()[0], 20);
  EXPECT_EQ(plan.launches[0].bytes(), 32);
  // Launches with equally many views become one.
  plan.launches[1] = makeLaunch({two, std::nullopt, other});
  const std::vector<Launch> group = grouped(plan.launches);
  ASSERT_EQ(group.size(), 1u);
  EXPECT_EQ(group[0].bytes(), 64);
  run(*device, {.launches = group});
  EXPECT_EQ(out.downloadFloats()[0], 100);
  EXPECT_EQ(other.downloadFloats()[0], 200);
  EXPECT_EQ(grouped({makeLaunch({one, std::nullopt, out}), makeLaunch({std::nullopt, two, other})}).size(), 2u);
  // A region of the workspace is a view.
  Plan regions{.launches = {makeLaunch({Arg::workspace(0, f32, {4}), std::nullopt, out})}, .workspaceBytes = 16};
  run(*device, regions, two);
  EXPECT_EQ(out.downloadFloats()[0], 200);
}

// Tools get the code of a launch, and of all problems of one.
TEST_P(Variadic, ToolsGetTheirCode) {
  const Tensor one = filled(1), out = filled(0);
  Launch launch{&chooseKernel, "", 1, {one, std::nullopt, out}};
  EXPECT_FALSE(codeOf(*device, launch).empty());
  EXPECT_EQ(compile(*device, launch), compile(*device, chooseKernel, launch.args));
  launch.others = {{1, {std::nullopt, one, out}}};
  EXPECT_EQ(errorOf([&] { codeOf(*device, launch); }),
            "kernel 'choose': expected equally many views in all problems of a grouped launch, but got other numbers");
}

// vmap batches a list in each of its views, and a view that is absent not at all.
TEST_P(Variadic, BatchesHaveThem) {
  const std::optional<int> together;
  const Tensor x = integers({3, 4}, 1), y = integers({4, 3}, 2), shared = filled(7), out = integers({3, 4}, 3);
  const Kernel batch = vmap(differenceKernel, {0, 0, together, 0});
  const Tensor by = integers({3}, 4);
  launch(*device, batch, {1, 1, 3}, {Arg::list({x, y.ref().permute({1, 0})}), by, Arg::list({shared}), out});
  const std::vector<float> xs = x.downloadFloats(), ys = y.downloadFloats(), factors = by.downloadFloats(),
                           got = out.downloadFloats();
  for (int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(got[i], (xs[i] + ys[i % 4 * 3 + i / 4] - 7) * factors[i / 4]) << i;
  const Kernel only = vmap(chooseKernel, {0, together, together});
  EXPECT_EQ(errorOf([&] { launch(*device, only, {1, 1, 3}, {std::nullopt, shared, out}); }),
            "kernel 'vmap_choose': expected an argument with examples, but got none");
  const auto one = [&](const std::vector<TensorRef> &t) {
    return Plan{.launches = {{&chooseKernel, "", 1, {t[0], std::nullopt, t[1]}}}};
  };
  run(*device, vmap(one, {{x, 0}, {out, 0}}));
  EXPECT_EQ(out.downloadFloats()[5], 100 * xs[5]);
}

// Errors name the argument, with what it takes and what it got.
TEST_P(Variadic, Mistakes) {
  const Tensor one = filled(1), out = filled(0);
  const auto mistake = [&](const Kernel &kernel, const std::vector<Arg> &args) {
    return errorOf([&] { launch(*device, kernel, 1, args); });
  };
  EXPECT_EQ(mistake(chooseKernel, {3, std::nullopt, out}),
            "kernel 'choose': expected 'first' to be a tensor or nothing, but got i64 scalar");
  EXPECT_EQ(mistake(chooseKernel, {std::nullopt, Arg::list({one, one}), out}),
            "kernel 'choose': expected 'second' to be a tensor or nothing, but got a list of 2");
  EXPECT_EQ(mistake(chooseKernel, {std::nullopt, std::nullopt, std::nullopt}),
            "kernel 'choose': expected 'out' to be a tensor, but got nothing");
  EXPECT_EQ(mistake(chooseKernel, {std::nullopt, std::nullopt}), "kernel 'choose': expected 3 arguments, but got 2");
  EXPECT_EQ(mistake(differenceKernel, {one, 1.0f, Arg::list({}), out}),
            "kernel 'difference': expected 'xs' to be a list of tensors, but got f32[4]");
  EXPECT_EQ(mistake(differenceKernel, {std::nullopt, 1.0f, Arg::list({}), out}),
            "kernel 'difference': expected 'xs' to be a list of tensors, but got nothing");
  EXPECT_EQ(mistake(differenceKernel, {Arg::list({one, std::nullopt}), 1.0f, Arg::list({}), out}),
            "kernel 'difference': expected 'xs[1]' to be a tensor, but got nothing");
  EXPECT_EQ(mistake(differenceKernel, {Arg::list({one, 2}), 1.0f, Arg::list({}), out}),
            "kernel 'difference': expected 'xs[1]' to be a tensor, but got i64 scalar");
  EXPECT_EQ(mistake(differenceKernel, {Arg::list({one, Arg::list({})}), 1.0f, Arg::list({}), out}),
            "kernel 'difference': expected 'xs[1]' to be a tensor, but got a list of 0");
  EXPECT_EQ(mistake(differenceKernel, {Arg::list({}), Arg::list({one}), Arg::list({}), out}),
            "kernel 'difference': expected 'by' to be a scalar, but got a list of 1");
  const Tensor matrix = integers({4, 4}, 1);
  expectError([&] { launch(*device, differenceKernel, 1, {Arg::list({one, matrix}), 1.0f, Arg::list({}), out}); },
              {"variadic_test.cc", "'load' expected 2 offsets"});
  expectError([&] { launch(*device, groupedKernel, 1, {Arg::list({matrix}), Arg::list({}), Arg::list({matrix})}); },
              {"variadic_test.cc", "vector"});
}

KILN_ON_DEVICES(Variadic);

} // namespace
