// What a launch may ask for, so that generated code need not fear overflow in sums of a few extents or program numbers
// and constants.

#pragma once

namespace kiln::abi {

/// The largest extent of a view is 2^extentBits, and the largest extent of a grid 2^gridBits.
inline constexpr int extentBits = 56, gridBits = 40;

} // namespace kiln::abi
