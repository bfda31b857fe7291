// Loads of a loop whose tiles can be copied to shared memory some iterations ahead, for products.

#pragma once

#include "lowering/gpu/Accesses.h"

#include "lowering/gpu/Reasons.h"

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <optional>
#include <string>

namespace kiln::lowering::gpu {

/// Alignment of tiles in shared memory: a multiple of the swizzle's period.
inline constexpr int64_t slotAlignment = 128;

/// A load whose tile is copied ahead.
struct Staged {
  mutable tile::LoadOp load;
  CopyWidth width;
  simt::SharedLayoutAttr sharedLayout, matrix; // the latter without leading dimensions, which are 1
  simt::LayoutAttr copies;                     // the layout of the copies
  mlir::Value ring;
  int64_t slotBytes() const { return static_cast<int64_t>(llvm::alignTo(sharedLayout.getBytes(), slotAlignment)); }
};

/// Sets `simt.why` of the load, the reason why its tile is not copied ahead.
std::nullopt_t refuse(tile::LoadOp load, const std::string &why);

/// The load as a copy ahead in `loop`, if its tile becomes an operand of a product. If it cannot be copied, the reason
/// is set.
std::optional<Staged> stageOf(mlir::scf::ForOp loop, tile::LoadOp load);

/// Whether the tile becomes an operand of a product, directly or after a cast.
bool isConvertedToOperand(mlir::Operation *op);

/// An operand of a product that results from a tile by moves and a conversion.
struct OperandUse {
  simt::ConvertOp convert;
  llvm::SmallVector<mlir::Operation *> moves;
  llvm::SmallVector<mlir::Type> types; // after each move, last one first
  simt::TileLayout layout;             // of the tile before the moves, which lead to the operand's layout
};

/// The operand that results from a tile at its use by `user`, if there is one.
std::optional<OperandUse> operandUse(mlir::Operation *user);

/// Clones reshapes and transposes of a load for each use, because products may read the tile transposed or not, and
/// each use reads the ring separately.
void separateUses(mlir::Operation *op);

/// Whether a scalar depends only on the induction variables of `loops`, the outermost first, and on values from outside
/// of them. Divisions are of `tile.div`, which guards them, so they can be computed anywhere.
bool followsFrom(llvm::ArrayRef<mlir::scf::ForOp> loops, mlir::Value value);

} // namespace kiln::lowering::gpu
