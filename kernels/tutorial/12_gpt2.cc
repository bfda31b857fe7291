// Chapter 12: the kernels and the plans of a layer, y = x ∘ gain, which scales each channel by a number that is
// learned.
//
// Backward: dx = dy ∘ gain,   dgain = Σ_n dy ∘ x

#include <kiln/dialect/dsl/Plan.h>

using namespace kiln;

struct GainConfig {
  int rows = 16;           // rows of a program
  bool accumulate = false; // of gain_sum: adds to dgain, the sum over earlier micro-batches
};
static std::vector<Field> fields() {
  return {field("rows", &GainConfig::rows, "rows of a program"),
          field("accumulate", &GainConfig::accumulate, "adds to what dgain holds")};
}

// x, y (N, C) f32, bf16 or f16; gain (C). y may be x.
static void gainForward(View x, View gain, View y, GainConfig cfg) {
  const Shape block = {cfg.rows, x.extent(1)};
  Tile n = program_id() * cfg.rows;
  Tile row = cast(load(x, {n, 0}, block), f32);        // (ROWS, C)
  Tile scale = cast(load(gain, {0}, {block[1]}), f32); // (C)
  store(y, {n, 0}, cast(row * scale, y.type()));
}
const Kernel gainKernel = kernel("gain", gainForward, {"x (N, C)", "gain (C)", "y (N, C)"}, fields());

// dy, x, dx (N, C); gain (C). dx may be dy. Program p leaves its share of dgain in row p of parts (P, C) f32.
static void gainBackward(View dy, View x, View gain, View dx, View parts, GainConfig cfg) {
  const Shape block = {cfg.rows, x.extent(1)};
  Tile p = program_id();
  Tile n = p * cfg.rows;
  Tile d = cast(load(dy, {n, 0}, block), f32);         // (ROWS, C)
  Tile row = cast(load(x, {n, 0}, block), f32);        // (ROWS, C)
  Tile scale = cast(load(gain, {0}, {block[1]}), f32); // (C)
  store(dx, {n, 0}, cast(d * scale, dx.type()));
  store(parts, {p, 0}, sum(d * row, 0)); // (C)
}
const Kernel gainBackwardKernel =
    kernel("gain_backward", gainBackward, {"dy (N, C)", "x (N, C)", "gain (C)", "dx (N, C)", "parts (P, C)"}, fields());

// dgain (+)= parts[0] + parts[1] + …, in one program.
static void gainSum(View parts, View dgain, GainConfig cfg) {
  const int64_t C = parts.extent(1);
  Tile total = zeros(f32, {C}); // (C)
  for (Tile p : range(parts.dim(0)))
    total += load(parts, {p, 0}, {C});
  if (cfg.accumulate)
    total += cast(load(dgain, {0}, {C}), f32);
  store(dgain, {0}, cast(total, dgain.type()));
}
const Kernel gainSumKernel = kernel("gain_sum", gainSum, {"parts (P, C)", "dgain (C)"}, fields());

/// y = x ∘ gain.
Plan planGain(const TensorRef &x, const TensorRef &gain, const TensorRef &y) {
  const GainConfig config;
  return {
      .launches = {
          {&gainKernel, textOf(gainKernel.fields, config), programs(cdiv(x.extents[0], config.rows)), {x, gain, y}}}};
}

/// dx, and dgain (+)= …. The partial rows of dgain are in the plan's workspace.
Plan planGainBackward(const TensorRef &dy, const TensorRef &x, const TensorRef &gain, const TensorRef &dx,
                      const TensorRef &dgain, bool accumulate) {
  const GainConfig config = {.accumulate = accumulate};
  const std::string text = textOf(gainKernel.fields, config);
  const int64_t P = cdiv(x.extents[0], config.rows), C = x.extents[1];
  const Arg parts = Arg::workspace(0, f32, {P, C});
  return {.launches = {{&gainBackwardKernel, text, programs(P), {dy, x, gain, dx, parts}},
                       {&gainSumKernel, text, programs(1), {parts, dgain}}},
          .workspaceBytes = P * C * 4};
}
