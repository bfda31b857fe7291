// Pictures (SVG) of layouts and of tiles in shared memory, for people.

#pragma once

#include "dialect/simt/layout/SharedImage.h"

#include <string>

namespace kiln::simt {

/// A cell for each element, with `thread:stored index` of the first thread that holds it; colours are lanes, shades
/// warps, and a caption says the layout and how many threads hold each element. Leading dimensions lie below each
/// other.
std::string picture(const TileLayout &layout);

/// A cell for each 16 bytes of the tile, the piece that changes its place, in rows of the tile: its byte offset,
/// coloured by the four banks that it lies in, so that no colour may be twice below each other in eight rows. Padding
/// is drawn, too. Elements of at most 16 bytes; rows of at least 16 bytes.
std::string picture(const SharedImage &image);

} // namespace kiln::simt
