// Masks in loops: a mask may be omitted in iterations in which it is all true, and only there.

#include "test/runtime/semantics/semantics.h"

#include <climits>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t rows = 8, columns = 16;

/// The ways to write a mask of a tile at row m and column n of something with T columns.
enum Form { Extent, WideExtent, Causal, Turned, Window, Reversed, Beside, Cut, Two, formCount };

struct SplitConfig {
  int form = 0, begin = 0, step = columns;
};

Tile maskOf(Tile m, Tile n, Tile T, Tile huge, int form) {
  Tile row = unsqueeze(iota(rows), -1), column = unsqueeze(iota(columns), 0); // (ROWS, 1), (1, COLUMNS)
  switch (form) {
  case Extent:
    return column < cast(T - n, i32);
  case WideExtent:
    return n + unsqueeze(iota(columns, i64), 0) < T;
  case Causal:
    return column - row <= cast(m - n, i32);
  case Turned:
    return row - column <= cast(n - m, i32);
  case Window:
    return (column - row <= cast(m - n, i32)) & (row - column < cast(n - m + 24, i32));
  case Reversed:
    return cast(n - m, i32) >= row - column;
  case Beside: // a number of rows' own beside the scalar
    return (column < cast(T - n, i32)) & (row < 5);
  case Cut: // what is above 32 bits is lost
    return column <= cast(huge - n, i32);
  default: // one tile chosen by a mask, another by its opposite
    return !(column - row > cast(m - n, i32));
  }
}

bool isSeen(int64_t row, int64_t column, int64_t m, int64_t n, int64_t T, int64_t huge, int form) {
  switch (form) {
  case Extent:
  case WideExtent:
    return n + column < T;
  case Causal:
  case Two:
    return n + column <= m + row;
  case Turned:
  case Reversed:
    return m + row <= n + column;
  case Window:
    return n + column <= m + row && m + row < n + column + 24;
  case Beside:
    return n + column < T && row < 5;
  default:
    return column <= static_cast<int32_t>(huge - n);
  }
}

/// Every round counts, in its order: acc · 3 + the element where the mask is true, else + −1 and the round's number.
void underLoop(View x, View large, View y, SplitConfig cfg) {
  Tile m = program_id(0) * rows, T = x.dim(0), huge = large.dim(0);
  Tile acc = zeros(i32, {rows, columns}); // (ROWS, COLUMNS)
  for (Tile n : range(cfg.begin, T, cfg.step)) {
    Tile mask = broadcast(maskOf(m, n, T, huge, cfg.form), {rows, columns}); // (ROWS, COLUMNS)
    Tile value = unsqueeze(load(x, {n}, {columns}), 0);                      // (1, COLUMNS)
    acc = acc * 3 + where(mask, value, -1 - cast(n, i32));                   // (ROWS, COLUMNS)
  }
  store(y, {m, 0}, acc);
}
const Kernel underLoopKernel =
    kernel("under_loop", underLoop,
           {field("form", &SplitConfig::form), field("begin", &SplitConfig::begin), field("step", &SplitConfig::step)});

Raw expected(const Raw &x, int64_t programs, int64_t huge, SplitConfig cfg) {
  const auto T = static_cast<int64_t>(x.size());
  Raw result;
  for (int64_t i = 0; i < programs * rows; ++i)
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t m = i / rows * rows;
      uint32_t acc = 0;
      for (int64_t n = cfg.begin; n < T; n += cfg.step) {
        const auto value = static_cast<uint32_t>(n + column >= 0 && n + column < T ? x[n + column] : 0);
        const bool seen = isSeen(i % rows, column, m, n, T, huge, cfg.form);
        acc = acc * 3 + (seen ? value : static_cast<uint32_t>(-1 - n));
      }
      result.push_back(acc);
    }
  return result;
}

class Split : public Semantics {};

TEST_P(Split, MasksInLoopsKeepTheirRounds) {
  constexpr int64_t programs = 7;
  const Tensor one = tensor(i32, {1}, {0});
  for (int form = 0; form < formCount; ++form)
    for (const auto &[begin, step] : {std::pair{0, 16}, {-21, 7}, {3, 40}})
      for (const int64_t T : {0, 1, 16, 40, 56, 93}) {
        Raw words;
        for (int64_t i = 0; i < T; ++i)
          words.push_back(1000 * i + 7);
        // One number as an extent: a view of that size, of which only the extent is read.
        const int64_t huge = (int64_t{1} << 32) + 37;
        TensorRef large = one.ref();
        large.extents = {huge};
        large.strides = {0};
        const Tensor x = tensor(i32, {T}, words), y(device, i32, {programs * rows, columns});
        const SplitConfig cfg{form, begin, step};
        launch(underLoopKernel, {x.ref(), large, y.ref()}, cfg, programs);
        EXPECT_EQ(read(y), expected(words, programs, huge, cfg))
            << "form " << form << ", from " << begin << " by " << step << " to " << T;
      }
}

KILN_ON_PROCESSORS(Split);

} // namespace
