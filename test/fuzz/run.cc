// Runs one program on one device, and compares two outcomes.

#include "test/fuzz/run.h"

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

namespace kiln::fuzz {

using test::integerOf;
using test::Raw;
using test::rawOfInteger;
using test::rawOfReal;
using test::toDouble;

/// Which elements of a buffer some window reaches.
static std::vector<bool> reached(const Program &program, int buffer) {
  std::vector<bool> result(program.buffers[buffer].elements);
  for (const Window &window : program.windows) {
    if (window.buffer != buffer)
      continue;
    std::vector<int64_t> places = {window.offset};
    for (size_t axis = 0; axis < window.extents.size(); ++axis) {
      std::vector<int64_t> next;
      for (const int64_t place : places)
        for (int64_t i = 0; i < window.extents[axis]; ++i)
          next.push_back(place + i * window.strides[axis]);
      places = std::move(next);
    }
    for (const int64_t place : places)
      result[place] = true;
  }
  return result;
}

static uint64_t drawn(const Buffer &buffer, std::mt19937_64 &random) {
  const auto below = [&](uint64_t count) { return static_cast<int64_t>(random() % count); };
  if (buffer.fill == Buffer::Fill::zero)
    return 0;
  if (buffer.type == boolean)
    return random() % 4 ? random() % 2 : random() % 256; // whatever is not 0 is true
  if (buffer.fill == Buffer::Fill::wild) {
    static thread_local std::map<Type, Raw> special;
    Raw &words = special[buffer.type];
    if (words.empty())
      words = test::specialWords(buffer.type);
    const uint64_t bits = bytesOf(buffer.type) * 8;
    return below(2) ? words[below(words.size())] : bits == 64 ? random() : random() & ((1ull << bits) - 1);
  }
  if (!isFloat(buffer.type))
    return rawOfInteger(buffer.type, buffer.fill == Buffer::Fill::small ? below(9) - 4 : below(49) - 8);
  if (buffer.fill == Buffer::Fill::small)
    return rawOfReal(buffer.type, static_cast<double>(below(9) - 4));
  return rawOfReal(buffer.type, std::ldexp(static_cast<double>(below(1 << 20) - (1 << 19)), -16));
}

Raw contents(const Program &program, int index, int64_t copy) {
  const Buffer &buffer = program.buffers[index];
  std::mt19937_64 random(program.seed * 31 + program.number * 7 + index + copy * 1000003);
  const std::vector<bool> inside = reached(program, index);
  const uint64_t outside = buffer.type == boolean ? 1 : isFloat(buffer.type) ? rawOfReal(buffer.type, 99) : 99;
  Raw result(buffer.elements);
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = inside[i] ? drawn(buffer, random) : outside;
  return result;
}

uint64_t wordAt(const std::vector<char> &bytes, Type type, size_t index) {
  uint64_t word = 0;
  std::memcpy(&word, &bytes[index * bytesOf(type)], bytesOf(type));
  return word;
}

Outcome outcomeOf(const std::shared_ptr<Device> &device, const std::function<std::vector<Tensor>()> &memory,
                  const std::function<void(const std::vector<Tensor> &)> &launches) {
  Outcome outcome;
  try {
    const std::vector<Tensor> tensors = memory();
    launches(tensors);
    try {
      device->synchronize();
    } catch (const Error &failed) {
      outcome.failure = failed.what();
      if (!outcome.failure.starts_with("check failed"))
        throw;
    }
    for (const Tensor &tensor : tensors)
      tensor.download(outcome.buffers.emplace_back(tensor.bytes()).data(), tensor.bytes());
  } catch (const std::exception &error) {
    outcome.error = error.what();
  }
  forgetCompiled(); // no program is run twice
  return outcome;
}

static std::vector<Tensor> memoryOf(const std::shared_ptr<Device> &device, const Program &program) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Type type = program.buffers[i].type;
    const Raw words = contents(program, static_cast<int>(i));
    std::vector<char> bytes(words.size() * bytesOf(type));
    for (size_t at = 0; at < words.size(); ++at)
      std::memcpy(&bytes[at * bytesOf(type)], &words[at], bytesOf(type));
    tensors.emplace_back(device, type, Shape{program.buffers[i].elements});
    tensors.back().upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  return tensors;
}

