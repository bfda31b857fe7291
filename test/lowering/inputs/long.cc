// Kernels of any length, in which each value is read twice or depends on the previous one. An analysis that visits all
// paths through such a program would not end.

#include "dialect/dsl/Kernel.h"

using namespace kiln;

struct LongConfig {
  int links = 32;
};
const std::vector<Field> fields = {field("links", &LongConfig::links)};

/// Each load names the elements of the next.
void chase(View next, View out, LongConfig cfg) {
  Tile at = iota(64);
  for (int i = 0; i < cfg.links; ++i)
    at = load(next, {at});
  store(out, {0}, at);
}
const Kernel chaseKernel = kernel("chase", chase, {"next", "out"}, fields);

static Tile powerOf(Tile x, LongConfig cfg) {
  for (int i = 0; i < cfg.links; ++i)
    x = x * x;
  return x;
}

/// Beside a scan of the same tile.
void scanned(View x, View sums, View powers, LongConfig cfg) {
  Tile t = load(x, {0}, {256});
  store(sums, {0}, cumsum(t, 0));
  store(powers, {0}, powerOf(t, cfg));
}
const Kernel scannedKernel = kernel("scanned", scanned, {"x", "sums", "powers"}, fields);

/// As a loop-invariant operand of a product.
void packed(View a, View w, View out, LongConfig cfg) {
  Tile sums = zeros(f32, {64, 64}), t = load(w, {0, 0}, {32, 64});
  for (Tile k : range(0, a.dim(1), 32))
    sums = dot(load(a, {0, k}, {64, 32}), powerOf(t, cfg), sums);
  store(out, {0, 0}, sums);
}
const Kernel packedKernel = kernel("packed", packed, {"a", "w", "out"}, fields);

/// As the positions of a mask.
void masked(View x, View out, Tile n, LongConfig cfg) {
  Tile sums = zeros(f32, {64}), at = iota(64);
  for (int i = 0; i < cfg.links; ++i)
    at = at + at - at;
  for (Tile k : range(0, x.dim(0), 64))
    sums = sums + where(at + k < n, load(x, {k}, {64}), 0.0f);
  store(out, {0}, sums);
}
const Kernel maskedKernel = kernel("masked", masked, {"x", "out", "n"}, fields);

static void nest(View out, int depth) {
  if (depth == 0)
    return store(out, {0}, sum(load(out, {0}, {128})) + iota(128));
  for (Tile i : range(0, out.dim(0), 64))
    nest(out, depth - 1);
}

/// Loops nested to the maximum depth.
void nested(View out, LongConfig cfg) { nest(out, cfg.links); }
const Kernel nestedKernel = kernel("nested", nested, {"out"}, fields);
