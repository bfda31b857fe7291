// Pairs and fours that are joined and stored as longer rows: CPUs compute each part along its own rows and put vectors
// of them side by side. Rows below, of and above a vector, and views that end within the tile.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Joined : public Semantics {};

struct JoinedConfig {
  int rows = 3, width = 32;
};
const std::vector<Field> joinedFields = {field("rows", &JoinedConfig::rows), field("width", &JoinedConfig::width)};

/// Each pair of x turned by what its column has, in place of it and apart; and four parts of it.
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
  size_t next = 0;
  for (const int64_t width : {1, 8, 16, 24, 32, 40, 150})
    for (const int64_t rows : {1, 3})
      for (const int64_t missing : {0, 3}) { // columns, of the views' ends
        const Type type = types[next++ % std::size(types)];
        SCOPED_TRACE(nameOf(type) + std::string(" ") + std::to_string(rows) + " x " + std::to_string(width) +
                     " missing " + std::to_string(missing));
        const auto word = [&](int64_t v) {
          return isFloat(type) ? rawOfReal(type, static_cast<double>(v)) : rawOfInteger(type, v);
        };
        const int64_t seen = std::max<int64_t>(width * 2 - missing, 1);
        const auto at = [&](int64_t r, int64_t c) { return c < seen ? (r * 5 + c * 3) % 7 - 2 : 0; };
        const auto cosine = [](int64_t c) { return c % 4 - 1; };
        const auto memory = [&](int64_t columns) { // with a margin that nobody writes
          return tensor(type, {rows, columns}, Raw(rows * columns, word(9)));
        };
        Raw raw, cosines;
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t c = 0; c < width * 2; ++c)
            raw.push_back(word(c < seen ? at(r, c) : 9));
        for (int64_t c = 0; c < width; ++c)
          cosines.push_back(word(cosine(c)));
        const Tensor x = tensor(type, {rows, width * 2}, raw), c = tensor(type, {1, width}, cosines),
                     apart = memory(width * 2), four = memory(width * 4);
        const int64_t ends = std::max<int64_t>(width * 4 - missing, 1);
        launch(turnKernel,
               {x.ref().slice(1, 0, seen), c.ref(), apart.ref().slice(1, 0, seen), four.ref().slice(1, 0, ends)},
               "rows=" + std::to_string(rows) + ",width=" + std::to_string(width));
        const Raw here = read(x), there = read(apart), fours = read(four);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t p = 0; p < width; ++p) {
            const int64_t even = at(r, 2 * p), odd = at(r, 2 * p + 1), k = cosine(p);
            const int64_t turned[] = {even * k - odd, even + odd * k}, parts[] = {even, odd, k, even - odd};
            for (int64_t i = 0; i < 2; ++i) {
              const int64_t column = 2 * p + i, place = r * width * 2 + column;
              ASSERT_EQ(here[place], word(column < seen ? turned[i] : 9)) << r << ", " << column;
              ASSERT_EQ(there[place], word(column < seen ? turned[i] * 2 : 9)) << r << ", " << column;
            }
            for (int64_t i = 0; i < 4; ++i)
              ASSERT_EQ(fours[r * width * 4 + 4 * p + i], word(4 * p + i < ends ? parts[i] : 9))
                  << r << ", " << p << ", " << i;
          }
      }
}

/// Each element of a row twice, and three times.
void repeat(View x, View twice, View thrice, JoinedConfig cfg) {
  const Tile t = load(x, {0, 0}, {cfg.rows, cfg.width});
  store(twice, {0, 0}, interleave(t, t));
  store(thrice, {0, 0}, reshape(broadcast(unsqueeze(t, -1), {cfg.rows, cfg.width, 3}), {cfg.rows, cfg.width * 3}));
}
const Kernel repeatKernel = kernel("repeat", repeat, joinedFields);

// Lanes that read the same element are no neighbours, however far apart a view's elements are.
TEST_P(Joined, RepeatsOfViewsOfAnyStride) {
  const int64_t rows = 3;
  for (const Type type : {f32, i8, f64})
    for (const int64_t width : {7, 16, 24})
      for (const int64_t stride : {1, 2, 0, -1, -14}) {
        SCOPED_TRACE(nameOf(type) + std::string(" x ") + std::to_string(width) + ", stride " + std::to_string(stride));
        const int64_t pitch = width * 14 + 3, begin = stride < 0 ? pitch - 1 : 0;
        Raw raw;
        for (int64_t i = 0; i < rows * pitch; ++i)
          raw.push_back(isFloat(type) ? rawOfReal(type, static_cast<double>(i % 101)) : rawOfInteger(type, i % 101));
        const Tensor memory = tensor(type, {rows * pitch}, raw);
        const auto blank = [&](int64_t times) {
          return tensor(type, {rows, width * times}, Raw(rows * width * times));
        };
        const Tensor twice = blank(2), thrice = blank(3);
        TensorRef x = memory.ref().slice(0, begin, 1);
        x.extents = {rows, width};
        x.strides = {pitch, stride};
        launch(repeatKernel, {x, twice.ref(), thrice.ref()}, "rows=3,width=" + std::to_string(width));
        for (const auto &[tensor, times] : {std::pair(&twice, 2), {&thrice, 3}}) {
          const Raw got = read(*tensor);
          for (int64_t r = 0; r < rows; ++r)
            for (int64_t c = 0; c < width * times; ++c)
              ASSERT_EQ(got[r * width * times + c], raw[begin + r * pitch + c / times * stride])
                  << times << " times, " << r << ", " << c;
        }
      }
}

KILN_ON_PROCESSORS(Joined);

} // namespace
