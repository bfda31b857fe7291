// How large a launch may be, so that what is made of extents and program numbers need not fear overflow.

#pragma once

namespace kiln::tile {

/// The largest extent of a view is 2^extentBits, and the largest extent of a grid 2^gridBits.
inline constexpr int extentBits = 56, gridBits = 40;

} // namespace kiln::tile
