// MLIR contexts for compilations. Creating one takes longer than tracing a small kernel, so contexts are reused. A
// context is dropped after an exception.

#pragma once

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <mutex>
#include <vector>

namespace kiln {

/// Idle contexts. Thread-safe; a context belongs to one thread from take() to give().
class ContextPool {
public:
  struct Context {
    Context();
    mlir::MLIRContext context;
    int served = 0; // compilations; types and attributes stay in a context, so it is retired after some
  };
  /// A context with the dialects that tracing needs.
  std::unique_ptr<Context> take();
  /// Takes a context back after its module was destroyed.
  void give(std::unique_ptr<Context> context);

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;
};

} // namespace kiln
