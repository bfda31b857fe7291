// Reading views whose lanes lie apart: sums of rows, by the stride of their elements, beside the same sums of rows
// whose elements lie side by side. The data stay in a core's caches, so that reading is measured and not memory. Lanes
// up to 4 apart are read by vectors and shuffles, others one by one. A view of f32 with stride s touches s times the
// cache lines, up to one for each element, so that 1/s is what to expect of it. The turned view has the lanes of a row
// in lines of their own, 64 elements apart: in f32 and bf16 they lie in so few sets of the first cache that the next
// row finds none of them there.

#include "tools/kiln-bench/bench.h"

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

/// Rows whose elements lie `stride` apart; as many stay in use whatever the stride is.
static TensorRef rowsOf(const Tensor &memory, int64_t rows, int64_t stride) {
  TensorRef view = memory.ref();
  view.extents = {rows, columns};
  view.strides = {columns * stride, stride};
  return view;
}

static void measureType(bench::Setting &setting, Type type) {
  const int64_t rows = 64, widest = 8;
  const Tensor memory = bench::zeroTensor(setting, {rows * columns * widest}, type);
  const Tensor sums = bench::zeroTensor(setting, {rows});
  const auto summing = [&](const TensorRef &view) {
    Plan plan;
    for (int64_t again = 0; again < (setting.quick ? 1 : 8); ++again)
      plan.launches.push_back({&sumRowsKernel, "", programs(rows / 8), {view, sums.ref()}});
    return bench::Runner(setting, std::move(plan));
  };
  TensorRef turned = memory.ref();
  turned.extents = {rows, columns};
  turned.strides = {1, rows};
  std::vector<std::pair<std::string, TensorRef>> views = {{"turned", turned}};
  for (const int64_t stride : {2, 3, 4, 5, 8})
    views.emplace_back(fmt::format("stride {}", stride), rowsOf(memory, rows, stride));
  for (const auto &[name, view] : views) {
    const std::vector<double> seconds = setting.measure({summing(view), summing(rowsOf(memory, rows, 1))});
    setting.report.add({.bench = "views",
                        .shape = fmt::format("{} {}x{}", name, rows, columns),
                        .metric = "us",
                        .value = seconds[0] * 1e6,
                        .peer = "stride_1",
                        .peerValue = seconds[1] * 1e6,
                        .ratio = seconds[1] / seconds[0],
                        .dtype = nameOf(type)});
  }
}

void bench::benchViews(Setting &setting) {
  for (const Type type : {f32, bf16, i8}) {
    setting.report.section(
        fmt::format("time of sums of {} rows, beside rows whose elements lie side by side", nameOf(type)));
    measureType(setting, type);
  }
}
