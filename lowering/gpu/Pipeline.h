// The parts of gpu-pipeline-loads, for a loop of products: loads whose tiles can be copied to shared memory some
// iterations ahead (StagedLoads.cpp), the begin of asynchronous products and the wait for them (ScheduleProducts.cpp),
// and loads that follow the loop, moved in front of it (LoadAhead.cpp).

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/gpu/Accesses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <optional>
#include <string>

namespace kiln::lowering::gpu {

// --- Staged loads ----------------------------------------------------------------------------------------------------

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

// --- Asynchronous products -------------------------------------------------------------------------------------------

/// Whether `product` may still be in flight when the next iteration begins. Its result must be loop-carried without
/// another use in the iteration, and its rows must be computed from another one of `products`.
bool mayRunOn(mlir::scf::ForOp loop, mlir::Operation *product, llvm::ArrayRef<mlir::Operation *> products);

/// Begins each of `products`, in their order, as soon as its operands are defined, and after `begin`. Waits for it
/// before the first use of its result. The next iteration, or the code after the loop, waits for those of `runOn`.
/// Returns the last operation that begins the iteration: `begin`, or a product.
mlir::Operation *scheduleProducts(mlir::scf::ForOp loop, mlir::Operation *begin,
                                  llvm::ArrayRef<mlir::Operation *> products, llvm::ArrayRef<mlir::Operation *> runOn);

// --- Loads after the loop --------------------------------------------------------------------------------------------

/// A load that was moved in front of a loop whose iterations do not use its tile. No later pass moves it back.
inline constexpr llvm::StringLiteral aheadName = "simt.ahead";

/// By loop: the registers of a thread for tiles that are in use while the loop runs, without its initial values.
using HeldRegisters = llvm::DenseMap<mlir::Operation *, int64_t>;
HeldRegisters heldRegisters(mlir::func::FuncOp func);

/// Moves the loads that follow `loop` in front of it and marks them, if their tiles fit the registers of a thread while
/// `loop` runs and holds `held` of them. An SM must still hold `programs` programs.
void loadAhead(mlir::scf::ForOp loop, int64_t held, int64_t programs);

} // namespace kiln::lowering::gpu
