// print and check: the output of scalars and tiles, in loops and branches, and the reported one of many failures.
// Assumptions: their effects, and the devices that check them.

#include "lowering/Backend.h"
#include "test/expect_error.h"
#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <fmt/format.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class Console : public Semantics {
protected:
  /// The lines that a launch prints; programs may be in any order, but with one thread they are in order.
  std::string printed(const Kernel &kernel, const std::vector<Arg> &args, const std::string &config = "",
                      int64_t programs = 1) {
    device->setThreads(1);
    testing::internal::CaptureStdout();
    launch(kernel, args, config, programs);
    device->synchronize();
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  }
};

// --- print -----------------------------------------------------------------------------------------------------------

void printRow(View x, ExtentConfig cfg) { print("row", load(x, {program_id(0), 0}, {cfg.extent})); }
const Kernel printRowKernel = kernel("print_row", printRow, extentField());

// Every type at every extent, a line for each program; a bool is 0 or 1.
TEST_P(Console, PrintsEveryElementOfEveryType) {
  for (const Type type : castTypes)
    for (const int64_t extent : extents) {
      Raw raw(2 * extent);
      std::string want;
      for (int64_t row = 0; row < 2; ++row) {
        want += "program " + std::to_string(row) + ": row = [";
        for (int64_t i = 0; i < extent; ++i) {
          const int small = static_cast<int>((i + row) % 9) - 4, any = static_cast<int>((i + row) % 100);
          const int number = type == boolean      ? static_cast<int>(i % 2)
                             : type == f8e8m0     ? 1 << (i + row) % 9
                             : isUnsigned(type)   ? any + 156 // above the largest i8
                             : bytesOf(type) == 1 ? (isFloat(type) ? small : any - 50)
                                                  : any - 50;
          raw[row * extent + i] = wordOf(type, number);
          want += (i ? ", " : "") + std::to_string(number);
        }
        want += "]\n";
      }
      EXPECT_EQ(printed(printRowKernel, {tensor(type, {2, extent}, raw).ref()}, extentText(extent), 2), want)
          << nameOf(type);
    }
}

// Both numbers of a pair, the one in the low half first.
TEST_P(Console, PrintsPairs) {
  EXPECT_EQ(printed(printRowKernel, {tensor(f4e2m1x2, {1, 3}, {0x21, 0x7f, 0x80}).ref()}, extentText(3), 1),
            "program 0: row = [(0.5, 1), (-6, 6), (0, -0)]\n");
}

void printShapes(View x, Tile n) {
  Tile a = load(x, {0, 0}, {2, 3});
  print("tile", a);
  print("turned", transpose(a));
  print("deep", reshape(a, {1, 3, 2}));
  print("computed", a * 2 + 1);
  print("sum", sum(a, 1));
  print("one", sum(sum(a)));
  print("scalar", n);
  print("comparison", n > 3);
  print("number", 2.5);
  print("constant", full(i8, {2}, -7));
}
const Kernel printShapesKernel = kernel("print_shapes", printShapes);

TEST_P(Console, PrintsWhatATileIsNotWhereItLies) {
  EXPECT_EQ(printed(printShapesKernel, {counting(f32, {2, 3}).ref(), int64_t(1) << 40}),
            "program 0: tile = [[0, 1, 2], [3, 4, 5]]\n"
            "program 0: turned = [[0, 3], [1, 4], [2, 5]]\n"
            "program 0: deep = [[[0, 1], [2, 3], [4, 5]]]\n"
            "program 0: computed = [[1, 3, 5], [7, 9, 11]]\n"
            "program 0: sum = [3, 12]\n"
            "program 0: one = 15\n"
            "program 0: scalar = 1099511627776\n"
            "program 0: comparison = 1\n"
            "program 0: number = 2.5\n"
            "program 0: constant = [-7, -7]\n");
}

void printEnds(View x) {
  print("100% \"ends\"\t{}", load(x, {-1}, {7}, Padding::nan)); // beyond the view's edge the padding is printed
}
const Kernel printEndsKernel = kernel("print_ends", printEnds);

