// Compilations: executables in memory, and a JIT compilation in two halves, so that several can run concurrently. The
// first half finds the executable in memory or traces the kernel. A trace shows which later requests its executable
// serves. The second half generates the code; it takes nearly all of the time and runs on the thread that began the
// compilation.

#pragma once

#include "lowering/Backend.h"
#include "runtime/Device.h"
#include "runtime/Executable.h"
#include "runtime/Facts.h"
#include "runtime/Signature.h"

#include "mlir/IR/MLIRContext.h"

#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace kiln {

// --- The compile cache in memory ------------------------------------------------------------------------------------
//
// It has executables by kernel, config, device and facts of the arguments.
//
// Only a trace shows which extents a kernel reads as constants. So a *source* (one kernel with one config on one
// device) keeps the set of extents that any of its traces has read. A lookup reads just these from the arguments. If a
// later trace reads more extents, older executables stay valid for arguments that agree in the extents that they read.
// Likewise, overlap matters only for pairs of views of which the kernel writes at least one.

/// An executable that is ready or being compiled by some thread.
struct Pending {
  std::promise<std::shared_ptr<const Executable>> promise;
  const std::shared_future<std::shared_ptr<const Executable>> executable = promise.get_future().share();
};
using PendingExecutable = std::shared_ptr<Pending>;

/// The executables of one kernel with one config on one device.
class Source {
public:
  using StaticExtents = std::set<std::pair<int, int>>; // (argument, dimension)

  /// The executable for these arguments, or null.
  PendingExecutable find(const FactWords &facts, const std::vector<Arg> &args);
  /// As above, or else an executable that relies on fewer equal extents than these arguments have.
  PendingExecutable findGeneral(const Kernel &kernel, const FactWords &facts, const std::vector<Arg> &args);
  /// Adds an executable that is being compiled, which relies on the facts that `uses` names.
  void add(const Kernel &kernel, const FactWords &facts, const std::vector<Arg> &args, const ArgumentUses &uses,
           PendingExecutable pending);
  /// Removes one whose compilation failed.
  void remove(const PendingExecutable &pending);

  /// Held while tracing, so that only one thread traces a key.
  std::mutex tracing;

private:
  friend class MemoryCache;
  struct Variant {
    FactWords relevant, facts; // the bits that are relevant to its trace, and their values
    std::vector<std::pair<std::pair<int, int>, int64_t>> extents; // the extents that its trace read
    PendingExecutable pending;
  };
  struct HashWords {
    size_t operator()(const FactWords &words) const { return hashOf(words); }
  };
  FactWords keyOf(const FactWords &facts, const std::vector<Arg> &args) const;
  PendingExecutable findAmong(const FactWords &facts, const std::vector<Arg> &args) const;

  std::shared_ptr<const char> kernel; // keeps the address of the identity from being reused
  std::string device, config;
  std::mutex mutex;
  StaticExtents staticExtents;
  FactWords relevant; // the bits that are relevant to any of the variants
  std::list<Variant> variants;
  std::unordered_map<FactWords, PendingExecutable, HashWords> known;
};

/// All sources. Thread-safe.
class MemoryCache {
public:
  /// The source of a kernel, which is made at the first call. That call drops the sources of kernels that are gone.
  std::shared_ptr<Source> source(const std::string &device, const Kernel &kernel, const std::string &config);
  void clear() noexcept;

private:
  std::shared_mutex mutex;
  std::unordered_map<const char *, std::vector<std::shared_ptr<Source>>> sources; // by the kernel's identity
};

// --- The two halves -------------------------------------------------------------------------------------------------

/// A request for an executable. It refers to the caller's objects.
struct Request {
  Device &device;
  const Kernel &kernel;
  const std::vector<Arg> &args;
  const std::string &config;
  void *workspace = nullptr; // begin of workspace regions
  std::span<const Launch::Problem> others =
      {}; // further problems of a grouped launch, for a device that runs all at once
};

struct TracedKernel;

/// An executable that is ready or being compiled, and the input of its compilation for the thread that has to finish
/// it.
struct Begun {
  PendingExecutable executable;
  std::shared_ptr<Source> source;
  std::shared_ptr<TracedKernel> traced; // null unless this thread has to finish it
};

/// The executable if it is in memory or being compiled, else null.
PendingExecutable findCompiled(const Request &request);
/// Finds the executable, or traces the kernel and registers it as being compiled. Throws Error if the arguments do not
/// fit, the kernel has a mistake, or freeze() forbids compiling.
Begun beginCompiling(const Request &request);
/// Compiles if beginCompiling() left it to this thread. An error is thrown in every thread that waits for the
/// executable; returns whether there was none.
bool finishCompiling(const Request &request, Begun &begun);

/// The key of a traced module's code in the compile cache: the module, the backend, and the versions of Kiln's compiler
/// and LLVM.
std::string codeKey(mlir::ModuleOp module, const lowering::Backend &backend);

/// MLIR contexts for compilations. Creating one takes longer than tracing a small kernel, so contexts are reused. A
/// context is dropped after an exception. Thread-safe; a context belongs to one thread from take() to give().
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

/// The folder that KILN_DUMP names; empty without it.
std::string dumpFolder();

/// Writes the stages of one compilation to `dumpFolder()/<kernel>-<key>/00-tile.mlir` and so on, in order. Throws Error
/// (device) on failure.
lowering::StageSink dumpStages(const std::string &kernel, const std::string &key);

} // namespace kiln
