// Loads of tiles at constant offsets across both ends of a view, for every type and every offset. The compiler knows
// that some lanes are outside and tests others at run time; neither may be forgotten.

#include "test/runtime/semantics/drawn.h"

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

/// The offset of the line's tile in the view.
int64_t beginOf(int64_t line) {
  const int64_t offset = line % offsets - reach;
  return line < offsets ? offset : extent - width + offset;
}

class Ends : public Semantics {
protected:
  static uint64_t elementAt(Type type, int64_t column) { return wordOf(type, type == boolean ? 1 : column + 2); }
};

// Two rows, the first at the beginning of memory and the last at its end, with ones in between.
TEST_P(Ends, ReadZeroOutsideWhateverIsKnown) {
  for (const Type type : everyType)
    for (const bool known : {false, true}) {
      const int64_t count = 4096 / bytesOf(type);
      Raw raw(count, wordOf(type, 1));
      for (int64_t column = 0; column < extent; ++column)
        raw[column] = raw[count - extent + column] = elementAt(type, column);
      const GuardedPages page(*device, type, raw);
      const TensorRef x{page.data(), type, {2, extent}, {count - extent, 1}};
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

KILN_ON_PROCESSORS(Ends);

} // namespace
