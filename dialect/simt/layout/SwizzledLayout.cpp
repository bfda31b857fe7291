// Rows, chunks and repeats, and the swizzle over them.

#include "dialect/simt/layout/SwizzledLayout.h"

#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>

namespace kiln::simt {

F2Map swizzle(unsigned width, unsigned addressBits, const SwizzleBits &swizzleBits) {
  constexpr unsigned lineBit = 7, pieceBit = 4;
  const unsigned pieceBits = llvm::Log2_32(std::max(width / 16, 1u));
  Vecs columns = Vecs(F2Map::identity(addressBits).columns());
  for (Vec &address : columns)
    for (unsigned bit = 0; bit < pieceBits; ++bit)
      address ^= (address >> (lineBit + swizzleBits[bit]) & 1) << (pieceBit + bit);
  return {addressBits, columns};
}

std::optional<SwizzledLayout> swizzledLayout(llvm::ArrayRef<int64_t> sizes, unsigned inner, unsigned bits,
                                             const SwizzleBits &swizzleBits) {
  assert(sizes.size() == 2 && inner < 2 && "expected a tile of rank 2");
  SwizzledLayout swizzled{.tile = TileShape(sizes), .inner = inner, .bits = bits};
  const Extent &columns = swizzled.tile[inner], &rows = swizzled.tile[1 - inner];
  if (rows.core() < 8 && rows.repeats > 1)
    return std::nullopt;
  swizzled.width = static_cast<unsigned>(std::min<int64_t>(128, columns.core() * bits / 8));
  const unsigned perRow = swizzled.width * 8 / bits, rowBits = llvm::Log2_32(perRow);
  swizzled.chunkBits = rowBits + rows.coreBits;
  swizzled.chunkStride = rows.padded * perRow;
  swizzled.repeatStride[1 - inner] = rows.core() * perRow;
  swizzled.repeatStride[inner] = columns.core() / perRow * swizzled.chunkStride;

  // Without the swizzle: columns within a row, then the rows, then the chunks.
  Vecs order = swizzled.tile.unitsOf(inner), above(order.begin() + rowBits, order.end());
  order.truncate(rowBits);
  order.append(swizzled.tile.unitsOf(1 - inner));
  order.append(above);
  const auto size = static_cast<unsigned>(order.size());
  const F2Map plain = F2Map(size, order).inverse();
  // Swizzled as bytes. Its pieces are whole elements, so the low bits of offsets stay zero.
  const unsigned byteBits = llvm::Log2_32(bits / 8);
  Vecs offsets;
  for (const Vec unit : plain.columns())
    offsets.push_back(swizzle(swizzled.width, size + byteBits, swizzleBits)(unit << byteBits) >> byteBits);
  swizzled.core = F2Map(size, offsets);
  return swizzled;
}

int64_t SwizzledLayout::bytes() const { return tile[0].padded * tile[1].padded * bits / 8; }

int64_t SwizzledLayout::offsetOf(llvm::ArrayRef<int64_t> position) const {
  Vec at = 0;
  int64_t offset = 0;
  for (const unsigned dim : {0u, 1u}) {
    at |= tile.vectorAt(dim, position[dim] % tile[dim].core());
    offset += position[dim] / tile[dim].core() * repeatStride[dim];
  }
  const Vec within = core(at);
  return offset + static_cast<int64_t>(within & llvm::maskTrailingOnes<Vec>(chunkBits)) +
         static_cast<int64_t>(within >> chunkBits) * chunkStride;
}

} // namespace kiln::simt
