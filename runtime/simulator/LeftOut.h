// Instructions of the PTX ISA that the simulator leaves out.

#pragma once

#include <span>
#include <string_view>

namespace kiln::simulator {

/// Their names, as the ISA's headings have them: an opcode, or an opcode with the modifiers that tell it from others
/// (`mma.sp`). README.md lists the same.
std::span<const std::string_view> leftOut();

/// Whether an instruction with these modifiers is left out.
bool isLeftOut(std::string_view opcode, std::span<const std::string_view> modifiers);

} // namespace kiln::simulator
