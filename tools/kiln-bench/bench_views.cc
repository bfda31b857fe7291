// Strided views and tiles, compared with contiguous ones. The data stay in a core's caches, so that instructions are
// measured and not memory.
//
// Reading: sums of rows, by the stride of their elements, compared with contiguous rows. Elements up to 8 apart are
// read by vectors and shuffles, others one by one. A view of f32 with stride s touches s times the cache lines, up to
// one for each element, so 1/s is the expected speed. In the transposed view each element of a row is in another line,
// 64 elements apart. In f32 and bf16 these lines share few sets of the L1 cache, so the next row misses. Writing:
// copies to such rows.
//
// Then reshapes, gathered pages, masks, additions, running sums and rotations, compared with a copy of as many bytes;
// and gathers of elements.

#include "tools/kiln-bench/bench.h"

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::bench;

// --- Rows by the stride of their elements --------------------------------------------------------------------------

static constexpr int64_t columns = 512, rows = 64;

/// y[m] = Σ x[m, ·], 8 rows per program. x (M, 512), y (M).
static void sumRows(View x, View y) {
  Tile m = program_id(0) * 8;
  Tile tile = cast(load(x, {m, 0}, {8, columns}), f32); // (8, 512)
  store(y, {m}, sum(tile));
}
static const Kernel sumRowsKernel = kernel("sum_rows", sumRows);

/// y = x, 8 rows per program. x, y (M, 512).
static void copyRows(View x, View y) {
  Tile m = program_id(0) * 8;
  store(y, {m, 0}, load(x, {m, 0}, {8, columns})); // (8, 512)
}
static const Kernel copyRowsKernel = kernel("copy_rows", copyRows);

static int64_t repeats(const Setting &setting) { return setting.quick ? 1 : 8; }

/// Repeated launches of a kernel, so that the host's overhead does not matter.
static Runner repeated(const Setting &setting, const Kernel &kernel, const Grid &grid, const std::vector<Arg> &args) {
  Plan plan;
  plan.launches.assign(repeats(setting), {&kernel, "", grid, args});
  return Runner(setting, std::move(plan));
}

/// The times of a contender and its baseline, and their ratio.
static void addRow(Setting &setting, const std::string &shape, const std::vector<double> &seconds, const char *peer,
                   Type type) {
  setting.report.add({.shape = shape,
                      .metric = "us",
                      .value = seconds[0] * 1e6,
                      .peer = peer,
                      .peerValue = seconds[1] * 1e6,
                      .ratio = seconds[1] / seconds[0],
                      .dtype = nameOf(type)});
}

static void measureStrides(Setting &setting, Type type) {
  const Tensor memory = zeroTensor(setting, {rows * columns * 8}, type), sums = zeroTensor(setting, {rows}),
               dense = zeroTensor(setting, {rows, columns}, type);
  const auto strided = [&](const Shape &strides) {
    TensorRef view = memory.ref();
    view.extents = {rows, columns};
    view.strides = strides;
    return view;
  };
  std::vector<std::pair<std::string, TensorRef>> views = {{"turned", strided({1, rows})}};
  for (const int64_t stride : {2, 3, 4, 5, 8})
    views.emplace_back(fmt::format("stride {}", stride), strided({columns * stride, stride}));
  for (const bool stores : {false, true})
    for (const auto &[name, view] : views) {
      if (stores && name == "turned")
        continue;
      const auto of = [&](const TensorRef &each) {
        return stores ? repeated(setting, copyRowsKernel, programs(rows / 8), {dense.ref(), each})
                      : repeated(setting, sumRowsKernel, programs(rows / 8), {each, sums.ref()});
      };
      addRow(setting, fmt::format("{}{} {}x{}", stores ? "store, " : "", name, rows, columns),
             setting.measure({of(view), of(strided({columns, 1}))}), "stride_1", type);
    }
}

// --- Moves and accesses, compared with a copy ----------------------------------------------------------------------

namespace {
/// A kernel on arguments as its registration describes them, N elements in all, P pages of 16 rows of 64.
struct Move {
  const char *name;
  int64_t programs;
  Kernel kernel;
  Content content = {};
};
} // namespace

static constexpr int64_t N = 1 << 15, P = N / 1024, block = 1024;

/// y = x. x, y (N).
static void copyBlocks(View x, View y) {
  Tile n = program_id(0) * block;
  store(y, {n}, load(x, {n}, {block}));
}
static const Kernel copyKernel = kernel("copy_blocks", copyBlocks);

/// Two rows of a page of (P, 2, 512).
static std::pair<Tile, Tile> halvesOf(const View &x) {
  Tile p = program_id(0);
  return {reshape(load(x, {p, 0, 0}, {1, 1, 512}), {512}), reshape(load(x, {p, 1, 0}, {1, 1, 512}), {512})};
}

