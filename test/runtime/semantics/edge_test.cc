// Tiles at constant offsets across both ends of a view, for every type and every offset. The compiler knows that some
// lanes are outside and tests others at run time; neither may be forgotten.

#include "test/runtime/semantics/guarded_page.h"
#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t reach = 17, offsets = 2 * reach + 1, width = 16; // a native vector of 32 bits at its widest
constexpr int64_t extent = 24;

struct EndConfig {
  bool known = false; // the view's extent is known while compiling
};
const std::vector<Field> endFields = {field("known", &EndConfig::known)};

/// The tile that begins `offset` after the row's beginning, or that much after the last one that is inside.
Tile columnAt(View view, bool atEnd, int64_t offset, EndConfig cfg) {
  if (!atEnd)
    return full(i64, {}, offset);
  const int64_t fits = extent - width + offset;
  return cfg.known ? full(i64, {}, fits) : view.dim(1) - (width - offset);
}

/// Row `row` of x by tiles from each offset, a line of `out` for each.
void loadOverEnds(View x, View out, Tile row, EndConfig cfg) {
  if (cfg.known)
    (void)x.extent(1);
  (void)(out.extent(0) + out.extent(1));
  for (int64_t line = 0; line < 2 * offsets; ++line) {
    const bool atEnd = line >= offsets;
    Tile column = columnAt(x, atEnd, line % offsets - reach, cfg);
    store(out, {line, 0}, load(x, {row, column}, {1, width}));
  }
}
const Kernel loadOverEndsKernel = kernel("load_over_ends", loadOverEnds, endFields);

/// Ones to row `row` of y[line] by a tile from each offset.
void storeOverEnds(View y, Tile row, EndConfig cfg) {
  if (cfg.known)
    (void)y.extent(2);
  for (int64_t line = 0; line < 2 * offsets; ++line) {
    const int64_t offset = line % offsets - reach;
    Tile begin = line < offsets ? full(i64, {}, offset)
                 : cfg.known    ? full(i64, {}, extent - width + offset)
                                : y.dim(2) - (width - offset);
    store(y, {line, row, begin}, full(y.type(), {1, 1, width}, 1));
  }
}
const Kernel storeOverEndsKernel = kernel("store_over_ends", storeOverEnds, endFields);

/// The first columns of row `row`, and its last ones, by tiles of each width.
void loadWidths(View x, View out, Tile row) {
  (void)(out.extent(0) + out.extent(1));
  for (int64_t w = 1; w <= reach; ++w) {
    store(out, {w - 1, 0}, load(x, {row, 0}, {1, w}));
    store(out, {reach + w - 1, 0}, load(x, {row, x.dim(1) - w}, {1, w}));
  }
}
const Kernel loadWidthsKernel = kernel("load_widths", loadWidths);

/// The offset of the line's tile in the view.
int64_t beginOf(int64_t line) {
  const int64_t offset = line % offsets - reach;
  return line < offsets ? offset : extent - width + offset;
}

class Ends : public Semantics {
protected:
  /// Two rows, the first at the beginning of memory and the last at its end, with ones in between.
  TensorRef rows(const GuardedPage &page, Type type) {
    const int64_t count = (page.end() - page.begin()) / bytesOf(type);
    Raw raw(count, isFloat(type) ? rawOfReal(type, 1) : 1);
    for (int64_t column = 0; column < extent; ++column)
      for (const int64_t begin : {int64_t(0), count - extent})
        raw[begin + column] = elementAt(type, column);
    const Tensor filled = tensor(type, {count}, raw);
    filled.download(page.begin(), filled.bytes());
    return {page.begin(), type, {2, extent}, {count - extent, 1}};
  }
  static uint64_t elementAt(Type type, int64_t column) {
    return isFloat(type) ? rawOfReal(type, static_cast<double>(column + 2))
                         : rawOfInteger(type, type == boolean ? 1 : column + 2);
  }
};

TEST_P(Ends, ReadZeroOutsideWhateverIsKnown) {
  const GuardedPage page(*device);
  for (const Type type : everyType)
    for (const bool known : {false, true}) {
      const TensorRef x = rows(page, type);
      for (const int64_t row : {0, 1, -1, 2}) {
        const Tensor out = tensor(type, {2 * offsets, width}, Raw(2 * offsets * width, 1));
        launch(loadOverEndsKernel, {x, out.ref(), row}, fmt::format("known={:d}", known));
        const Raw got = read(out);
        for (int64_t i = 0; i < 2 * offsets * width; ++i) {
          const int64_t column = beginOf(i / width) + i % width;
          const bool inside = column >= 0 && column < extent && row >= 0 && row < 2;
          ASSERT_EQ(got[i], inside ? elementAt(type, column) : 0)
              << nameOf(type) << ", known " << known << ", row " << row << ", tile at " << beginOf(i / width)
              << ", lane " << i % width;
        }
      }
    }
}

TEST_P(Ends, OfNarrowTilesTouchNothingOutside) {
  const GuardedPage page(*device);
  for (const Type type : everyType) {
    const TensorRef x = rows(page, type);
    for (const int64_t row : {0, 1}) {
      const Tensor out(device, type, {2 * reach, reach});
      launch(loadWidthsKernel, {x, out.ref(), row});
      const Raw got = read(out);
      for (int64_t line = 0; line < 2 * reach; ++line) {
        const int64_t w = line % reach + 1, begin = line < reach ? 0 : extent - w;
        for (int64_t i = 0; i < w; ++i)
          ASSERT_EQ(got[line * reach + i], elementAt(type, begin + i))
              << nameOf(type) << ", row " << row << ", tile of " << w << " at " << begin << ", lane " << i;
      }
    }
  }
}

