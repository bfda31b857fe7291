// The number of lanes of the vectors of a nest.
//
// By default, an iteration of a loop computes as many elements as a native vector has 32-bit lanes, because most
// elements have 32 bits. If all elements of a nest are narrower, its vectors have more lanes and fill a register:
//
//     store(y, {n}, load(x, {n}, {4096}) + 1)      // i8: 32 lanes on AVX2, not 8
//
// This is only for tiles inside their views. At a view's edge, vectors have masks, and AVX2 would test masks of bytes
// one by one. If an access has its own mask, the code first tests whether it is true for a whole vector.

#pragma once

#include "lowering/cpu/Loops.h"

namespace kiln::lowering::cpu {

/// The bits of the widest elements that a nest for `roots` computes, from 8 to 32. They determine the lanes of its
/// vectors.
int64_t elementBitsOf(llvm::ArrayRef<Root> roots, const Evaluator &e);

/// A vector of a row: `valid` elements from `first` on.
struct Piece {
  int64_t first = 0, lanes = 0, valid = 0;
};

/// Divides the elements [from, to) of a row into vectors: first vectors of `lanes` lanes, then of half as many lanes,
/// and so on down to `least`. Only the last vector may be partly valid.
llvm::SmallVector<Piece> piecesOf(int64_t from, int64_t to, int64_t lanes, int64_t least);

} // namespace kiln::lowering::cpu
