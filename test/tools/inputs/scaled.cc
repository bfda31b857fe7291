// A user's file: two kernels, one in an unnamed namespace, and a registration line that is only a comment.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

namespace mine {
namespace {

struct ScaledConfig {
  int block = 32;
};

void scaled(View x, Tile s, ScaledConfig cfg) {
  Tile n = program_id(0) * cfg.block;
  store(x, {n}, load(x, {n}, {cfg.block}) * s);
}
// const Kernel notThis = kernel("not_this", scaled);
const Kernel scaledKernel =
    kernel("scaled", scaled, {"x (N), scaled in place", "s"}, {field("block", &ScaledConfig::block)});

} // namespace

void rows(View x, View y) {
  Tile m = program_id(0);
  store(y, {m}, sum(load(x, {m, 0}, {x.extent(1)})));
}
const char *const text = "} const Kernel norThis = kernel(";
const Kernel rowsKernel = kernel("rows", rows);

} // namespace mine
