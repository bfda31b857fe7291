// Masks of loads and stores that hold for all elements of some vectors and not of others: what they leave out is
// neither read nor written, and what follows from them is right on either side, beside sums of what was read.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

enum Form { both, reading, writing, chosen, two, forms };

struct Config {
  int rows = 3, columns = 1, form = 0;
};

/// x, y, masks, others (rows, columns); sums (rows): of what was read.
void moveMasked(View x, View masks, View others, View y, View sums, Config cfg) {
  const Shape shape = {cfg.rows, cfg.columns};
  Tile mask = load(masks, {0, 0}, shape), other = load(others, {0, 0}, shape);
  Tile tile = cfg.form == writing ? load(x, {0, 0}, shape)
              : cfg.form == two   ? load(x, {0, 0}, shape, {.mask = other})
                                  : load(x, {0, 0}, shape, {.mask = mask});
  if (cfg.form == chosen)
    tile = where(mask, tile + 1, 50);
  if (cfg.form == reading || cfg.form == chosen)
    store(y, {0, 0}, tile);
  else
    store(y, {0, 0}, tile, {.mask = mask});
  store(sums, {0}, sum(cast(tile, i32)));
}
const Kernel moveMaskedKernel =
    kernel("move_masked", moveMasked,
           {field("rows", &Config::rows), field("columns", &Config::columns), field("form", &Config::form)});

class Masks : public Semantics {};

TEST_P(Masks, HoldForWholeVectorsOrNot) {
  constexpr int64_t rows = 3;
  int kinds = 0;
  for (const int64_t columns : {5, 64, 300})
    for (int form = 0; form < forms; ++form)
      for (const int64_t known : {columns, columns - 1, columns / 2, int64_t(33), int64_t(0)}) {
        const Type type = std::array{f32, i8, i32, bf16, i64}[kinds++ % 5];
        const int64_t count = rows * columns;
        const auto wordOf = [&](int64_t number) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
        };
        // The first row's mask holds up to a column, the second's from it on, the third's for most.
        Raw have(count), before(count, wordOf(99)), mask(count), other(count);
        for (int64_t i = 0; i < count; ++i) {
          const int64_t row = i / columns, column = i % columns;
          have[i] = wordOf(i * 7 % 41 + 1);
          mask[i] = row == 0 ? column < known : row == 1 ? column >= known : column % 67 != 66;
          other[i] = column % 97 != 40;
        }
        const Tensor x = tensor(type, {rows, columns}, have), y = tensor(type, {rows, columns}, before);
        const Tensor masks = tensor(boolean, {rows, columns}, mask), others = tensor(boolean, {rows, columns}, other);
        const Tensor sums(device, i32, {rows});
        launch(moveMaskedKernel, {x.ref(), masks.ref(), others.ref(), y.ref(), sums.ref()},
               "columns=" + std::to_string(columns) + ",form=" + std::to_string(form));
        const Raw got = read(y), added = read(sums);
        for (int64_t row = 0; row < rows; ++row) {
          int64_t total = 0;
          for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            const bool isRead = form == writing || (form == two ? other[i] : mask[i]) != 0;
            const bool isWritten = form == reading || form == chosen || mask[i] != 0;
            int64_t number = isRead ? i * 7 % 41 + 1 : 0;
            if (form == chosen)
              number = mask[i] ? number + 1 : 50;
            total += number;
            ASSERT_EQ(got[i], isWritten ? wordOf(number) : before[i])
                << nameOf(type) << " columns " << columns << " form " << form << " up to " << known << " element " << i;
          }
          ASSERT_EQ(integerOf(i32, added[row]), total)
              << nameOf(type) << " columns " << columns << " form " << form << " up to " << known << " row " << row;
        }
      }
}

KILN_ON_EVERY_DEVICE(Masks);

} // namespace
