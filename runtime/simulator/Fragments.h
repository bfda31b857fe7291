// Shared by matrix instructions: shapes, register fragments, and the check that the whole warp takes part.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"

namespace kiln::simulator {

/// Reports missing lanes of the warp.
void expectWholeWarp(Warp &warp, const Step &step);

/// Takes `m16n8k16` from the modifiers: M, N, K; throws without one.
std::array<int, 3> takeShape(Decoder &decoder);

/// Appends the registers of a fragment operand; throws unless there are `count`.
void addFragment(Decoder &decoder, const ptx::Operand &operand, size_t count, ptx::Type type, bool isResult,
                 std::vector<uint32_t> &slots);

} // namespace kiln::simulator
