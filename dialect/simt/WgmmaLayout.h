// A matrix in shared memory as wgmma's descriptors have it.
//
// Rows of 32, 64 or 128 bytes, whose 16-byte pieces the swizzle moves, eight of them an atom. Along the rows runs K, or
// M or N; then the matrix is `transposed`:
//
//                          within an atom                       from one atom to the next
//     rows along K         8 rows of M or N, at most 64 of K    `stride` bytes along M or N
//     rows along M or N    8 rows of K                          `stride` bytes along K, `leading` along M or N

#pragma once

#include "dialect/simt/SimtDialect.h"

namespace kiln::simt {

struct WgmmaLayout {
  SharedLayoutAttr sharedLayout;
  unsigned outer = 0;   // the tile's dimension that is M or N; the other one is K
  unsigned width = 128; // of a row, in bytes
  int64_t leading = 16, stride = 16;
  bool isTransposed = false;

  /// The byte of element (m or n, k) without the swizzle: the start address of a product that begins there.
  int64_t at(int64_t row, int64_t k) const;
  /// The descriptor of a matrix that begins at byte 0; a 16th of another byte, a multiple of 16, is added to it.
  uint64_t descriptor() const;
};

/// The shared-memory layout for products that read `rows` rows of M or N, from a multiple of `rows` on, and 16 elements
/// of K. Nothing if products cannot read it. Only 16-bit elements have such layouts.
std::optional<WgmmaLayout> matrixIn(SharedLayoutAttr sharedLayout, unsigned outer, int64_t rows);

} // namespace kiln::simt
