// Dropout of a matrix.

#include "kernels/dropout.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

namespace kiln {

/// out = x ∘ mask · scale.
static void dropout(View x, View out, View rngState, Tile time, Tile maxLength, Tile threshold, Tile scale,
                    DropoutConfig cfg) {
  const Shape block = {cfg.rows, cfg.columns};
  Tile n = program_id(0) * cfg.rows, c = program_id(1) * cfg.columns;
  Tile value = cast(load(x, {n, c}, block), f32); // (BN, BC)
  value = dropped(value, cfg.dropout, {rngState, time, maxLength, threshold, scale}, n, out.dim(1), c);
  store(out, {n, c}, cast(value, out.type()));
}

const Kernel dropoutKernel =
    kernel("dropout", dropout,
           {"x (N, C)", "out (N, C), kept elements of x times the scale, 0 elsewhere", aboutDropoutState,
            aboutDropoutTime, aboutDropoutLength, aboutThreshold, "scale f32"},
           {field("rows", &DropoutConfig::rows, "rows of a tile"),
            field("columns", &DropoutConfig::columns, "columns of a tile"),
            field("dropout", &DropoutConfig::dropout, dropoutModeNames, "dropout: off, scale_only or random")});

/// On a GPU, the default is the maximum number of elements of a program.
DropoutConfig pickDropout(const Target &target, int64_t C) {
  DropoutConfig config;
  if (std::holds_alternative<CpuFacts>(target.facts))
    config.rows = rowsOnCpu(C);
  return config;
}

Plan planDropout(const Target &target, const TensorRef &x, const TensorRef &out, const Dropout &dropout,
                 const std::optional<DropoutConfig> &config) {
  checkOperands(dropoutKernel, {x, out});
  expectDropout("dropout", dropout, x.extents[0]);
  DropoutConfig chosen = config.value_or(pickDropout(target, x.extents[1]));
  chosen.dropout = chooseDropoutMode(dropout);
  std::vector<Arg> args = {x, out};
  appendArgs(args, dropout, out);
  return {
      .launches = {makeLaunch(dropoutKernel, chosen,
                              programs(cdiv(x.extents[0], chosen.rows), cdiv(x.extents[1], chosen.columns)), args)}};
}

} // namespace kiln
