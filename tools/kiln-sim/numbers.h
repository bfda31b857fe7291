// The numbers of --args.

#pragma once

#include "runtime/simulator/Program.h"

namespace kiln::simulator {

/// The bits of the number that `text` spells, as the parameter's type: `3`, `2.5`, `true`, or of a type of as many
/// bytes, `bf16(2.5)`. What a parameter without a type (.b32) gets is an integer, with a dot or an exponent a float;
/// .u32 takes negative numbers, too, since that is how compilers declare a signed one. Throws Error for a text that is
/// no number, or one that does not fit.
uint64_t numberFor(const Parameter &parameter, const std::string &text);

} // namespace kiln::simulator
