// Blocked and coalesced layouts: how units are dealt, and how few sectors of memory an access touches.

#include "dialect/simt/layout/Blocked.h"

#include "llvm/ADT/STLExtras.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <tuple>

using namespace kiln::simt;

namespace {

using Position = llvm::SmallVector<int64_t>;

// Registers get the thread's block, then lanes, warps and registers the rest, from the fastest dimension on.
TEST(Blocked, UnitsAreDealtInOrder) {
  EXPECT_EQ(blocked({128, 64}, {1, 0}, {1, 8}, 4).text(),
            "128x64, reg [d1:1 d1:2 d1:4 d0:16 d0:32 d0:64], lane [d1:8 d1:16 d1:32 d0:1 d0:2], warp [d0:4 d0:8]");
  EXPECT_EQ(blocked({64, 64}, {0, 1}, {4, 4}, 2).text(),
            "64x64, reg [d0:1 d0:2 d1:1 d1:2 d1:16 d1:32], lane [d0:4 d0:8 d0:16 d0:32 d1:4], warp [d1:8]");
}

// Where the core has fewer elements than there are threads, high lanes and warps hold the same as low ones.
TEST(Blocked, ThreadsWithoutElementsRepeatOthers) {
  EXPECT_EQ(blocked({3, 8}, {1, 0}, {1, 2}, 2).text(), "3x8, rep 3x1, reg [d1:1], lane [d1:2 d1:4 * * *], warp [*]");
  EXPECT_EQ(blocked({}, {}, {}, 4).text(), "scalar, reg [], lane [* * * * *], warp [* *]");
}

// Dimensions are ordered by stride; unknown strides are large, extents of 1 do not matter.
TEST(Blocked, OrderFollowsStrides) {
  const auto order = [](llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides) {
    return orderOf({.sizes = sizes, .strides = strides});
  };
  using Order = llvm::SmallVector<unsigned>;
  EXPECT_EQ(order({4, 8, 16}, {128, 16, 1}), (Order{2, 1, 0}));
  EXPECT_EQ(order({4, 8, 16}, {1, 4, 32}), (Order{0, 1, 2}));
  EXPECT_EQ(order({4, 8, 16}, {unknownStride, unknownStride, 1}), (Order{2, 1, 0}));
  EXPECT_EQ(order({4, 1, 16}, {16, 1, 1}), (Order{2, 0, 1}));
}

/// An access to a tile, the vector that it gets with four warps, and the useful percentage of the sectors that it
/// touches.
struct Case {
  llvm::SmallVector<int64_t> sizes, strides;
  unsigned bits;
  int64_t vector;
  int percent;

  Access access() const { return {.sizes = sizes, .strides = strides, .divisibility = 1024, .bits = bits}; }
};

const Case cases[] = {
    {{128, 64}, {4096, 1}, 16, 8, 100},
    {{64, 16}, {768, 1}, 16, 8, 100}, // 32 bytes of a row are a sector
    {{64, 8}, {768, 1}, 16, 4, 50},   // rows shorter than a sector
    {{64, 4}, {768, 1}, 16, 2, 25},
    {{1, 768}, {768, 1}, 16, 2, 100}, // a vector for each thread, rather than
                                      // longer ones for some
    {{4, 768}, {768, 1}, 16, 8, 100},
    {{8, 768}, {768, 1}, 32, 4, 100},
    {{64, 80}, {80, 1}, 16, 8, 100},
    {{128, 96}, {96, 1}, 16, 8, 100},
    {{64, 50}, {50, 1}, 16, 2, 78}, // 64 columns of which 50 are there; 50 is no
                                    // multiple of 4
    {{4, 1000}, {1000, 1}, 16, 8, 96},
    {{4, 1024}, {50257, 1}, 16, 1, 72}, // rows that begin anywhere
    {{1024, 3}, {3, 1}, 32, 1, 33},     // three passes over the same sectors
    {{64, 64}, {1, 64}, 16, 8, 100},    // columns
    {{256, 1}, {64, 1}, 32, 1, 12},     // one element of each sector
};

/// Sectors of 32 bytes that one request touches: of the elements at these positions, those inside the tile.
int64_t sectorsOf(llvm::ArrayRef<Position> request, const Access &access) {
  std::set<int64_t> touched;
  for (const Position &position : request) {
    int64_t offset = 0;
    for (const auto [at, stride] : llvm::zip_equal(position, access.strides))
      offset += at * stride;
    if (llvm::all_of_zip(position, access.sizes, [](int64_t at, int64_t size) { return at < size; }))
      touched.insert(offset * access.bits / 256);
  }
  return static_cast<int64_t>(touched.size());
}

/// Of all requests of all warps.
int64_t sectorsOf(const TileLayout &layout, const Access &access, int64_t vector) {
  int64_t sectors = 0;
  for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
    for (int64_t stored = 0; stored < layout.numStored(); stored += vector) {
      std::vector<Position> request;
      for (unsigned lane = 0; lane < numLanes; ++lane)
        for (int64_t element = 0; element < vector; ++element)
          if (!(lane & layout.replicated(Hw::lane)) && !(warp & layout.replicated(Hw::warp)))
            request.push_back(layout.positionOf(stored + element, {lane, warp}));
      sectors += sectorsOf(request, access);
    }
  return sectors;
}

/// The sectors of a warp whose lanes access the padded tile in order, fastest dimension first, one vector per lane.
int64_t sectorsInOrder(const Access &access, int64_t vector) {
  const TileShape tile(access.sizes);
  const llvm::SmallVector<unsigned> order = orderOf(access);
  Position position(tile.rank(), 0);
  std::vector<Position> request;
  int64_t sectors = 0;
  for (bool isDone = false; !isDone;) {
    request.push_back(position);
    isDone = llvm::all_of(order, [&](unsigned dim) { // carries on to the next dimension at the end of one
      position[dim] = (position[dim] + 1) % tile[dim].padded;
      return position[dim] == 0;
    });
    if (isDone || static_cast<int64_t>(request.size()) == numLanes * vector) {
      sectors += sectorsOf(request, access);
      request.clear();
    }
  }
  return sectors;
}

int64_t elementsOf(const Case &example) {
  int64_t count = 1;
  for (const int64_t size : example.sizes)
    count *= size;
  return count;
}

// The vectors and the use of sectors that each kind of access is known to allow.
TEST(Coalesced, VectorsAndSectors) {
  for (const Case &example : cases) {
    const TileLayout layout = coalesced(example.access(), 4);
    EXPECT_EQ(vectorWidth(example.access(), 4), example.vector) << layout.text();
    const double bytes = static_cast<double>(elementsOf(example)) * example.bits / 8;
    const double used = 100 * bytes / (32.0 * static_cast<double>(sectorsOf(layout, example.access(), example.vector)));
    EXPECT_EQ(std::floor(used), example.percent) << layout.text();
  }
}

// No more sectors are touched than by threads that walk through memory in order; except that a sector is touched once
// for each repeat that has a part in it, where a core's row is shorter than a sector.
TEST(Coalesced, NoWorseThanWalkingThroughMemory) {
  for (const Case &example : cases) {
    const TileLayout layout = coalesced(example.access(), 4);
    const Extent &fastest = layout.shape()[orderOf(example.access()).front()];
    const int64_t times = fastest.core() * example.bits < 256 ? fastest.repeats : 1;
    EXPECT_LE(sectorsOf(layout, example.access(), example.vector),
              times * sectorsInOrder(example.access(), example.vector))
        << layout.text();
  }
}

// A vector's elements are consecutive in memory and whole inside the tile or outside.
TEST(Coalesced, VectorsAreWhole) {
  for (const Case &example : cases) {
    const TileLayout layout = coalesced(example.access(), 4);
    const unsigned fastest = orderOf(example.access()).front();
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < layout.numStored(); stored += example.vector) {
        const auto first = layout.positionOf(stored, {lane}),
                   last = layout.positionOf(stored + example.vector - 1, {lane});
        ASSERT_EQ(first[fastest] % example.vector, 0);
        ASSERT_EQ(last[fastest], first[fastest] + example.vector - 1);
        ASSERT_EQ(first[fastest] < example.sizes[fastest], last[fastest] < example.sizes[fastest]);
      }
  }
}

