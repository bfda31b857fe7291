// Every combination of subscripts: a block, and index tiles that are uniform, consecutive, strided or of two
// dimensions. The compiler makes blocks of index tiles, and each combination takes another way there.

#include "test/runtime/semantics/semantics.h"

#include <functional>

using namespace kiln;
using namespace kiln::test;

namespace {

constexpr int64_t block = 4, count = 8; // extents of a block and of an index tile

/// A subscript, and the position that it gives for element (i, j) of the index tiles or element k of its block.
struct Subscript {
  const char *name;
  bool isBlock;
  int64_t rank; // of an index tile
  std::function<Tile()> make;
  std::function<int64_t(int64_t i, int64_t j, int64_t k)> at;
};
const Subscript subscripts[] = {
    {"block", true, 0, [] { return Tile(2); }, [](int64_t, int64_t, int64_t k) { return 2 + k; }},
    {"uniform", false, 1, [] { return full(i64, {count}, 3); }, [](int64_t, int64_t, int64_t) { return 3; }},
    {"program", false, 1, [] { return program_id(0) + zeros(i64, {count}); },
     [](int64_t, int64_t, int64_t) { return 0; }},
    {"consecutive", false, 1, [] { return iota(count, i64) + 1; }, [](int64_t, int64_t j, int64_t) { return j + 1; }},
    {"strided", false, 1, [] { return iota(count, i64) * 2; }, [](int64_t, int64_t j, int64_t) { return 2 * j; }},
    {"outside", false, 1, [] { return full(i64, {count}, -1); }, [](int64_t, int64_t, int64_t) { return -1; }},
    {"past the end", false, 1, [] { return full(i64, {count}, 40); }, [](int64_t, int64_t, int64_t) { return 40; }},
    {"crossing", false, 1, [] { return iota(count, i64) + 14; }, [](int64_t, int64_t j, int64_t) { return j + 14; }},
    {"one", false, 1, [] { return full(i64, {1}, 5); }, [](int64_t, int64_t, int64_t) { return 5; }},
    {"column", false, 2, [] { return unsqueeze(iota(count), -1); }, [](int64_t i, int64_t, int64_t) { return i; }},
    {"row", false, 2, [] { return unsqueeze(iota(count), 0) + 1; }, [](int64_t, int64_t j, int64_t) { return j + 1; }},
    {"rows of one", false, 2, [] { return full(i64, {count, 1}, 3); }, [](int64_t, int64_t, int64_t) { return 3; }},
};
constexpr int numSubscripts = std::size(subscripts);

struct Combination {
  int a = 0, b = 0, c = -1; // numbers of subscripts; -1: the view has two dimensions
  bool isMasked = false;

