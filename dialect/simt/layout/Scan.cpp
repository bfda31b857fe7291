// The parts of a scan, and the positions of their totals.

#include "dialect/simt/layout/Scan.h"

#include "llvm/Support/MathExtras.h"

namespace kiln::simt {

std::optional<ScanPlan> planScan(const TileLayout &layout, unsigned dim) {
  const Extent &extent = layout.shape()[dim];
  ScanPlan plan;
  bool isBelowWarps = true;
  for (const AxisBit &bit : layout.axisBits(dim)) {
    if (bit.part == Hw::block || (bit.part == Hw::lane && !isBelowWarps))
      return std::nullopt;
    if (bit.part == Hw::warp && isBelowWarps) {
      isBelowWarps = false;
      plan.partBits = bit.bit;
      plan.parts = extent.padded >> bit.bit;
    }
  }
  if (isBelowWarps)
    plan.partBits = extent.coreBits;
  plan.strides.assign(layout.rank(), 1);
  int64_t stride = plan.parts;
  for (unsigned other = layout.rank(); other-- > 0;)
    if (other != dim) {
      plan.strides[other] = stride;
      stride *= layout.shape()[other].size;
    }
  plan.totals = stride;
  return plan;
}

llvm::SmallVector<int64_t> ScanPlan::offsets(llvm::ArrayRef<int64_t> bytes) const {
  llvm::SmallVector<int64_t> begins = {0};
  for (const int64_t each : bytes)
    begins.push_back(static_cast<int64_t>(llvm::alignTo(begins.back() + totals * each, 16)));
  return begins;
}

} // namespace kiln::simt
