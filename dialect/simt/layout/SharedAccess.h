// How the threads of a layout read or write one core of a tile in shared memory, when each element's place there is
// given by an F2-linear map: by vectors, or by ldmatrix and stmatrix.
//
// ldmatrix moves 8 × 8 matrices of 16-bit elements, of which a row is 16 bytes in a row. With w = log2(elements in 32
// bits), lane l gets the word l % 4 of row l / 4, so a row is made of w register bits and lane bits 0 and 1, and lane
// bits 2, 3 and 4 choose the row; with `.trans`, for elements of 16 bits or pairs of bytes that a lane has both of,
// lane bits 2, 3 and 4 are the place in a row, and a register bit and lane bits 0 and 1 choose the row. The addresses
// of matrix i's rows come from lanes 8i … 8i + 7, whatever these receive. One instruction moves 1, 2 or 4 matrices,
// which register bits count.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

enum class SharedOp : uint8_t {
  vector,  // ld.shared, st.shared
  rows,    // ldmatrix, stmatrix
  columns, // the same with .trans
};
llvm::StringRef nameOf(SharedOp op);

/// The instructions with which all threads of a layout read, or write, one core.
struct SharedAccess {
  SharedOp op = SharedOp::vector;
  unsigned bits = 32; // of an element

  /// Each bit of the register number is in one of these lists, lowest bit first. It counts
  llvm::SmallVector<unsigned, 4> element; // the elements of a vector, or of a 32-bit word of a matrix
  llvm::SmallVector<unsigned, 2> matrix;  // the matrices of one instruction, at most 4
  llvm::SmallVector<unsigned, 8> each;    // the instructions
  llvm::SmallVector<unsigned, 8> round;   // what is not there at the same time: registers at the same place in memory

  /// Place to element offset: of the register bits, 5 lane bits and the warp's bits. With a matrix operation the lane
  /// is the one that gives the address of a row, and register bits in `matrix` count for nothing, as its high bits do
  /// that.
  F2Map address;

  size_t regBits() const { return element.size() + matrix.size() + each.size() + round.size(); }
  /// The register of an element (below 2^element.size()), of a matrix, of an instruction, in a round.
  unsigned registerOf(unsigned round, unsigned instruction, unsigned matrix, unsigned element) const;
  /// The element offset where a lane's vector of an instruction begins; of a matrix operation, the row for which the
  /// lane gives the address.
  Vec offsetOf(unsigned instruction, Thread thread) const;

  /// Instructions a warp, over all rounds.
  unsigned instructions() const { return 1u << (each.size() + round.size()); }
  /// What shared memory does for these: a wavefront serves, of 32 banks of 4 bytes, one word each. The lanes of one
  /// instruction are served 8 at a time with 16 bytes each, a matrix at a time, 16 with 8 bytes, else all.
  unsigned wavefronts() const;
};

/// The access by the longest vectors, up to 16 bytes, that lie in a row and are aligned. `offset` maps core positions
/// to element offsets; units of registers that it maps to 0 count rounds.
SharedAccess vectorAccess(const TileLayout &layout, const F2Map &offset, unsigned bits);

/// The access by `rows` or `columns`; nothing where the layout's lanes are not so, or rows are not 16 bytes, aligned.
std::optional<SharedAccess> matrixAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, SharedOp op);

/// Of these accesses the one with the fewest wavefronts, and of those the one with the fewest instructions; by vectors
/// if there are no matrix instructions.
SharedAccess bestAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, bool hasMatrix);

} // namespace kiln::simt
