// A kernel with a config, for programs that find it in a library.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct AxpyConfig {
  int block = 1024; // elements a program
};

static void axpy(View x, View y, Tile alpha, AxpyConfig cfg) {
  Tile n = program_id(0) * cfg.block;
  store(y, {n}, load(y, {n}, {cfg.block}) + alpha * load(x, {n}, {cfg.block}));
}
const Kernel axpyKernel = kernel("axpy", axpy, {"x (N)", "y (N)", "alpha"}, {field("block", &AxpyConfig::block)});
