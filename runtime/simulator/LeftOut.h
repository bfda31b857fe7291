// Instructions of the PTX ISA that the simulator refuses.

#pragma once

#include <span>
#include <string_view>

namespace kiln::simulator {

/// Their names as in the ISA's headings: an opcode, or an opcode with distinguishing modifiers (`mma.sp`). README.md
/// has this list, too.
std::span<const std::string_view> leftOut();

/// Whether an instruction with these modifiers is refused.
bool isLeftOut(std::string_view opcode, std::span<const std::string_view> modifiers);

} // namespace kiln::simulator
