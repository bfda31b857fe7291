// Heuristics for GEMM tile sizes, shared by the plans.

#pragma once

#include "kernels/matmul.h"

namespace kiln {

/// Limits of a GPU's grid: bands of row tiles along a later axis, and row tiles of a band along the first.
constexpr int64_t maxBands = 65535, maxRows = INT32_MAX;

/// A product of (M, K) by (K, N) elements of `type`.
struct Product {
  int64_t M, N, K;
  Type type;
  Epilogue epilogue = Epilogue::light;
  int64_t parts = 1;                                    // split-K: number of splits of K
  std::vector<std::pair<int64_t, int64_t>> others = {}; // M and N of further GEMMs of the launch
};

/// Sets the tile for a CPU. config.ta and config.tb say which operands are transposed.
void pickCpuTile(const CpuFacts &cpu, const Product &product, MatmulConfig &config);

/// Whether persistent programs should be faster for `tiles` tiles of a product of `type` with results of type `stored`.
/// If a program has an SM for itself, the loads of the next tile overlap with the epilogue of this one. The results
/// pass through slots of the pipeline that these loads leave empty.
bool prefersPersistent(const GpuFacts &gpu, const MatmulConfig &config, Type type, Type stored, int64_t tiles);

/// Sets tile, warps and stages to those with the fewest cycles in the cost model; `config` gives the precision. Returns
/// these cycles, including split-K's sums. They rank configs for one shape; they do not predict times.
double pickGpuTile(const GpuFacts &gpu, const Product &product, MatmulConfig &config);

/// Largest number of rows of A for the skinny GEMM path, without tensor cores.
constexpr int64_t maxFewRows = 8;

/// Sets the config of a skinny GEMM; config.tb says whether B is transposed.
void pickFewRows(const GpuFacts &gpu, const Product &product, MatmulConfig &config);

} // namespace kiln
