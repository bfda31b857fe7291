// The compile cache in memory: executables by kernel, config, device and facts of the arguments.
//
// Only a trace shows which extents a kernel reads as constants. So a source (one kernel with one config on one device)
// keeps the set of extents that any of its traces has read, and a lookup reads just these from the arguments. If a
// later trace reads more extents, older executables stay valid for arguments that agree in the extents that they read.
// Likewise, overlap matters only for pairs of views of which the kernel writes at least one.

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
  /// Adds an executable that is being compiled. Its trace read the extents `staticExtents`; it writes the arguments
  /// `written`.
  void add(const FactWords &facts, const std::vector<Arg> &args, const StaticExtents &staticExtents,
           const std::set<int> &written, PendingExecutable pending);
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
  std::shared_ptr<Source> source(const std::string &device, const Kernel &kernel, const std::string &config);
  void clear() noexcept;

private:
  std::shared_mutex mutex;
  std::unordered_map<const char *, std::vector<std::shared_ptr<Source>>> sources; // by the kernel's identity
};

} // namespace kiln
