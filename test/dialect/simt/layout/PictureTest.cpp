// Pictures: a cell for every element, with the thread and register that hold it.

#include "dialect/simt/layout/Picture.h"
#include "dialect/simt/layout/Fragments.h"

#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

using namespace kiln::simt;

namespace {

// The accumulator of one instruction: 128 cells, the element (9, 3) in lane 5's register 3.
TEST(Picture, OfALayout) {
  const std::string text = picture(mmaAcc(16, 8, {}, 1));
  const llvm::StringRef svg = text;
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.count("<rect "), 128u);
  EXPECT_EQ(svg.count("<g>"), svg.count("</g>"));
  EXPECT_TRUE(svg.contains(">16x8, reg [d1:1 d0:8], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp []</text>"));
  EXPECT_TRUE(svg.contains(
      "<title>(9, 3): lane 5 of warp 0, stored value 3</title><rect x=\"132\" y=\"186\" ")); // 3 · 44, 24 + 9 · 18
  EXPECT_TRUE(svg.contains(">5:3</text>"));
}

// Padding has no cells, copies have one, and leading dimensions lie below each other.
TEST(Picture, OfATileWithPaddingAndCopies) {
  const auto layout = TileLayout::parse("2x3x5, rep 1x3x1, reg [d2:1], lane [d2:2 d2:4 d0:1 * *], warp [*]",
                                        [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  const std::string text = picture(*layout);
  const llvm::StringRef svg = text;
  EXPECT_EQ(svg.count("<rect "), 30u);
  EXPECT_TRUE(svg.contains("; 8 threads hold each</text>"));
  EXPECT_TRUE(
      svg.contains("<title>(1, 2, 4): lane 6 of warp 0, stored value 4</title><rect x=\"176\" y=\"114\" ")); // row 5
}

// A swizzled tile: a cell for 16 bytes; in row 1 the first two have changed places.
TEST(Picture, OfASwizzledTile) {
  const std::string text = picture(*sharedImage({16, 64}, 1, 16));
  const llvm::StringRef svg = text;
  EXPECT_EQ(svg.count("<rect "), 128u);
  EXPECT_TRUE(svg.contains("<title>(1, 0): bytes 144 to 159, banks 4 to 7</title>"));
  EXPECT_TRUE(svg.contains("<title>(1, 8): bytes 128 to 143, banks 0 to 3</title>"));
  EXPECT_TRUE(svg.contains(">16x64 of 16 bits, rows along dimension 1, swizzled by 128 bytes</text>"));
}

} // namespace
