// Arguments as a program writes them: lists of tensors and numbers, and the element type of each number.

#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/runtime/kernels.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::test;

namespace {

class ArgumentLists : public testing::Test {
protected:
  std::shared_ptr<Device> device = Device::open("cpu:generic");
  Tensor x{device, f32, {16}}, y{device, f32, {16}};
  const TensorRef a = x, b = y;

  void SetUp() override {
    x.uploadFloats(std::vector<float>(16, 1));
    y.uploadFloats(std::vector<float>(16, 2));
  }
  /// The first element of x, which the launches add to.
  float first() const { return x.downloadFloats()[0]; }
};

// Two tensors in braces are two arguments in any form; never a pair of iterators or one aggregate.
TEST_F(ArgumentLists, TakeTensorsInEveryForm) {
  launch(*device, addKernel, 1, {x, y});
  launch(*device, addKernel, 1, {a, b});
  launch(*device, addKernel, 1, {x, b});
  launch(*device, addKernel, 1, {a, y});
  launch(*device, addKernel, 1, {x.ref(), y.ref()});
  launch(*device, addKernel, 1, {x.ref(), y});
  launch(*device, addKernel, 1, {Arg(x), y});
  launch(*device, addKernel, 1, {{x}, {b}});
  launch(*device, addKernel, 1, {x, y}, "block=16");
  const std::vector<Arg> list = {x, y}, copied = {a, b};
  launch(*device, addKernel, 1, list);
  launch(*device, addKernel, 1, {list});
  launch(*device, addKernel, {1, 1, 1}, copied);
  EXPECT_EQ(first(), 1 + 2 * 12);
  EXPECT_EQ(list.size(), 2u);
}

// The extents and strides of a slice are the argument's, and a list of one tensor is a list.
TEST_F(ArgumentLists, TakeSlicesAndSingleTensors) {
  launch(*device, addKernel, 1, {x.ref().slice(0, 0, 3), b.slice(0, 1, 3)});
  EXPECT_EQ(x.downloadFloats(), (std::vector<float>{3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ((std::vector<Arg>{x}).size(), 1u);
  EXPECT_EQ((std::vector<Arg>{a}).size(), 1u);
  EXPECT_EQ((std::vector<Arg>{3, 4}).size(), 2u);
  EXPECT_EQ((std::vector<Arg>{0}).size(), 1u);
}

TEST_F(ArgumentLists, TakeTensorsWithNumbers) {
  launch(*device, scaleKernel, 1, {x, 3.0f});
  launch(*device, scaleKernel, 1, {a, 2.0f});
  launch(*device, scaleKernel, 1, {x, 5});
  EXPECT_EQ(first(), 30);
}

// Other C++ types do not compile as arguments: a pointer is not a bool, and a text or a vector is not a tensor.
TEST(Arg, IsMadeOfTensorsAndNumbersOnly) {
  static_assert(std::is_convertible_v<Tensor &, Arg> && std::is_convertible_v<const TensorRef &, Arg>);
  static_assert(!std::is_convertible_v<float *, Arg> && !std::is_convertible_v<const char *, Arg>);
  static_assert(!std::is_convertible_v<std::nullptr_t, Arg> && !std::is_convertible_v<std::vector<float>, Arg>);
  static_assert(!std::is_convertible_v<Type, Arg>);
}

template <class Number> void expectInteger(Number number) {
  const Arg arg = number;
  EXPECT_EQ(arg.kind, Arg::Kind::scalar);
  EXPECT_EQ(arg.scalarType, i64);
  EXPECT_EQ(arg.integer, static_cast<int64_t>(number));
}

// Every C++ integer type becomes an i64 of equal value, from its least to its greatest number.
TEST(Arg, MakesEveryIntegerAnI64) {
  const auto ends = []<class... Number>(Number...) {
    (expectInteger(std::numeric_limits<Number>::min()), ...);
    (expectInteger(std::numeric_limits<Number>::max()), ...);
  };
  ends(char(), static_cast<signed char>(0), static_cast<unsigned char>(0), short(), 0, 0L, 0LL, char16_t(), wchar_t());
  ends(static_cast<unsigned short>(0), 0U);
  expectInteger(uint64_t(1) << 62);
  expectInteger(size_t(7));
}

TEST(Arg, IsUnsignedWhereI64HasNotTheNumber) {
  EXPECT_EQ(Arg(std::numeric_limits<uint64_t>::max() >> 1).integer, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Arg(std::numeric_limits<uint64_t>::max() >> 1).scalarType, i64);
  EXPECT_EQ(Arg(uint64_t(1) << 63).integer, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Arg(uint64_t(1) << 63).scalarType, u64);
}

TEST(Arg, KeepsTheTypeOfFloatsAndTruthValues) {
  EXPECT_EQ(Arg(0.1f).scalarType, f32);
  EXPECT_EQ(Arg(0.1f).real, 0.1f);
  EXPECT_EQ(Arg(0.1).scalarType, f64);
  EXPECT_EQ(Arg(0.1).real, 0.1);
  EXPECT_EQ(Arg(0.5L).scalarType, f64);
  EXPECT_EQ(Arg(true).scalarType, boolean);
  EXPECT_EQ(Arg(true).integer, 1);
}

TEST(Arg, BecomesAScalarOfAnotherTypeThatHasTheNumber) {
  EXPECT_EQ(Arg(3).as(i32).scalarType, i32);
  EXPECT_EQ(Arg(3).as(bf16).real, 3);
  EXPECT_EQ(Arg(-128.0).as(i8).integer, -128);
  EXPECT_EQ(Arg(1).as(boolean).integer, 1);
  EXPECT_EQ(Arg(-0x1p63).as(i64).integer, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(errorOf([] { Arg(128).as(i8); }), "expected a number that i8 has, but got 128");
  EXPECT_EQ(errorOf([] { Arg(-129).as(i8); }), "expected a number that i8 has, but got -129");
  EXPECT_EQ(errorOf([] { Arg(int64_t(1) << 31).as(i32); }), "expected a number that i32 has, but got 2147483648");
  EXPECT_EQ(Arg(0x1p63).as(u64).integer, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Arg(255).as(u8).integer, 255);
  EXPECT_EQ(Arg(~uint64_t(0)).as(f64).real, 0x1p64);
  EXPECT_EQ(errorOf([] { Arg(256).as(u8); }), "expected a number that u8 has, but got 256");
  EXPECT_EQ(errorOf([] { Arg(-1).as(u64); }), "expected a number that u64 has, but got -1");
  EXPECT_EQ(errorOf([] { Arg(0x1p64).as(u64); }), "expected a number that u64 has, but got 18446744073709551616");
  EXPECT_EQ(errorOf([] { Arg(~uint64_t(0)).as(i64); }), "expected a number that i64 has, but got 18446744073709551615");
  EXPECT_EQ(errorOf([] { Arg(2).as(boolean); }), "expected a number that boolean has, but got 2");
  EXPECT_EQ(errorOf([] { Arg(1.5).as(i64); }), "expected a number that i64 has, but got 1.5");
  EXPECT_EQ(errorOf([] { Arg(0x1p63).as(i64); }), "expected a number that i64 has, but got 9223372036854775808");
  EXPECT_EQ(errorOf([] { Arg(NAN).as(i64); }), "expected a number that i64 has, but got nan");
  EXPECT_EQ(errorOf([] { Arg(TensorRef()).as(i64); }), "expected a scalar to give the type i64, but got a tensor");
}

/// out[0] = the scalar.
void keepScalar(View out, Tile value) { store(out, {0}, cast(value, f64)); }
const Kernel keepKernel = kernel("keep", keepScalar);

class Scalars : public testing::TestWithParam<std::string> {};

// A scalar of each type reaches the kernel with its value. Narrow ones are in the low bytes of their slot.
TEST_P(Scalars, ReachTheKernelInEveryType) {
  const std::shared_ptr<Device> device = Device::open(GetParam());
  Tensor out(device, f64, {1});
  const auto kept = [&](const Arg &value) {
    launch(*device, keepKernel, 1, {out, value});
    double got = 0;
    out.download(&got, sizeof got);
    return got;
  };
  for (const Type type : {i8, u8, i16, u16, i32, u32, i64, u64, f8e4m3, f8e5m2, bf16, f16, f32, f64})
    for (const double value : {-3.0, 0.0, 96.0, 200.0})
      if (!(isUnsigned(type) && value < 0) && !(type == i8 && value > 127) &&
          !(value == 200 && isFloat(type) && bytesOf(type) == 1)) {
        EXPECT_EQ(kept(Arg(value).as(type)), value) << nameOf(type);
      }
  EXPECT_EQ(kept(~uint64_t(0)), 0x1p64);
  EXPECT_EQ(kept(Arg(0xFFFFFFFFu).as(u32)), 4294967295.0);
  EXPECT_EQ(kept(true), 1);
  EXPECT_EQ(kept(false), 0);
  EXPECT_EQ(kept(0.1), 0.1);
  EXPECT_EQ(kept(0.1f), 0.1f);
  EXPECT_EQ(kept(Arg(0.1).as(bf16)), 0.10009765625); // 205 · 2^−11
  EXPECT_EQ(kept(Arg(3).as(f8e8m0)), 4);
}

KILN_ON_DEVICES_AND_DRIVER(Scalars);

// A double with an f32 view is an f64 scalar; the error message then shows how to write an f32 one.
TEST_F(ArgumentLists, HintAtADoubleAmongFloats) {
  expectError([&] { launch(*device, scaleKernel, 1, {x, 2.0}); },
              {"kernels.h:", "hint: 's' is an f64 scalar, because the caller passed a double; for f32 pass"});
  const std::string text = errorOf([&] { launch(*device, addKernel, 1, {x, Tensor(device, f64, {16})}); });
  EXPECT_EQ(text.find("hint"), std::string::npos) << text;
}

} // namespace
