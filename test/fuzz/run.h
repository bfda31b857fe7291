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

/// What `got` has otherwise than `want`, the oracle's, or otherwise than it may be: the first few elements, one a line;
/// empty when all is well. Elements that no view reaches must be as they were.
std::string difference(const Program &program, const Outcome &want, const Outcome &got);

/// Runs the program on `device` and on the oracle; what differs, or nothing.
std::string compare(const Program &program, const std::shared_ptr<Device> &oracle,
                    const std::shared_ptr<Device> &device);

/// A smaller program of which `fails` still holds: operations are left out and values replaced by zeros.
Program shrink(Program program, const std::function<bool(const Program &)> &fails);

} // namespace kiln::fuzz
