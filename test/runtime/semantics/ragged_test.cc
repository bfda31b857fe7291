// Rows that end within a vector: for any remainder of the extent, elements inside are read and written, and no others.
//
// Rows begin at multiples of 16 bytes, so that a GPU moves vectors of 16 bytes. Tiles of 32 columns cover a row; the
// view ends within one of their vectors after each possible number of elements. All numbers are whole.

#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t rows = 5, columns = 32, pitch = 96;

struct BlockConfig {
  int rows = 4;
  int begin = 0;      // of the first tile, in columns
  bool fixed = false; // the views' extents are part of the specialisation
};

/// Each program copies one tile.
void copyTiles(View x, View y, BlockConfig cfg) {
  if (cfg.fixed)
    for (int axis = 0; axis < 2; ++axis) {
      x.extent(axis);
      y.extent(axis);
    }
  Tile m = program_id(0) * cfg.rows;
  Tile n = program_id(1) * columns + cfg.begin;
  store(y, {m, n}, load(x, {m, n}, {cfg.rows, columns}, isFloat(x.type()) ? Padding::neg_inf : Padding::zero));
}
const Kernel copyTilesKernel = kernel(
    "copy_tiles", copyTiles,
    {field("rows", &BlockConfig::rows), field("begin", &BlockConfig::begin), field("fixed", &BlockConfig::fixed)});

struct Case {
  Type type;
  int64_t from = columns, to = columns; // extents of rows of x and of y
  int64_t first = 0;                    // elements before the first row of both
  int tileRows = 4, begin = 0;
  bool fixed = false;
};

class Ragged : public Semantics {
protected:
  /// Numbers from 1 to 127 or their negatives, different in all neighbours.
  Tensor numbers(Type type, int sign) {
    Raw raw;
    for (int64_t place = 0; place < (rows + 1) * pitch; ++place) {
      const int64_t number = sign * (place % 127 + 1);
      raw.push_back(isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number));
    }
    return tensor(type, {static_cast<int64_t>(raw.size())}, raw);
  }

  /// Copies rows of x to rows of y in tiles, and compares the memory around the rows of y, too.
  void expectCopied(const Case &at) {
    const Tensor x = numbers(at.type, 1), y = numbers(at.type, -1);
    const Raw source = read(x);
    Raw want = read(y);
    const auto rowsOf = [&](const Tensor &tensor, int64_t width) {
      TensorRef view = tensor.ref();
      view.data = static_cast<char *>(view.data) + at.first * bytesOf(at.type);
      view.extents = {rows, width};
      view.strides = {pitch, 1};
      return view;
    };
    const int64_t across = (std::max(at.from, at.to) + std::abs(at.begin) + columns - 1) / columns;
    const int64_t begin = std::max(at.begin, 0), end = std::min(at.to, at.begin + across * columns);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = begin; column < end; ++column) {
        const auto place = static_cast<size_t>(at.first + row * pitch + column);
        const uint64_t padding = isFloat(at.type) ? rawOfReal(at.type, -INFINITY) : 0;
        want[place] = column < at.from ? source[place] : padding;
      }
    kiln::launch(*device, copyTilesKernel, {(rows + at.tileRows - 1) / at.tileRows, across, 1},
                 {rowsOf(x, at.from), rowsOf(y, at.to)},
                 "rows=" + std::to_string(at.tileRows) + ",begin=" + std::to_string(at.begin) +
                     ",fixed=" + (at.fixed ? "1" : "0"));
    const Raw got = read(y);
    for (size_t place = 0; place < want.size(); ++place)
      ASSERT_EQ(got[place], want[place]) << "element " << place << " of " << nameOf(at.type) << ", rows of " << at.from
                                         << " to rows of " << at.to << " from element " << at.first << " on, tiles of "
                                         << at.tileRows << " rows from " << at.begin << " on, fixed " << at.fixed;
  }
};

const Type types[] = {i8, bf16, f32, f64};
int64_t vectorOf(Type type) { return 16 / bytesOf(type); }

