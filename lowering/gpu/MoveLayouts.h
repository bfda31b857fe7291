// Layouts of the source and the result of an operation that moves elements, computed from its affine map.
//
// A layout assigns *units*, bits of positions. Let a map take each unit of the result to one unit of the source, or to
// none. Then each element of the result can stay in the thread of its source, and the move only renames registers:
//
//     transpose              (d0, d1) -> (d1, d0)                  units change dimensions
//     reshape 8x8 to 64      (d0) -> (d0 floordiv 8, d0 mod 8)     the upper three go to dimension 0
//     broadcast 1x8 to 4x8   (d0, d1) -> (0, d1)                   those of dimension 0 go to none
//     rotate by 5            (d0) -> ((d0 + 59) mod 64)            not a map of units: elements change threads

#pragma once

#include "dialect/simt/SimtDialect.h"

#include <optional>

namespace kiln::lowering::gpu {

/// The layout of the source in which each thread holds the elements that it needs for a result in layout `result`.
/// Nothing if the map is not one of units, or if a thread would hold too many further elements.
std::optional<simt::TileLayout> sourceLayout(tile::MoveOp move, const simt::TileLayout &result);

/// The layout of the result if each element stays in its thread, for a source in layout `source`. Nothing if the map is
/// not one of units, or if a thread would hold an element more than once.
std::optional<simt::TileLayout> resultLayout(tile::MoveOp move, const simt::TileLayout &source);

/// As resultLayout(), for a result that repeats elements. Copies of one element in several threads become its repeated
/// elements: first copies in lanes, then in warps. A few repeated elements may be in registers; nothing if there would
/// be more.
std::optional<simt::TileLayout> spreadLayout(tile::MoveOp move, const simt::TileLayout &source);

/// Whether a source in `from` becomes a result in `to` by renaming registers.
bool isRenaming(tile::MoveOp move, const simt::TileLayout &from, const simt::TileLayout &to);

} // namespace kiln::lowering::gpu
