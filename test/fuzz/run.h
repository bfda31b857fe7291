// Running a program on devices and comparing what they made of its memory.

#pragma once

#include "runtime/Device.h"
#include "test/fuzz/program.h"

namespace kiln::fuzz {

/// The bytes of every buffer after a run, or why there was none.
struct Outcome {
  std::vector<std::vector<char>> buffers;
  std::string error;
  std::string failure; // of a check, after which the program went on
};

Outcome run(const std::shared_ptr<Device> &device, const Program &program);

/// The elements of a buffer, or of an example's copy of it, when the program begins: raw words. Around what views reach
/// there are other numbers than in it.
std::vector<uint64_t> contents(const Program &program, int buffer, int64_t copy = 0);
/// An element of a buffer's bytes; whether `got` may stand where `want` should; and how one is written.
uint64_t wordAt(const std::vector<char> &bytes, Type type, size_t index);
bool agree(const Buffer &buffer, uint64_t got, uint64_t want);
std::string wordText(Type type, uint64_t word);

/// What `got` has otherwise than `want`, the oracle's, or otherwise than it may be: the first few elements, one a line;
/// empty when all is well. Elements that no view reaches must be as they were.
std::string difference(const Program &program, const Outcome &want, const Outcome &got);

/// Runs the program on `device` and on the oracle; what differs, or nothing.
std::string compare(const Program &program, const std::shared_ptr<Device> &oracle,
                    const std::shared_ptr<Device> &device);

/// A smaller program of which `fails` still holds: operations are left out and values replaced by zeros.
Program shrink(Program program, const std::function<bool(const Program &)> &fails);

} // namespace kiln::fuzz
