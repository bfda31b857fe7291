// Chapter 13: the product of SwiGLU (Shazeer, 2020), forward and backward. With s = sigmoid(gate):
//
//     out = gate · s · up,   dup = dout · gate · s,   dgate = dout · up · s · (1 + gate · (1 − s))

#include <kiln/dialect/dsl/Kernel.h>

using namespace kiln;

struct SwigluConfig {
  int block = 1024; // elements a program
};
static std::vector<Field> fields() {
  return {field("block", &SwigluConfig::block, "elements a program").among({256, 4096})};
}

static Tile loadFloats(View x, Tile n, SwigluConfig cfg) { return cast(load(x, {n}, {cfg.block}), f32); }

/// out = silu(gate) · up, for all elements in one row.
static void swiglu(View gate, View up, View out, SwigluConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile g = loadFloats(gate, n, cfg), u = loadFloats(up, n, cfg); // (BLOCK)
  store(out, {n}, cast(silu(g) * u, out.type()));
}

static void swigluBackward(View dout, View gate, View up, View dgate, View dup, SwigluConfig cfg) {
  Tile n = program_id() * cfg.block;
  Tile d = loadFloats(dout, n, cfg), g = loadFloats(gate, n, cfg), u = loadFloats(up, n, cfg); // (BLOCK)
  Tile s = sigmoid(g);                                                                         // (BLOCK)
  store(dgate, {n}, cast(d * u * s * (1 + g * (1 - s)), dgate.type()));
  store(dup, {n}, cast(d * g * s, dup.type()));
}

const Kernel swigluKernel = kernel("swiglu", swiglu, {"gate (N)", "up (N)", "out (N)"}, fields());
const Kernel swigluBackwardKernel =
    kernel("swiglu_backward", swigluBackward, {"dout (N)", "gate (N)", "up (N)", "dgate (N)", "dup (N)"}, fields());
