// Software pipelining of a loop of products, in two passes. gpu-schedule-copies decides and writes the decisions on the
// operations, as attributes. gpu-expand-pipeline makes the code from these attributes alone.
//
//     simt.slots = 4, simt.distance = 2       the loop: a ring has 4 slots; tiles are copied 2 iterations ahead
//     simt.next_tile                          the loop: the first copies for the next tile begin when the loop ends
//     simt.engine = "cp.async", simt.slot, …  a load: what copies its tile, and its layout in a slot
//     simt.from_slots = "both"                a product: tensor cores read both operands, or the right one, from slots
//     simt.runs_on                            a product: it may still run when the next iteration begins
//     simt.ahead                              a load after the loop, which moves in front of it
//
// StagedLoads.cpp finds the loads whose tiles can be copied. ScheduleProducts.cpp places the begin of asynchronous
// products and the wait for them. LoadAhead.cpp moves loads that follow the loop.

#pragma once

#include "dialect/simt/SimtDialect.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/gpu/Accesses.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>
#include <string>

namespace kiln::lowering::gpu {

// --- Staged loads ----------------------------------------------------------------------------------------------------

/// Attributes of the schedule.
inline constexpr llvm::StringLiteral slotsName = "simt.slots", distanceName = "simt.distance",
                                     nextTileName = "simt.next_tile", engineName = "simt.engine",
                                     slotName = "simt.slot", copyLayoutName = "simt.copy_layout",
                                     copyVectorName = "simt.copy_vector", copyWholeName = "simt.copy_whole",
                                     fromSlotsName = "simt.from_slots", runsOnName = "simt.runs_on";

/// Whether GPUs of the compute capability, times 10, have a copy engine of this name.
bool hasEngine(int64_t capability, llvm::StringRef name);

/// A load whose tile is copied ahead.
struct Copy {
  mutable tile::LoadOp load;
  CopyWidth width;
  simt::SharedLayoutAttr slot; // the tile's layout there
  simt::LayoutAttr layout;     // the thread of each copy
};

/// The bytes of a slot, a multiple of the swizzle's period.
int64_t slotBytes(simt::SharedLayoutAttr slot);

/// The layout of the slot's matrix, without leading dimensions, which are 1.
simt::SharedLayoutAttr dropLeadingExtents(simt::SharedLayoutAttr slot);

/// Sets `simt.why` of the load, the reason why its tile is not copied ahead.
std::nullopt_t refuse(tile::LoadOp load, const std::string &why);

/// Plans the copies ahead in `loop` of the tile of `load`, if it becomes an operand of a product. If it cannot be
/// copied, the reason is set.
std::optional<Copy> planCopy(mlir::scf::ForOp loop, tile::LoadOp load);

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

/// Clones reshapes and transposes of a load for each use. Products may read the tile transposed or not, and each use
/// reads the ring separately.
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

/// A load that moves in front of a loop whose iterations do not use its tile. No later pass moves it back.
inline constexpr llvm::StringLiteral aheadName = "simt.ahead";

/// By loop: the registers of a thread for tiles that are in use while the loop runs, without its initial values.
using HeldRegisters = llvm::DenseMap<mlir::Operation *, int64_t>;
HeldRegisters heldRegisters(mlir::func::FuncOp func);

/// Marks the loads that follow `loop` and move in front of it. Their tiles must fit the registers of a thread that
/// `loop` does not use; it holds `held` of them. An SM must still hold `programs` programs.
void markLoadsAhead(mlir::scf::ForOp loop, int64_t held, int64_t programs);

/// Moves these loads.
void moveLoadsAhead(mlir::scf::ForOp loop);

} // namespace kiln::lowering::gpu