/// Running sums of 64 rows of a matrix along its columns.
static void sumColumns(View x, View y) {
  Tile m = program_id(0) * 64;
  store(y, {m, 0}, cast(cumsum(load(x, {m, 0}, {64, x.extent(1)}), 0), y.type()));
}

static const std::vector<Move> &reshapes() {
  static const std::vector<Move> all = {
      {"merge", P / 4,
       kernel("merge",
              +[](View x, View y) {
                Tile p = program_id(0) * 4;
                store(y, {p * 16, 0}, reshape(load(x, {p, 0, 0}, {4, 16, 64}), {64, 64}));
              },
              {"x (P, 16, 64)", "y (R, 64)"})},
      {"split", P / 4,
       kernel("split",
              +[](View x, View y) {
                Tile p = program_id(0) * 4;
                store(y, {p, 0, 0}, reshape(load(x, {p * 16, 0}, {64, 64}), {4, 16, 64}));
              },
              {"x (R, 64)", "y (P, 16, 64)"})},
      {"flatten", P / 4,
       kernel("flatten",
              +[](View x, View y) {
                Tile p = program_id(0) * 4;
                store(y, {p * 1024}, reshape(load(x, {p * 16, 0}, {64, 64}), {4096}));
              },
              {"x (R, 64)", "y (N)"})},
      {"flatten rows of 60", P / 4,
       kernel("flatten_ragged",
              +[](View x, View y) {
                Tile p = program_id(0) * 4;
                store(y, {p * 960}, reshape(load(x, {p * 16, 0}, {64, 60}), {3840}));
              },
              {"x (R, 60)", "y (ragged)"})},
      {"gather pages, merge",
       P / 4,
       kernel("gather_pages",
              +[](View x, View pages, View y) {
                Tile p = program_id(0) * 4;
                Tile named = load(pages, {p}, {4});
                store(y, {p * 16, 0}, reshape(load(x, {named, 0, 0}, {16, 64}), {64, 64}));
              },
              {"x (P, 16, 64)", "pages (P) i32", "y (R, 64)"}),
       {{}, {{"pages", {0, 37, P}}}}},
      {"join", P,
       kernel("join",
              +[](View x, View y) { // elements of both rows are interleaved
                const auto [low, high] = halvesOf(x);
                store(y, {program_id(0) * 1024},
                      reshape(where(iota(2) == 0, unsqueeze(low, -1), unsqueeze(high, -1)), {1024}));
              },
              {"x (P, 2, 512)", "y (N)"})},
      {"interleave", P,
       kernel("interleave",
              +[](View x, View y) {
                const auto [low, high] = halvesOf(x);
                store(y, {program_id(0) * 1024}, interleave(low, high));
              },
              {"x (P, 2, 512)", "y (N)"})},
      {"transpose", N / 4096,
       kernel("turn",
              +[](View x, View y) {
                Tile b = program_id(0);
                store(y, {b, 0, 0}, reshape(transpose(load(x, {b * 64, 0}, {64, 64})), {1, 64, 64}));
              },
              {"x (R, 64)", "y (blocks, 64, 64)"})}};
  return all;
}

static const std::vector<Move> &sums() {
  static const std::vector<Move> all = {
      {"rows of 3, doubled", N / 768,
       kernel("points",
              +[](View x, View y) {
                Tile n = program_id(0) * 256;
                store(y, {n, 0}, load(x, {n, 0}, {256, 3}) * 2);
              },
              {"x (points, 3)", "y (points, 3)"})},
      {"rows of 2, summed", N / 1024,
       kernel("pairs",
              +[](View x, View y) {
                Tile n = program_id(0) * 512;
                store(y, {n}, cast(sum(load(x, {n, 0}, {512, 2}), 1), y.type()));
              },
              {"x (pairs, 2)", "y (pairs)"})},
      {"rows of 3, columns summed", N / 768,
       kernel("sum_of_points",
              +[](View x, View y) {
                Tile p = program_id(0);
                store(y, {p, 0}, cast(sum(load(x, {p * 256, 0}, {256, 3}), 0, keep), y.type()));
              },
              {"x (points, 3)", "y (sums, 3)"})},
      {"addition", N / block,
       kernel("add_blocks",
              +[](View x, View z, View y) {
                Tile n = program_id(0) * block;
                store(y, {n}, load(x, {n}, {block}) + load(z, {n}, {block}));
              },
              {"x (N)", "z (N)", "y (N)"})},
      {"sums of 512 columns", N / 512 / 64, kernel("sum_wide", sumColumns, {"x (wide, 512)", "y (wide, 512)"})},
      {"sums of 128 columns", N / 128 / 64, kernel("sum_narrow", sumColumns, {"x (narrow, 128)", "y (narrow, 128)"})},
      {"check", P / 4,
       kernel("checked",
              +[](View x, View y) {
                Tile p = program_id(0) * 4;
                Tile tile = load(x, {p, 0, 0}, {4, 16, 64});
                device_assert(tile < 100, "expected small numbers");
                store(y, {p, 0, 0}, tile);
              },
              {"x (P, 16, 64)", "y (P, 16, 64)"})},
      {"mask of positions",
       N / block,
       kernel("copy_below",
              +[](View x, View y, Tile count) {
                Tile n = program_id(0) * block, below = n + iota(block, i64) < count;
                store(y, {n}, load(x, {n}, {block}, {.mask = below}), {.mask = below});
              },
              {"x (N)", "y (N)", "count"}),
       {{N}}},
      {"mask in memory",
       N / block,
       kernel("copy_chosen",
              +[](View x, View chosen, View y) {
                Tile n = program_id(0) * block, mask = load(chosen, {n}, {block});
                store(y, {n}, load(x, {n}, {block}, {.mask = mask}), {.mask = mask});
              },
              {"x (N)", "chosen (N) boolean", "y (N)"}),
       {{}, {{"chosen", {1, 0}}}}}};
  return all;
}

