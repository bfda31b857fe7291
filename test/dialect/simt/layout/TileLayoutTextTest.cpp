// Layouts as text: what is printed can be read, and each thing that is wrong is told.

#include "dialect/simt/layout/Fragments.h"
#include "dialect/simt/layout/Picture.h"
#include "dialect/simt/layout/TileLayout.h"
#include "test/dialect/simt/layout/Random.h"
#include "llvm/ADT/StringRef.h"

#include <gtest/gtest.h>
#include <regex>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

const char lanes[] = "lane [d0:1 d0:2 d0:4 d0:8 d0:16]";

/// The error of parsing a text; empty if it is a layout.
std::string faultOf(llvm::StringRef text) {
  std::string fault;
  const auto layout = TileLayout::parse(text, [&](const llvm::Twine &reason) { fault = reason.str(); });
  EXPECT_EQ(llvm::failed(layout), !fault.empty()) << text.str();
  return fault;
}

// Printing and parsing give the same layout.
TEST(TileLayoutText, RoundTrip) {
  Random random(1);
  for (unsigned round = 0; round < 500; ++round) {
    const TileLayout layout = random.layout(random.sizes(), 1u << random.below(4));
    const auto read =
        TileLayout::parse(layout.text(), [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); });
    ASSERT_TRUE(llvm::succeeded(read)) << layout.text();
    ASSERT_EQ(*read, layout) << layout.text();
  }
}

// The text is the one that the documentation shows; spaces and `rep` are free, blocks of a cluster are read.
TEST(TileLayoutText, WhatIsPrinted) {
  const std::string text = "128x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16 d0:64], lane [d1:2 d1:4 d0:1 d0:2 d0:4], "
                           "warp [d0:16 d0:32]";
  const auto print = [](llvm::StringRef source) {
    return TileLayout::parse(source, [](const llvm::Twine &reason) { ADD_FAILURE() << reason.str(); })->text();
  };
  EXPECT_EQ(print(text), text);
  EXPECT_EQ(print(" 32 ,reg[],lane[d0:1 d0:2 d0:4 d0:8 d0:16] , warp []"),
            std::string("32, reg [], ") + lanes + ", warp []");
  const std::string clustered = std::string("64, reg [], ") + lanes + ", warp [*], block [d0:32]";
  EXPECT_EQ(print(clustered), clustered);
  EXPECT_EQ(print("scalar, reg [], lane [* * * * *], warp [* *]"), "scalar, reg [], lane [* * * * *], warp [* *]");
}

// Bases that are no layout are told by what is wrong with them.
TEST(TileLayoutText, BasesThatAreNoLayout) {
  const std::string rest = std::string(", ") + lanes + ", warp []";
  EXPECT_EQ(faultOf("64, reg [d0:32]" + rest), "");
  EXPECT_EQ(faultOf("64, reg []" + rest), "expected a basis for every unit, but got none for 'd0:32'");
  EXPECT_EQ(faultOf("64, reg [d0:32 d0:8]" + rest), "expected each unit once, but got 'd0:8' twice");
  EXPECT_EQ(faultOf("64, reg [d0:32 *]" + rest), "expected a unit as each basis of 'reg', but got '*'");
  EXPECT_EQ(faultOf("8, reg [], lane [d0:1 d0:2 d0:4], warp []"), "expected 5 lane bases, but got 3");
  EXPECT_EQ(faultOf(std::string("32, reg [], ") + lanes + ", warp [* * * * * *]"),
            "expected at most 5 warp bases, but got 6");
  EXPECT_EQ(faultOf(std::string("32, reg [], ") + lanes + ", warp [], block [* * * * *]"),
            "expected at most 4 block bases, but got 5");
  EXPECT_EQ(faultOf("2097152, reg []" + rest), "expected extents from 1 to 1048576, but got 2097152");
  EXPECT_EQ(faultOf("2048x1024, reg []" + rest), "expected a core of at most 1048576 elements, but got 2^21");
}

// Bases given as vectors are held to the same, and to being units.
TEST(TileLayoutText, VectorsThatAreNoUnits) {
  const auto faultOfLane = [](Vec vector) {
    std::string fault;
    (void)TileLayout::get({4}, {Vecs(), Vecs{1, vector, 0, 0, 0}, Vecs(), Vecs()},
                          [&](const llvm::Twine &reason) { fault = reason.str(); });
    return fault;
  };
  EXPECT_EQ(faultOfLane(2), "");
  EXPECT_EQ(faultOfLane(3), "expected one unit of the core as a basis of 'lane', but got 3");
  EXPECT_EQ(faultOfLane(4), "expected one unit of the core as a basis of 'lane', but got 4");
}

// Text that is no layout is told by what was expected where.
TEST(TileLayoutText, TextThatIsNoLayout) {
  const std::string rest = std::string(", ") + lanes + ", warp []";
  EXPECT_EQ(faultOf(""), "expected a number, but got the end");
  EXPECT_EQ(faultOf("64"), "expected ',', but got the end");
  EXPECT_EQ(faultOf("0, reg []" + rest), "expected extents from 1 to 1048576, but got 0");
  EXPECT_EQ(faultOf("64, regs [d0:32]" + rest), "expected '[', but got 's [d0:32], l'");
  EXPECT_EQ(faultOf("64, reg [d0:32" + rest), "expected 'd', but got ', lane [d0:1'");
  EXPECT_EQ(faultOf("64, reg [d1:32]" + rest), "expected a dimension below 1, but got 'd1'");
  EXPECT_EQ(faultOf("64, reg [d0:64]" + rest), "expected a power of two below 64 as the weight of 'd0', but got 64");
  EXPECT_EQ(faultOf("64, reg [d0:3]" + rest), "expected a power of two below 64 as the weight of 'd0', but got 3");
  EXPECT_EQ(faultOf("64, rep 3, reg [d0:32]" + rest),
            "expected the repeats that follow from the extents, but got others");
  EXPECT_EQ(faultOf("64, reg [d0:32]" + rest + ", cluster []"), "expected 'block', but got 'cluster []'");
}

// --- Pictures: a cell for every element, with the thread and register that hold it -----------------------------------

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
