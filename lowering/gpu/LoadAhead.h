// Loads that follow a loop of products, moved in front of it.

#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::lowering::gpu {

/// A load that was moved in front of a loop whose iterations do not use its tile. No later pass moves it back.
inline constexpr llvm::StringLiteral aheadName = "simt.ahead";

/// By loop: the registers of a thread for tiles that are in use while the loop runs, without its initial values.
using HeldRegisters = llvm::DenseMap<mlir::Operation *, int64_t>;
HeldRegisters heldRegisters(mlir::func::FuncOp func);

/// Moves the loads that follow `loop` in front of it and marks them, if their tiles fit the registers of a thread while
/// `loop` runs and holds `held` of them. An SM must still hold `programs` programs.
void loadAhead(mlir::scf::ForOp loop, int64_t held, int64_t programs);

} // namespace kiln::lowering::gpu
