// Draws layouts and tiles in shared memory as SVG.

#pragma once

#include "dialect/simt/layout/SwizzledLayout.h"

#include <string>
#include <vector>

namespace kiln::simt {

/// A cell for each element of a layout's tile, with the first thread that holds it. Rows are along the last dimension;
/// leading dimensions are stacked vertically.
struct LayoutCells {
  struct Cell {
    int64_t row, column;
    unsigned lane, warp;
    int64_t stored; // index of the thread's value
    llvm::SmallVector<int64_t> position;
  };
  std::vector<Cell> cells;
  unsigned holders = 1; // threads that hold each element
};
LayoutCells cellsOf(const TileLayout &layout);

/// A cell for each element, with `thread:stored index` of the first thread that holds it. Colours are lanes and shades
/// are warps. A caption has the layout and the number of threads that hold each element. Leading dimensions are stacked
/// vertically.
std::string picture(const TileLayout &layout);

/// A cell for each 16-byte piece of the tile, the unit of a swizzle, in rows of the tile. It has the piece's byte
/// offset, and the colour of its four banks. Without bank conflicts, no colour occurs twice in one column of eight
/// rows. Padding is drawn, too. Elements have at most 16 bytes, and rows at least 16 bytes.
std::string picture(const SwizzledLayout &swizzled);

} // namespace kiln::simt
