// Views of every rank, stride and type: elements inside are read and written exactly, and no others.

#include "test/runtime/semantics/guarded_page.h"
#include "test/runtime/semantics/semantics.h"

using namespace kiln;
using namespace kiln::test;

namespace {

class Views : public Semantics {};

/// Walks all positions of `shape`, the last dimension fastest.
template <class Action> void eachPosition(const Shape &shape, Action action) {
  Shape at(shape.size(), 0);
  for (;;) {
    action(at);
    size_t axis = shape.size();
    while (axis > 0 && ++at[axis - 1] == shape[axis - 1])
      at[--axis] = 0;
    if (axis == 0)
      return;
  }
}

int64_t placeOf(const Shape &at, const Shape &strides) {
  int64_t place = 0;
  for (size_t axis = 0; axis < at.size(); ++axis)
    place += at[axis] * strides[axis];
  return place;
}

// --- Ranks -----------------------------------------------------------------------------------------------------------

const Shape tileShape{2, 3, 1, 4, 17}; // its last dimensions are the tiles of lower ranks

/// Copies one tile of the views' rank from position `from` in x to `to` in y, in every dimension.
void copyTile(View x, View y, Tile from, Tile to) {
  const Offsets sources(x.rank(), from), targets(x.rank(), to);
  store(y, targets, load(x, sources, Shape(tileShape.end() - x.rank(), tileShape.end())));
}
const Kernel copyTileKernel = kernel("copy_tile", copyTile);

// Tiles that hang over any of a view's faces, or over all.
TEST_P(Views, EdgesAreExactInEveryDimension) {
  const Shape all{3, 4, 2, 5, 20};
  for (int rank = 1; rank <= 5; ++rank) {
    const Shape extents(all.end() - rank, all.end()), tile(tileShape.end() - rank, tileShape.end());
    for (const Type type : {i8, f32, i64})
      for (const int64_t from : {0, 1, -1, -2, 3, 40})
        for (const int64_t to : {0, 1, -1}) {
          const Tensor x = counting(type, extents, 1), y(device, type, extents);
          launch(copyTileKernel, {x.ref(), y.ref(), from, to});
          const Raw source = read(x), got = read(y);
          const Shape strides = x.ref().strides;
          eachPosition(extents, [&](const Shape &at) {
            Shape origin = at;
            bool inTile = true, inView = true;
            for (int axis = 0; axis < rank; ++axis) {
              const int64_t i = at[axis] - to;
              origin[axis] = from + i;
              inTile &= i >= 0 && i < tile[axis];
              inView &= origin[axis] >= 0 && origin[axis] < extents[axis];
            }
            const uint64_t want = inTile && inView ? source[placeOf(origin, strides)] : 0;
            if (got[placeOf(at, strides)] != want)
              ADD_FAILURE() << nameOf(type) << ", rank " << rank << " from " << from << " to " << to << " at "
                            << textOf(at) << ": got " << got[placeOf(at, strides)] << ", want " << want;
          });
          if (HasFailure())
            return;
        }
  }
}

void extentsOf(View x, View out) {
  for (int axis = 0; axis < 5; ++axis) {
    store(out, {0, axis}, x.dim(axis));
    store(out, {1, axis}, x.extent(axis));
  }
  for (int axis = 0; axis < 3; ++axis) {
    store(out, {2, axis}, num_programs(axis));
    if_(program_id(axis) == num_programs(axis) - 1, [&] { store(out, {3, axis}, program_id(axis)); });
  }
}
const Kernel extentsOfKernel = kernel("extents_of", extentsOf);

TEST_P(Views, ExtentsOfViewsAndGridAreKnown) {
  const Tensor x(device, f32, {2, 7, 1, 5, 3}), out(device, i64, {4, 5});
  kiln::launch(*device, extentsOfKernel, {4, 2, 3}, {x.ref(), out.ref()});
  EXPECT_EQ(read(out), (Raw{2, 7, 1, 5, 3, 2, 7, 1, 5, 3, 4, 2, 3, 0, 0, 3, 1, 2, 0, 0}));
}

// --- Strides ---------------------------------------------------------------------------------------------------------

struct TileConfig {
  int rows = 1, columns = 1;
};

void moveTile(View x, View y, TileConfig cfg) {
  Tile a = load(x, {-1, 1}, {cfg.rows, cfg.columns});
  store(y, {1, -2}, where(a == a, a, a));
}
const Kernel moveTileKernel =
    kernel("move_tile", moveTile, {field("rows", &TileConfig::rows), field("columns", &TileConfig::columns)});

// Columns of a matrix, every second and third element, and a transposed matrix; the elements in between stay.
TEST_P(Views, AnyStridesWillDo) {
  for (const Type type : {boolean, bf16, f32, i64})
    for (const auto &[rows, columns] : std::vector<std::pair<int64_t, int64_t>>{{17, 3}, {33, 20}}) {
      const Shape extents{rows, columns},
          strides[] = {{columns * 3, 3}, {1, rows}, {columns * 2 + 5, 1}, {2, rows * 2}};
      const int64_t size = rows * columns * 3 + 5 * rows;
      for (const Shape &from : strides)
        for (const Shape &to : strides) {
          const Tensor x = counting(type, {size}, 1), y = counting(type, {size}, -3);
          TensorRef source = x.ref(), target = y.ref();
          source.extents = target.extents = extents;
          source.strides = from;
          target.strides = to;
          Raw want = read(y);
          const Raw numbers = read(x);
          eachPosition(extents, [&](const Shape &at) { // a tile of the views' shape, moved by (1, −2) and (−1, 1)
            const int64_t i = at[0] - 1, j = at[1] + 2;
            if (i < 0 || i >= rows || j >= columns)
              return;
            const bool inside = i >= 1 && j + 1 < columns;
            want[placeOf(at, to)] = inside ? numbers[placeOf({i - 1, j + 1}, from)] : 0;
          });
          launch(moveTileKernel, {source, target},
                 "rows=" + std::to_string(rows) + ",columns=" + std::to_string(columns));
          ASSERT_EQ(read(y), want) << nameOf(type) << " " << textOf(extents) << " strides " << textOf(from) << " to "
                                   << textOf(to);
        }
    }
}

// --- Rows by index ---------------------------------------------------------------------------------------------------

void turnRows(View x, View rows, View y, View z, ExtentConfig cfg) {
  Tile index = load(rows, {0}, {5});
  Tile picked = load(x, {index, 1}, {cfg.extent});
  store(y, {0, 0}, picked);
  store(z, {index, -1}, picked);
}
const Kernel turnRowsKernel = kernel("turn_rows", turnRows, extentField());

// Gathers and scatters of every type and extent, from and to any strides; each index once.
TEST_P(Views, RowsOfEveryTypeAreGatheredAndScattered) {
  const int64_t index[] = {3, -1, 0, 6, 2};
  for (const Type type : everyType)
    for (const int64_t extent : extents)
      for (const bool turned : {false, true}) {
        const int64_t columns = extent + 1;
        const Tensor x = counting(type, turned ? Shape{columns, 6} : Shape{6, columns}, 1),
                     rows = tensor(i32, {5}, {3, 0xFFFFFFFF, 0, 6, 2}), y(device, type, {5, extent}),
                     z(device, type, turned ? Shape{extent, 4} : Shape{4, extent});
        const TensorRef source = turned ? x.ref().permute({1, 0}) : x.ref(),
                        target = turned ? z.ref().permute({1, 0}) : z.ref();
        launch(turnRowsKernel, {source, rows.ref(), y.ref(), target}, extentText(extent));
        const Raw numbers = read(x), gathered = read(y), scattered = read(z);
        Raw want(4 * extent, 0);
        for (int64_t i = 0; i < 5; ++i)
          for (int64_t j = 0; j < extent; ++j) {
            const bool inside = index[i] >= 0 && index[i] < 6;
            const uint64_t number = inside ? numbers[placeOf({index[i], j + 1}, source.strides)] : 0;
            ASSERT_EQ(gathered[i * extent + j], number) << nameOf(type) << " " << extent << ": " << i << ", " << j;
            if (index[i] >= 0 && index[i] < 4 && j >= 1)
              want[placeOf({index[i], j - 1}, target.strides)] = number;
          }
        ASSERT_EQ(scattered, want) << nameOf(type) << " " << extent << (turned ? " turned" : "");
      }
}

// --- Views of a view -------------------------------------------------------------------------------------------------

void crossPlanes(View x, View y, View total, View rows, ExtentConfig cfg) {
  Tile plane = program_id() - 1; // one before the first, one behind the last
  View column = x.select(1, plane).select(1, 2), row = y.select(0, 1).select(1, plane);
  store(row, {-1}, load(column, {1}, {cfg.extent}));
  atomic_add(total.select(1, plane), {0}, full(i32, {2}, 5));
  for (Tile i : range(0, x.dim(0))) // an index of a loop's
    store(rows.select(0, i), {plane}, load(x.select(0, i).select(0, plane), {0}, {1}));
}
const Kernel crossPlanesKernel = kernel("cross_planes", crossPlanes, extentField());

// select() leaves the other dimensions unchanged. At an index outside of the view, the whole result is outside.
TEST_P(Views, SelectedPlanesAreViewsOfTheirOwn) {
  for (const Type type : everyType)
    for (const int64_t extent : {int64_t(1), int64_t(7), int64_t(33)}) {
      const int64_t rows = extent + 2, planes = 3;
      const Tensor x = counting(type, {rows, planes, 4}, 1), y(device, type, {2, extent, planes}),
                   total(device, i32, {2, planes}), first(device, type, {rows, planes});
      launch(crossPlanesKernel, {x.ref(), y.ref(), total.ref(), first.ref()}, extentText(extent), planes + 2);
      const Raw numbers = read(x), got = read(y), sums = read(total), heads = read(first);
      Raw want(2 * extent * planes, 0);
      for (int64_t plane = 0; plane < planes; ++plane)
        for (int64_t i = 0; i + 1 < extent; ++i)
          want[extent * planes + i * planes + plane] = numbers[((i + 2) * planes + plane) * 4 + 2];
      ASSERT_EQ(got, want) << nameOf(type) << " " << extent;
      ASSERT_EQ(sums, Raw(2 * planes, 5)) << nameOf(type) << " " << extent;
      for (int64_t i = 0; i < rows * planes; ++i)
        ASSERT_EQ(heads[i], numbers[4 * i]) << nameOf(type) << " " << i;
    }
}

// --- Slices ----------------------------------------------------------------------------------------------------------

struct SliceConfig {
  int axis = 0;
};

/// Loads from a slice: a block, rows by index, a plane, and a block of a slice of it under a mask.
void loadSlice(View x, View out, View extent, Tile begin, Tile end, Tile from, SliceConfig cfg) {
  const View slice = x.slice(cfg.axis, begin, end);
  store(extent, {0}, slice.dim(cfg.axis));
  store(out, {0, 0}, load(slice, {from, from}, {5, 9}));
  store(out, {5, 0}, load(slice, {iota(5) * 2 - 1, from}, {9}));
  store(out, {10, 0}, load(slice.select(cfg.axis, from), {0}, {9}));
  store(out, {11, 0}, load(slice.slice(cfg.axis, 1, 3), {0, 0}, {5, 9}, {.mask = iota(9) != 4}));
}
const Kernel loadSliceKernel = kernel("load_slice", loadSlice, {"x", "out", "extent", "begin", "end", "from"},
                                      {field("axis", &SliceConfig::axis)});

/// Writes to a slice: a block, and by atomics, whose results are added up.
void storeSlice(View x, View total, View before, Tile begin, Tile end, Tile from, SliceConfig cfg) {
  store(x.slice(cfg.axis, begin, end), {from, from}, full(x.type(), {5, 9}, 99));
  const Tile old = atomic_add(total.slice(cfg.axis, begin, end), {from, from}, full(i32, {5, 9}, 1));
  store(before, {0}, sum(old, everywhere));
}
const Kernel storeSliceKernel = kernel("store_slice", storeSlice, {"x", "total", "before", "begin", "end", "from"},
                                       {field("axis", &SliceConfig::axis)});

/// A slice of a 7 × 11 view, in C++: the offset of its element (i, j), or −1 outside.
struct HostSlice {
  int axis;
  int64_t begin, extent;
  HostSlice(int axis, int64_t first, int64_t last) : axis(axis) {
    const int64_t all = axis == 0 ? 7 : 11;
    begin = std::clamp<int64_t>(first, 0, all);
    extent = std::clamp(last, begin, all) - begin;
  }
  int64_t placeOf(int64_t i, int64_t j) const {
    const int64_t rows = axis == 0 ? extent : 7, columns = axis == 1 ? extent : 11;
    if (i < 0 || i >= rows || j < 0 || j >= columns)
      return -1;
    return (axis == 0 ? begin + i : i) * 11 + (axis == 1 ? begin + j : j);
  }
};

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();

/// Positions near the largest integer wrap, and are outside all the same.
int64_t behind(int64_t from, int64_t i) { return static_cast<int64_t>(static_cast<uint64_t>(from) + i); }

// Bounds are clamped to the extent, and no element outside of a slice is read, although the view continues there.
TEST_P(Views, SlicesAreReadAsViewsOfTheirOwn) {
  for (const Type type : {i8, f32, i64}) {
    const Tensor x = counting(type, {7, 11}, 1), out(device, type, {16, 9}), extent(device, i64, {1});
    const Raw numbers = read(x);
    const auto at = [&](int64_t place) { return place < 0 ? 0 : numbers[place]; };
    for (const int axis : {0, 1})
      for (const int64_t begin : {least, int64_t(0), int64_t(2), int64_t(8)})
        for (const int64_t end : {int64_t(-1), int64_t(3), int64_t(6), most})
          for (const int64_t from : {int64_t(0), int64_t(1), int64_t(-2), least, most}) {
            launch(loadSliceKernel, {x.ref(), out.ref(), extent.ref(), begin, end, from},
                   "axis=" + std::to_string(axis));
            const HostSlice slice(axis, begin, end), inner(axis, slice.begin + std::min<int64_t>(1, slice.extent),
                                                           slice.begin + std::min<int64_t>(3, slice.extent));
            Raw want(16 * 9);
            for (int64_t j = 0; j < 9; ++j) {
              for (int64_t i = 0; i < 5; ++i) {
                want[i * 9 + j] = at(slice.placeOf(behind(from, i), behind(from, j)));
                want[(5 + i) * 9 + j] = at(slice.placeOf(2 * i - 1, behind(from, j)));
                want[(11 + i) * 9 + j] = j == 4 ? 0 : at(inner.placeOf(i, j));
              }
              want[10 * 9 + j] = at(axis == 0 ? slice.placeOf(from, j) : slice.placeOf(j, from));
            }
            ASSERT_EQ(read(extent)[0], static_cast<uint64_t>(slice.extent)) << begin << " to " << end;
            ASSERT_EQ(read(out), want) << nameOf(type) << ", axis " << axis << ", " << begin << " to " << end << " at "
                                       << from;
          }
  }
}

TEST_P(Views, NothingIsWrittenOutsideOfASlice) {
  for (const int axis : {0, 1})
    for (const int64_t begin : {least, int64_t(2), int64_t(8)})
      for (const int64_t end : {int64_t(-1), int64_t(6), most})
        for (const int64_t from : {int64_t(0), int64_t(-2), least, most}) {
          const Tensor x = counting(f32, {7, 11}, 1), total = counting(i32, {7, 11}, 5), before(device, i32, {1});
          Raw want = read(x), sums = read(total);
          launch(storeSliceKernel, {x.ref(), total.ref(), before.ref(), begin, end, from},
                 "axis=" + std::to_string(axis));
          const HostSlice slice(axis, begin, end);
          uint64_t old = 0;
          for (int64_t i = 0; i < 5; ++i)
            for (int64_t j = 0; j < 9; ++j)
              if (const int64_t place = slice.placeOf(behind(from, i), behind(from, j)); place >= 0) {
                want[place] = rawOfReal(f32, 99);
                old += sums[place]++;
              }
          ASSERT_EQ(read(x), want) << "axis " << axis << ", " << begin << " to " << end << " at " << from;
          ASSERT_EQ(read(total), sums) << "axis " << axis << ", " << begin << " to " << end << " at " << from;
          ASSERT_EQ(read(before)[0], old) << "outside of the slice an atomic returns 0";
        }
}

// --- Atomics ---------------------------------------------------------------------------------------------------------

struct OrderConfig {
  int order = 0;
};

void addBlocks(View total, View before, OrderConfig cfg) {
  const Order order = static_cast<Order>(cfg.order);
  if_(program_id() % 3 != 0, [&] {
    Tile old = atomic_add(total, {-1, 2}, reshape(iota(15, i32) + 1, {3, 5}), order);
    if_(program_id() == 1, [&] { store(before, {0, 0}, old); });
  });
  atomic_add(total, {3, 7}, 1, order); // a scalar
}
const Kernel addBlocksKernel = kernel("add_blocks", addBlocks, {field("order", &OrderConfig::order)});

// Tiles of rank 2 over an edge, scalars, under a condition, in every order.
TEST_P(Views, AtomicsAddTilesAtTheEdgesInEveryOrder) {
  for (int order = 0; order < 4; ++order)
    for (const bool turned : {false, true}) {
      device->setThreads(4);
      const Tensor total(device, i32, turned ? Shape{8, 4} : Shape{4, 8}), before(device, i32, {3, 5});
      const TensorRef view = turned ? total.ref().permute({1, 0}) : total.ref();
      launch(addBlocksKernel, {view, before.ref()}, "order=" + std::to_string(order), 30);
      const Raw got = read(total);
      eachPosition({4, 8}, [&](const Shape &at) {
        const int64_t i = at[0] + 1, j = at[1] - 2;
        uint64_t want = i < 3 && j >= 0 && j < 5 ? 20 * (i * 5 + j + 1) : 0;
        if (at == Shape{3, 7})
          want += 30;
        EXPECT_EQ(got[placeOf(at, view.strides)], want) << "order " << order << " at " << textOf(at);
      });
      const Raw old = read(before);
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_EQ(old[j], 0u) << "outside the view an atomic returns 0";
      for (int64_t k = 5; k < 15; ++k)
        EXPECT_EQ(old[k] % (k + 1), 0u) << "a multiple of what each program adds";
    }
}

// --- Memory outside --------------------------------------------------------------------------------------------------

void copyAround(View x, View y, Tile from, ExtentConfig cfg) {
  store(y, {from}, load(x, {from}, {cfg.extent}));
  atomic_add(y, {from}, full(y.type(), {cfg.extent}, 0));
  store(y, {iota(cfg.extent) + from}, load(x, {iota(cfg.extent, i64) + from}));
}
const Kernel copyAroundKernel = kernel("copy_around", copyAround, extentField());

// A view that ends where memory ends, and one that begins there: reading or writing a byte beyond would end the test.
TEST_P(Views, NothingOutsideAViewIsTouched) {
  GuardedPage source(*device), target(*device);
  source.write(std::vector<uint8_t>(source.bytes(), 1));
  for (const Type type : {i32, f32, f64})
    for (const int64_t extent : extents)
      for (const int64_t count : {1, 5, 16, 70}) {
        const int64_t bytes = count * bytesOf(type);
        for (const bool atEnd : {false, true})
          for (const int64_t from : {int64_t(0), int64_t(-3), count - 1, count - extent, int64_t(1) << 40}) {
            char *const x = atEnd ? source.end() - bytes : source.begin();
            char *const y = atEnd ? target.end() - bytes : target.begin();
            target.write(std::vector<uint8_t>(target.bytes(), 0));
            launch(copyAroundKernel, {TensorRef::dense(x, type, {count}), TensorRef::dense(y, type, {count}), from},
                   extentText(extent));
            const std::vector<uint8_t> got = target.read();
            for (int64_t i = 0; i < count; ++i)
              ASSERT_EQ(got[y - target.begin() + i * bytesOf(type)], i >= from && i < from + extent ? 1 : 0)
                  << nameOf(type) << ", " << extent << " from " << from << " at " << i << " of " << count;
          }
      }
}

KILN_ON_PROCESSORS(Views);

} // namespace
