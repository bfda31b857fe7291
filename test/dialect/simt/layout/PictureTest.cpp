// Pictures: a cell for every element, with the thread and register that hold it.

#include "dialect/simt/layout/Picture.h"
#include "dialect/simt/layout/Fragments.h"

#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>

#include <regex>

using namespace kiln::simt;

namespace {

/// Complains about colours that are not spelt in six digits, which every reader knows, and a caption that is too long
/// for the picture: its characters, of size 12, are 7.3 wide in the widest of the usual fonts.
void expectReadable(const std::string &svg) {
  const std::regex fill("fill=\"([^\"]*)\""), size("width=\"(\\d+)\""), caption(">([^<]*)</text>\n<g>");
  for (std::sregex_iterator at(svg.begin(), svg.end(), fill), end; at != end; ++at)
    EXPECT_TRUE(std::regex_match((*at)[1].str(), std::regex("#[0-9a-f]{6}"))) << (*at)[1];
  std::smatch width, text;
  ASSERT_TRUE(std::regex_search(svg, width, size) && std::regex_search(svg, text, caption));
  EXPECT_GE(std::stod(width[1]), 4 + 7.3 * static_cast<double>(text[1].length())) << text[1];
}

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
  expectReadable(text);
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
  const std::string text = picture(*swizzledLayout({16, 64}, 1, 16));
  const llvm::StringRef svg = text;
  EXPECT_EQ(svg.count("<rect "), 128u);
  EXPECT_TRUE(svg.contains("<title>(1, 0): bytes 144 to 159, banks 4 to 7</title>"));
  EXPECT_TRUE(svg.contains("<title>(1, 8): bytes 128 to 143, banks 0 to 3</title>"));
  EXPECT_TRUE(svg.contains(">16x64 of 16 bits, rows along dimension 1, swizzled by 128 bytes</text>"));
  expectReadable(text);
}

// By CSS's definition: hsl(0, 70%, 80%) and hsl(90, 70%, 80%) are the first two pieces of a quarter of the banks.
TEST(Picture, HasTheColoursOfItsHues) {
  const std::string text = picture(*swizzledLayout({16, 64}, 1, 16));
  EXPECT_NE(text.find("banks 0 to 3</title><rect x=\"0\" y=\"24\" width=\"44\" height=\"18\" fill=\"#f0a8a8\""),
            std::string::npos);
  EXPECT_NE(text.find("banks 8 to 11</title><rect x=\"88\" y=\"24\" width=\"44\" height=\"18\" fill=\"#ccf0a8\""),
            std::string::npos);
}

// 1023:127 is wider than a cell of 44: six units for each of its characters.
TEST(Picture, CellsAreAsWideAsTheirTexts) {
  const auto layout = TileLayout::parse("512x256, reg [d0:1 d0:2 d0:4 d0:8 d0:16 d0:32 d0:64], "
                                        "lane [d1:1 d1:2 d1:4 d1:8 d1:16], warp [d1:32 d1:64 d1:128 d0:128 d0:256]",
                                        [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
  const std::string text = picture(*layout);
  EXPECT_NE(text.find(">1023:127<"), std::string::npos);
  EXPECT_NE(text.find("width=\"49\" height=\"18\""), std::string::npos);
}

} // namespace
