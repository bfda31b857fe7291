// The arguments of --args.

#pragma once

#include "runtime/Npy.h"
#include "runtime/simulator/Memory.h"
#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// An argument: an array on the simulated device, a number, or bytes that the parameter block holds.
struct Argument {
  NpyArray array;
  void *memory = nullptr; // null for a number
  std::string output;     // where the array goes afterwards, if anywhere
  uint64_t bits = 0;
  std::string bytes; // of a tensor map
};

/// The arguments that `text` names, in the order of the program's parameters, with their arrays in `memory`. Throws
/// Error for invalid texts, for too few or too many arguments, for one that does not fit its parameter, and for files
/// that cannot be read.
std::vector<Argument> parseArguments(const Program &program, const std::string &text, Memory &memory);

/// The bytes of a file with an array's present contents.
std::string fileOf(const Argument &argument);

/// The bits of the number that `text` spells, as the parameter's type: `3`, `2.5`, `true`, or of a type of as many
/// bytes, `bf16(2.5)`. For a parameter without a type (.b32), a number is an integer, and with a dot or an exponent a
/// float. .u32 takes negative numbers too, because compilers declare signed integers with it. Throws Error for a text
/// that is no number, or one that does not fit.
uint64_t numberFor(const Parameter &parameter, const std::string &text);

} // namespace kiln::simulator
