// The forms of instructions in the PTX ISA: which modifiers an instruction has together, and on which GPUs.

#pragma once

#include "runtime/simulator/Decoder.h"

#include <unordered_set>

namespace kiln::simulator {

/// The forms that a function has; unrolled code repeats few of them.
class KnownForms {
public:
  /// Throws unless the PTX ISA has the instruction with its modifiers, in any order, for the text's `.target`.
  /// Instructions whose decode functions know all their forms (products of matrices, video, control flow) always pass.
  void expect(const Decoder &decoder);

private:
  std::unordered_set<std::string_view> known; // spellings in the text
};

} // namespace kiln::simulator
