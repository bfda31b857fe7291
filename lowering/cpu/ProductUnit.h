// The instructions that products are made of.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::cpu {

/// What multiplies and adds, as `cpu.unit` on a product says. Without it: multiply-adds of the sums' own type.
enum class Unit {
  multiplyAdd,
  bf16Pairs, // avx512_bf16: two products of bf16 are added to a sum in f32
  i8Quads,   // avx512_vnni: four products of i8 are added to a sum in i32
};

/// The units that a CPU has beside multiply-adds.
struct Units {
  bool bf16Pairs = false, i8Quads = false;
};

inline Unit unitOf(tile::DotOp dot) {
  auto unit = dot->getAttrOfType<mlir::StringAttr>("cpu.unit");
  return !unit ? Unit::multiplyAdd : unit.getValue() == "bf16_pairs" ? Unit::bf16Pairs : Unit::i8Quads;
}

/// The neighbours along k that one step of the unit takes. More than one fill a *word* of 32 bits.
inline int64_t groupOf(Unit unit) { return unit == Unit::multiplyAdd ? 1 : unit == Unit::bf16Pairs ? 2 : 4; }

} // namespace kiln::lowering::cpu
