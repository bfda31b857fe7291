// Views whose lanes lie apart, and tiles whose elements do: by how much they are slower than what lies side by side.
//
// Reading: sums of rows, by the stride of their elements, beside the same sums of rows
// whose elements lie side by side. The data stay in a core's caches, so that reading is measured and not memory. Lanes
// up to 8 apart are read by vectors and shuffles, others one by one. A view of f32 with stride s touches s times the
// cache lines, up to one for each element, so that 1/s is what to expect of it. The turned view has the lanes of a row
// in lines of their own, 64 elements apart: in f32 and bf16 they lie in so few sets of the first cache that the next
// row finds none of them there.

#include "tools/kiln-bench/views.h"

#include <fmt/format.h>

using namespace kiln;

static constexpr int64_t columns = 512;

/// y[m] = Σ x[m, ·] of 8 rows a program. x (M, 512), y (M).
static void sumRows(View x, View y) {
  Tile m = program_id(0) * 8;
  Tile rows = cast(load(x, {m, 0}, {8, columns}), f32); // (8, 512)
  store(y, {m}, sum(rows));
}
static const Kernel sumRowsKernel = kernel("sum_rows", sumRows);

/// y = x, of 8 rows a program. x, y (M, 512).
static void copyRows(View x, View y) {
  Tile m = program_id(0) * 8;
  store(y, {m, 0}, load(x, {m, 0}, {8, columns})); // (8, 512)
}
static const Kernel copyRowsKernel = kernel("copy_rows", copyRows);

/// Rows whose elements lie `stride` apart; as many stay in use whatever the stride is.
static TensorRef rowsOf(const Tensor &memory, int64_t rows, int64_t stride) {
  TensorRef view = memory.ref();
  view.extents = {rows, columns};
  view.strides = {columns * stride, stride};
  return view;
}

bench::Runner bench::repeated(const Setting &setting, const Kernel &kernel, int64_t count,
                              const std::vector<Arg> &args) {
  Plan plan;
  for (int64_t again = 0; again < repeats(setting); ++again)
    plan.launches.push_back({&kernel, "", programs(count), args});
  return Runner(setting, std::move(plan));
}

int64_t bench::repeats(const Setting &setting) { return setting.quick ? 1 : 8; }

void bench::addRow(Setting &setting, const std::string &shape, const std::vector<double> &seconds, const char *peer,
                   Type type) {
  setting.report.add({.bench = "views",
                      .shape = shape,
                      .metric = "us",
                      .value = seconds[0] * 1e6,
                      .peer = peer,
                      .peerValue = seconds[1] * 1e6,
                      .ratio = seconds[1] / seconds[0],
                      .dtype = nameOf(type)});
}

static void measureType(bench::Setting &setting, Type type) {
  const int64_t rows = 64, widest = 8;
  const Tensor memory = bench::zeroTensor(setting, {rows * columns * widest}, type);
  const Tensor sums = bench::zeroTensor(setting, {rows});
  const auto summing = [&](const TensorRef &view) {
    return bench::repeated(setting, sumRowsKernel, rows / 8, {view, sums.ref()});
  };
  TensorRef turned = memory.ref();
  turned.extents = {rows, columns};
  turned.strides = {1, rows};
  std::vector<std::pair<std::string, TensorRef>> views = {{"turned", turned}};
  for (const int64_t stride : {2, 3, 4, 5, 8})
    views.emplace_back(fmt::format("stride {}", stride), rowsOf(memory, rows, stride));
  for (const auto &[name, view] : views) {
    const std::vector<double> seconds = setting.measure({summing(view), summing(rowsOf(memory, rows, 1))});
    bench::addRow(setting, fmt::format("{} {}x{}", name, rows, columns), seconds, "stride_1", type);
  }
  const Tensor dense = bench::zeroTensor(setting, {rows, columns}, type);
  const auto copying = [&](const TensorRef &view) {
    return bench::repeated(setting, copyRowsKernel, rows / 8, {dense.ref(), view});
  };
  for (const int64_t stride : {2, 3, 4, 5, 8}) {
    const std::vector<double> seconds =
        setting.measure({copying(rowsOf(memory, rows, stride)), copying(rowsOf(memory, rows, 1))});
    bench::addRow(setting, fmt::format("store, stride {} {}x{}", stride, rows, columns), seconds, "stride_1", type);
  }
}

