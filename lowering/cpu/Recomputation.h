// Counts the operations that the evaluator (Evaluator.h) would emit for one element of a tile that is computed where it
// is used.
//
// The evaluator emits an operation once for each position. In `b = a + roll(a, {1})` it computes a at p and at p + 1,
// so a chain of n such steps has 2ⁿ positions of its first tile. `cpu-place-tiles` stores a tile of such a chain.

#pragma once

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseSet.h"

namespace kiln::lowering::cpu {

/// The tile to store before `tile`, an inlinable operation or a load. It is the tile whose repetition costs most. Null
/// if repetitions do not make an element of `tile` several times as expensive. Tiles in `inScratch` are in scratch
/// memory; those in `fromPlace` follow from their positions (TileUses.h). `costOf` is the cost of an element of a tile.
mlir::Value mostRecomputed(mlir::Value tile, const llvm::DenseSet<mlir::Value> &inScratch,
                           const llvm::DenseSet<mlir::Value> &fromPlace,
                           llvm::function_ref<int64_t(mlir::Value)> costOf);

} // namespace kiln::lowering::cpu
