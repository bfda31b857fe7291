// Elements of one and two bytes, moved and computed by whole vectors of them: in rows of any extent, with every rest of
// a vector and of its halves, also where rows are merged, split, named or take turns. What lies behind a row stays.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

const Type narrowTypes[] = {i8, u8, boolean, f8e4m3, i16, bf16, f16};

enum Form { copied, computed, merged, divided, named, interleaved, forms };

struct Config {
  int rows = 4, columns = 1, form = 0;
};

/// x (rows, columns); order (rows); y as many rows and columns, which is a part of a wider tensor where its rows are
/// stored as they are.
void moveNarrow(View x, View order, View y, Tile from, Config cfg) {
  const int64_t rows = cfg.rows, columns = cfg.columns, half = columns / 2;
  const auto whole = [&] { return load(x, {from, 0}, {rows, columns}); };
  switch (cfg.form) {
  case copied:
    return store(y, {0, 0}, whole());
  case computed:
    return store(y, {0, 0},
                 x.type() == boolean ? !whole()
                 : isFloat(x.type()) ? where(whole() > 3, whole(), cast(-whole(), x.type()))
                                     : whole() + whole());
  case merged:
    return store(y, {0}, reshape(whole(), {rows * columns}));
  case divided:
    return store(y, {0, 0}, reshape(reshape(whole(), {rows * columns}), {rows / 2, 2 * columns}));
  case named:
    return store(y, {0, 0}, load(x, {load(order, {0}, {rows}), 0}, {columns}));
  default:
    return store(y, {0, 0}, interleave(load(x, {from, 0}, {rows, half}), load(x, {from, half}, {rows, half})));
  }
}
const Kernel moveNarrowKernel =
    kernel("move_narrow", moveNarrow,
           {field("rows", &Config::rows), field("columns", &Config::columns), field("form", &Config::form)});

class Narrow : public Semantics {
protected:
  static uint64_t wordOf(Type type, int64_t number) {
    return type == boolean ? number % 3 == 1
           : isFloat(type) ? rawOfReal(type, static_cast<double>(number % 13))
                           : rawOfInteger(type, number % 61);
  }
};

TEST_P(Narrow, RowsOfAnyExtentMove) {
  constexpr int64_t rows = 4, beside = 3;
  int kinds = 0;
  for (const int64_t columns : {2, 30, 34, 60, 64, 66, 126, 130, 190, 256, 258, 510})
    for (int form = 0; form < forms; ++form)
      for (const int64_t from : {0, 1}) { // inside the view, and one row over its end
        const Type type = narrowTypes[kinds++ % std::size(narrowTypes)];
        const auto element = [&](int64_t row, int64_t column) { return wordOf(type, row * 17 + column); };
        Raw have(rows * columns);
        for (int64_t i = 0; i < rows * columns; ++i)
          have[i] = element(i / columns, i % columns);
        const Tensor x = tensor(type, {rows, columns}, have);
        const Tensor order = tensor(i32, {rows}, {2, 0, from == 0 ? rawOfInteger(i32, 1) : rawOfInteger(i32, -1), 3});
        const bool isLine = form == merged;
        const int64_t width = form == divided ? 2 * columns : columns, lines = form == divided ? rows / 2 : rows;
        Raw untouched(isLine ? rows * columns + beside : lines * (width + beside), wordOf(type, 1));
        const Tensor y =
            tensor(type, isLine ? Shape{rows * columns + beside} : Shape{lines, width + beside}, untouched);
        const TensorRef view = isLine ? y.ref().slice(0, 0, rows * columns) : y.ref().slice(1, 0, width);
        launch(moveNarrowKernel, {x.ref(), order.ref(), view, from},
               "columns=" + std::to_string(columns) + ",form=" + std::to_string(form));
        const Raw got = read(y);
        for (size_t i = 0; i < got.size(); ++i) {
          const auto place = static_cast<int64_t>(i);
          const int64_t line = isLine ? 0 : place / (width + beside), at = isLine ? place : place % (width + beside);
          const std::string where = nameOf(type) + std::string(" columns ") + std::to_string(columns) + " form " +
                                    std::to_string(form) + " from " + std::to_string(from) + " element " +
                                    std::to_string(i);
          if (at >= (isLine ? rows * columns : width)) {
            ASSERT_EQ(got[i], untouched[i]) << where;
            continue;
          }
          const int64_t number = isLine ? at : line * width + at;
          int64_t row = number / columns + from, column = number % columns;
          if (form == named)
            row = std::array<int64_t, 4>{2, 0, from == 0 ? 1 : -1, 3}[number / columns];
          if (form == interleaved)
            column = column % 2 * (columns / 2) + column / 2;
          const bool inside = row >= 0 && row < rows;
          const uint64_t word = inside ? element(row, column) : 0;
          uint64_t want = word;
          if (form == computed)
            want = type == boolean ? !word
                   : isFloat(type) ? rawOfReal(type, realOf(type, word) > 3 ? realOf(type, word) : -realOf(type, word))
                                   : rawOfInteger(type, 2 * integerOf(type, word));
          ASSERT_EQ(got[i], want) << where;
        }
      }
}

KILN_ON_PROCESSORS(Narrow);

} // namespace
