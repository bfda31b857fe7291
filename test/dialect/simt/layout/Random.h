// Random vectors and layouts, equal in every run.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

#include <random>

namespace kiln::simt::test {

class Random {
public:
  explicit Random(uint32_t seed) : engine(seed) {}

  /// 0 … bound − 1.
  unsigned below(unsigned bound) { return engine() % bound; }
  /// With so many bits.
  Vec vector(unsigned bits) { return (Vec{engine()} << 32 | engine()) & ((Vec{1} << bits) - 1); }
  Vecs vectors(unsigned count, unsigned bits);
  /// A basis of a random subspace.
  Vecs basis(unsigned size, unsigned bits);
  template <class Range> void shuffle(Range &range) { std::shuffle(range.begin(), range.end(), engine); }

  /// Rank 1 to 3, extents 1 to 40, padded and odd ones too.
  llvm::SmallVector<int64_t> sizes();
  /// A layout with its units anywhere, some lanes and warps standing for none.
  TileLayout layout(llvm::ArrayRef<int64_t> sizes, unsigned numWarps);

private:
  std::mt19937 engine;
};

} // namespace kiln::simt::test