// --- Moves beside a copy ---------------------------------------------------------------------------------------------

static void copyPages(View x, View y) { // x, y (P, 16, 64)
  Tile p = program_id(0) * 4;
  store(y, {p, 0, 0}, load(x, {p, 0, 0}, {4, 16, 64}));
}
static void mergePages(View x, View y) { // x (P, 16, 64), y (16 P, 64)
  Tile p = program_id(0) * 4;
  store(y, {p * 16, 0}, reshape(load(x, {p, 0, 0}, {4, 16, 64}), {64, 64}));
}
static void splitRows(View x, View y) { // x (16 P, 64), y (P, 16, 64)
  Tile p = program_id(0) * 4;
  store(y, {p, 0, 0}, reshape(load(x, {p * 16, 0}, {64, 64}), {4, 16, 64}));
}
static void flatten(View x, View y) { // x (16 P, 64), y (1024 P)
  Tile p = program_id(0) * 4;
  store(y, {p * 1024}, reshape(load(x, {p * 16, 0}, {64, 64}), {4096}));
}
static void flattenRagged(View x, View y) { // x (16 P, 60), y (960 P)
  Tile p = program_id(0) * 4;
  store(y, {p * 960}, reshape(load(x, {p * 16, 0}, {64, 60}), {3840}));
}
static void gatherPages(View x, View pages, View y) { // x (P, 16, 64), pages (P), y (16 P, 64)
  Tile p = program_id(0) * 4;
  Tile named = load(pages, {p}, {4});
  store(y, {p * 16, 0}, reshape(load(x, {named, 0, 0}, {16, 64}), {64, 64}));
}
static void join(View x, View y) { // x (P, 2, 512), y (1024 P): elements of both rows take turns
  Tile p = program_id(0);
  Tile low = reshape(load(x, {p, 0, 0}, {1, 1, 512}), {512}), high = reshape(load(x, {p, 1, 0}, {1, 1, 512}), {512});
  store(y, {p * 1024}, reshape(where(iota(2) == 0, unsqueeze(low, -1), unsqueeze(high, -1)), {1024}));
}
static void turnBlocks(View x, View y) { // x (64 B, 64), y (B, 64, 64): blocks of 64 rows, transposed
  Tile b = program_id(0);
  store(y, {b, 0, 0}, reshape(transpose(load(x, {b * 64, 0}, {64, 64})), {1, 64, 64}));
}
static void scalePoints(View x, View y) { // x, y (N, 3)
  Tile n = program_id(0) * 256;
  store(y, {n, 0}, load(x, {n, 0}, {256, 3}) * 2);
}
static void addPairs(View x, View y) { // x (N, 2), y (N)
  Tile n = program_id(0) * 512;
  store(y, {n}, cast(sum(load(x, {n, 0}, {512, 2}), 1), y.type()));
}
static void addPoints(View x, View y) { // x (N, 3), y (P, 3)
  Tile p = program_id(0);
  store(y, {p, 0}, cast(sum(load(x, {p * 256, 0}, {256, 3}), 0, keep), y.type()));
}
static void checked(View x, View y) { // x, y (P, 16, 64)
  Tile p = program_id(0) * 4;
  Tile tile = load(x, {p, 0, 0}, {4, 16, 64});
  device_assert(tile < 100, "expected small numbers");
  store(y, {p, 0, 0}, tile);
}

