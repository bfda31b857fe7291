// Compiles the candidates of a tuner, several at once, and compares their results with the default's.

#include "runtime/Streams.h"
#include "tools/kilnc/Tuning.h"

#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

namespace kiln::tools {

// --- Compiling -------------------------------------------------------------------------------------------------------

void Tuning::compileOne(Candidate &candidate) const {
  try {
    candidate.executable = compile(*device, kernel, memory.args, candidate.config);
  } catch (const std::exception &error) {
    candidate.error = llvm::StringRef(error.what()).split('\n').first.str();
  }
}

void Tuning::compileAll() {
  compileOne(candidates[0]);
  if (!candidates[0].executable)
    compile(*device, kernel, memory.args, candidates[0].config); // throws the complete error
  std::atomic<size_t> next = 1;
  const auto work = [&] {
    for (size_t i; (i = next++) < candidates.size() && elapsed() < 0.4 * options.budget;) {
      compileOne(candidates[i]);
      if (const size_t done = next; done % 4 == 0)
        progress(fmt::format("compiling, {} of {}", std::min(done, candidates.size()), candidates.size()));
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < compileThreads(); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread &thread : threads)
    thread.join();
  // Candidates that exceed a core's cache are skipped, unless the default does, too.
  const int64_t most = device->target().visit([](const CpuFacts &cpu) { return cpu.l2Bytes; },
                                              [](const GpuFacts &) { return std::numeric_limits<int64_t>::max(); });
  for (Candidate &candidate : candidates)
    if (candidate.executable && candidate.executable->scratchBytes() > most &&
        candidates[0].executable->scratchBytes() <= most) {
      candidate.error = fmt::format("expected scratch memory within the cache's {} bytes, but got {}", most,
                                    candidate.executable->scratchBytes());
      candidate.executable = {};
    }
}

// --- Comparing -------------------------------------------------------------------------------------------------------

Tuning::Contents Tuning::contents() const {
  Contents all(memory.tensors.size());
  for (size_t i = 0; i < all.size(); ++i)
    if (memory.args[i].kind == Arg::Kind::tensor) {
      all[i].resize(static_cast<size_t>(memory.tensors[i].bytes()));
      memory.tensors[i].download(all[i].data(), memory.tensors[i].bytes());
    }
  return all;
}

void Tuning::restore() {
  for (size_t i = 0; i < originals.size(); ++i)
    if (memory.args[i].kind == Arg::Kind::tensor)
      memory.tensors[i].upload(originals[i].data(), memory.tensors[i].bytes());
}

/// The first element that differs; empty if none does.
std::string Tuning::differenceOf(const Contents &got, const Contents &expected) const {
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i])
      continue;
    const Tensor &tensor = memory.tensors[i];
    const auto size = static_cast<size_t>(bytesOf(tensor.type()));
    size_t at = 0;
    while (std::memcmp(&got[i][at * size], &expected[i][at * size], size) == 0)
      ++at;
    std::string place;
    auto rest = static_cast<int64_t>(at);
    for (size_t d = tensor.extents().size(); d-- > 0; rest /= tensor.extents()[d])
      place = std::to_string(rest % tensor.extents()[d]) + (place.empty() ? "" : ", ") + place;
    return fmt::format("expected the default's result, {} at ({}) of {}, but got {}; if the field changes the order of "
                       "sums, mark it with .changing() and add --vary-results",
                       toDoubles(&expected[i][at * size], tensor.type(), 1)[0], place, kernel.called(i),
                       toDoubles(&got[i][at * size], tensor.type(), 1)[0]);
  }
  return "";
}

/// Launches a candidate on fresh memory; returns the error in its result, if `expected` is given.
std::string Tuning::checkOne(Candidate &candidate, const Contents *expected) {
  restore();
  device->launch(*candidate.executable, candidate.grid, memory.args);
  device->synchronize();
  return expected ? differenceOf(contents(), *expected) : "";
}

void Tuning::checkAll() {
  checkOne(candidates[0], nullptr);
  const Contents expected = contents();
  const bool isRepeatable = checkOne(candidates[0], &expected).empty();
  if (!isRepeatable)
    say("kilnc: two launches of the default config differ, so the results of others are not compared\n");
  for (size_t i = 1; i < candidates.size(); ++i) {
    Candidate &candidate = candidates[i];
    if (candidate.executable && elapsed() > 0.7 * options.budget)
      candidate.executable = {};
    if (!candidate.executable) {
      if (!candidate.error.empty())
        leftOut += fmt::format("left out: {}: {}\n", candidate.config, candidate.error);
      continue;
    }
    progress(fmt::format("checking {}", candidate.config));
    try {
      const bool compares = isRepeatable && !changesResults(kernel, candidate.config, candidates[0].config);
      const std::string difference = checkOne(candidate, compares ? &expected : nullptr);
      if (!difference.empty())
        faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config, difference);
      if (difference.empty())
        continue;
    } catch (const Error &error) {
      faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config,
                            llvm::StringRef(error.what()).rtrim().str());
    }
    candidate.executable = {};
    candidate.error = "its result is wrong";
  }
  restore();
}

} // namespace kiln::tools