// The rest of a row in the first tile, in the last, and in one between: every one of a vector.
TEST_P(Ragged, LoadsPadTheRestOfAVector) {
  for (const Type type : types)
    for (const int64_t whole : {int64_t(0), vectorOf(type), columns, 2 * columns - vectorOf(type)})
      for (int64_t rest = 0; rest < vectorOf(type); ++rest)
        expectCopied({type, whole + rest, 2 * columns});
}

TEST_P(Ragged, StoresLeaveTheRestOfAVector) {
  for (const Type type : types)
    for (const int64_t whole : {int64_t(0), vectorOf(type), columns, 2 * columns - vectorOf(type)})
      for (int64_t rest = 0; rest < vectorOf(type); ++rest)
        expectCopied({type, 2 * columns, whole + rest});
}

// A thread has one row and many, and more than one vector of a row.
TEST_P(Ragged, TilesOfManyAndFewRows) {
  for (const Type type : types)
    for (const int tileRows : {1, 2, 3, 16, 128})
      for (const int64_t rest : {int64_t(1), vectorOf(type) / 2, vectorOf(type) - 1})
        for (const bool fixed : {false, true})
          expectCopied({type, columns + rest, columns + vectorOf(type) + rest, 0, tileRows, 0, fixed});
}

// An extent that is known, too.
TEST_P(Ragged, ExtentsThatAreKnown) {
  for (const Type type : types)
    for (int64_t rest = 0; rest < vectorOf(type); ++rest)
      expectCopied({type, columns + rest, columns + (3 * rest + 1) % (2 * vectorOf(type)), 0, 4, 0, true});
}

// Rows that begin at every element of a vector: unaligned rows are accessed in smaller pieces.
TEST_P(Ragged, RowsThatBeginAnywhere) {
  for (const Type type : types)
    for (int64_t first = 0; first < vectorOf(type); ++first)
      for (const int64_t rest : {int64_t(0), int64_t(1), vectorOf(type) - 1})
        expectCopied({type, columns + rest, columns + rest, first});
}

// Tiles that begin before the view, after its first column, and at no multiple of a vector.
TEST_P(Ragged, TilesThatBeginAnywhere) {
  for (const Type type : types)
    for (int64_t begin = -vectorOf(type) - 1; begin <= vectorOf(type) + 1; ++begin)
      for (const int64_t rest : {int64_t(1), vectorOf(type) - 1})
        expectCopied({type, columns + rest, columns + rest, 0, 4, static_cast<int>(begin)});
}

struct PairConfig {
  int begin = 0;
};

/// y is elements 4 and 3 of a block of x, twice, and zeros.
void repeatPair(View x, View y, PairConfig cfg) {
  const Tile pair = extract(load(x, {cfg.begin}, {8}), {4}, {2}, {-1});
  store(y, {0}, concat({pair, pair, zeros(i32, {128})}, 0));
}
const Kernel repeatPairKernel = kernel("repeat_pair", repeatPair, {field("begin", &PairConfig::begin)});

// A tile that repeats reads one element of a block at several of its positions.
TEST_P(Ragged, BlocksThatRepeatBeginAnywhere) {
  Raw words(40);
  std::iota(words.begin(), words.end(), 1);
  const Tensor memory = tensor(i32, {40}, words);
  for (const int64_t extent : {130, 132})
    for (int begin = -16; begin <= 8; ++begin) {
      const Tensor y(device, i32, {extent});
      launch(repeatPairKernel, {memory.ref().slice(0, 16, 8), y.ref()}, PairConfig{begin});
      Raw expected(extent);
      for (int i = 0; i < 4; ++i) {
        const int element = begin + (i % 2 == 0 ? 4 : 3);
        expected[i] = element >= 0 && element < 8 ? words[16 + element] : 0;
      }
      EXPECT_EQ(read(y), expected) << "extent " << extent << ", block at " << begin;
    }
}

KILN_ON_DEVICES(Ragged);
} // namespace
