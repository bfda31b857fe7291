// Layouts of what an operation moves, from its map alone.
//
// A layout places *units*, bits of positions. Where a map takes each unit of the result to one unit of the source, or
// to none, each element of the result can stay in the thread that holds its source, and the move renames registers:
//
//     transpose              (d0, d1) -> (d1, d0)                  units change dimensions
//     reshape 8x8 to 64      (d0) -> (d0 floordiv 8, d0 mod 8)     the upper three go to dimension 0
//     broadcast 1x8 to 4x8   (d0, d1) -> (0, d1)                   those of dimension 0 stand for none
//     rotate by 5            (d0) -> ((d0 + 59) mod 64)            a sum carries: elements change threads

#pragma once

#include "dialect/simt/SimtDialect.h"

#include <optional>

namespace kiln::lowering::gpu {

/// The layout of the source in which each thread holds what it holds of a result in `result`. Nothing where the map is
/// not one of units, or where elements that a thread has to hold beside those are too many.
std::optional<simt::TileLayout> sourceLayout(tile::MoveOp move, const simt::TileLayout &result);

/// The layout of the result that a source in `source` gives without leaving threads; nothing, too, where it would hold
/// an element more than once.
std::optional<simt::TileLayout> resultLayout(tile::MoveOp move, const simt::TileLayout &source);

/// The same where the result repeats elements: copies that threads of the source hold of one element become those of
/// the result's several, first lanes', then warps'; few of them may lie in registers. Nothing where there would be
/// more.
std::optional<simt::TileLayout> spreadLayout(tile::MoveOp move, const simt::TileLayout &source);

/// Whether a source in `from` becomes a result in `to` by renaming registers.
bool isRenaming(tile::MoveOp move, const simt::TileLayout &from, const simt::TileLayout &to);

} // namespace kiln::lowering::gpu
