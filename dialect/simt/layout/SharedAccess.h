// Reads and writes of one core of a tile in shared memory by the threads of a layout. An F2-linear map gives the offset
// of each element. The instructions are vector accesses, or ldmatrix and stmatrix.
//
// ldmatrix moves 8 × 8 matrices of 16-bit elements, whose rows are 16 contiguous bytes. Let w = log2(elements in 32
// bits). Lane l gets word l % 4 of row l / 4. So w register bits and lane bits 0 and 1 are the position in a row, and
// lane bits 2, 3 and 4 select the row. With `.trans`, lane bits 2, 3 and 4 are the position in a row, and a register
// bit and lane bits 0 and 1 select the row. Elements then have 16 bits, or are pairs of bytes in one lane. Lanes 8i …
// 8i + 7 supply the addresses of the rows of matrix i. One instruction moves 1, 2 or 4 matrices, counted by register
// bits.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

enum class SharedOp : uint8_t {
  vector,  // ld.shared, st.shared
  rows,    // ldmatrix, stmatrix
  columns, // ldmatrix, stmatrix with .trans
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
  llvm::SmallVector<unsigned, 8> round;   // the rounds: registers of different rounds use one place in memory in turn

  /// The map from places (register bits, 5 lane bits, warp bits) to element offsets. With a matrix operation, the lane
  /// is the one that supplies the address of a row. Its high bits select the matrix, so register bits in `matrix` map
  /// to 0.
  F2Map address;

  size_t regBits() const { return element.size() + matrix.size() + each.size() + round.size(); }
  /// The register of an element (below 2^element.size()), of a matrix, of an instruction, in a round.
  unsigned registerOf(unsigned round, unsigned instruction, unsigned matrix, unsigned element) const;
  /// The element offset of a lane's vector in an instruction; with a matrix operation, of the row whose address the
  /// lane supplies.
  Vec offsetOf(unsigned instruction, Thread thread) const;

  /// Instructions a warp, over all rounds.
  unsigned instructions() const { return 1u << (each.size() + round.size()); }
  /// The wavefronts of all instructions of a warp. A wavefront serves one word of each of 32 banks of 4 bytes. Lanes
  /// with 16 bytes each are served 8 at a time, those with 8 bytes 16 at a time, all others at once. Matrices are
  /// served one at a time.
  unsigned wavefronts() const;
};

/// The access by the longest vectors, up to 16 bytes, that are contiguous and aligned. `offset` maps core positions to
/// element offsets; register units that it maps to 0 count rounds.
SharedAccess vectorAccess(const TileLayout &layout, const F2Map &offset, unsigned bits);

/// The access by `rows` or `columns`. Nothing if the layout's lanes do not have that form, or if rows are not 16
/// aligned, contiguous bytes.
std::optional<SharedAccess> matrixAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, SharedOp op);

/// The access with the fewest wavefronts, and with the fewest instructions among equals; by vectors if there are no
/// matrix instructions.
SharedAccess bestAccess(const TileLayout &layout, const F2Map &offset, unsigned bits, bool hasMatrix);

} // namespace kiln::simt
