// Operands are checked by the texts of registrations.

#include "kernels/Registry.h"
#include "kernels/operands.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

void take(View, View, View, View, Tile) {}
const Kernel takeKernel = kernel("take", take,
                                 {"rows (N, C) float or i8", "table (V, C) as rows, a table", "starts (N + 1) i32",
                                  "halves (C / 2, 16) any, two of them", "scale of all"});
TensorRef tensor(Shape extents, Type type = f32) { return TensorRef::dense(nullptr, type, std::move(extents)); }

// The text before the comma gives names, extents and types.
TEST(Operands, RegistrationsAreParsed) {
  const std::vector<ArgumentForm> forms = argumentForms(takeKernel);
  ASSERT_EQ(forms.size(), 5u);
  EXPECT_EQ(forms[0].types, (std::vector<Type>{f32, bf16, f16, i8}));
  EXPECT_EQ(forms[1].sameAs, std::optional<size_t>(0));
  EXPECT_EQ(forms[2].types, std::vector<Type>{i32});
  EXPECT_EQ(forms[2].type(bf16), i32);
  EXPECT_EQ(forms[1].type(bf16), bf16);
  EXPECT_TRUE(forms[3].types.empty());
  EXPECT_FALSE(forms[4].isView());
  const NamedExtents extents = {{"N", 5}, {"C", 8}};
  EXPECT_EQ(forms[2].shape(extents), Shape{6});
  EXPECT_EQ(forms[3].shape(extents), (Shape{4, 16}));
  EXPECT_EQ(errorOf([&] { forms[1].shape(extents); }), "expected extents for 'table', but got none for 'V'");
}

// The text of every kernel has the form.
TEST(Operands, EveryKernelIsParsed) {
  for (const Kernel *kernel : kernels())
    EXPECT_NO_THROW(argumentForms(*kernel)) << kernel->name;
}

// The error of a text names the kernel and shows the form.
TEST(Operands, TextsOfOtherFormsAreRefused) {
  const auto errorOfText = [](const char *text) {
    const Kernel other = kernel("other", +[](View) {}, {text});
    return errorOf([&] { checkOperands(other, std::vector<Operand>()); });
  };
  for (const char *text : {"x", "x N", "x (N", "x ()", "x (N -)", "x (N - 1)", "x (N) f33", "x (N) f32 of rows",
                           "x (N) f32 or", "x (N) f32 and i8", "x (N) as y", "x (N) any f32"})
    EXPECT_EQ(errorOfText(text), "kernel 'other': expected argument 'x' as `NAME (EXTENTS) TYPES, prose`, but got '" +
                                     std::string(text) + (text == std::string("x") ? " '" : "'"));
  EXPECT_NO_THROW(argumentForms(kernel("other", +[](View) {}, {"x (N) f32, of rows"})));
}

// Extents are those of the first operand that has a name; others are compared.
TEST(Operands, ExtentsAreBoundAndCompared) {
  const TensorRef rows = tensor({5, 8}), table = tensor({9, 8}), starts = tensor({6}, i32);
  const NamedExtents e = checkOperands(takeKernel, {rows, table, starts, tensor({4, 16}, i64)});
  EXPECT_EQ(e["N"], 5);
  EXPECT_EQ(e["V"], 9);
  EXPECT_EQ(e.find("D"), nullptr);
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {rows, tensor({9, 7})}); }),
            "'take': expected 'table' of shape 9x8, but got 9x7");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {rows, tensor({9})}, "plan"); }),
            "'plan': expected 'table' of shape Vx8, but got 9");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {rows, {}, tensor({5}, i32)}); }),
            "'take': expected 'starts' of shape 6, but got 5");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {{}, {}, {}, tensor({4, 15})}); }),
            "'take': expected 'halves' of shape C / 2x16, but got 4x15");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {{}, {}, {}, {}, {}}); }),
            "kernel 'take': expected at most 4 operands, but got 5");
  const Kernel parts = kernel("parts", +[](View, View) {}, {"x (C, N)", "y (C / N)"});
  checkOperands(parts, {tensor({8, 0}), tensor({3})}); // without parts any extent
}

// Types are those of the text, or another operand's.
TEST(Operands, TypesAreCompared) {
  const TensorRef rows = tensor({5, 8}, i8);
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {rows, tensor({9, 8})}); }),
            "'take': expected 'table' of type i8, but got f32");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {tensor({5, 8}, i32)}); }),
            "'take': expected 'rows' of type f32 or bf16 or f16 or i8, but got i32");
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {rows, {}, tensor({6})}); }),
            "'take': expected 'starts' of type i32, but got f32");
  checkOperands(takeKernel, {{}, tensor({9, 8}, f16)}); // without rows, any of their types
}

// An operand may be stored transposed, be a part of the kernel's, or be broadcast; errors show its stored shape.
TEST(Operands, OperandsMayBeStoredInOtherWays) {
  const TensorRef rows = tensor({5, 8}), turned = tensor({8, 9}), one = tensor({8}), row = tensor({1, 8});
  Operand table = turned;
  table.isTransposed = true;
  checkOperands(takeKernel, {rows, table});
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {tensor({5, 7}), table}); }),
            "'take': expected 'table' of shape 7x9, but got 8x9");
  Operand part = one;
  part.isOnePart = true;
  checkOperands(takeKernel, {rows, part});
  EXPECT_EQ(errorOf([&] { checkOperands(takeKernel, {tensor({5, 7}), part}); }),
            "'take': expected 'table' of shape 7, but got 8");
  const Kernel two = kernel("two", +[](View, View) {}, {"x (N, C)", "y (N, C)"});
  Operand broadcast = row;
  broadcast.broadcast = 1;
  checkOperands(two, {rows, broadcast});
  broadcast.broadcast = 0;
  EXPECT_EQ(errorOf([&] { checkOperands(two, {rows, broadcast}); }), "'two': expected 'y' of shape 5x8, but got 1x8");
}

} // namespace
} // namespace kiln
