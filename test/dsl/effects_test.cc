// What a trace records of accesses of memory and of assumptions, and its warnings.

#include "test/dsl/Tracing.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

namespace kiln::testing {

// --- Warnings --------------------------------------------------------------------------------------------------------

// Warnings of a trace. One is about C++ expressions with several memory effects: the C++ compiler chooses their order,
// so two compilers may make two different programs. Another is about a load that lacks its shape.

namespace {

/// The warnings of a trace of a kernel over two i32 views of rank 2, one a line: the line relative to the kernel's
/// first line, and the text. An error fails the test.
std::string warningsOf(void (*function)(View, View), int first) {
  auto context = makeContext();
  std::string text;
  const mlir::ScopedDiagnosticHandler handler(context.get(), [&](mlir::Diagnostic &diagnostic) {
    const auto line = mlir::cast<mlir::FileLineColLoc>(diagnostic.getLocation()).getLine();
    EXPECT_EQ(diagnostic.getSeverity(), mlir::DiagnosticSeverity::Warning) << diagnostic.str();
    text += "+" + std::to_string(static_cast<int>(line) - first) + ": " + diagnostic.str() + "\n";
  });
  EXPECT_TRUE(trace(*context, kernel("k", function), {{view(i32, {64, 64}), view(i32, {64, 64})}, {}}, "").module);
  return text;
}

/// The warning of a function, at a relative line.
std::string warning(int below, const std::string &function) {
  return "+" + std::to_string(below) + ": '" + function +
         "': C++ leaves the order of these memory operations unspecified; put each in a statement of "
         "its own\n";
}

constexpr int clashing = __LINE__;
void twoEffects(View c, View out) {
  store(out, {0, 0}, atomic_add(c, {0, 0}, 1) - atomic_add(c, {0, 0}, 10));
  Tile both =
      max(atomic_add(c, {0, 0}, 1) + 1, transpose(reshape(2 * atomic_add(out, {0, 0}, full(i32, {4}, 1)), {2, 2})));
  Tile readToo = atomic_add(c, {0, 0}, 1) * load(c, {0, 0}, {});
  store(out, {atomic_add(c, {1, 0}, 1), 0}, atomic_add(c, {0, 0}, 1));
  for (Tile k : range(4))
    both = both + (atomic_add(c, {k, 0}, 1) ^ atomic_add(c, {0, 0}, 1));
}
TEST(Effects, TwoInOneExpressionAreWarnedOf) {
  EXPECT_EQ(warningsOf(twoEffects, clashing),
            warning(2, "-") + warning(4, "max") + warning(5, "*") + warning(6, "store") + warning(8, "^"));
}

Tile count(View c, At by) { return atomic_add(c, {0, 0}, by); }
void ordered(View c, View out) {
  Tile a = atomic_add(c, {0, 0}, 1), b = atomic_add(c, {0, 0}, 10);
  store(out, {0, 0}, a - b);
  Tile total = a;
  for (int i = 0; i < 4; ++i)
    total += atomic_add(c, {i, 0}, 1);                                   // one after the other
  total = total + count(c, 1);                                           // one effect
  store(out, {0, 0}, load(out, {0, 0}, {4}) + load(out, {4, 0}, {4}));   // reads alone
  store(out, {0, 0}, load(out, {0, 0}, {4}) + atomic_add(c, {0, 0}, 1)); // of different views
  store(out, {0, 0}, atomic_add(c, {0, 0}, load(c, {1, 0}, {})));        // the sum uses the loaded values
  load(out, {atomic_add(c, {0, 0}, 1) + 1, 0}, {4});
}
TEST(Effects, ThoseWhoseOrderIsKnownAreNot) { EXPECT_EQ(warningsOf(ordered, __LINE__), ""); }

// C++ evaluates lists in braces from left to right.
void braces(View c, View out) { load(out, {atomic_add(c, {0, 0}, 1), atomic_add(c, {0, 0}, 10)}, {4}); }
TEST(Effects, BracesHaveAnOrder) { EXPECT_EQ(warningsOf(braces, __LINE__), ""); }

constexpr int shapeless = __LINE__;
void copyOne(View x, View out) {
  Tile n = program_id(0) * 64 + 1;
  store(out, {n, 0}, load(x, {0, 0}, {}) + load(x, {n, 0}));
}
TEST(Shapes, AForgottenOneIsWarnedOf) {
  EXPECT_EQ(warningsOf(copyOne, shapeless),
            "+3: 'load' without a shape loads one element, and kernel 'k' has neither a larger tile nor a loop; for a "
            "block, give its shape: load(x, {n}, {64})\n");
}

void addOne(View x, View out) { store(out, {program_id(0), 0}, load(x, {program_id(0), 0}) + 1); }
void head(View x, View out) {
  Tile n = program_id(0) * 64;
  store(out, {n, 0}, load(x, {n, 0}) * load(x, {n, 0}, {64}));
}
void total(View x, View out) {
  Tile n = program_id(0) * 64, sum = load(x, {n, 0});
  for (Tile i : range(n + 1, n + 64))
    sum = sum + load(x, {i, 0});
  store(out, {program_id(0), 0}, sum);
}
TEST(Shapes, ElementsNextToATileALoopOrAllElementsAreMeant) {
  for (void (*const function)(View, View) : {addOne, head, total})
    EXPECT_EQ(warningsOf(function, 0), "");
}

} // namespace

// --- Hints and scopes ------------------------------------------------------------------------------------------------

// Hints for caches, which loads and stores of blocks and of elements by name keep, and the scopes and masks of atomics.

namespace {

void caches(View a, View n) {
  Tile ids = load(n, {0}, {4}, {.cache = Cache::evict_last});
  store(a, {3, ids}, load(a, {ids, 5}, {}, {.mask = ids == 7, .cache = Cache::evict_first}),
        {.cache = Cache::evict_last});
  store(a, {1, 2}, load(a, {1, 2}, {8}, {.cache = Cache::evict_normal}), {.cache = Cache::evict_first});
}
TEST(Caches, HintsAreKept) {
  EXPECT_EQ(programOf(kernel("k", caches), {view(f32, {64, 32}), view(i32, {64})}),
            R"(%0 = tile.load %arg1[0] {tile.cache = "keep"} : memref<?xi32, strided<[1]>> -> tensor<4xi32>
%1 = arith.cmpi eq, %0, dense<7> : tensor<4xi32>
%2 = tile.reshape %1 : tensor<4xi1> -> tensor<4x1xi1>
%3 = tile.gather %arg0[%0, 5] if %2 {tile.cache = "stream"} : memref<?x?xf32, strided<[?, 1]>>, tensor<4xi32> -> tensor<4x1xf32>
tile.scatter %3, %arg0[3, %0] {tile.cache = "keep"} : tensor<4x1xf32>, memref<?x?xf32, strided<[?, 1]>>, i64, tensor<4xi32>
%4 = tile.load %arg0[1, 2] : memref<?x?xf32, strided<[?, 1]>> -> tensor<1x8xf32>
tile.store %4, %arg0[1, 2] {tile.cache = "stream"} : tensor<1x8xf32>, memref<?x?xf32, strided<[?, 1]>>
)");
}

void scopes(View c) {
  Tile some = iota(4) < 3;
  Tile x = atomic_load(c, {0}, {4}, Order::acquire, {.mask = some, .scope = Scope::system});
  atomic_store(c, {0}, x, Order::release, {.scope = Scope::block});
  atomic_max(c, {0}, x, Order::relaxed, {.mask = some, .scope = Scope::block});
  atomic_compare_exchange(c, {0}, x, 1, Order::acq_rel, {.scope = Scope::system});
  atomic_add(c, {0}, x, Order::relaxed, {.scope = Scope::device});
}
TEST(Scopes, AreKept) {
  EXPECT_EQ(programOf(kernel("k", scopes), {view(i32, {64})}), R"(%0 = tile.iota : tensor<4xi32>
%1 = arith.cmpi slt, %0, dense<3> : tensor<4xi32>
%2 = tile.atomic_load acquire %arg0[0] if %1 {tile.scope = "system"} : memref<?xi32, strided<[1]>> -> tensor<4xi32>
tile.atomic_store release %2, %arg0[0] {tile.scope = "block"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%3 = tile.atomic_rmw max relaxed %2, %arg0[0] if %1 {tile.scope = "block"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%4 = tile.atomic_cas acq_rel %2 to dense<1>, %arg0[0] {tile.scope = "system"} : tensor<4xi32>, memref<?xi32, strided<[1]>>
%5 = tile.atomic_rmw add relaxed %2, %arg0[0] : tensor<4xi32>, memref<?xi32, strided<[1]>>
)");
}

} // namespace

// --- Assumptions -----------------------------------------------------------------------------------------------------

namespace {

void promising(View a) {
  Tile n = load(a, {0});
  assume((n > 0) & (n % 16 == 0));
  assume(n + 1 > n);
}

static size_t countOf(const std::string &word, const std::string &text) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++count;
  return count;
}

// Each comparison of a conjunction is recorded. For a device that checks assumptions, each becomes an assertion, and
// only remainders are used as facts.
TEST(Assume, IsCheckedWhereTheDeviceAsks) {
  const Kernel k = kernel("promising", promising);
  const std::string alone = moduleOf(k, {.args = {view(i32, {8})}}),
                    checked = moduleOf(k, {.args = {view(i32, {8})}, .checksAssumptions = true});
  EXPECT_EQ(countOf("tile.assume %", alone), 3u);
  EXPECT_EQ(countOf("tile.check", alone), 0u);
  EXPECT_EQ(countOf("tile.assume %", checked), 1u);
  EXPECT_EQ(countOf("tile.check %", checked), 2u);
  EXPECT_EQ(countOf("an assumption is false", checked), 2u);
}

} // namespace

} // namespace kiln::testing