TEST_P(Console, PrintsTheLabelAsItIsAndEveryFloat) {
  const Raw raw{rawOfReal(f32, -0.), rawOfReal(f32, INFINITY), rawOfReal(f32, -INFINITY), 1, rawOfReal(f32, 0.1f)};
  EXPECT_EQ(printed(printEndsKernel, {tensor(f32, {5}, raw).ref()}),
            "program 0: 100% \"ends\"\t{} = [nan, -0, inf, -inf, 1e-45, 0.1, nan]\n");
}

void printInOrder(View x, Tile n) {
  Tile a = load(x, {0}, {2});
  store(x, {0}, a + 10);
  print("before", a);
  for (Tile k : range(n)) {
    if_(k % 2 == 1, [&] { print("odd", k); }, [&] { a = a + 1; });
    print("k", a);
  }
  print("after", load(x, {0}, {2}));
}
const Kernel printInOrderKernel = kernel("print_in_order", printInOrder);

// Program order, also around loops, branches and stores; a side that does not run prints nothing.
TEST_P(Console, PrintsInProgramOrder) {
  EXPECT_EQ(printed(printInOrderKernel, {counting(i32, {2}).ref(), int64_t(3)}), "program 0: before = [0, 1]\n"
                                                                                 "program 0: k = [1, 2]\n"
                                                                                 "program 0: odd = 1\n"
                                                                                 "program 0: k = [1, 2]\n"
                                                                                 "program 0: k = [2, 3]\n"
                                                                                 "program 0: after = [10, 11]\n");
}

// --- check -----------------------------------------------------------------------------------------------------------

void checkRow(View x, View y, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent});
  device_assert(a != 0, "is not zero");
  store(y, {0}, a + 1);
}
const Kernel checkRowKernel = kernel("check_row", checkRow, extentField());

// The first false element, at every extent and position; the program continues.
TEST_P(Console, CheckTellsTheFirstElement) {
  for (const Type type : {i8, i64, f32, bf16})
    for (const int64_t extent : extents)
      for (const int64_t place : {int64_t(0), extent / 2, extent - 1}) {
        Raw raw(extent, wordOf(type, 1));
        raw[place] = raw[extent - 1] = 0;
        const Tensor x = tensor(type, {extent}, raw), y(device, type, {extent});
        launch(checkRowKernel, {x.ref(), y.ref()}, extentText(extent));
        expectError([&] { device->synchronize(); },
                    {"check failed: is not zero, in kernel 'check_row' at ",
                     "console_test.cc:", ", program (0, 0, 0), element " + std::to_string(place)});
        EXPECT_EQ(read(y)[place], wordOf(type, 1));
        EXPECT_NO_THROW(device->synchronize()) << "told twice";
      }
}

// Narrow elements are compared in vectors that halve towards a row's end: none of their lanes is lost.
TEST_P(Console, CheckSeesEveryElement) {
  const int64_t extent = 299; // several vectors without masks, and what is left
  for (const Type type : {i8, i16})
    for (int64_t place = 0; place < extent; ++place) {
      Raw raw(extent, wordOf(type, 1));
      raw[place] = 0;
      const Tensor x = tensor(type, {extent}, raw), y(device, type, {extent});
      launch(checkRowKernel, {x.ref(), y.ref()}, extentText(extent));
      expectError([&] { device->synchronize(); }, {"program (0, 0, 0), element " + std::to_string(place)});
    }
}

void checkShapes(View x, Tile which) {
  Tile a = load(x, {0, 0}, {3, 5}); // one element past each edge of a 2 x 4 view
  if_(which == 0, [&] { device_assert(a < 7, "matrix"); });
  if_(which == 1, [&] { device_assert(transpose(a) < 7, "turned"); });
  if_(which == 2, [&] { device_assert(sum(a, 1) < 10, "sums"); });
  if_(which == 3, [&] { device_assert(which < 0, "scalar"); });
  if_(which == 4, [&] { device_assert(sum(sum(a)) < 0, "sum"); });
  if_(which == 5, [&] { device_assert(a > 0, "padding"); });
  if_(which == 6, [&] { device_assert(full(boolean, {3}, which < 0), "splat"); });
  if_(which == 7, [&] { device_assert(false, "literal"); });
  if_(which == 8, [&] {
    device_assert(a >= 0, "holds");
    device_assert(true, "holds");
  });
}
const Kernel checkShapesKernel = kernel("check_shapes", checkShapes);

