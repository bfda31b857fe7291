// Positions of the lanes of a vector, as known at compile time: a base, and each lane's distance from it.
//
// For example, a loop over rows of 64 computes 16 positions p, p + 1, … per iteration, and p is a multiple of 16. In
// tiles whose rows are merged or split, the lanes have these positions:
//
//     p floordiv 64, p mod 64      one row, and 16 neighbours in it
//     p floordiv 4, p mod 4        distances 0 0 0 0 1 1 1 1 …, and 0 1 2 3 0 1 2 3 …
//     p floordiv 24                p floordiv 24 or one more: unknown

#pragma once

#include "dialect/tile/TileDialect.h"

#include "mlir/IR/AffineExpr.h"

#include <optional>

namespace kiln::lowering::cpu {

/// A fact about an integer: it is `residue` plus a multiple of `modulus`. If `modulus` is 0, it is `residue`.
struct Congruence {
  int64_t modulus = 1, residue = 0;
};

/// The congruence of an index, from the loops and the arithmetic that compute it. Follows at most `effort` operations.
Congruence congruenceOf(mlir::Value value, int effort = 8);

/// The positions of lanes: the congruence of their base, and the distance of each from it. Equal distances mean that
/// all lanes have one position.
struct LanePositions {
  Congruence base;
  llvm::SmallVector<int64_t, 16> steps;
};

/// The positions that `map` computes for lanes at `dims`, relative to the position that it computes for their bases.
/// Nothing if the distances are not known. Positions are not negative, and divisors are constants.
std::optional<LanePositions> mappedBy(mlir::AffineExpr map, llvm::ArrayRef<LanePositions> dims);

/// Whether the source positions of every vector of `lanes` lanes of the result of `move` are known at compile time.
bool keepsVectors(tile::MoveOp move, int64_t lanes);

/// For a store of a reshape that merges rows: maps the elements of the reshape's source to those of the stored tile.
/// The loop nest of the store then iterates over the source's rows, which are parts of the merged rows, and reads whole
/// vectors of them. Nothing if the store is not of this kind, the reshape has another user, or the source's rows are
/// shorter than `lanes`.
std::optional<mlir::AffineMap> placesOfMerged(tile::StoreOp store, int64_t lanes);

/// Rows of a few elements, in which selects choose each element by its position in the row: the result of `join`.
struct JoinedRows {
  /// A condition (i1) of a select, and its value for each element of a row.
  struct Choice {
    mlir::Value condition;
    llvm::SmallVector<bool, 2> values;
  };
  llvm::SmallVector<Choice, 1> choices;
};

/// The joined elements of a reshape that a store writes. The reshape merges rows of at most `most` joined elements with
/// the dimension before, whose extent is at least `lanes`. The loop nest of the store then iterates over that dimension
/// (Joined.cpp). Nothing if the store is not of this kind or the reshape has another user.
std::optional<JoinedRows> findJoinedRows(tile::StoreOp store, int64_t lanes, int64_t most);

} // namespace kiln::lowering::cpu
