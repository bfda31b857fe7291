// How tiles of products are chosen: shared by their plans.

#pragma once

#include "kernels/matmul.h"

namespace kiln {

/// A product of (M, K) by (K, N) elements of `type`.
struct Product {
  int64_t M, N, K;
  Type type;
  bool heavy = false; // what follows takes several numbers for each sum
  int64_t parts = 1;  // programs that share a tile's K
};

/// Sets the tile, warps and stages that the model finds fastest among those that fit; `config` says the precision.
/// Returns the modelled cycles, sums of the parts included, which rank products of one shape and are no prediction.
double pickGpuTile(const GpuFacts &gpu, const Product &product, MatmulConfig &config);

} // namespace kiln
