// The instructions that compute matrix products.

#pragma once

#include "dialect/tile/TileDialect.h"

#include "llvm/ADT/STLExtras.h"

namespace kiln::lowering::cpu {

/// The instruction of a product, from its attribute `cpu.unit`. Without the attribute: multiply-adds in the
/// accumulator's type.
enum class Unit {
  multiplyAdd,
  bf16Pairs, // avx512_bf16: two products of bf16 are added to a sum in f32
  i8Quads,   // avx512_vnni: four products of i8 are added to a sum in i32
  bf16Tiles, // amx-bf16: as bf16Pairs, for a tile of 16 × 16 sums and 16 steps at a time
  i8Tiles,   // amx-int8
};

struct UnitInfo {
  Unit unit;
  llvm::StringLiteral name; // in `cpu.unit`
  int64_t group;            // neighbours along k that are one step; more than one fill a *word* of 32 bits
  bool ofIntegers;          // of i8, else of bf16
};
inline constexpr UnitInfo units[] = {{Unit::bf16Pairs, "bf16_pairs", 2, false},
                                     {Unit::i8Quads, "i8_quads", 4, true},
                                     {Unit::bf16Tiles, "bf16_tiles", 2, false},
                                     {Unit::i8Tiles, "i8_tiles", 4, true}};

/// Whether the unit multiplies elements of this type, and `depth` is a whole number of its steps.
inline bool takes(const UnitInfo &info, mlir::Type element, int64_t depth) {
  return (info.ofIntegers ? element.isInteger(8) : element.isBF16()) && depth % info.group == 0;
}

/// The facts about a unit other than multiplyAdd.
inline const UnitInfo &infoOf(Unit unit) {
  return *llvm::find_if(units, [&](const UnitInfo &info) { return info.unit == unit; });
}
inline int64_t groupOf(Unit unit) { return unit == Unit::multiplyAdd ? 1 : infoOf(unit).group; }

inline Unit unitOf(tile::DotOp dot) {
  auto name = dot->getAttrOfType<mlir::StringAttr>("cpu.unit");
  return name ? llvm::find_if(units, [&](const UnitInfo &info) { return info.name == name.getValue(); })->unit
              : Unit::multiplyAdd;
}

/// Whether the transpose swaps exactly the last two dimensions.
inline bool swapsMatrix(tile::TransposeOp transpose) {
  const auto order = transpose.getPermutation();
  const auto rank = static_cast<int64_t>(order.size());
  for (int64_t axis = 0; axis < rank; ++axis)
    if (order[axis] != (axis < rank - 2 ? axis : 2 * rank - 3 - axis))
      return false;
  return rank >= 2;
}

/// Whether accumulators are AMX tiles, registers of tileRows rows of tileWords 32-bit words.
inline bool hasTiles(Unit unit) { return unit == Unit::bf16Tiles || unit == Unit::i8Tiles; }
inline constexpr int64_t tileRows = 16, tileWords = 16;

} // namespace kiln::lowering::cpu
