// Kernels for archives: one with a static extent and a config, and one that checks and prints.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct ScaleConfig {
  int rows = 4; // of a program
};
static void scale(View x, View y, Tile alpha, Tile enabled, ScaleConfig cfg) {
  const int64_t width = x.extent(1);
  Tile m = program_id(0) * cfg.rows;
  Tile value = load(x, {m, 0}, {cfg.rows, width});
  store(y, {m, 0}, where(enabled, alpha * value, value));
}
const Kernel scaleKernel =
    kernel("scale", scale, {"x (M, D)", "y (M, D)", "alpha", "default"}, {field("rows", &ScaleConfig::rows)});

static void look(View x, View y) {
  Tile n = program_id(0) * 4;
  Tile value = load(x, {n}, {4});
  print("x", value);
  device_assert(value >= 0.0, "x is negative");
  store(y, {n}, sqrt(value));
}
const Kernel lookKernel = kernel("look", look, {"x", "y"});
