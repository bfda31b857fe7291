// Where the lanes of a vector lie, as far as that is known while compiling: a base, and each lane's distance from it.
//
// A loop over rows of 64 takes 16 positions p, p + 1, … at a time, and p is a multiple of 16. In tiles whose rows are
// merged or split those are
//
//     p floordiv 64, p mod 64      one row, and 16 neighbours in it
//     p floordiv 4, p mod 4        distances 0 0 0 0 1 1 1 1 …, and 0 1 2 3 0 1 2 3 …
//     p floordiv 24                p floordiv 24 or one more: not known

#pragma once

#include "dialect/tile/TileDialect.h"

#include "mlir/IR/AffineExpr.h"

#include <optional>

namespace kiln::lowering::cpu {

/// What is known of an integer: it is `residue` plus a multiple of `modulus`, and `residue` itself where that is 0.
struct Congruence {
  int64_t modulus = 1, residue = 0;
};

/// What the loops and the arithmetic that make an index say of it. Looks through `effort` operations.
Congruence congruenceOf(mlir::Value value, int effort = 8);

/// The positions of lanes: what is known of their base, and how far each lies from it; all as far where it is one
/// position.
struct LanePositions {
  Congruence base;
  llvm::SmallVector<int64_t, 16> steps;
};

/// The positions that `map` gives for lanes at `dims`, from the base that it gives for their bases; nothing where the
/// distances depend on what is not known. Positions are not negative, and divisors are constants.
std::optional<LanePositions> mappedBy(mlir::AffineExpr map, llvm::ArrayRef<LanePositions> dims);

/// Whether it is known while compiling where a vector of so many lanes of what `move` gives lies in its source.
bool keepsVectors(tile::MoveOp move, int64_t lanes);

/// Where rows are merged, and stored by nobody but the reshape's one reader, those of the source are whole parts of the
/// longer ones: the nest of the store goes along the source's rows, and nothing has to be taken apart to read them.
/// The elements of the stored tile that those of the source are; nothing where that is not so, or rows are shorter than
/// `lanes`.
std::optional<mlir::AffineMap> placesOfMerged(tile::StoreOp store, int64_t lanes);

/// Rows of a few elements, each chosen by its place in the row: what `join` gives.
struct JoinedRows {
  /// A condition (i1), and what it is for each element of a row.
  struct Choice {
    mlir::Value condition;
    llvm::SmallVector<bool, 2> values;
  };
  llvm::SmallVector<Choice, 1> choices;
};

/// Where rows of `most` such elements or less are merged with the dimension before, which has at least `lanes`, and
/// only stored: what chooses them. The nest of the store goes along that dimension (Joined.cpp).
std::optional<JoinedRows> joinedRowsOf(tile::StoreOp store, int64_t lanes, int64_t most);

} // namespace kiln::lowering::cpu
