// The plain data of the language: element types, config text, tensors of plans. Each mistake throws kiln::Error with
// the expected and the given value.

#include "dialect/dsl/Plan.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

TEST(Types, NamesReadBack) {
  for (Type type : everyType)
    EXPECT_EQ(typeNamed(nameOf(type)), type);
  EXPECT_EQ(errorOf([] { typeNamed("float"); }),
            "unknown element type 'float'; did you mean 'f32'? (known: boolean, i8, u8, i16, u16, i32, u32, i64, u64, "
            "f4e2m1x2, f8e4m3, f8e5m2, f8e8m0, bf16, f16, f32, f64)");
}

TEST(Types, BytesAreThoseOfMemory) {
  EXPECT_EQ(bytesOf(boolean), 1);
  EXPECT_EQ(bytesOf(bf16), 2);
  EXPECT_EQ(bytesOf(i32), 4);
  EXPECT_EQ(bytesOf(f64), 8);
}

TEST(Types, ShapeText) {
  EXPECT_EQ(textOf(Shape{64, 32}), "64x32");
  EXPECT_EQ(textOf(Shape{}), "scalar");
}

TEST(Language, OutsideATraceIsAnError) {
  EXPECT_EQ(errorOf([] { zeros(f32, {4}); }), "expected the tile language to be used in a kernel that is being traced");
}

// --- Config text -----------------------------------------------------------------------------------------------------

struct Config {
  int bm = 128;
  int64_t rows = 7;
  bool causal = true;
  double scale = 0.1;
};
void function(View, Config) {}
const Kernel attention = kernel("attention", function,
                                {field("bm", &Config::bm), field("rows", &Config::rows),
                                 field("causal", &Config::causal), field("scale", &Config::scale)});

TEST(ConfigText, HasEveryFieldInOrder) {
  EXPECT_EQ(attention.configText(""), "bm=128,rows=7,causal=1,scale=0.1");
  EXPECT_EQ(attention.configText("causal=false, bm = 64"), "bm=64,rows=7,causal=0,scale=0.1");
  EXPECT_EQ(attention.configText(attention.configText("scale=0.3333333333333333")),
            "bm=128,rows=7,causal=1,scale=0.3333333333333333");
}

TEST(ConfigText, UnknownFieldsNameTheNearest) {
  const std::string all = " (config fields: bm, rows, causal, scale)";
  EXPECT_EQ(errorOf([] { attention.configText("bn=64"); }),
            "kernel 'attention' has no config field 'bn'; did you mean 'bm'?" + all);
  EXPECT_EQ(errorOf([] { attention.configText("stages=64"); }),
            "kernel 'attention' has no config field 'stages'" + all);
  EXPECT_EQ(errorOf([] { kernel("k", +[](View) {}).configText("bm=1"); }),
            "kernel 'k' has no config field 'bm', because it has no config fields");
}

// Former names and Triton's are not aliases; the error has the name that a kernel with such a field uses.
TEST(ConfigText, FormerFieldsAndTritonsNameTheNewOne) {
  for (const char *name : {"is_causal", "IS_CAUSAL"})
    EXPECT_EQ(errorOf([&] { attention.configText(std::string(name) + "=1"); }),
              std::string("kernel 'attention' has no config field '") + name +
                  "'; did you mean 'causal'? (config fields: bm, rows, causal, scale)");
  for (const char *name : {"block_m", "BLOCK_SIZE_M"})
    EXPECT_NE(errorOf([&] { attention.configText(std::string(name) + "=1"); }).find("'; did you mean 'bm'? ("),
              std::string::npos);
  EXPECT_EQ(errorOf([] { parseChoice("--decay-on", "seed001", {"matrices", "nonzero"}); }),
            "expected '--decay-on' to be one of matrices, nonzero, but got 'seed001'; did you mean 'nonzero'?");
  EXPECT_EQ(errorOf([] { attention.configText("num_warps=1"); }),
            "kernel 'attention' has no config field 'num_warps'; without a field 'warps' the compiler chooses"
            " (config fields: bm, rows, causal, scale)");
}

TEST(ConfigText, ValuesMustBeOfTheFieldsKind) {
  EXPECT_EQ(errorOf([] { attention.configText("bm"); }),
            "expected 'name=value' in the config of kernel 'attention', but got 'bm'");
  EXPECT_EQ(errorOf([] { attention.configText("bm=6x"); }), "expected an integer for 'bm', but got '6x'");
  EXPECT_EQ(errorOf([] { attention.configText("bm="); }), "expected an integer for 'bm', but got ''");
  EXPECT_EQ(errorOf([] { attention.configText("bm=99999999999"); }),
            "expected an integer that fits 'bm', but got '99999999999'");
  EXPECT_EQ(errorOf([] { attention.configText("scale=a"); }), "expected a number for 'scale', but got 'a'");
}

TEST(ConfigText, RealsReadBack) {
  for (const char *text : {"inf", "-inf", "nan", "-0", "1.7976931348623157e+308", "0.3333333333333333"})
    EXPECT_EQ(attention.configText(std::string("scale=") + text), std::string("bm=128,rows=7,causal=1,scale=") + text);
  EXPECT_EQ(errorOf([] { attention.configText("scale=1e999"); }),
            "expected a number that fits 'scale', but got '1e999'");
}

struct Single {
  float rate = 0.1f;
};
const Kernel single = kernel("single", +[](View, Single) {}, {field("rate", &Single::rate)});

