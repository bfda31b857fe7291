// Layouts of reductions, by the bits of the reduced dimension.

#include "dialect/simt/layout/Reduce.h"

#include "llvm/ADT/STLExtras.h"

namespace kiln::simt {

/// The stored indices that become each value of the slice.
static std::vector<llvm::SmallVector<int64_t, 8>> foldsOf(const TileLayout &layout, const TileLayout &slice,
                                                          unsigned dim) {
  std::vector<std::pair<int64_t, int64_t>> byPosition; // position along the dimension, stored index
  for (int64_t stored = 0; stored < layout.numStored(); ++stored)
    byPosition.emplace_back(layout.positionOf(stored)[dim], stored);
  llvm::sort(byPosition);
  std::vector<llvm::SmallVector<int64_t, 8>> folds(static_cast<size_t>(slice.numStored()));
  for (const auto &[at, stored] : byPosition) {
    llvm::SmallVector<int64_t> position = layout.positionOf(stored);
    position.erase(position.begin() + dim);
    folds[static_cast<size_t>(*slice.storedAt(position))].push_back(stored);
  }
  return folds;
}

/// The bases of a layout, to be changed.
static TileLayout::Bases basesOf(const TileLayout &layout) {
  TileLayout::Bases bases;
  for (const Hw part : everyHw)
    bases[static_cast<size_t>(part)] = Vecs(layout.bases(part));
  return bases;
}

ReducePlan planReduce(const TileLayout &layout, unsigned dim, bool mayExchange) {
  const TileLayout slice = layout.slice(dim);
  llvm::SmallVector<unsigned, 5> lanes, warps;
  for (const AxisBit &axis : layout.axisBits(dim))
    if (axis.part == Hw::lane)
      lanes.push_back(axis.index);
    else if (axis.part == Hw::warp)
      warps.push_back(axis.index);

  // The highest register bits are exchanged first, so that the lowest ones, which form vectors, stay.
  TileLayout::Bases bases = basesOf(slice);
  Vecs &regs = bases[static_cast<size_t>(Hw::reg)];
  llvm::SmallVector<LaneStep, 5> steps;
  for (const unsigned lane : lanes) {
    if (!mayExchange || lanes.size() < 2 || regs.empty()) {
      steps.push_back({lane, std::nullopt});
      continue;
    }
    steps.push_back({lane, static_cast<unsigned>(regs.size() - 1)});
    bases[static_cast<size_t>(Hw::lane)][lane] = regs.pop_back_val();
  }
  const TileLayout result = TileLayout::get(slice.shape().sizes(), bases);

  // A new innermost dimension for the warps; the units of the other dimensions move up.
  llvm::SmallVector<int64_t> sizes = slice.shape().sizes();
  sizes.push_back(int64_t{1} << warps.size());
  for (Vecs &part : bases)
    for (Vec &basis : part)
      basis <<= warps.size();
  TileLayout::Bases gathered = bases;
  for (const auto [unit, warp] : llvm::enumerate(warps)) {
    bases[static_cast<size_t>(Hw::warp)][warp] = Vec{1} << unit;
    gathered[static_cast<size_t>(Hw::reg)].push_back(Vec{1} << unit);
  }
  return {foldsOf(layout, slice, dim), steps, TileLayout::get(sizes, bases), TileLayout::get(sizes, gathered), result};
}

unsigned ReducePlan::shuffles() const {
  unsigned words = 1u << result.regBits(), total = 0;
  for (const LaneStep &step : llvm::reverse(lanes)) {
    total += words;
    words <<= step.half.has_value();
  }
  return total;
}

} // namespace kiln::simt
