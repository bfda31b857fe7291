// How many lanes the vectors of a nest have.
//
// A step of a loop takes as many elements as a native vector has of 32 bits: what is computed is mostly that wide.
// Where a nest moves or computes nothing but narrower elements, native vectors of these are full:
//
//     store(y, {n}, load(x, {n}, {4096}) + 1)      // i8: 32 lanes on AVX2, not 8
//
// That is for tiles that lie inside their views: at a view's edge vectors have masks, which would be bytes that AVX2
// asks for one by one. Where an access has a mask of its own it is asked whether it holds for a whole vector.

#pragma once

#include "lowering/cpu/Loops.h"

namespace kiln::lowering::cpu {

/// The bits of the widest elements that a nest for `roots` computes, from 8 to 32: its vectors may be of as many lanes
/// as a native one has of them.
int64_t elementBitsOf(llvm::ArrayRef<Root> roots, const Evaluator &e);

/// A vector of a row: `valid` elements from `first` on.
struct Piece {
  int64_t first = 0, lanes = 0, valid = 0;
};

/// Vectors for the elements [from, to) of a row: those of `lanes` lanes first, then of half as many, and half of these,
/// down to `least`, of which the last may be valid in part.
llvm::SmallVector<Piece> piecesOf(int64_t from, int64_t to, int64_t lanes, int64_t least);

} // namespace kiln::lowering::cpu