// Alignment limits the vector width: that of the base and of unknown strides, of known strides, and of the extent.
TEST(Coalesced, VectorsAreAligned) {
  const auto width = [](llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, int64_t divisibility) {
    return vectorWidth({.sizes = sizes, .strides = strides, .divisibility = divisibility, .bits = 16}, 1);
  };
  EXPECT_EQ(width({64, 64}, {unknownStride, 1}, 16), 8);
  EXPECT_EQ(width({64, 64}, {unknownStride, 1}, 4), 4);
  EXPECT_EQ(width({64, 64}, {66, 1}, 16), 2);
  EXPECT_EQ(width({64, 36}, {64, 1}, 16), 4);
  EXPECT_EQ(width({64, 64}, {128, 2}, 16), 1);
  EXPECT_EQ(width({1, 64}, {1, 1}, 16), 2); // two elements for each of 32 threads
}

// What a layout that was made for something else asks memory for: vectors as far as its lowest registers are
// neighbours, different bytes once, and the sectors that they lie in.
TEST(Traffic, OfOtherLayouts) {
  const auto trafficIn = [](llvm::ArrayRef<int64_t> sizes, llvm::ArrayRef<int64_t> strides, const char *layout) {
    return trafficOf({.sizes = sizes, .strides = strides, .divisibility = 16, .bits = 16},
                     *TileLayout::parse(layout, [](const llvm::Twine &) {}));
  };
  const Traffic row =
      trafficIn({256}, {1}, "256, reg [d0:1 d0:2 d0:4], lane [d0:8 d0:16 d0:32 d0:64 d0:128], warp [* *]");
  EXPECT_EQ(std::tuple(row.vector, row.vectors, row.bytes, row.sectors), std::tuple(8, 1, 512, 16));
  const Traffic sums = trafficIn({16, 64}, {64, 1},
                                 "16x64, reg [d1:1 d0:8 d1:8 d1:16 d1:32], "
                                 "lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [* *]");
  EXPECT_EQ(std::tuple(sums.vector, sums.vectors, sums.bytes, sums.sectors), std::tuple(2, 16, 128, 8));
  const Traffic column =
      trafficIn({64}, {unknownStride}, "64, reg [d0:8], lane [* * d0:1 d0:2 d0:4], warp [d0:16 d0:32]");
  EXPECT_EQ(std::tuple(column.vector, column.vectors, column.bytes, column.sectors), std::tuple(1, 2, 16, 8));
}

// With whole rows the lanes of a warp walk along the row, and warps share the rows.
TEST(Coalesced, WholeRows) {
  EXPECT_EQ(coalesced({.sizes = {4, 1024}, .strides = {1024, 1}, .divisibility = 16, .bits = 16}, 4, true).text(),
            "4x1024, reg [d1:1 d1:2 d1:4 d1:256 d1:512], lane [d1:8 d1:16 d1:32 d1:64 d1:128], warp [d0:1 d0:2]");
}

} // namespace