// Elements are counted row by row in the tile that is checked; a side that does not run checks nothing.
TEST_P(Console, CheckTakesTilesAndScalars) {
  const std::pair<const char *, int> want[] = {{"matrix", 8}, {"turned", 10}, {"sums", 1},  {"scalar", 0},
                                               {"sum", 0},    {"padding", 0}, {"splat", 0}, {"literal", 0}};
  const Tensor x = counting(i32, {2, 4});
  for (int64_t which = 0; which < 8; ++which) {
    launch(checkShapesKernel, {x.ref(), which});
    expectError([&] { device->synchronize(); }, {std::string("check failed: ") + want[which].first + ", in kernel",
                                                 "program (0, 0, 0), element " + std::to_string(want[which].second)});
  }
  launch(checkShapesKernel, {x.ref(), int64_t(8)});
  EXPECT_NO_THROW(device->synchronize());
}

void checkBoth(View x, View y, Tile limit) {
  Tile a = load(x, {0, 0, 0}, {2, 3, 20});
  device_assert(a < 7, "is small");
  device_assert(a != limit, "is another");
  store(y, {0, 0, 0}, a);
}
const Kernel checkBothKernel = kernel("check_both", checkBoth);

// Of two checks of a tile, the first reports, even if the second fails in an earlier row; of one, its first element.
TEST_P(Console, TheFirstOfTwoChecksTells) {
  Raw raw(120, 1);
  raw[5] = 3, raw[67] = raw[110] = 7;
  const Tensor x = tensor(i32, {2, 3, 20}, raw), y(device, i32, {2, 3, 20});
  launch(checkBothKernel, {x.ref(), y.ref(), Arg(3).as(i32)});
  expectError([&] { device->synchronize(); }, {"is small, in kernel 'check_both'", "element 67"});
  EXPECT_EQ(read(y), raw);
}

void checkTwice(View x, Tile n) {
  for (Tile k : range(n)) {
    device_assert(k < 4, "the loop");
    device_assert(load(x, {program_id(0), k}, {}) > 0, "the element");
  }
  device_assert(n < 0, "the end");
}
const Kernel checkTwiceKernel = kernel("check_twice", checkTwice);

void checkGrid(View x) {
  Tile row = program_id(0) + 4 * (program_id(1) + 5 * program_id(2));
  device_assert(load(x, {row, 0}, {3}) > 0, "a row");
}
const Kernel checkGridKernel = kernel("check_grid", checkGrid);

// Of many failures, the first in sequential order is reported: the first launch, its first program, its first check.
TEST_P(Console, TheFirstFailureIsToldAtAnyThreadCount) {
  for (const int threads : {1, 4}) {
    device->setThreads(threads);
    Raw raw(40 * 3, 1);
    raw[7 * 3 + 2] = raw[7 * 3 + 1] = raw[31 * 3] = 0;
    const Tensor x = tensor(i32, {40, 3}, raw), ones = tensor(i32, {40, 3}, Raw(120, 1));
    launch(checkTwiceKernel, {ones.ref(), int64_t(0)}, "", 0); // an empty grid checks nothing
    EXPECT_NO_THROW(device->synchronize());
    launch(checkTwiceKernel, {x.ref(), int64_t(3)}, "", 40);
    launch(checkTwiceKernel, {x.ref(), int64_t(9)}, "", 40);
    expectError([&] { device->synchronize(); }, {"the end, in kernel 'check_twice'", "program (0, 0, 0), element 0"});
    kiln::launch(*device, checkGridKernel, {4, 5, 2}, {x.ref()});
    expectError([&] { device->synchronize(); }, {"a row, in kernel", "program (3, 1, 0), element 1"});
  }
}

// --- check in functions of scans and reductions ----------------------------------------------------------------------

struct FoldConfig {
  int extent = 1;
  bool isReduction = false, across = false, reverse = false;
};

