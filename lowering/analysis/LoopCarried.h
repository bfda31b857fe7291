// The loop-carried values of every kind of loop: of an scf.for, or of an scf.while after tile-rotate-loops.
//
// Carried value i is inits[i] before the loop, arguments[i] at the start of an iteration, yielded[i] at its end, and
// results[i] after the loop. The first value that a while carries, before these, is its condition.

#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace kiln::lowering {

struct LoopCarried {
  /// The loop `op`; nothing if `op` is not a loop, or is a while that has not been rotated.
  static std::optional<LoopCarried> of(mlir::Operation *op);

  /// A new loop before this one, with the carried values `inits`. The operations of this loop's body are moved to it.
  /// They still use this loop's arguments and yield its values; the induction variable of an scf.for is the new one.
  LoopCarried withCarried(mlir::OpBuilder &builder, mlir::ValueRange inits) const;

  mlir::Operation *op;
  mlir::Block *body;
  llvm::MutableArrayRef<mlir::OpOperand> inits;
  llvm::MutableArrayRef<mlir::BlockArgument> arguments;
  mlir::ResultRange results;
  /// Empty while the body has no terminator.
  llvm::MutableArrayRef<mlir::OpOperand> yielded;
};

/// A rotated while without a body. It carries `inits`, the first of which is its condition.
mlir::scf::WhileOp emptyWhile(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inits);

} // namespace kiln::lowering
