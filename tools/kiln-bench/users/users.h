// Untuned kernels as users might write them, as different from each other as possible. `kiln-bench users` counts their
// GPU instructions and compares them with Triton's for the same problems. A test runs them.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "tools/kiln-bench/problems.h"

namespace kiln::bench {

struct RowsConfig {
  int rows = 1, warps = 1;
};
struct BlockConfig {
  int block = 1024, warps = 4;
};
struct GroupNormConfig {
  int channels = 8, warps = 4;
};
struct LargestConfig {
  int rows = 1, k = 8, warps = 1;
};
struct RopeConfig {
  int bt = 32, warps = 4;
};
struct StencilConfig {
  int bm = 16, bn = 128, warps = 4;
};
struct ConvolveConfig {
  int bt = 16, bd = 128, warps = 4;
};
struct ProductConfig {
  int bm = 128, bn = 64, bk = 64, warps = 4;
};
struct WindowConfig {
  int bm = 128, bn = 64, window = 1024, group = 4, warps = 4;
};
struct PagedConfig {
  int group = 16, page = 16, pages = 4, warps = 4;
};
struct ScanConfig {
  int bd = 64, warps = 4;
};
struct BagConfig {
  int bags = 4, warps = 4;
};
struct HistogramConfig {
  int bins = 256, block = 256, chunk = 65536, warps = 4;
};

inline std::vector<Field> rowsFields() {
  return {field("rows", &RowsConfig::rows, "rows of a program"),
          field("warps", &RowsConfig::warps, "warps of a program")};
}
inline std::vector<Field> blockFields() {
  return {field("block", &BlockConfig::block, "elements of a program's tile"),
          field("warps", &BlockConfig::warps, "warps of a program")};
}
inline std::vector<Field> productFields() {
  return {field("bm", &ProductConfig::bm, "rows of a tile of the result"),
          field("bn", &ProductConfig::bn, "columns of a tile of the result"),
          field("bk", &ProductConfig::bk, "length of the sum that one step adds"),
          field("warps", &ProductConfig::warps, "warps of a program")};
}

extern const Kernel rmsNormKernel, userSoftmaxKernel, groupNormKernel, klLossKernel, largestKernel; // rows.cc
extern const Kernel dropoutKernel, ropeKernel, stencilKernel, convolveKernel;                       // pointwise.cc
extern const Kernel swigluKernel, scaledProductKernel, lstmStepKernel, persistentProductKernel;     // products.cc
extern const Kernel windowAttentionKernel, pagedAttentionKernel;                                    // attention.cc
extern const Kernel selectiveScanKernel, runningSumKernel, sortRowsKernel;                          // sequences.cc
extern const Kernel sparseRowsKernel, bagsKernel, histogramKernel;                                  // lookups.cc

/// A launch of each; `peer` is what triton_users.py calls it.
std::vector<Problem> userProblems(Operands &make);

} // namespace kiln::bench
