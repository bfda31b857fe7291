// Compiles the candidates of a tuner, several at once, and compares their results with the default's.

#include "runtime/Tensor.h"
#include "tools/kilnc/Tuning.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <thread>

namespace kiln::tools {

// --- Compiling -------------------------------------------------------------------------------------------------------

std::shared_ptr<const Executable> Tuning::executableOf(const std::string &config) const {
  auto executable = compile(device, kernel, args, config);
  if (options.expectAllowed)
    options.expectAllowed(executable->signature());
  return executable;
}

void Tuning::compileOne(Candidate &candidate) {
  try {
    candidate.executable = executableOf(candidate.config);
  } catch (const std::exception &error) {
    candidate.error = llvm::StringRef(error.what()).split('\n').first.str();
  }
}

/// Calls `work` for the candidates, several at once, while there is time to compile.
void Tuning::forEach(const std::vector<size_t> &batch, const std::function<void(Candidate &)> &work) {
  std::atomic<size_t> next = 0;
  const auto worker = [&] {
    for (size_t i; (i = next++) < batch.size() && elapsed() < 0.4 * options.budget;) {
      progress(fmt::format("compiling {}", candidates[batch[i]].config));
      work(candidates[batch[i]]);
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < std::min(compileThreads(), static_cast<int>(batch.size())); ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread &thread : threads)
    thread.join();
}

/// Marks candidates whose code and programs are those of an earlier one, such as those with another number of warps on
/// a CPU. They need not be measured.
void Tuning::findCopies(const std::vector<size_t> &batch) {
  std::vector<std::string> keys(candidates.size());
  forEach(batch, [&](Candidate &candidate) {
    if (std::exchange(candidate.hasKey, true))
      return;
    try {
      keys[&candidate - candidates.data()] = codeKeyOf(device, {&kernel, candidate.config, candidate.grid, args});
    } catch (const std::exception &) { // compiling it reports the error
    }
  });
  for (const size_t i : batch)
    if (!keys[i].empty())
      candidates[i].isCopy = codes.try_emplace({keys[i], candidates[i].grid}, i).first->second != i;
}

void Tuning::compileAll(const std::vector<size_t> &batch) {
  if (!candidates[0].executable)
    candidates[0].executable = executableOf(candidates[0].config); // or throws the complete error
  if (!options.exhaustive)
    findCopies(batch);
  forEach(batch, [&](Candidate &candidate) {
    if (!candidate.isCopy && !candidate.executable)
      compileOne(candidate);
  });
  // Candidates that exceed a core's cache are skipped, unless the default does, too.
  const int64_t most = device.target().visit([](const CpuFacts &cpu) { return cpu.l2Bytes; },
                                             [](const GpuFacts &) { return std::numeric_limits<int64_t>::max(); });
  for (const size_t i : batch)
    if (Candidate &candidate = candidates[i]; candidate.executable && candidate.executable->scratchBytes() > most &&
                                              candidates[0].executable->scratchBytes() <= most) {
      candidate.error = fmt::format("expected scratch memory within the cache's {} bytes, but got {}", most,
                                    candidate.executable->scratchBytes());
      candidate.executable = {};
    }
}

// --- Comparing -------------------------------------------------------------------------------------------------------

/// A function from an element's number in row-major order to its index in memory, from the first byte of the range.
static auto indicesOf(const Arg &arg) {
  const auto bytes = static_cast<int64_t>(reinterpret_cast<uintptr_t>(arg.ref.data) - rangeOf(arg, nullptr).low);
  return [first = bytes / bytesOf(arg.ref.type), &tensor = arg.ref](int64_t number) {
    int64_t index = first;
    for (size_t d = tensor.extents.size(); d-- > 0; number /= tensor.extents[d])
      index += number % tensor.extents[d] * tensor.strides[d];
    return index;
  };
}

/// Sets the elements in a tensor's memory to a value that few results have: NaN, −1, the largest unsigned number, or
/// false and true in turn.
static void setUnlikely(const Arg &arg, std::vector<char> &memory) {
  const int64_t size = bytesOf(arg.ref.type);
  std::vector<char> value(size, -1);
  if (isFloat(arg.ref.type))
    fromDoubles({std::numeric_limits<double>::quiet_NaN()}, arg.ref.type, value.data());
  const auto indexOf = indicesOf(arg);
  for (int64_t number = 0; number < arg.ref.count(); ++number) {
    if (arg.ref.type == boolean)
      value[0] = number % 2;
    std::memcpy(&memory[indexOf(number) * size], value.data(), size);
  }
}

/// Remembers the tensors that the visited candidates write, with their contents and those before a launch that is
/// checked. Then a tensor that no candidate reads, not even in part, must not have the right results already. Otherwise
/// a config that leaves out some elements would seem right. The expected results follow from these contents.
void Tuning::findAccesses(const std::vector<size_t> &batch) {
  const auto add = [&](std::vector<size_t> &to, bool Signature::Parameter::*access) {
    const size_t before = to.size();
    for (size_t i = 0; i < args.size(); ++i)
      if (args[i].kind == Arg::Kind::tensor && args[i].ref.count() > 0 && !llvm::is_contained(to, i) &&
          llvm::any_of(batch, [&](size_t each) {
            return candidates[each].executable && candidates[each].executable->signature().parameters[i].*access;
          }))
        to.push_back(i);
    return to.size() > before;
  };
  const bool readsMore = add(read, &Signature::Parameter::read);
  if (!add(written, &Signature::Parameter::written) && !readsMore)
    return;
  upload(originals); // of fewer tensors: the last ones are new
  originals = contents();
  for (const size_t i : written) {
    const Range range = rangeOf(args[i], nullptr);
    if (llvm::any_of(read, [&](size_t other) { return range.overlaps(rangeOf(args[other], nullptr)); }))
      continue;
    std::vector<char> memory = download(range);
    setUnlikely(args[i], memory);
    device.upload(reinterpret_cast<void *>(range.low), memory.data(), std::ssize(memory));
  }
  unlikely = contents();
  for (const Expected &each : std::exchange(results, {}))
    expectResult(each.candidate);
}

/// Launches a candidate twice. Its result is expected of those that are like it.
void Tuning::expectResult(size_t candidate) {
  checkOne(candidates[candidate], nullptr);
  results.push_back({candidate, contents()});
  results.back().isRepeatable = checkOne(candidates[candidate], &results.back()).text.empty();
}

std::vector<char> Tuning::download(const Range &range) const {
  std::vector<char> memory(range.high - range.low);
  device.download(memory.data(), reinterpret_cast<const void *>(range.low), std::ssize(memory));
  return memory;
}

Tuning::Contents Tuning::contents() const {
  Contents all;
  for (const size_t i : written)
    all.push_back(download(rangeOf(args[i], nullptr)));
  return all;
}

void Tuning::upload(const Contents &all) {
  for (size_t i = 0; i < all.size(); ++i)
    device.upload(reinterpret_cast<void *>(rangeOf(args[written[i]], nullptr).low), all[i].data(), std::ssize(all[i]));
}

/// The difference of two results, relative to the largest element, that the order of a sum may make. It is 8 ulps of
/// f32, in which sums are accumulated, and one ulp of a narrower type, to which they are rounded.
static double roundingOf(Type type) {
  if (type == f4e2m1x2)
    return 0.5;
  const auto rounded = [&](double value) {
    std::vector<char> data(bytesOf(type));
    fromDoubles({value}, type, data.data());
    return toDoubles(data.data(), type, 1)[0];
  };
  double ulp = 1; // of 1
  while (rounded(1 + ulp / 2) != 1)
    ulp /= 2;
  return std::max(ulp, 0x1p-20);
}

/// The numbers of a tensor's memory: one of each element, or two.
static std::vector<double> numbersOf(const std::vector<char> &memory, Type type) {
  if (type != f4e2m1x2)
    return toDoubles(memory.data(), type, std::ssize(memory) / bytesOf(type));
  static constexpr double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  std::vector<double> numbers;
  for (const char pair : memory)
    for (const int number : {pair & 15, pair >> 4 & 15})
      numbers.push_back(std::copysign(magnitudes[number & 7], number & 8 ? -1 : 1));
  return numbers;
}

/// The first element that differs by more than rounding; without one, the first that differs.
Tuning::Difference Tuning::differenceOf(const Contents &got, const Expected &expected) const {
  Difference rounding;
  for (size_t i = 0; i < got.size(); ++i) {
    const std::vector<char> &want = expected.contents[i];
    if (got[i] == want)
      continue; // else only bytes between the elements may differ, which are not of the tensor
    const TensorRef &tensor = args[written[i]].ref;
    const int64_t size = bytesOf(tensor.type);
    const auto indexOf = indicesOf(args[written[i]]);
    const auto placeOf = [&](int64_t number) { // of an element, in row-major order
      std::vector<int64_t> place(tensor.extents.size());
      for (size_t d = place.size(); d-- > 0; number /= tensor.extents[d])
        place[d] = number % tensor.extents[d];
      return place;
    };
    const std::vector<double> values = numbersOf(got[i], tensor.type), wanted = numbersOf(want, tensor.type);
    const auto each = static_cast<int64_t>(values.size() / (got[i].size() / size));
    const auto of = [each](const std::vector<double> &numbers, int64_t at) {
      return std::span(numbers).subspan(at * each, each);
    };
    double largest = 0;
    for (int64_t number = 0; number < tensor.count(); ++number)
      for (const double value : of(wanted, indexOf(number)))
        largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    const double most = isFloat(tensor.type) || each > 1 ? roundingOf(tensor.type) * largest : -1;
    for (int64_t number = 0; number < tensor.count(); ++number) {
      const int64_t at = indexOf(number);
      const bool isRounding = std::ranges::equal(
          of(values, at), of(wanted, at), [&](double value, double other) { return std::abs(value - other) <= most; });
      if (std::memcmp(&got[i][at * size], &want[at * size], size) == 0 || (isRounding && !rounding.text.empty()))
        continue;
      const Difference difference = {
          fmt::format("expected the result of {}, {} at ({}) of {}, but got {}",
                      expected.candidate ? "config " + candidates[expected.candidate].config : "the default config",
                      fmt::join(of(wanted, at), " and "), fmt::join(placeOf(number), ", "), kernel.called(written[i]),
                      fmt::join(of(values, at), " and ")),
          isRounding};
      if (!isRounding)
        return difference;
      rounding = difference;
    }
  }
  return rounding;
}

/// Launches a candidate on the memory for checks; returns the difference of its result, if `expected` is given.
Tuning::Difference Tuning::checkOne(Candidate &candidate, const Expected *expected) {
  upload(unlikely);
  device.launch(*candidate.executable, candidate.grid, args);
  device.synchronize();
  if (isPredicted())
    candidate.predicted = predictedTimeOfLast(*rates, *simulator, {&kernel, candidate.config, candidate.grid, args},
                                              candidate.executable->signature());
  return expected ? differenceOf(contents(), *expected) : Difference();
}

/// Compares a candidate's result with the expected one, and leaves it out if they differ.
void Tuning::compare(size_t index) {
  Candidate &candidate = candidates[index];
  const auto like = llvm::find_if(results, [&](const Expected &each) {
    return !changesResults(kernel, candidate.config, candidates[each.candidate].config);
  });
  if (like == results.end())
    return expectResult(index);
  const Difference difference = checkOne(candidate, like->isRepeatable ? &*like : nullptr);
  if (difference.text.empty())
    return;
  candidate.rounds = difference.isRounding;
  if (candidate.rounds && options.variesResults)
    return;
  (candidate.rounds ? excludesRounding : differs) = true;
  if (candidate.rounds)
    leftOut += fmt::format("left out: {}: rounding, {}\n", candidate.config, difference.text);
  else
    faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config, difference.text);
  candidate.executable = {};
  candidate.error = "its result is wrong";
}

void Tuning::checkAll(const std::vector<size_t> &batch) {
  findAccesses(batch);
  for (const size_t i : batch) {
    Candidate &candidate = candidates[i];
    if (i == 0) {
      expectResult(0);
      if (!results[0].isRepeatable)
        leftOut += "two launches of the default config differ, so the results of others are not compared\n";
      continue;
    }
    if (candidate.executable && elapsed() > 0.7 * options.budget)
      candidate.executable = {};
    if (!candidate.executable) {
      if (!candidate.error.empty())
        leftOut += fmt::format("left out: {}: {}\n", candidate.config, candidate.error);
      continue;
    }
    progress(fmt::format("checking {}", candidate.config));
    try {
      compare(i);
    } catch (const Error &error) {
      faults += fmt::format("kernel '{}', config {}: {}\n", kernel.name, candidate.config,
                            llvm::StringRef(error.what()).rtrim().str());
      candidate.executable = {};
      candidate.error = "its launch failed";
    }
  }
  upload(originals);
}

void Tuning::explainDifferences() {
  if (excludesRounding)
    leftOut += fmt::format("configs with other roundings, as of sums in another order, can win only with {}\n",
                           options.names.variesResults);
  if (differs)
    faults += fmt::format("if the number of programs depends on a field, {}; if a field changes results, mark it with "
                          ".changing() and pass {}\n",
                          options.names.grid, options.names.variesResults);
}

} // namespace kiln::tools
