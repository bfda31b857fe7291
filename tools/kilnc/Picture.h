// The flag --picture: layouts drawn for people.

#pragma once

#include <string>

namespace kiln::tools {

/// The picture (SVG) of a layout as --explain and the stages print it, `16x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1
/// d0:2 d0:4], warp []`: the thread and register of each element. Or the picture of a tile in swizzled shared memory,
/// `shared 64x64xbf16`: the banks of each 16 bytes. With `shared 64x64xbf16 columns`, rows are along the first
/// dimension. Throws Error for a text that is neither.
std::string pictureOf(const std::string &text);

} // namespace kiln::tools
