// Injects errors into approximate instructions, on request. A program must not depend on results that are better than
// the PTX ISA guarantees.

#pragma once

#include <cstdint>

namespace kiln::simulator {

/// The error bound of an instruction.
struct AllowedError {
  double relative = 0, absolute = 0;
};

/// Bounds of f32 instructions with .approx, and of div.full (PTX ISA, "Floating Point Instructions").
inline constexpr AllowedError ofReciprocal{0x1p-23}, ofRoot{0x1p-23}, ofReciprocalRoot{0x1.13p-23}, ofExp2{0x1p-22},
    ofLog2{0x1p-22, 0x1p-22}, ofSine{0, 0x1.6ap-21}, ofTanh{0x1p-11}, ofDivision{0x1p-22};

/// `y` with an error of up to `times` times the bound. The error is a function of seed and input. Zeros, infinities and
/// NaN stay unchanged.
double withError(double y, AllowedError allowed, int times, uint64_t seed, uint64_t input);

} // namespace kiln::simulator