static const Kernel copyPagesKernel = kernel("copy_pages", copyPages), mergeKernel = kernel("merge", mergePages),
                    splitKernel = kernel("split", splitRows), flattenKernel = kernel("flatten", flatten),
                    raggedKernel = kernel("flatten_ragged", flattenRagged),
                    gatherKernel = kernel("gather_pages", gatherPages), joinKernel = kernel("join", join),
                    turnKernel = kernel("turn", turnBlocks), pointsKernel = kernel("points", scalePoints),
                    pairsKernel = kernel("pairs", addPairs), sumKernel = kernel("sum_of_points", addPoints),
                    checkedKernel = kernel("checked", checked);

TensorRef bench::shaped(const Tensor &memory, const Shape &extents) {
  TensorRef view = memory.ref();
  view.extents = extents;
  view.strides.assign(extents.size(), 1);
  for (size_t axis = extents.size(); axis-- > 1;)
    view.strides[axis - 1] = view.strides[axis] * extents[axis];
  return view;
}

static void measureMoves(bench::Setting &setting, Type type) {
  const int64_t pages = 64, count = pages * 16 * 64, programs = pages / 4;
  const Tensor from = bench::zeroTensor(setting, {count}, type), to = bench::zeroTensor(setting, {count}, type);
  Tensor names = bench::zeroTensor(setting, {pages}, i32);
  std::vector<int32_t> order;
  for (int32_t page = 0; page < pages; ++page)
    order.push_back(page * 37 % pages);
  names.upload(order.data(), names.bytes());
  const Shape paged = {pages, 16, 64}, rows = {16 * pages, 64}, flat = {count};
  struct Move {
    const char *name;
    const Kernel &kernel;
    int64_t programs;
    std::vector<Arg> args;
  };
  const auto of = [&](const Shape &x, const Shape &y) {
    return std::vector<Arg>{bench::shaped(from, x), bench::shaped(to, y)};
  };
  const Move moves[] = {
      {"merge", mergeKernel, programs, of(paged, rows)},
      {"split", splitKernel, programs, of(rows, paged)},
      {"flatten", flattenKernel, programs, of(rows, flat)},
      {"flatten rows of 60", raggedKernel, programs, of({16 * pages, 60}, {960 * pages})},
      {"gather pages, merge",
       gatherKernel,
       programs,
       {bench::shaped(from, paged), names.ref(), bench::shaped(to, rows)}},
      {"join", joinKernel, pages, of({pages, 2, 512}, flat)},
      {"transpose", turnKernel, count / 4096, of(rows, {count / 4096, 64, 64})},
      {"rows of 3, doubled", pointsKernel, count / 768, of({count / 768 * 256, 3}, {count / 768 * 256, 3})},
      {"rows of 2, summed", pairsKernel, count / 1024, of({count / 2, 2}, {count / 2})},
      {"rows of 3, columns summed", sumKernel, count / 768, of({count / 768 * 256, 3}, {count / 768, 3})},
      {"check", checkedKernel, programs, of(paged, paged)}};
  for (const Move &move : moves) {
    const std::vector<double> seconds =
        setting.measure({bench::repeated(setting, move.kernel, move.programs, move.args),
                         bench::repeated(setting, copyPagesKernel, programs, of(paged, paged))});
    bench::addRow(setting, fmt::format("{}, {} elements", move.name, count), seconds, "copy", type);
  }
}

void bench::benchViews(Setting &setting) {
  for (const Type type : {f32, bf16, i8}) {
    setting.report.section(
        fmt::format("time of sums of {} rows, beside rows whose elements lie side by side", nameOf(type)));
    measureType(setting, type);
    setting.report.section(fmt::format("time of moves of {}, beside a copy", nameOf(type)));
    measureMoves(setting, type);
    setting.report.section(fmt::format("time of accesses of {}, beside a copy of as many bytes", nameOf(type)));
    measureAccesses(setting, type);
  }
  setting.report.section("time for an element of f32 that a tile of positions names");
  measureTakes(setting);
}
