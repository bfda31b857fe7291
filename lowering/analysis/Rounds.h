// What the rounds of a loop carry, of every kind of loop: an scf.for, or an scf.while as tile-rotate-loops leaves it.
//
// Value i of what is carried is inits[i] in front of the loop, arguments[i] when a round begins, yielded[i] when it
// ends, and results[i] behind the loop. A while carries in front of these whether it goes on.

#pragma once

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace kiln::lowering {

struct Rounds {
  /// Nothing of what is no loop, and of a while that has not been rotated.
  static std::optional<Rounds> of(mlir::Operation *op);

  /// The same loop, in front of this one, with other values carried, and with the operations of this one's body, which
  /// still use its arguments and yield what it did; the position of an scf.for is its own.
  Rounds withCarried(mlir::OpBuilder &builder, mlir::ValueRange inits) const;

  mlir::Operation *op;
  mlir::Block *body;
  llvm::MutableArrayRef<mlir::OpOperand> inits;
  llvm::MutableArrayRef<mlir::BlockArgument> arguments;
  mlir::ResultRange results;
  /// None while the body has no end.
  llvm::MutableArrayRef<mlir::OpOperand> yielded;
};

/// A rotated while that carries these, the first of which says whether it goes on, without its rounds.
mlir::scf::WhileOp emptyWhile(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inits);

} // namespace kiln::lowering