// A float is printed with the fewest digits that identify it. A number outside the range of floats is an error.
TEST(ConfigText, FloatsAreFloats) {
  EXPECT_EQ(single.configText(""), "rate=0.1");
  for (const char *text : {"0.3", "1e-45", "3.4028235e+38", "16777216", "0.33333334", "inf", "nan"})
    EXPECT_EQ(single.configText(std::string("rate=") + text), std::string("rate=") + text);
  EXPECT_EQ(single.configText("rate=0.30000001192092896"), "rate=0.3");
  for (const char *text : {"1e39", "-1e39", "3.5e38"})
    EXPECT_EQ(errorOf([&] { single.configText(std::string("rate=") + text); }),
              std::string("expected a number that fits 'rate', but got '") + text + "'");
}

struct Chosen {
  Precision precision = Precision::tf32;
};
const Kernel chosen = kernel("chosen", +[](View, Chosen) {}, {field("precision", &Chosen::precision, precisionNames)});

// An enum is spelled by the names of its values.
TEST(ConfigText, EnumsAreSpelledByName) {
  EXPECT_EQ(chosen.configText(""), "precision=tf32");
  for (const std::string &name : precisionNames)
    EXPECT_EQ(chosen.configText("precision=" + name), "precision=" + name);
  EXPECT_EQ(errorOf([] { chosen.configText("precision=tf23"); }),
            "expected 'precision' to be one of ieee, tf32, tf32x3, bf16x3, but got 'tf23'; did you mean 'tf32'?");
  EXPECT_EQ(errorOf([] { chosen.configText("precision=1"); }),
            "expected 'precision' to be one of ieee, tf32, tf32x3, bf16x3, but got '1'");
}

TEST(ConfigText, SpacesAroundNamesAndValuesAreIgnored) {
  EXPECT_EQ(attention.configText(" bm =  64 ,\trows= 3 "), "bm=64,rows=3,causal=1,scale=0.1");
  EXPECT_EQ(errorOf([] { attention.configText("bm=6 4"); }), "expected an integer for 'bm', but got '6 4'");
}

/// A message is one line, even if it quotes line ends.
TEST(ConfigText, LongValuesAreShortened) {
  const std::string digits(1 << 20, '9');
  EXPECT_EQ(errorOf([&] { attention.configText("bm=" + digits); }),
            "expected an integer that fits 'bm', but got '" + digits.substr(0, 60) + "…'");
  EXPECT_LT(errorOf([&] { attention.configText(digits); }).size(), 200u);
  EXPECT_LT(errorOf([&] { attention.configText(digits + "=1"); }).size(), 200u);
}

TEST(ConfigText, AFieldIsSetOnce) {
  EXPECT_EQ(errorOf([] { attention.configText("bm=64,rows=1,bm=64"); }),
            "expected 'bm' once in the config of kernel 'attention', but got 'bm=64,rows=1,bm=64'");
}

TEST(ConfigText, CommasStandBetweenFieldsOnly) {
  for (const char *text : {",", ",bm=64", "bm=64,", "bm=64,,rows=1"})
    EXPECT_EQ(errorOf([&] { attention.configText(text); }),
              "expected 'name=value' in the config of kernel 'attention', but got ''");
}

// --- Tensors of plans ------------------------------------------------------------------------------------------------

float memory[24];
const TensorRef cube = TensorRef::dense(memory, f32, {2, 3, 4});

TEST(TensorRef, DenseIsRowMajor) {
  EXPECT_EQ(cube.strides, (Shape{12, 4, 1}));
  EXPECT_EQ(cube.count(), 24);
  EXPECT_EQ(cube.rank(), 3);
}

TEST(TensorRef, SliceMovesTheStart) {
  TensorRef part = cube.slice(1, 1, 2);
  EXPECT_EQ(part.data, memory + 4);
  EXPECT_EQ(part.extents, (Shape{2, 2, 4}));
  EXPECT_EQ(part.strides, cube.strides);
  EXPECT_EQ(errorOf([] { cube.slice(1, 2, 2); }),
            "expected a slice within extent 3 of dimension 1, but got extent 2 from 2");
  EXPECT_EQ(errorOf([] { cube.slice(3, 0, 1); }), "expected a dimension below the rank 3, but got 3");
}

TEST(TensorRef, SelectDropsTheDimension) {
  TensorRef row = cube.select(1, 2);
  EXPECT_EQ(row.data, memory + 8);
  EXPECT_EQ(row.extents, (Shape{2, 4}));
  EXPECT_EQ(row.strides, (Shape{12, 1}));
}

TEST(TensorRef, PermuteMovesNothing) {
  TensorRef turned = cube.permute({2, 0, 1});
  EXPECT_EQ(turned.data, memory);
  EXPECT_EQ(turned.extents, (Shape{4, 2, 3}));
  EXPECT_EQ(turned.strides, (Shape{1, 12, 4}));
  EXPECT_EQ(errorOf([] { cube.permute({0, 0, 1}); }),
            "expected each of the 3 dimensions once in the order of a permutation");
}

TEST(TensorRef, ReshapeNeedsDenseMemory) {
  EXPECT_EQ(cube.reshape({6, 4}).strides, (Shape{4, 1}));
  EXPECT_EQ(errorOf([] { cube.reshape({5, 5}); }), "expected a shape of 24 elements, but got 5x5");
  EXPECT_EQ(errorOf([] { cube.slice(2, 0, 2).reshape({12}); }),
            "expected dense memory to reshape, but got a tensor of shape 2x3x2 with strides 12x4x1");
}

TEST(Plan, PlansInARowShareTheWorkspace) {
  Plan first, second;
  first.launches.resize(2);
  first.workspaceBytes = 64;
  second.launches.resize(1);
  second.workspaceBytes = 256;
  first += second;
  EXPECT_EQ(first.launches.size(), 3u);
  EXPECT_EQ(first.workspaceBytes, 256);
}

} // namespace
} // namespace kiln::testing
