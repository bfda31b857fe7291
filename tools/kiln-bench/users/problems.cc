// The kernels at sizes of use.

#include "tools/kiln-bench/users/users.h"

#include <numeric>

namespace kiln::bench {

namespace {
class List {
public:
  List(Operands &make, const Space &space) : make(make), space(space) {}

  /// A dense tensor of zeros.
  TensorRef operator()(const Shape &extents, Type type) { return make(extents, type); }
  /// One with these numbers.
  TensorRef operator()(const Shape &extents, const std::vector<int32_t> &numbers) {
    const TensorRef tensor = make(extents, i32);
    space.write(tensor.data, numbers.data(), tensor.bytes());
    return tensor;
  }
  /// `elements` are what a round of the main loop works on, or a program.
  template <class Config>
  void add(const Kernel &kernel, const Config &config, Type type, const Grid &grid, const std::vector<Arg> &args,
           double elements) {
    const Launch launch{&kernel, textOf(kernel.fields, config), grid, args};
    problems.push_back({{"users", kernel.name, kernel.name, type, launch}, elements});
  }

  std::vector<UserProblem> problems;

private:
  Operands &make;
  const Space &space;
};
} // namespace

static void addRows(List &list) {
  constexpr int64_t N = 4096, C = 1024, ragged = 1000, vocabulary = 32000;
  const RowsConfig rows;
  list.add(rmsNormKernel, rows, bf16, programs(cdiv(N, rows.rows)),
           {list({N, C}, bf16), list({C}, bf16), list({N, C}, bf16)}, static_cast<double>(rows.rows * C));
  list.add(userSoftmaxKernel, rows, bf16, programs(cdiv(N, rows.rows)),
           {list({N, ragged}, bf16), list({N, ragged}, bf16)}, static_cast<double>(rows.rows * ragged));
  const GroupNormConfig group{.warps = 1};
  list.add(groupNormKernel, group, bf16, programs(32, 16),
           {list({16, 256, 256}, bf16), list({256}, bf16), list({256}, bf16), list({16, 256, 256}, bf16)},
           group.channels * 256.0);
  const BlockConfig block{.block = 2048};
  list.add(klLossKernel, block, bf16, programs(1024),
           {list({1024, vocabulary}, bf16), list({1024, vocabulary}, bf16), list({1024}, f32),
            list({1024, vocabulary}, bf16), 0.5f},
           block.block);
  const LargestConfig largest;
  list.add(largestKernel, largest, f32, programs(N / largest.rows),
           {list({N, C}, f32), list({N, largest.k}, f32), list({N, largest.k}, i32)},
           static_cast<double>(largest.rows * C));
}

static void addPointwise(List &list) {
  constexpr int64_t count = 1 << 20;
  const BlockConfig block{.block = 2048};
  list.add(dropoutKernel, block, bf16, programs(count / block.block),
           {list({count}, bf16), list({count}, bf16), 7, 0.1f}, block.block);
  const RopeConfig rope{.bt = 64};
  const Shape heads = {2, 8, 1024, 128}, turns = {1024, 64};
  list.add(ropeKernel, rope, bf16, programs(1024 / rope.bt, 8, 2),
           {list(heads, bf16), list(turns, f32), list(turns, f32), list(heads, bf16)}, rope.bt * 128.0);
  const StencilConfig stencil{.bm = 16, .bn = 256};
  const Shape plane = {1024, 1024};
  list.add(stencilKernel, stencil, f32, programs(1024 / stencil.bm, 1024 / stencil.bn),
           {list(plane, f32), list(plane, f32), 0.5f, 0.125f}, static_cast<double>(stencil.bm) * stencil.bn);
  const ConvolveConfig convolve{.bt = 32, .bd = 128};
  const Shape sequences = {2, 1024, 512};
  list.add(convolveKernel, convolve, bf16, programs(512 / convolve.bd, 1024 / convolve.bt, 2),
           {list(sequences, bf16), list({4, 512}, bf16), list({512}, bf16), list(sequences, bf16)},
           static_cast<double>(convolve.bt) * convolve.bd);
}

static double multiplyAdds(const ProductConfig &config) { return 1.0 * config.bm * config.bn * config.bk; }

static void addProducts(List &list) {
  constexpr int64_t M = 1024, N = 1024, K = 1024;
  const TensorRef x = list({M, K}, bf16), w = list({K, N}, bf16), y = list({M, N}, bf16);
  const auto gridOf = [](const ProductConfig &config) { return programs(M / config.bm, N / config.bn); };
  const ProductConfig gated{.bm = 128, .bn = 64, .bk = 64}, wide{.bm = 128, .bn = 128, .bk = 64};
  list.add(swigluKernel, gated, bf16, gridOf(gated), {x, w, list({K, N}, bf16), y}, 2 * multiplyAdds(gated));
  list.add(scaledProductKernel, wide, bf16, gridOf(wide), {x, list({K, N}, i8), list({K / wide.bk, N}, f32), y},
           multiplyAdds(wide));
  const ProductConfig gates{.bm = 128, .bn = 32, .bk = 32};
  list.add(lstmStepKernel, gates, bf16, gridOf(gates),
           {x, list({M, N}, bf16), list({M, N}, f32), list({4, K, N}, bf16), list({4, N, N}, bf16), list({4, N}, f32),
            y, list({M, N}, f32)},
           4 * multiplyAdds(gates));
  list.add(persistentProductKernel, wide, bf16, programs(64), {x, w, y}, multiplyAdds(wide));
}

static void addAttention(List &list) {
  constexpr int64_t B = 1, H = 8, T = 2048, D = 64;
  const WindowConfig window;
  const Shape queries = {B, H, T, D}, keys = {B, H / window.group, T, D};
  list.add(windowAttentionKernel, window, bf16, programs(T / window.bm, H, B),
           {list(queries, bf16), list(keys, bf16), list(keys, bf16), list({H}, f32), list(queries, bf16), 0.125f},
           static_cast<double>(window.bm) * window.bn);
  const PagedConfig paged{.warps = 1};
  const int64_t pages = T / paged.page;
  const Shape cache = {pages, H, paged.page, D}, news = {4, H, paged.group, D};
  list.add(pagedAttentionKernel, paged, bf16, programs(H, 4),
           {list(news, bf16), list(cache, bf16), list(cache, bf16), list({4, pages}, i32),
            list({4}, std::vector<int32_t>(4, T)), list(news, bf16), 0.125f},
           static_cast<double>(paged.group) * paged.page * paged.pages);
}

static void addSequences(List &list) {
  constexpr int64_t B = 2, T = 256, D = 1024, S = 16;
  const ScanConfig scan{.warps = 1};
  const Shape sequence = {B, T, D}, states = {B, T, S};
  list.add(selectiveScanKernel, scan, f32, programs(D / scan.bd, B),
           {list(sequence, f32), list(sequence, f32), list({D, S}, f32), list(states, f32), list(states, f32),
            list(sequence, f32)},
           static_cast<double>(scan.bd * S));
  const BlockConfig block;
  list.add(runningSumKernel, block, bf16, programs(D / block.block, B), {list(sequence, bf16), list(sequence, bf16)},
           block.block);
  const RowsConfig rows;
  list.add(sortRowsKernel, rows, f32, programs(1024 / rows.rows), {list({1024, 256}, f32), list({1024, 256}, f32)},
           rows.rows * 256.0);
}

static void addLookups(List &list) {
  constexpr int64_t M = 1024, D = 1024, entries = 32;
  std::vector<int32_t> starts(M + 1);
  for (size_t i = 0; i < starts.size(); ++i)
    starts[i] = static_cast<int32_t>(i * entries);
  const BlockConfig block{.block = 256, .warps = 1};
  list.add(
      sparseRowsKernel, block, f32, programs(M, D / block.block),
      {list({M + 1}, starts), list({M * entries}, i32), list({M * entries}, f32), list({M, D}, f32), list({M, D}, f32)},
      block.block);
  const BagConfig bag{.bags = 1, .warps = 1};
  list.add(bagsKernel, bag, bf16, programs(M / bag.bags),
           {list({M, entries}, i32), list({4096, 256}, bf16), list({M, 256}, bf16)}, bag.bags * 256.0);
  const HistogramConfig counts{.warps = 8};
  list.add(histogramKernel, counts, i32, programs(4), {list({4 * counts.chunk}, i32), list({counts.bins}, i32)},
           static_cast<double>(counts.block) * counts.bins);
}

std::vector<UserProblem> userProblems(Operands &make, const Space &space) {
  List list(make, space);
  addRows(list);
  addPointwise(list);
  addProducts(list);
  addAttention(list);
  addSequences(list);
  addLookups(list);
  return list.problems;
}

} // namespace kiln::bench
