// Row softmax. A row is one tile of its exact width, so that nothing is padded or masked.

#include "kernels/softmax.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"
#include "kernels/rows.h"

namespace kiln {

static void softmax(View x, View out, SoftmaxConfig cfg) {
  const int64_t C = width({x, out});
  const Shape block = {cfg.rows, C};
  Tile n = program_id() * cfg.rows;

  // Subtracting the row's maximum does not change the result, and prevents overflow of exp.
  Tile row = cast(load(x, {n, 0}, block), f32); // (BN, C)
  Tile top = reduce_max(row, -1, keep);         // (BN, 1)
  Tile e = exp(row - top);                      // (BN, C)
  Tile p = e * (1.0 / sum(e, -1, keep));        // (BN, C)
  store(out, {n, 0}, cast(p, out.type()));
}

const Kernel softmaxKernel =
    kernel("softmax", softmax, {"x (N, C)", "out (N, C)"},
           {field("rows", &SoftmaxConfig::rows, "rows a program").among({1, 2, 4, 8, 16, 32})});

SoftmaxConfig pickSoftmax(const Target &target, int64_t C) { return {.rows = pickWholeRows(target, 4, C)}; }

Plan planSoftmax(const Target &target, const TensorRef &x, const TensorRef &out,
                 const std::optional<SoftmaxConfig> &config) {
  checkOperands(softmaxKernel, {x, out});
  const SoftmaxConfig chosen = config.value_or(pickSoftmax(target, x.extents[1]));
  const int64_t count = cdiv(x.extents[0], chosen.rows);
  return {.launches = {makeLaunch(softmaxKernel, chosen, programs(count), {x, out})}};
}

} // namespace kiln
