// The padding rule, and positions in a core as bit vectors.

#include "dialect/simt/layout/Extent.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

static int64_t paddedSize(int64_t size) {
  const auto bits = static_cast<uint64_t>(size);
  if (const uint64_t odd = bits >> llvm::countr_zero(bits); odd == 1 || odd == 3)
    return size;
  if (size <= 16)
    return static_cast<int64_t>(llvm::bit_ceil(bits));
  return static_cast<int64_t>(llvm::alignTo(bits, std::max<uint64_t>(16, llvm::bit_floor(bits) / 8)));
}

Extent Extent::of(int64_t size) {
  assert(size >= 1 && "expected an extent of at least 1");
  const int64_t padded = paddedSize(size);
  const auto coreBits = static_cast<unsigned>(llvm::countr_zero(static_cast<uint64_t>(padded)));
  return {size, padded, coreBits, padded >> coreBits};
}

TileShape::TileShape(llvm::ArrayRef<int64_t> sizes) : extents(llvm::map_range(sizes, Extent::of)) {}

llvm::SmallVector<int64_t> TileShape::sizes() const {
  return llvm::map_to_vector(extents, [](const Extent &extent) { return extent.size; });
}

unsigned TileShape::coreBits() const {
  unsigned bits = 0;
  for (const Extent &extent : extents)
    bits += extent.coreBits;
  return bits;
}

int64_t TileShape::repeats() const {
  int64_t product = 1;
  for (const Extent &extent : extents)
    product *= extent.repeats;
  return product;
}

unsigned TileShape::shiftOf(unsigned dim) const {
  unsigned shift = 0;
  for (const Extent &extent : llvm::drop_begin(extents, dim + 1))
    shift += extent.coreBits;
  return shift;
}

Unit TileShape::unitOf(Vec vector) const {
  assert(llvm::has_single_bit(vector) && "expected one bit");
  unsigned dim = rank(), bit = static_cast<unsigned>(llvm::countr_zero(vector));
  while (bit >= extents[--dim].coreBits)
    bit -= extents[dim].coreBits;
  return {dim, bit};
}

int64_t TileShape::positionIn(unsigned dim, Vec core) const {
  return static_cast<int64_t>(core >> shiftOf(dim)) & (extents[dim].core() - 1);
}

Vecs TileShape::unitsOf(unsigned dim, unsigned first) const {
  Vecs units;
  for (unsigned bit = first; bit < extents[dim].coreBits; ++bit)
    units.push_back(vectorOf({dim, bit}));
  return units;
}

} // namespace kiln::simt
