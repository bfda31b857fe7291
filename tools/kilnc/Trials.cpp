// Compiles the candidates of a tuner, several at once, and compares their results with the default's.

#include "runtime/Facts.h"
#include "runtime/Tensor.h"
#include "tools/kilnc/Tuning.h"

#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <thread>

namespace kiln::tools {

// --- Compiling -------------------------------------------------------------------------------------------------------

std::shared_ptr<const Executable> Tuning::executableOf(const std::string &config) const {
  auto executable = compile(device, kernel, args, config);
  if (options.expectAllowed)
    options.expectAllowed(executable->signature());
  return executable;
}

void Tuning::compileOne(Candidate &candidate) const {
  try {
    candidate.executable = executableOf(candidate.config);
  } catch (const std::exception &error) {
    candidate.error = llvm::StringRef(error.what()).split('\n').first.str();
  }
}

void Tuning::compileAll() {
  candidates[0].executable = executableOf(candidates[0].config); // or throws the complete error
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
  const int64_t most = device.target().visit([](const CpuFacts &cpu) { return cpu.l2Bytes; },
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

/// Remembers the tensors that any of the candidates writes.
void Tuning::findWritten() {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].kind == Arg::Kind::tensor && args[i].ref.count() > 0 &&
        std::any_of(candidates.begin(), candidates.end(), [&](const Candidate &each) {
          return each.executable && each.executable->signature().parameters[i].written;
        }))
      written.push_back(i);
  originals = contents();
}

Tuning::Contents Tuning::contents() const {
  Contents all;
  for (const size_t i : written) {
    const Range range = rangeOf(args[i], nullptr);
    all.emplace_back(range.high - range.low);
    device.download(all.back().data(), reinterpret_cast<const void *>(range.low), std::ssize(all.back()));
  }
  return all;
}

void Tuning::restore() {
  for (size_t i = 0; i < originals.size(); ++i)
    device.upload(reinterpret_cast<void *>(rangeOf(args[written[i]], nullptr).low), originals[i].data(),
                  std::ssize(originals[i]));
}

/// The first element that differs; empty if none does.
std::string Tuning::differenceOf(const Contents &got, const Expected &expected) const {
  for (size_t i = 0; i < got.size(); ++i) {
    const std::vector<char> &want = expected.contents[i];
    if (got[i] == want)
      continue;
    const TensorRef &tensor = args[written[i]].ref;
    const int64_t size = bytesOf(tensor.type);
    const auto first =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(tensor.data) - rangeOf(args[written[i]], nullptr).low);
    for (int64_t number = 0; number < tensor.count(); ++number) { // in row-major order
      std::string place;
      int64_t rest = number, at = first;
      for (size_t d = tensor.extents.size(); d-- > 0; rest /= tensor.extents[d]) {
        const int64_t index = rest % tensor.extents[d];
        at += index * tensor.strides[d] * size;
        place = std::to_string(index) + (place.empty() ? "" : ", ") + place;
      }
      if (std::memcmp(&got[i][at], &want[at], size) != 0)
        return fmt::format("expected the result of {}, {} at ({}) of {}, but got {}",
                           expected.config == candidates[0].config ? "the default config" : "config " + expected.config,
                           toDoubles(&want[at], tensor.type, 1)[0], place, kernel.called(written[i]),
                           toDoubles(&got[i][at], tensor.type, 1)[0]);
    }
  }
  return ""; // only bytes between the elements differ, which are not of the tensor
}

/// Launches a candidate on fresh memory; returns the error in its result, if `expected` is given.
std::string Tuning::checkOne(Candidate &candidate, const Expected *expected) {
  restore();
  device.launch(*candidate.executable, candidate.grid, args);
  device.synchronize();
  if (isPredicted())
    candidate.predicted = predictedTimeOfLast(*rates, *simulator, {&kernel, candidate.config, candidate.grid, args},
                                              candidate.executable->signature());
  return expected ? differenceOf(contents(), *expected) : "";
}

void Tuning::checkAll() {
  findWritten();
  checkOne(candidates[0], nullptr);
  std::vector<Expected> results = {{candidates[0].config, contents()}}; // one for each choice of the changing fields
  results[0].isRepeatable = checkOne(candidates[0], &results[0]).empty();
  if (!results[0].isRepeatable)
    leftOut += "two launches of the default config differ, so the results of others are not compared\n";
  bool differs = false;
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
      const auto like = std::find_if(results.begin(), results.end(), [&](const Expected &each) {
        return !changesResults(kernel, candidate.config, each.config);
      });
      const bool isNew = like == results.end();
      const std::string difference = checkOne(candidate, !isNew && like->isRepeatable ? &*like : nullptr);
      if (isNew) {
        results.push_back({candidate.config, contents()});
        results.back().isRepeatable = checkOne(candidate, &results.back()).empty();
      }
      if (difference.empty())
        continue;
      differs = true;
      faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config, difference);
    } catch (const Error &error) {
      faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config,
                            llvm::StringRef(error.what()).rtrim().str());
    }
    candidate.executable = {};
    candidate.error = "its result is wrong";
  }
  if (differs)
    faults +=
        "if the number of programs depends on a field, write that in --grid, as out.0/FIELD; if a field changes the "
        "order of sums, mark it with .changing() and add --vary-results\n";
  restore();
}

} // namespace kiln::tools
