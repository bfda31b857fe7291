// Small kernels that the runtime's tests launch.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln::test {

struct AddConfig {
  int block = 16;
};

/// x += y, in place.
inline void addInPlace(View x, View y, AddConfig cfg) {
  Tile n = program_id(0) * cfg.block;
  store(x, {n}, load(x, {n}, {cfg.block}) + load(y, {n}, {cfg.block}));
}
inline const Kernel addKernel = kernel("add", addInPlace, {"x", "y"}, {field("block", &AddConfig::block)});

/// x *= s.
inline void scale(View x, Tile s) {
  Tile n = program_id(0) * 16;
  store(x, {n}, load(x, {n}, {16}) * s);
}
inline const Kernel scaleKernel = kernel("scale", scale, {"x", "s"});

/// y = the sums of x's rows, whose extent is static.
inline void rowSums(View x, View y) {
  Tile m = program_id(0);
  store(y, {m}, sum(load(x, {m, 0}, {x.extent(1)})));
}
inline const Kernel rowSumsKernel = kernel("row_sums", rowSums, {"x (M, N)", "y (M)"});

/// Fails where an element of x is negative.
inline void checkPositive(View x) {
  Tile n = program_id(0) * 4;
  device_assert(load(x, {n}, {4}) >= 0.0, "x is negative");
}
inline const Kernel checkKernel = kernel("check_positive", checkPositive, {"x"});

/// Each program writes its coordinates in the grid.
inline void coordinates(View out) {
  Tile x = program_id(0), y = program_id(1), z = program_id(2);
  store(out, {z, y, x}, x + y * 10 + z * 100);
}
inline const Kernel coordinatesKernel = kernel("coordinates", coordinates, {"out"});

} // namespace kiln::test
