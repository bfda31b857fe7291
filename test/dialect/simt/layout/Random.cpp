// Random vectors and layouts.

#include "test/dialect/simt/layout/Random.h"

#include "llvm/Support/MathExtras.h"

namespace kiln::simt::test {

Vecs Random::vectors(unsigned count, unsigned bits) {
  Vecs result;
  for (unsigned i = 0; i < count; ++i)
    result.push_back(vector(bits));
  return result;
}

Vecs Random::basis(unsigned size, unsigned bits) {
  Vecs result;
  for (Span span; result.size() < size;)
    if (const Vec candidate = vector(bits); span.add(candidate))
      result.push_back(candidate);
  return result;
}

llvm::SmallVector<int64_t> Random::sizes() {
  llvm::SmallVector<int64_t> result;
  for (unsigned rank = 1 + below(3); result.size() < rank;)
    result.push_back(below(3) ? int64_t{1} << below(6) : 1 + below(40));
  return result;
}

TileLayout Random::layout(llvm::ArrayRef<int64_t> sizes, unsigned numWarps) {
  const TileShape tile(sizes);
  Vecs units;
  for (unsigned dim = 0; dim < tile.rank(); ++dim)
    units.append(tile.unitsOf(dim));
  shuffle(units);
  TileLayout::Bases bases;
  const auto fill = [&](Hw part, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const bool stands = !units.empty() && below(6) != 0;
      bases[static_cast<size_t>(part)].push_back(stands ? units.pop_back_val() : 0);
    }
  };
  fill(Hw::lane, laneBits);
  fill(Hw::warp, llvm::Log2_32(numWarps));
  bases[static_cast<size_t>(Hw::reg)] = units;
  return TileLayout::get(sizes, bases);
}

} // namespace kiln::simt::test
