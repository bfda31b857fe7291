// Shared by matrix instructions: shapes, register fragments, the check that the whole warp takes part, and products in
// host registers.

#pragma once

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"
#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// Reports missing lanes of the warp.
void expectWholeWarp(Warp &warp, const Step &step);

/// Takes `m16n8k16` from the modifiers: M, N, K; throws without one.
std::array<int, 3> takeShape(Decoder &decoder);

/// Appends the registers of a fragment operand; throws unless there are `count`.
void addFragment(Decoder &decoder, const ptx::Operand &operand, size_t count, ptx::Type type, bool isResult,
                 std::vector<uint32_t> &slots);

/// The arithmetic of mma.sync in f32, eight elements at once: D = A · B + C for matrices of 16 × K, K × 8 and 16 × 8
/// elements. Their fragments are registers of 32 words each (Matrix.cpp). `type` is f16, bf16 (K of 8 or 16) or tf32 (K
/// of 4 or 8); C and D are f32. Sums run over K in order, with one FMA per step. D may be C.
void multiplyFragments(ptx::Type type, int K, const uint32_t *const *a, const uint32_t *const *b,
                       const uint32_t *const *c, uint32_t *const *d);

/// Transposes an 8 × 8 matrix of 16-bit elements. `rows` are 16 bytes each.
void turn16(const char *const rows[8], char *columns);

} // namespace kiln::simulator
