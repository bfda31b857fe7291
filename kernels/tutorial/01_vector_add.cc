// Chapter 1: vector addition.

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct VectorAddConfig {
  int block = 256; // elements a program adds
};

/// out = x + y. Each program adds one block.
static void vectorAdd(View x, View y, View out, VectorAddConfig cfg) {
  Tile n = program_id() * cfg.block;  // offset of this program's block
  Tile a = load(x, {n}, {cfg.block}); // (BLOCK)
  Tile b = load(y, {n}, {cfg.block}); // (BLOCK)
  store(out, {n}, a + b);             // (BLOCK)
}

const Kernel vectorAddKernel = kernel("vector_add", vectorAdd, {"x (N)", "y (N)", "out (N), x + y"},
                                      {field("block", &VectorAddConfig::block, "elements a program adds")});
