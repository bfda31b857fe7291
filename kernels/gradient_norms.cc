// Sums of squares by chunk, then sums of chunks by group.

#include "kernels/gradient_norms.h"
#include "kernels/adamw.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

#include <algorithm>

namespace kiln {

/// Elements n … n + BLOCK of a vector; zeros from `end` on.
static Tile loadMasked(View from, Tile n, Tile end, int block) {
  Tile x = cast(load(from, {n}, {block}), f32); // (BLOCK)
  return where(n + iota(block, i64) < end, x, 0.0);
}

/// partials[p] = Σ g² over chunk p.
static void groupSquares(View g, View begins, View ends, View partials, GradientSquaresConfig cfg) {
  Tile p = program_id();
  Tile begin = load(begins, {p}, {}), end = load(ends, {p}, {}); // scalars
  Tile running = zeros(f32, {cfg.block});                        // (BLOCK)
  for (Tile n : range(begin, end, cfg.block)) {
    Tile x = loadMasked(g, n, end, cfg.block); // (BLOCK)
    running += x * x;
  }
  store(partials, {p}, sum(running));
}

/// norms[i] = √Σ partials of group i · unscale.
static void gradientNorms(View partials, View firsts, View record, View norms, GradientSquaresConfig cfg) {
  Tile group = program_id();
  Tile begin = load(firsts, {group}, {}), end = load(firsts, {group + 1}, {}); // scalars
  Tile running = zeros(f32, {cfg.block});                                      // (BLOCK)
  for (Tile n : range(begin, end, cfg.block))
    running += loadMasked(partials, n, end, cfg.block);
  Tile unscale = load(record, {static_cast<int>(StepField::unscale)}, {}); // scalar
  store(norms, {group}, sqrt(sum(running)) * unscale);
}

static std::vector<Field> groupFields() {
  return {field("block", &GradientSquaresConfig::block, "parallel partial sums")};
}
const Kernel gradientSquaresKernel =
    kernel("gradient_squares", groupSquares,
           {"g (n)", "begins (P) i64, first element of each chunk",
            "ends (P) i64, element after the last of each chunk", "partials (P) f32, sums of the squares of chunks"},
           groupFields());
const Kernel gradientNormsKernel = kernel("gradient_norms", gradientNorms,
                                          {"partials (P) f32", "firsts (G + 1) i64, where each group's chunks begin",
                                           "record (16) f32, with the factor 1 / loss scale", "norms (G) f32"},
                                          groupFields());

GroupChunks cutIntoChunks(std::vector<GroupRange> ranges, int64_t groups, int64_t chunk) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const auto &a, const auto &b) { return a.group < b.group; });
  GroupChunks chunks;
  auto range = ranges.begin();
  for (int64_t group = 0; group < groups; ++group) {
    chunks.firsts.push_back(std::ssize(chunks.begins));
    for (; range != ranges.end() && range->group == group; ++range)
      for (int64_t begin = range->begin; begin < range->end; begin += chunk) {
        chunks.begins.push_back(begin);
        chunks.ends.push_back(std::min(begin + chunk, range->end));
      }
  }
  chunks.firsts.push_back(std::ssize(chunks.begins));
  return chunks;
}

Plan planGradientNorms(const Target &target, const TensorRef &g, const TensorRef &begins, const TensorRef &ends,
                       const TensorRef &firsts, const TensorRef &record, const TensorRef &norms,
                       const std::optional<GradientSquaresConfig> &config) {
  const char *plan = "gradient_norms";
  checkOperands(gradientSquaresKernel, {g, begins, ends}, plan);
  checkOperands(gradientNormsKernel, {{}, firsts, record, norms}, plan);
  const int64_t P = begins.extents[0], G = norms.extents[0];
  const GradientSquaresConfig chosen =
      config.value_or(GradientSquaresConfig{.block = pickBlock(target, gradientChunk, /*onCpu=*/1024)});
  const std::string text = textOf(gradientSquaresKernel.fields, chosen);
  const Arg partials = Arg::workspace(0, f32, {P});
  return {.launches = {{&gradientSquaresKernel, text, programs(P), {g, begins, ends, partials}},
                       {&gradientNormsKernel, text, programs(G), {partials, firsts, record, norms}}},
          .workspaceBytes = P * bytesOf(f32)};
}

} // namespace kiln
