// When the products of a pipelined loop begin whose rows are in registers (`simt.multiply_rows`), and when the threads
// wait for them.

#pragma once

#include "dialect/simt/SimtDialect.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln::lowering::gpu {

/// Whether `product` may still run when the next iteration begins: it makes a loop-carried value, which nothing else in
/// the iteration uses, of rows that the iteration computes from another one of `products`.
bool mayRunOn(mlir::scf::ForOp loop, mlir::Operation *product, llvm::ArrayRef<mlir::Operation *> products);

/// Begins each of `products`, in their order, as soon as its operands are known, but after `begin`, and waits for it
/// before the first use of its result. For those of `runOn` the next iteration waits, or the code after the loop.
/// Returns the last operation of those that begin the iteration: `begin`, or a product.
mlir::Operation *scheduleProducts(mlir::scf::ForOp loop, mlir::Operation *begin,
                                  llvm::ArrayRef<mlir::Operation *> products, llvm::ArrayRef<mlir::Operation *> runOn);

} // namespace kiln::lowering::gpu
