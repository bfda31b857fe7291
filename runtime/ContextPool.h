// MLIR contexts to compile in. Making one takes longer than tracing a small kernel, so a context that served a
// compilation well serves others; one that an error passed through is dropped.

#pragma once

#include "mlir/IR/MLIRContext.h"

#include <memory>
#include <mutex>
#include <vector>

namespace kiln {

/// Contexts that no thread is using. From any thread; a context belongs to one thread from take() to give().
class ContextPool {
public:
  struct Context {
    Context();
    mlir::MLIRContext context;
    int served = 0; // compilations: types and attributes stay in a context, so none serves for ever
  };
  /// A context with the dialects that tracing needs.
  std::unique_ptr<Context> take();
  /// Takes a context back whose module is gone.
  void give(std::unique_ptr<Context> context);

private:
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;
};

} // namespace kiln