  std::vector<Subscript> used() const {
    std::vector<Subscript> all{subscripts[a], subscripts[b]};
    if (c >= 0)
      all.push_back(subscripts[c]);
    return all;
  }
  /// The shape of the index tiles. One position alone is a tile of one element.
  Shape index() const {
    int64_t rank = 0;
    bool hasRows = false, hasColumns = false;
    for (const Subscript &s : used()) {
      rank = std::max(rank, s.rank);
      hasRows |= std::string(s.name) == "column" || std::string(s.name) == "rows of one";
      hasColumns |= s.rank == 1 ? std::string(s.name) != "one" : std::string(s.name) == "row";
    }
    if (rank == 2)
      return {hasRows ? count : 1, hasColumns ? count : 1};
    return rank == 1 ? Shape{hasColumns ? count : 1} : Shape{};
  }
  Shape blocks() const {
    const std::vector<Subscript> all = used();
    return Shape(std::count_if(all.begin(), all.end(), [](const Subscript &s) { return s.isBlock; }), block);
  }
};
const std::vector<Field> fields = {field("a", &Combination::a), field("b", &Combination::b),
                                   field("c", &Combination::c), field("is_masked", &Combination::isMasked)};

/// Reads a tile and writes it elsewhere, by the same subscripts; with a mask, only its first elements along each axis.
void copyNamed(View from, View out, View back, Combination combination) {
  Offsets at;
  std::vector<Tile> tiles;
  for (const Subscript &s : combination.used())
    tiles.push_back(s.make());
  at = combination.c < 0 ? Offsets{tiles[0], tiles[1]} : Offsets{tiles[0], tiles[1], tiles[2]};
  Shape whole = combination.index();
  const Shape blocks = combination.blocks();
  whole.insert(whole.end(), blocks.begin(), blocks.end());
  int64_t elements = 1;
  for (const int64_t extent : whole)
    elements *= extent;
  const Tile mask = reshape(iota(elements) % 3, whole) != 1;
  const Tile x = combination.isMasked ? load(from, at, blocks, {.mask = mask}) : load(from, at, blocks);
  store(out, {0}, reshape(x, {elements}));
  if (combination.isMasked)
    store(back, at, x, {.mask = mask});
  else
    store(back, at, x);
}
const Kernel copyNamedKernel = kernel("copy_named", copyNamed, fields);

class Subscripts : public Semantics {
protected:
  void check(const Combination &combination) {
    const std::vector<Subscript> used = combination.used();
    const Shape extents = used.size() == 2 ? Shape{19, 18} : Shape{19, 18, 17};
    int64_t size = 1, elements = 1;
    for (const int64_t extent : extents)
      size *= extent;
    Shape whole = combination.index(), blocks = combination.blocks();
    const auto indexRank = static_cast<int64_t>(whole.size());
    whole.insert(whole.end(), blocks.begin(), blocks.end());
    for (const int64_t extent : whole)
      elements *= extent;

    const Tensor from = counting(i32, extents, 1), out(device, i32, {elements}), back(device, i32, extents);
    launch(copyNamedKernel, {from.ref(), out.ref(), back.ref()},
           "a=" + std::to_string(combination.a) + ",b=" + std::to_string(combination.b) +
               ",c=" + std::to_string(combination.c) + ",is_masked=" + std::to_string(combination.isMasked));
    std::vector<int64_t> want(elements, 0);
    std::vector<int64_t> wantBack(size, 0);
    for (int64_t element = 0; element < elements; ++element) {
      Shape at(whole.size());
      for (int64_t rest = element, axis = static_cast<int64_t>(whole.size()) - 1; axis >= 0; --axis) {
        at[axis] = rest % whole[axis];
        rest /= whole[axis];
      }
      const int64_t j = indexRank ? at[indexRank - 1] : 0, i = indexRank == 2 ? at[0] : 0;
      int64_t place = 0, next = indexRank;
      bool isInside = true;
      for (size_t axis = 0; axis < used.size(); ++axis) {
        const int64_t k = used[axis].isBlock ? at[next++] : 0, position = used[axis].at(i, j, k);
        isInside &= position >= 0 && position < extents[axis];
        place = place * extents[axis] + position;
      }
      if (isInside && (!combination.isMasked || element % 3 != 1))
        want[element] = wantBack[place] = place + 1;
    }
    std::string text;
    for (const Subscript &s : used)
      text += std::string(text.empty() ? "" : ", ") + s.name;
    if (combination.isMasked)
      text += ", masked";
    const auto integers = [](const Raw &raw) {
      std::vector<int64_t> numbers;
      for (const uint64_t element : raw)
        numbers.push_back(integerOf(i32, element));
      return numbers;
    };
    EXPECT_EQ(integers(read(out)), want) << text << ": read";
    EXPECT_EQ(integers(read(back)), wantBack) << text << ": written";
  }
};

TEST_P(Subscripts, OfTwoDimensions) {
  for (int a = 0; a < numSubscripts; ++a)
    for (int b = 0; b < numSubscripts; ++b)
      check({.a = a, .b = b, .isMasked = (a + b) % 2 == 1});
}

TEST_P(Subscripts, OfThreeDimensions) {
  const int some[] = {0, 1, 3, 7, 9}; // block, uniform, consecutive, crossing, column
  for (const int a : some)
    for (const int b : some)
      for (const int c : some)
        check({.a = a, .b = b, .c = c, .isMasked = (a + b + c) % 2 == 0});
}

KILN_ON_PROCESSORS(Subscripts);

} // namespace
