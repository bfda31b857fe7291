// The arithmetic of mma.sync in f32, eight elements at once.

#pragma once

#include "runtime/simulator/ptx/Module.h"

namespace kiln::simulator {

/// D = A · B + C for matrices of 16 × K, K × 8 and 16 × 8 elements. Their fragments are registers of 32 words each
/// (Matrix.cpp). `type` is f16, bf16 (K of 8 or 16) or tf32 (K of 4 or 8); C and D are f32. Sums run over K in order,
/// with one FMA per step. D may be C.
void multiplyFragments(ptx::Type type, int K, const uint32_t *const *a, const uint32_t *const *b,
                       const uint32_t *const *c, uint32_t *const *d);

/// Transposes an 8 × 8 matrix of 16-bit elements. `rows` are 16 bytes each.
void turn16(const char *const rows[8], char *columns);

} // namespace kiln::simulator