/// Combines intervals of numbers, which must be adjacent, along an axis of `extent` elements; the other axis has 3.
void joinIntervals(View lows, View highs, View out, FoldConfig cfg) {
  const Shape shape = cfg.across ? Shape{cfg.extent, 3} : Shape{3, cfg.extent};
  const int axis = cfg.across ? 0 : 1;
  const auto joined = [&](std::array<Tile, 2> a, std::array<Tile, 2> b) {
    if (cfg.reverse)
      std::swap(a, b);
    device_assert(a[0] <= a[1], "an interval");
    device_assert(b[0] == a[1] + 1, "follows");
    return std::array<Tile, 2>{a[0], b[1]};
  };
  Tile low = load(lows, {0, 0}, shape), high = load(highs, {0, 0}, shape);
  if (cfg.isReduction) {
    const auto ends = reduce({low, high}, axis, joined);
    store(out, {0, 0}, unsqueeze(ends[1], axis));
  } else {
    store(out, {0, 0}, scan({low, high}, axis, joined, cfg.reverse)[cfg.reverse ? 0 : 1]);
  }
}
const Kernel joinIntervalsKernel =
    kernel("join_intervals", joinIntervals,
           {field("extent", &FoldConfig::extent), field("isReduction", &FoldConfig::isReduction),
            field("across", &FoldConfig::across), field("reverse", &FoldConfig::reverse)});

// Elements are combined only as results require, so a check fails only there: a lane without an element would not give
// an adjacent interval. The reported element is that of the first result that a failing call affects.
TEST_P(Console, FunctionsOfScansCheckTheirElements) {
  for (const int64_t extent : {1, 2, 3, 17, 33, 64, 129, 300})
    for (const bool across : {false, true})
      for (const int form : {0, 1, 2}) { // a scan, one that is reversed, a reduction
        const bool isReduction = form == 2, reverse = form == 1;
        const auto at = [&](int64_t line, int64_t i) { return across ? i * 3 + line : line * extent + i; };
        Raw numbers(3 * extent);
        for (int64_t line = 0; line < 3; ++line)
          for (int64_t i = 0; i < extent; ++i)
            numbers[at(line, i)] = rawOfInteger(i32, 1000 * line + i);
        const int64_t results = isReduction ? 1 : extent;
        const std::string config =
            fmt::format("extent={},isReduction={:d},across={:d},reverse={:d}", extent, isReduction, across, reverse);
        const auto run = [&](const Raw &given) {
          Tensor x = tensor(i32, across ? Shape{extent, 3} : Shape{3, extent}, given);
          Tensor y(device, i32, across ? Shape{results, 3} : Shape{3, results});
          launch(joinIntervalsKernel, {x.ref(), x.ref(), y.ref()}, config);
          return std::pair(std::move(x), std::move(y));
        };
        const auto [x, y] = run(numbers);
        ASSERT_NO_THROW(device->synchronize()) << config;
        const Raw got = read(y);
        for (int64_t i = 0; i < 3 * extent && !isReduction; ++i)
          ASSERT_EQ(got[i], numbers[i]) << config << ", element " << i;
        if (extent == 1)
          continue;
        // Line 1 has a gap before its element `gap`.
        const int64_t gap = extent == 2 ? 1 : extent / 2;
        for (int64_t i = gap; i < extent; ++i)
          numbers[at(1, i)] += 5;
        const auto failing = run(numbers);
        const int64_t first = isReduction ? 1 : at(1, reverse ? 0 : gap);
        expectError([&] { device->synchronize(); }, {"check failed: follows, in kernel 'join_intervals' at ",
                                                     fmt::format("program (0, 0, 0), element {}", first)});
      }
}

void addSmall(View x, View y, ExtentConfig cfg) {
  Tile limit = cast(load(x, {0}, {}), f32);
  store(y, {0}, scan(load(x, {0}, {cfg.extent}), 0, [&](Tile a, Tile b) {
          device_assert(a + b <= limit, "small sums");
          return a + b;
        }));
}
const Kernel addSmallKernel = kernel("add_small", addSmall, extentField());

// A scalar from outside, and a narrow float, which the function gets as f32.
TEST_P(Console, FunctionsOfScansCheckNarrowFloats) {
  const int64_t extent = 40;
  for (const Type type : {bf16, f32}) {
    Raw raw(extent, rawOfReal(type, 1));
    raw[0] = rawOfReal(type, 39); // the limit, which the second sum exceeds
    const Tensor x = tensor(type, {extent}, raw), y(device, type, {extent});
    launch(addSmallKernel, {x.ref(), y.ref()}, extentText(extent));
    expectError([&] { device->synchronize(); }, {"check failed: small sums", "element 1"});
    launch(addSmallKernel, {x.ref(), y.ref()}, extentText(1)); // calls nothing
    EXPECT_NO_THROW(device->synchronize());
  }
}

// --- assume ----------------------------------------------------------------------------------------------------------

