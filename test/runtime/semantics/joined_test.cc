// Pairs and fours that are joined and stored as longer rows: CPUs compute each part along its own rows and interleave
// the vectors. Rows shorter than, equal to and longer than a vector, and views that end within the tile.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Joined : public Semantics {};

struct JoinedConfig {
  int rows = 3, width = 32;
};
const std::vector<Field> joinedFields = {field("rows", &JoinedConfig::rows), field("width", &JoinedConfig::width)};

/// Each pair of x rotated by its column's angle, in place and into another view; and four parts of it.
void turn(View x, View cosines, View apart, View four, JoinedConfig cfg) {
  auto [even, odd] = split(reshape(load(x, {0, 0}, {cfg.rows, cfg.width * 2}), {cfg.rows, cfg.width, 2}));
  const Tile c = load(cosines, {0, 0}, {1, cfg.width});
  const Tile pairs = join(even * c - odd, even + odd * c);
  store(apart, {0, 0}, reshape(pairs * 2, {cfg.rows, cfg.width * 2}));
  store(four, {0, 0}, reshape(join(join(even, c + 0 * even), join(odd, even - odd)), {cfg.rows, cfg.width * 4}));
  store(x, {0, 0}, reshape(pairs, {cfg.rows, cfg.width * 2}));
}
const Kernel turnKernel = kernel("turn", turn, joinedFields);

TEST_P(Joined, EachPartIsComputedByItself) {
  const Type types[] = {f32, bf16, i32, f64, f16};
  size_t next = 2; // f16 has the widest rows
  for (const int64_t width : {1, 8, 16, 24, 32, 40, 150})
    for (const int64_t missing : {0, 3}) { // columns, of the views' ends
      const int64_t rows = next % 3 ? 3 : 1;
      const Type type = types[next++ % std::size(types)];
      SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(rows) + " x " + std::to_string(width) +
                   " missing " + std::to_string(missing));
      const auto word = [&](int64_t v) {
        return isFloat(type) ? rawOfReal(type, static_cast<double>(v)) : rawOfInteger(type, v);
      };
      const int64_t seen = std::max<int64_t>(width * 2 - missing, 1);
      const auto at = [&](int64_t r, int64_t c) { return c < seen ? (r * 5 + c * 3) % 7 - 2 : 0; };
      const auto cosine = [](int64_t c) { return c % 4 - 1; };
      const auto memory = [&](int64_t columns) { // with a margin that nobody writes: a row, and the columns that miss
        return tensor(type, {rows + 1, columns}, Raw((rows + 1) * columns, word(9)));
      };
      Raw raw, cosines;
      for (int64_t r = 0; r <= rows; ++r)
        for (int64_t c = 0; c < width * 2; ++c)
          raw.push_back(word(r < rows && c < seen ? at(r, c) : 9));
      for (int64_t c = 0; c < width; ++c)
        cosines.push_back(word(cosine(c)));
      const Tensor x = tensor(type, {rows + 1, width * 2}, raw), c = tensor(type, {1, width}, cosines),
                   apart = memory(width * 2), four = memory(width * 4);
      const int64_t ends = std::max<int64_t>(width * 4 - missing, 1);
      const auto seenOf = [&](const Tensor &tensor, int64_t columns) {
        return tensor.ref().slice(0, 0, rows).slice(1, 0, columns);
      };
      launch(turnKernel, {seenOf(x, seen), c.ref(), seenOf(apart, seen), seenOf(four, ends)},
             "rows=" + std::to_string(rows) + ",width=" + std::to_string(width));
      const Raw here = read(x), there = read(apart), fours = read(four);
      for (int64_t r = 0; r <= rows; ++r)
        for (int64_t p = 0; p < width; ++p) {
          const int64_t even = at(r, 2 * p), odd = at(r, 2 * p + 1), k = cosine(p);
          const int64_t turned[] = {even * k - odd, even + odd * k}, parts[] = {even, odd, k, even - odd};
          for (int64_t i = 0; i < 2; ++i) {
            const int64_t column = 2 * p + i, place = r * width * 2 + column;
            ASSERT_TRUE(same(type, here[place], word(r < rows && column < seen ? turned[i] : 9), false))
                << r << ", " << column;
            ASSERT_TRUE(same(type, there[place], word(r < rows && column < seen ? turned[i] * 2 : 9), false))
                << r << ", " << column;
          }
          for (int64_t i = 0; i < 4; ++i)
            ASSERT_EQ(fours[r * width * 4 + 4 * p + i], word(r < rows && 4 * p + i < ends ? parts[i] : 9))
                << r << ", " << p << ", " << i;
        }
    }
}

KILN_ON_PROCESSORS(Joined);

} // namespace
