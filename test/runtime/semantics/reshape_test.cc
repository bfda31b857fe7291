// Reshapes that merge and split dimensions, of tiles that are loaded, computed, gathered and turned: elements keep
// their row-major order, whatever vectors and threads take together, also where tiles hang over the ends of their
// views.

#include "test/runtime/semantics/semantics.h"

#include <numeric>

using namespace kiln;
using namespace kiln::test;

namespace {

class Reshapes : public Semantics {};

/// Shapes of as many elements: rows of whole vectors, of parts of one, and of neither.
const std::pair<Shape, Shape> shapes[] = {
    {{4, 16, 64}, {64, 64}}, {{64, 64}, {4, 16, 64}}, {{32, 64}, {2048}},          {{2048}, {32, 64}},
    {{6, 100}, {600}},       {{600}, {6, 100}},       {{2, 3, 4, 5, 3}, {24, 15}}, {{24, 15}, {2, 3, 4, 5, 3}},
    {{16, 2}, {32}},         {{32}, {16, 2}},         {{8, 8, 8}, {64, 8}},        {{8, 24}, {4, 48}},
    {{12, 24}, {6, 48}},     {{5, 1, 33}, {165}},     {{2, 64, 1}, {128}},         {{40, 2, 4}, {320}},
    {{3, 32}, {2, 48}},      {{2, 3, 2, 4, 8}, {384}}};

enum Form { loaded, computed, turned, gathered, forms };

struct Config {
  int number = 0, form = 0;
};

Shape rest(const Shape &shape) { return Shape(shape.begin() + 1, shape.end()); }

/// The tile begins `from` rows before or after the view. x of the first shape; rows (first extent); y of the second.
void reshaped(View x, View rows, View y, Tile from, Config cfg) {
  const auto &[before, after] = shapes[cfg.number];
  Offsets at(before.size(), 0);
  at[0] = from;
  if (cfg.form == gathered)
    at[0] = load(rows, {0}, {before[0]});
  Tile tile = load(x, at, cfg.form == gathered ? rest(before) : before);
  if (cfg.form == computed)
    tile = x.type() == boolean ? !tile : tile + 1;
  Tile result = reshape(tile, after);
  if (cfg.form == turned)
    result = transpose(result, {1, 0});
  store(y, Offsets(y.rank(), 0), result);
}
const Kernel reshapedKernel =
    kernel("reshaped", reshaped, {field("number", &Config::number), field("form", &Config::form)});

/// A number from 0 to 100 as an element; every third is true.
uint64_t wordOf(Type type, int64_t number) {
  if (type == boolean)
    return number % 3 == 1;
  return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
}

/// The word of element `place` after arithmetic.
uint64_t next(Type type, int64_t place) {
  return type == boolean ? !wordOf(type, place % 100) : wordOf(type, place % 100 + 1);
}

TEST_P(Reshapes, ElementsKeepTheirOrder) {
  const Type types[] = {f32, i8, i64, bf16, boolean};
  int kinds = 0;
  for (int number = 0; number < static_cast<int>(std::size(shapes)); ++number)
    for (int form = 0; form < forms; ++form) {
      const auto &[before, after] = shapes[number];
      if (form == turned && after.size() != 2)
        continue;
      const Type type = types[kinds++ % std::size(types)];
      const int64_t count = std::accumulate(before.begin(), before.end(), int64_t(1), std::multiplies<>());
      const int64_t inRow = count / before[0], from = form == gathered ? 0 : number % 3 - 1;
      Raw have(count);
      for (int64_t i = 0; i < count; ++i)
        have[i] = wordOf(type, i % 100);
      const Tensor x = tensor(type, before, have);
      Raw order(before[0]);
      for (int64_t row = 0; row < before[0]; ++row)
        order[row] = rawOfInteger(i32, row == 1 ? -7 : before[0] - 1 - row);
      const Tensor rows = tensor(i32, {before[0]}, order);
      const Shape stored = form == turned ? Shape{after[1], after[0]} : after;
      const Tensor y(device, type, stored);
      launch(reshapedKernel, {x.ref(), rows.ref(), y.ref(), from},
             "number=" + std::to_string(number) + ",form=" + std::to_string(form));
      const Raw got = read(y);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = i / inRow, named = form == gathered ? (row == 1 ? -7 : before[0] - 1 - row) : row + from;
        const bool inside = named >= 0 && named < before[0];
        uint64_t want = inside ? have[named * inRow + i % inRow] : 0;
        if (form == computed)
          want = inside ? next(type, i % inRow + named * inRow) : wordOf(type, 1);
        const int64_t place = form == turned ? i % after[1] * after[0] + i / after[1] : i;
        ASSERT_EQ(got[place], want) << nameOf(type) << " shapes " << number << " form " << form << " element " << i;
      }
    }
}

KILN_ON_PROCESSORS(Reshapes);

} // namespace
