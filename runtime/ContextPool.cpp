// Creates and reuses MLIR contexts.

#include "runtime/ContextPool.h"

#include "dialect/tile/TileDialect.h"
#include "lowering/Driver.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kiln {

/// Compilations before a context is replaced.
static constexpr int maxServed = 64;

static mlir::DialectRegistry registryOfDialects() {
  mlir::DialectRegistry registry;
  lowering::registerDialects(registry);
  return registry;
}

ContextPool::Context::Context() : context(registryOfDialects(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::func::FuncDialect, mlir::memref::MemRefDialect>();
}

std::unique_ptr<ContextPool::Context> ContextPool::take() {
  const std::lock_guard lock(mutex);
  if (idle.empty())
    return std::make_unique<Context>();
  std::unique_ptr<Context> context = std::move(idle.back());
  idle.pop_back();
  return context;
}

void ContextPool::give(std::unique_ptr<Context> context) {
  if (++context->served >= maxServed)
    return;
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(context));
}

} // namespace kiln
