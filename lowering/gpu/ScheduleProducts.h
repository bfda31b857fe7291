// Schedules the asynchronous products of a pipelined loop whose left operand is in registers (`simt.multiply_rows`):
// the begin of each product, and the wait for it.

#pragma once

#include "dialect/simt/SimtDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::lowering::gpu {

/// Whether `product` may still be in flight when the next iteration begins. Its result must be loop-carried without
/// another use in the iteration, and its rows must be computed from another one of `products`.
bool mayRunOn(mlir::scf::ForOp loop, mlir::Operation *product, llvm::ArrayRef<mlir::Operation *> products);

/// Begins each of `products`, in their order, as soon as its operands are defined, and after `begin`. Waits for it
/// before the first use of its result. The next iteration, or the code after the loop, waits for those of `runOn`.
/// Returns the last operation that begins the iteration: `begin`, or a product.
mlir::Operation *scheduleProducts(mlir::scf::ForOp loop, mlir::Operation *begin,
                                  llvm::ArrayRef<mlir::Operation *> products, llvm::ArrayRef<mlir::Operation *> runOn);

} // namespace kiln::lowering::gpu
