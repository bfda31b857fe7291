// How tiles of products are chosen: shared by their plans.

#pragma once

#include "kernels/matmul.h"

namespace kiln {

/// The most bands of rows of tiles, and rows of a band: so many programs a GPU has along an axis of a grid, and along
/// the first.
constexpr int64_t mostBands = 65535, mostRows = INT32_MAX;

/// A product of (M, K) by (K, N) elements of `type`.
struct Product {
  int64_t M, N, K;
  Type type;
  Epilogue epilogue = Epilogue::light;
  int64_t parts = 1;                                    // programs that share a tile's K
  std::vector<std::pair<int64_t, int64_t>> beside = {}; // M and N of further products of the same launch
};

/// Sets the tile, warps and stages that the model finds fastest among those that fit; `config` says the precision.
/// Returns the modelled cycles, sums of the parts included, which rank products of one shape and are no prediction.
double pickGpuTile(const GpuFacts &gpu, const Product &product, MatmulConfig &config);

/// The most rows of A that are multiplied without tensor cores.
constexpr int64_t mostFewRows = 8;

/// Sets what a product of a few rows takes; config.tb says how B lies.
void pickFewRows(const GpuFacts &gpu, const Product &product, MatmulConfig &config);

} // namespace kiln
