// The executables of this process, found by kernel, config, device and the facts of the arguments.
//
// Which extents a kernel makes static is known only after tracing it. So a source (one kernel with one config on one
// device) remembers every extent that any trace of it asked for, and a lookup reads just these from the arguments. When
// a later trace asks for more, the executables made so far stay good for arguments that agree in what *they* asked for.
// So it is with what a trace writes: which of the other arguments overlap says nothing.

#pragma once

#include "runtime/Executable.h"
#include "runtime/Facts.h"

#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <unordered_map>

namespace kiln {

/// An executable that is there or being made by some thread.
struct Pending {
  std::promise<std::shared_ptr<const Executable>> promise;
  const std::shared_future<std::shared_ptr<const Executable>> executable = promise.get_future().share();
};
using PendingExecutable = std::shared_ptr<Pending>;

/// The executables of one kernel with one config on one device.
class Source {
public:
  using Asked = std::set<std::pair<int, int>>; // (argument, dimension)

  /// The executable for these arguments, or null.
  PendingExecutable find(const FactWords &facts, const std::vector<Arg> &args);
  /// Adds one that is being made; `asked` is what its trace asked for, `written` the arguments that it writes.
  void add(const FactWords &facts, const std::vector<Arg> &args, const Asked &asked, const std::set<int> &written,
           PendingExecutable pending);
  /// Forgets one that could not be made.
  void remove(const PendingExecutable &pending);

  /// Held while tracing, so that one key is traced by one thread.
  std::mutex tracing;

private:
  friend class MemoryCache;
  struct Variant {
    FactWords telling, facts; // the bits that say something to its trace, and these of its facts
    std::vector<std::pair<std::pair<int, int>, int64_t>> extents; // what its trace asked for, and got
    PendingExecutable pending;
  };
  struct HashWords {
    size_t operator()(const FactWords &words) const { return hashOf(words); }
  };
  FactWords keyOf(const FactWords &facts, const std::vector<Arg> &args) const;
  PendingExecutable findAmong(const FactWords &facts, const std::vector<Arg> &args) const;

  std::shared_ptr<const char> kernel; // keeps the identity from being given to another kernel
  std::string device, config;
  std::mutex mutex;
  Asked asked;
  FactWords telling; // the bits that say something to any of the variants
  std::list<Variant> variants;
  std::unordered_map<FactWords, PendingExecutable, HashWords> known;
};

/// All sources. From any thread.
class MemoryCache {
public:
  std::shared_ptr<Source> source(const std::string &device, const Kernel &kernel, const std::string &config);
  void clear() noexcept;

private:
  std::shared_mutex mutex;
  std::unordered_map<const char *, std::vector<std::shared_ptr<Source>>> sources; // by the kernel's identity
};

} // namespace kiln
