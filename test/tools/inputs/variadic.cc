// Kernels with an optional view and with lists of views.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct BiasConfig {
  int block = 16; // elements a program
};

/// out = x + bias.
static void biased(View x, std::optional<View> bias, View out, BiasConfig cfg) {
  Tile n = program_id(0) * cfg.block, y = load(x, {n}, {cfg.block});
  if (bias)
    y = y + load(*bias, {n}, {cfg.block});
  store(out, {n}, y);
}
const Kernel biasedKernel =
    kernel("biased", biased, {"x (N)", "bias (N)", "out (N)"}, {field("block", &BiasConfig::block).among({4, 32})});

/// out = by · the sum of all xs.
static void total(std::vector<View> xs, Tile by, View out) {
  Tile sum = zeros(f32, {4});
  for (View x : xs)
    sum = sum + load(x, {program_id(0) * 4}, {4});
  store(out, {program_id(0) * 4}, sum * by);
}
const Kernel totalKernel = kernel("total", total, {"xs (N) of each", "by", "out (N)"});

/// Does not ask whether there is a bias.
static void unasked(std::optional<View> bias, View out) { store(out, {0}, load(*bias, {0}, {4})); }
const Kernel unaskedKernel = kernel("unasked", unasked, {"bias (4)", "out (4)"});