TEST_P(Ends, AreNotWrittenOver) {
  constexpr int64_t gap = 2 * width; // on either side of a row
  constexpr int64_t pitch = extent + 2 * gap, lines = 2 * offsets;
  for (const Type type : everyType)
    for (const bool known : {false, true})
      for (const int64_t row : {0, 1}) { // there is no row 1
        const Tensor memory(device, type, {lines * pitch});
        const TensorRef all = memory.ref();
        char *const first = static_cast<char *>(all.data) + gap * bytesOf(type);
        launch(storeOverEndsKernel, {TensorRef{first, type, {lines, 1, extent}, {pitch, pitch, 1}}, row},
               fmt::format("known={:d}", known));
        const Raw got = read(memory);
        for (int64_t i = 0; i < lines * pitch; ++i) {
          const int64_t line = i / pitch, column = i % pitch - gap, lane = column - beginOf(line);
          const bool written = row == 0 && column >= 0 && column < extent && lane >= 0 && lane < width;
          ASSERT_EQ(got[i] != 0, written) << nameOf(type) << ", known " << known << ", row " << row << ", tile at "
                                          << beginOf(line) << ", column " << column;
        }
      }
}

// The oracle has no masks.
/// Extents of tiles that end with a part of a vector, one element above all.
constexpr int64_t partWidths[] = {1, 2, 3, 5, 9, 15, 17, 33, 65};
constexpr int64_t lineExtent = 72;

/// Line i of y begins with a tile of width i, converted to y's type.
void convertParts(View x, View y) {
  (void)(x.extent(0) + y.extent(0) + y.extent(1));
  for (int64_t line = 0; line < std::ssize(partWidths); ++line)
    store(y, {line, 0}, cast(load(x, {0}, {partWidths[line]}) + load(x, {1}, {partWidths[line]}), y.type()));
}
const Kernel convertPartsKernel = kernel("convert_parts", convertParts, {"x (73)", "y (lines, 72)"});

// A converted tile is stored with its own width: the element after it is unchanged, for all pairs of types.
TEST_P(Ends, ConvertedTilesLeaveTheNextElement) {
  const auto wordOf = [](Type type, int64_t value) {
    return isFloat(type) ? rawOfReal(type, static_cast<double>(value)) : rawOfInteger(type, value);
  };
  for (const Type from : {i8, i32, f32, f64})
    for (const Type to : {i8, i32, bf16, f16, f32}) {
      Raw ones(lineExtent + 1, wordOf(from, 1)), before(std::size(partWidths) * lineExtent, wordOf(to, 77));
      const Tensor x = tensor(from, {lineExtent + 1}, ones);
      Tensor y = tensor(to, {std::ssize(partWidths), lineExtent}, before);
      launch(convertPartsKernel, {x, y});
      const Raw after = read(y);
      for (int64_t line = 0; line < std::ssize(partWidths); ++line)
        for (int64_t column = 0; column < lineExtent; ++column)
          ASSERT_EQ(after[line * lineExtent + column], wordOf(to, column < partWidths[line] ? 2 : 77))
              << nameOf(from) << " to " << nameOf(to) << ", tile of " << partWidths[line] << ", element " << column;
    }
}

/// Sums of the rows of a tile, and of all its columns, from the view's begin on.
void sumFromBegin(View x, View rows, View columns, ExtentConfig cfg) {
  constexpr int height = 9;
  Tile tile = load(x, {0, 0}, {height, cfg.extent});
  store(rows, {0}, sum(tile, 1));
  store(columns, {0}, sum(tile, 0));
}
const Kernel sumFromBeginKernel = kernel("sum_from_begin", sumFromBegin, extentField());

// The order of a sum depends on the tile's extents alone. A tile that extends past its view has the bits of one that is
// inside and holds zeros there, for any number of missing vectors. On a GPU the layout also depends on the view's
// facts: there only whole vectors are missing.
TEST_P(Ends, SumsThatHangOverAddInTheSameOrder) {
  const bool anyEnd = std::holds_alternative<CpuFacts>(device->target().facts);
  constexpr int64_t tall = 9;
  for (const int64_t width : {64, 80, 288, 300})
    for (const int64_t missing : {1, 15, 16, 32, 40})
      for (const int64_t height : {tall, tall - 2}) {
        if (missing % 16 != 0 && !anyEnd)
          continue;
        Raw found[2][2];
        for (const bool over : {false, true}) {
          std::mt19937 random(7);
          Raw words(tall * width, over ? rawOfReal(f32, 1) : 0); // ones lie behind the view
          for (int64_t row = 0; row < height; ++row)
            for (int64_t column = 0; column < width - missing; ++column)
              words[row * width + column] = rawOfReal(f32, std::ldexp(random(), -31) - 1);
          const Tensor x = tensor(f32, {tall, width}, words), rows(device, f32, {tall}), columns(device, f32, {width});
          const TensorRef part = x.ref().slice(0, 0, height).slice(1, 0, width - missing);
          launch(sumFromBeginKernel, {over ? part : x.ref(), rows.ref(), columns.ref()}, extentText(width));
          found[over][0] = read(rows);
          found[over][1] = read(columns);
        }
        EXPECT_EQ(found[0][0], found[1][0]) << "rows of " << height << " x " << width - missing;
        EXPECT_EQ(found[0][1], found[1][1]) << "columns of " << height << " x " << width - missing;
      }
}

KILN_ON_PROCESSORS(Ends);

} // namespace
