// The error of approximate instructions, made on request: a program must not live by results that are better than what
// the PTX ISA promises.

#pragma once

#include <cstdint>

namespace kiln::simulator {

/// How far from the exact result an instruction may be.
struct AllowedError {
  double relative = 0, absolute = 0;
};

/// Of f32 instructions with .approx, and div.full (PTX ISA, "Floating Point Instructions").
inline constexpr AllowedError ofReciprocal{0x1p-23}, ofRoot{0x1p-23}, ofReciprocalRoot{0x1.13p-23}, ofExp2{0x1p-22},
    ofLog2{0x1p-22, 0x1p-22}, ofSine{0, 0x1.6ap-21}, ofTanh{0x1p-11}, ofDivision{0x1p-22};

/// `y` with an error of up to `times` times what is allowed, the same for the same seed and input. Zeros, infinities
/// and NaN stay as they are.
double withError(double y, AllowedError allowed, int times, uint64_t seed, uint64_t input);

} // namespace kiln::simulator
