// Warnings of a trace. One is about C++ expressions with several memory effects: the C++ compiler chooses their order,
// so two compilers may make two different programs. Another is about a load that lacks its shape.

#include "test/dsl/Tracing.h"

#include "mlir/IR/Diagnostics.h"

#include <gtest/gtest.h>

namespace kiln::testing {
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
} // namespace kiln::testing
