// Activations of a matrix.

#include "kernels/activate.h"
#include "kernels/blocks.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/operands.h"

namespace kiln {

/// out = drop(activation(x)).
static void activateMatrix(View x, View out, View rngState, Tile time, Tile maxLength, Tile threshold, Tile scale,
                           ActivateConfig cfg) {
  const Shape block = {cfg.rows, cfg.columns};
  Tile n = program_id(0) * cfg.rows, c = program_id(1) * cfg.columns;
  Tile value = activate(cfg.activation, cast(load(x, {n, c}, block), f32), accuracyFor(out)); // (BN, BC)
  value = dropped(value, cfg.dropout, {rngState, time, maxLength, threshold, scale}, n, out.dim(1), c);
  store(out, {n, c}, cast(value, out.type()));
}

const Kernel activateKernel =
    kernel("activate", activateMatrix,
           {"x (N, C)", "out (N, C), drop(activation(x))", aboutDropoutState, aboutDropoutTime, aboutDropoutLength,
            aboutThreshold, "scale f32"},
           {field("rows", &ActivateConfig::rows, "rows of a tile"),
            field("columns", &ActivateConfig::columns, "columns of a tile"),
            field("activation", &ActivateConfig::activation, activationNames, "the activation function"),
            field("dropout", &ActivateConfig::dropout, dropoutModeNames, "dropout: off, scale_only or random")});

/// On a GPU, a program has the maximum number of elements, in few rows.
ActivateConfig pickActivate(const Target &target, int64_t C, DropoutMode drop) {
  const int columns = drop == DropoutMode::random ? DropoutConfig{}.columns : ActivateConfig{}.columns;
  return {.rows = target.visit([=](const CpuFacts &) { return rowsOnCpu(C); },
                               [=](const GpuFacts &) { return static_cast<int>(blockSizes.maxElements) / columns; }),
          .columns = columns};
}

Plan planActivate(const Target &target, Activation activation, const TensorRef &x, const TensorRef &out,
                  const std::optional<Dropout> &dropout, const std::optional<ActivateConfig> &config) {
  checkOperands(activateKernel, {x, out});
  if (dropout)
    expectDropout("activate", *dropout, x.extents[0]);
  ActivateConfig chosen = config.value_or(pickActivate(target, x.extents[1], chooseDropoutMode(dropout)));
  chosen.activation = activation;
  chosen.dropout = chooseDropoutMode(dropout);
  std::vector<Arg> args = {x, out};
  appendArgs(args, dropout, out);
  return {
      .launches = {makeLaunch(activateKernel, chosen,
                              programs(cdiv(x.extents[0], chosen.rows), cdiv(x.extents[1], chosen.columns)), args)}};
}

} // namespace kiln
