// Vector addition, the simplest kernel. dialect/dsl/Tile.h has all functions of the language.

#include "kernels/add.h"
#include "kernels/blocks.h"
#include "kernels/operands.h"

namespace kiln {

/// out = x + y. Each program adds one block. The last block may extend past the end: elements outside a view are read
/// as zero and not written.
static void add(View x, View y, View out, AddConfig cfg) {
  const Shape block = {cfg.block};
  Tile n = program_id() * cfg.block;        // the first element of this program's block
  Tile a = load(x, {n}, block);             // (BLOCK)
  Tile b = load(y, {n}, block);             // (BLOCK)
  store(out, {n}, cast(a + b, out.type())); // (BLOCK)
}

const Kernel addKernel = kernel("add", add, {"x (N) any", "y (N) any", "out (N) any, their sum"},
                                {field("block", &AddConfig::block, "elements a program adds")});

AddConfig pickAdd(const Target &target, int64_t n) { return {.block = pickBlock(target, n, /*onCpu=*/1024)}; }

Plan planAdd(const Target &target, const TensorRef &x, const TensorRef &y, const TensorRef &out,
             const std::optional<AddConfig> &config) {
  checkOperands(addKernel, {x, y, out});
  const AddConfig chosen = config.value_or(pickAdd(target, x.extents[0]));
  const int64_t count = cdiv(x.extents[0], chosen.block);
  return {.launches = {makeLaunch(addKernel, chosen, programs(count), {x, y, out})}};
}

} // namespace kiln
