// Pictures (SVG) of layouts and of tiles in shared memory, for people.

#pragma once

#include "dialect/simt/layout/SharedImage.h"

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

/// A cell for each element, with `thread:stored index` of the first thread that holds it; colours are lanes, shades
/// warps, and a caption says the layout and how many threads hold each element. Leading dimensions lie below each
/// other.
std::string picture(const TileLayout &layout);

/// A cell for each 16 bytes of the tile, the piece that changes its place, in rows of the tile: its byte offset,
/// coloured by the four banks that it lies in, so that no colour may be twice below each other in eight rows. Padding
/// is drawn, too. Elements of at most 16 bytes; rows of at least 16 bytes.
std::string picture(const SharedImage &image);

} // namespace kiln::simt
