// Layouts as text: what is printed can be read, and each thing that is wrong is told.

#include "dialect/simt/layout/TileLayout.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

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

} // namespace