/// Only for f32.
static const std::vector<Move> &turns() {
  static const std::vector<Move> all = {
      {"rotated pairs", N / 2048,
       kernel("rotate",
              +[](View x, View cosines, View sines, View y) {
                Tile t = program_id(0) * 32;
                auto [a, b] = split(reshape(load(x, {t, 0}, {32, 64}), {32, 32, 2}));
                Tile cosine = load(cosines, {t, 0}, {32, 32}), sine = load(sines, {t, 0}, {32, 32});
                store(y, {t, 0}, interleave(a * cosine - b * sine, a * sine + b * cosine));
              },
              {"x (wide, 64)", "cosines (wide, 32)", "sines (wide, 32)", "y (wide, 64)"})}};
  return all;
}

static void measureMoves(Setting &setting, Type type, const std::vector<Move> &moves) {
  const NamedExtents extents = {
      {"N", N},         {"P", P},          {"R", 16 * P},     {"ragged", 960 * P}, {"blocks", N / 4096},
      {"pairs", N / 2}, {"sums", N / 768}, {"wide", N / 512}, {"narrow", N / 128}, {"points", N / 768 * 256}};
  for (const Move &move : moves) {
    std::vector<std::unique_ptr<Tensor>> held;
    Operands make(makeSpace(setting, held));
    const std::vector<Arg> args = make.of(move.kernel, extents, type, move.content);
    int64_t bytes = 0;
    for (const Arg &arg : args)
      bytes += arg.kind == Arg::Kind::tensor ? arg.ref.bytes() : 0;
    const int64_t copied = bytes / 2 / bytesOf(type) / block * block;
    addRow(setting, fmt::format("{}, {} elements", move.name, N),
           setting.measure(
               {repeated(setting, move.kernel, programs(move.programs), args),
                repeated(setting, copyKernel, programs(copied / block), {make({copied}, type), make({copied}, type)})}),
           "copy", type);
  }
}

/// The time per gathered element.
static void measureTakes(Setting &setting) {
  static const Kernel take = kernel("take",
                                    +[](View x, View positions, View y) {
                                      Tile n = program_id(0) * block;
                                      store(y, {n}, load(x, {load(positions, {n}, {block})}));
                                    },
                                    {"x (N)", "positions (N) i32", "y (N)"});
  for (const int64_t count : {int64_t(1) << 11, int64_t(1) << 20}) {
    std::vector<std::unique_ptr<Tensor>> held;
    Operands make(makeSpace(setting, held));
    // A permutation of [0, count): count is a power of two, the step odd.
    const Content scattered = {{}, {{"positions", {0, 2654435761 % count, count}}}};
    const std::vector<double> seconds = setting.measure(
        {repeated(setting, take, programs(count / block), make.of(take, {{"N", count}}, f32, scattered))});
    setting.report.add({.shape = fmt::format("take {} elements", count),
                        .metric = "ns_per_element",
                        .value = seconds[0] * 1e9 / static_cast<double>(count * repeats(setting))});
  }
}

void bench::benchViews(Setting &setting) {
  for (const Type type : {f32, bf16, i8}) {
    setting.report.section(
        fmt::format("time of sums of {} rows with strides, baseline: contiguous rows", nameOf(type)));
    measureStrides(setting, type);
    setting.report.section(
        fmt::format("time of moves and accesses of {}, baseline: a copy of as many bytes", nameOf(type)));
    measureMoves(setting, type, reshapes());
    measureMoves(setting, type, sums());
    if (type == f32)
      measureMoves(setting, type, turns());
  }
  setting.report.section("time for an element of f32 that a tile of positions names");
  measureTakes(setting);
}