void addPositive(View x, View y, ExtentConfig cfg) {
  store(y, {0}, scan(load(x, {0}, {cfg.extent}), 0, [](Tile a, Tile b) {
          assume(a > 0);
          assume(b % 4 == 0);
          return a + b;
        }));
}
const Kernel addPositiveKernel = kernel("add_positive", addPositive, extentField());

// In a scan's function, too: devices that check assumptions report a false one, and others compile it.
TEST_P(Console, FunctionsOfScansMayAssume) {
  const Tensor x = tensor(i32, {5}, {4, 8, 12, 16, 20}), y(device, i32, {5});
  launch(addPositiveKernel, {x.ref(), y.ref()}, extentText(5));
  EXPECT_EQ(read(y), (Raw{4, 12, 24, 40, 60}));
}

void copyBlocks(View starts, View x, View y) {
  const Tile n = program_id(0), first = load(starts, {n});
  assume((first % 16 == 0) & (first >= 0));
  store(y, {n * 512}, load(x, {first}, {512}));
}
const Kernel copyBlocksKernel = kernel("copy_blocks", copyBlocks);

// The code that relies on a true assumption reads the right elements, also where a block ends beyond the view.
TEST_P(Console, TrueAssumptionsChangeNoResult) {
  for (const Type starting : {i32, i64}) {
    const std::vector<uint64_t> firsts = {16, 0, 1008, 512};
    const Tensor starts = tensor(starting, {4}, firsts), x = counting(i32, {1024}, 1), y(device, i32, {2048});
    launch(copyBlocksKernel, {starts.ref(), x.ref(), y.ref()}, "", 4);
    EXPECT_NO_THROW(device->synchronize());
    const Raw got = read(y);
    for (uint64_t i = 0; i < 2048; ++i) {
      const uint64_t at = firsts[i / 512] + i % 512;
      ASSERT_EQ(got[i], at < 1024 ? at + 1 : 0) << i;
    }
  }
}

void assumeSmall(View x) {
  for (Tile k : range(3))
    if_(k > 0, [&] { assume(load(x, {program_id(0)}) + k < 7); });
}
const Kernel assumeSmallKernel = kernel("assume_small", assumeSmall);

// A false assumption is reported as a failed check is, by the devices that check.
TEST_P(Console, FalseAssumptionsAreReported) {
  const Tensor x = tensor(i32, {3}, {4, 5, 6});
  launch(assumeSmallKernel, {x.ref()}, "", 1);
  EXPECT_NO_THROW(device->synchronize());
  launch(assumeSmallKernel, {x.ref()}, "", 3);
  if (device->backend().facts().checksAssumptions)
    expectError([&] { device->synchronize(); }, {"check failed: an assumption is false, in kernel 'assume_small' at ",
                                                 "console_test.cc:", ", program (1, 0, 0), element 0"});
  else
    EXPECT_NO_THROW(device->synchronize());
}

// A false assumption is reported before the accesses that rely on it.
TEST_P(Console, FalseAssumptionsAreReportedFirst) {
  if (!device->backend().facts().checksAssumptions)
    return; // results are undefined
  const Tensor starts = tensor(i32, {1}, {1}), x = counting(i32, {1024}, 1), y(device, i32, {512});
  launch(copyBlocksKernel, {starts.ref(), x.ref(), y.ref()}, "", 1);
  try {
    device->synchronize();
    FAIL() << "expected an error";
  } catch (const Error &error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("check failed: an assumption is false")) << error.what();
  }
}

// On devices that check assumptions, a false range does not make a loop endless.
void stepBy(View x, Tile n) {
  Tile sum = 0, step = load(x, {0});
  assume(step > 0);
  for (Tile k : range(0, n, step))
    sum += k;
  store(x, {0}, cast(sum, i32));
}
const Kernel stepByKernel = kernel("step_by", stepBy);

TEST_P(Console, FalseRangesEnd) {
  if (!device->backend().facts().checksAssumptions)
    return; // results are undefined
  const Tensor x = tensor(i32, {1}, {0});
  launch(stepByKernel, {x.ref(), int32_t(9)}, "", 1);
  expectError([&] { device->synchronize(); }, {"an assumption is false", "step_by"});
}

KILN_ON_THESE(Console, testDevicesAndDriver("Console", Reach::processors));

} // namespace