Outcome run(const std::shared_ptr<Device> &device, const Program &program) {
  return outcomeOf(
      device, [&] { return memoryOf(device, program); },
      [&](const std::vector<Tensor> &tensors) {
        std::vector<TensorRef> views;
        for (const Window &window : program.windows) {
          TensorRef &ref = views.emplace_back(tensors[window.buffer].ref());
          ref.data = static_cast<char *>(ref.data) + window.offset * bytesOf(ref.type);
          ref.extents = window.extents;
          ref.strides = window.strides;
        }
        std::vector<Arg> args;
        for (const auto &[kind, begin, count] : viewParameters(program)) {
          if (kind == Kernel::Parameter::Kind::list)
            args.emplace_back(std::vector<TensorRef>(views.begin() + begin, views.begin() + begin + count));
          else if (count == 0)
            args.emplace_back(std::nullopt);
          else
            args.emplace_back(views[begin]);
        }
        for (const int64_t scalar : program.scalars)
          args.emplace_back(scalar);
        launch(*device, kernelOf(program), {program.axes[0], program.axes[1], program.axes[2]}, args);
      });
}

bool agree(const Buffer &buffer, uint64_t got, uint64_t want) {
  if (test::same(buffer.type, got, want, !buffer.facts.openZero))
    return true;
  if (!isFloat(buffer.type) || buffer.facts.exact())
    return false;
  const double a = toDouble(buffer.type, got), b = toDouble(buffer.type, want);
  return std::isfinite(a) && std::isfinite(b) &&
         std::fabs(a - b) <= buffer.facts.relative * std::max(std::fabs(a), std::fabs(b)) + buffer.facts.absolute;
}

std::string wordText(Type type, uint64_t word) {
  return isFloat(type) ? fmt::format("{} ({:#x})", toDouble(type, word), word)
                       : fmt::format("{}", integerOf(type, word));
}

std::string difference(const Program &program, const Outcome &want, const Outcome &got) {
  if (!got.error.empty() || !want.error.empty())
    return got.error.empty() ? fmt::format("the oracle says: {}\n", want.error)
                             : fmt::format("it says: {}\n", got.error);
  std::string text;
  if (got.failure != want.failure)
    text += fmt::format("it says '{}', the oracle '{}'\n", got.failure, want.failure);
  int left = 6;
  for (size_t index = 0; index < program.buffers.size(); ++index) {
    const Buffer &buffer = program.buffers[index];
    const std::vector<bool> inside = reached(program, static_cast<int>(index));
    const Raw before = contents(program, static_cast<int>(index));
    for (size_t i = 0; i < before.size() && left > 0; ++i) {
      const uint64_t now = wordAt(got.buffers[index], buffer.type, i);
      const uint64_t wanted = wordAt(want.buffers[index], buffer.type, i);
      if (!inside[i] && now != before[i])
        text += fmt::format("element {} of buffer {}, in no view, became {}\n", i, index, wordText(buffer.type, now));
      else if (!agree(buffer, now, wanted))
        text += fmt::format("element {} of buffer {} is {}, the oracle's {}{}\n", i, index, wordText(buffer.type, now),
                            wordText(buffer.type, wanted),
                            buffer.facts.exact() ? ""
                                                 : fmt::format(", within {} and {} of it", buffer.facts.absolute,
                                                               buffer.facts.relative));
      else
        continue;
      --left;
    }
  }
  return text;
}

std::string compare(const Program &program, const std::shared_ptr<Device> &oracle,
                    const std::shared_ptr<Device> &device) {
  return difference(program, run(oracle, program), run(device, program));
}

} // namespace kiln::fuzz
