// What a launch may ask for, so that generated code need not fear overflow in sums of a few extents or program numbers
// and constants.

#pragma once

namespace kiln::abi {

/// The largest extent of a view is 2^extentBits, and the largest extent of a grid 2^gridBits.
inline constexpr int extentBits = 56, gridBits = 40;
/// The largest extent of a view of which `tile.fits_32` holds is 2^smallExtentBits: differences of sums of two fit 32
/// bits.
inline constexpr int smallExtentBits = 30;

} // namespace kiln::abi
