// Products of 8-bit and 4-bit floats and of operands with scales: within the bounds of dialect/NUMERICS.md.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <fmt/format.h>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr double roundoff = 0x1p-24;

class NarrowProducts : public Semantics {
protected:
  bool isGpu() const { return GetParam().rfind("cpu", 0) != 0; }
  /// Whether it may sum products of floats of 8 bits coarsely: sm_89, sm_120, and a GPU that is not named.
  bool mayBeCoarse() const {
    return isGpu() && (GetParam().rfind("simulator:", 0) != 0 || GetParam() == "simulator:sm_89" ||
                       GetParam() == "simulator:sm_120");
  }
};

// --- Floats of 8 bits, and f32 ---------------------------------------------------------------------------------------

struct Form {
  int64_t m, n, k;
};
// Whole instructions, less than one in each direction, several, and partial ones.
const Form forms[] = {{16, 8, 32}, {64, 64, 64}, {32, 48, 96}, {17, 33, 45}, {1, 5, 7}, {8, 64, 40}, {128, 32, 160}};

struct ProductConfig {
  int form = 0;
  bool ta = false, tb = false;
  int precision = 0;
};

void product(View a, View b, View c, ProductConfig cfg) {
  const auto [M, N, K] = forms[cfg.form];
  Tile left = cfg.ta ? transpose(load(a, {0, 0}, {K, M})) : load(a, {0, 0}, {M, K});  // (M, K)
  Tile right = cfg.tb ? transpose(load(b, {0, 0}, {N, K})) : load(b, {0, 0}, {K, N}); // (K, N)
  store(c, {0, 0}, dot(left, right, load(c, {0, 0}, {M, N}), static_cast<Precision>(cfg.precision)));
}
const Kernel productKernel = kernel("product", product,
                                    {field("form", &ProductConfig::form), field("ta", &ProductConfig::ta),
                                     field("tb", &ProductConfig::tb), field("precision", &ProductConfig::precision)});

/// Compares c = a · b + c with double precision: `bound` of the sum of the terms' sizes, and `least`.
void expectWithin(double bound, double least, Type left, Type right, const Form &form, const Raw &a, const Raw &b,
                  const Raw &before, const Raw &got, const std::string &what) {
  for (int64_t i = 0; i < form.m * form.n; ++i) {
    double want = toDouble(f32, before[i]), size = std::abs(want);
    for (int64_t k = 0; k < form.k; ++k) {
      const double term = toDouble(left, a[i / form.n * form.k + k]) * toDouble(right, b[k * form.n + i % form.n]);
      want += term;
      size += std::abs(term);
    }
    ASSERT_LE(std::abs(toDouble(f32, got[i]) - want), bound * size + least)
        << what << ", at " << i << ": got " << toDouble(f32, got[i]) << ", want " << want;
  }
}

// All finite codes. With a precision, sums of some GPUs may be less exact: 34 · 2^-13 for the bits that an instruction
// truncates.
TEST_P(NarrowProducts, OfFloatsOf8BitsAreWithinTheirBounds) {
  std::mt19937 random(5);
  for (int form = 0; form < static_cast<int>(std::size(forms)); ++form)
    for (const Type left : byteFloats)
      for (const Type right : byteFloats)
        for (const int precision : {0, 1}) {
          const auto [M, N, K] = forms[form];
          const auto codes = [&](Type type, int64_t count) {
            Raw raw;
            while (static_cast<int64_t>(raw.size()) < count)
              if (const uint64_t code = random() & 0xff; std::isfinite(toDouble(type, code)))
                raw.push_back(code);
            return raw;
          };
          const Raw a = codes(left, M * K), b = codes(right, K * N), before(M * N, rawOfReal(f32, 0.3));
          const Tensor x = tensor(left, {M, K}, a), y = tensor(right, {K, N}, b), c = tensor(f32, {M, N}, before);
          launch(productKernel, {x.ref(), y.ref(), c.ref()}, fmt::format("form={},precision={}", form, precision));
          const double terms = static_cast<double>(K + 1);
          expectWithin((isGpu() ? 3 : 1) * terms * roundoff + (precision && mayBeCoarse() ? 34 * 0x1p-13 : 0), 0, left,
                       right, forms[form], a, b, before, read(c),
                       fmt::format("{} by {}, form {}, precision {}", nameOf(left), nameOf(right), form, precision));
        }
}

// --- Scaled factors --------------------------------------------------------------------------------------------------

const Form scaledForms[] = {{16, 8, 32}, {64, 32, 96}, {5, 7, 64}, {1, 1, 32}, {7, 9, 16}, {33, 5, 48}};

struct ScaledConfig {
  int form = 0;
  bool packedA = false, packedB = false, batched = false, sum = false;
  int lengthA = 32, lengthB = 32; // how many elements share a scale; 0: the factor has none
};

void scaledProduct(View a, View sa, View b, View sb, View c, ScaledConfig cfg) {
  const auto [M, N, K] = scaledForms[cfg.form];
  const int64_t ka = cfg.packedA ? K / 2 : K, kb = cfg.packedB ? K / 2 : K;
  const auto loaded = [&](View view, int64_t rows, int64_t columns) {
    return load(view, {0, 0, 0}, cfg.batched ? Shape{2, rows, columns} : Shape{rows, columns});
  };
  Tile x = loaded(a, M, ka), y = loaded(b, kb, N);
  const Scales sx = cfg.lengthA ? Scales(loaded(sa, M, K / cfg.lengthA)) : Scales(),
               sy = cfg.lengthB ? Scales(loaded(sb, K / cfg.lengthB, N)) : Scales();
  store(c, {0, 0, 0}, cfg.sum ? dot_scaled(x, sx, y, sy, full(f32, {M, N}, 1.5)) : dot_scaled(x, sx, y, sy));
}
const Kernel scaledKernel = kernel("scaled", scaledProduct,
                                   {field("form", &ScaledConfig::form), field("packedA", &ScaledConfig::packedA),
                                    field("packedB", &ScaledConfig::packedB), field("batched", &ScaledConfig::batched),
                                    field("sum", &ScaledConfig::sum), field("lengthA", &ScaledConfig::lengthA),
                                    field("lengthB", &ScaledConfig::lengthB)});

/// A float of 4 bits: sign, two bits of exponent, one of mantissa.
double realOfHalfByte(uint64_t code) {
  static const double sizes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -sizes[code & 7] : sizes[code & 7];
}

/// The types of an operand's elements and scales, and the number of elements that share a scale, 0 without scales. As
/// elements, f4e2m1x2 and u8 are two 4-bit floats; as scales, f8e8m0 and u8 are powers of two.
struct ScaledKind {
  Type elements = f8e4m3, scales = u8;
  int64_t length = 32;
};

bool isPacked(Type type) { return type == f4e2m1x2 || type == u8; }

/// Random elements, K of them in a row of the left operand or a column of the right one, and their products with the
/// scales.
struct ScaledFactor {
  Raw elements, scales;
  std::vector<double> numbers; // (batch, rows, columns) as the product has it
};

class ScaledProducts : public NarrowProducts {
protected:
  uint64_t finite(Type type) {
    uint64_t code;
    do
      code = random() & ((uint64_t{1} << 8 * bytesOf(type)) - 1);
    while (!std::isfinite(toDouble(type, code)) || std::abs(toDouble(type, code)) > 1e5);
    return code;
  }

  ScaledFactor factor(const ScaledKind &kind, int64_t batch, int64_t rows, int64_t columns, bool isRight) {
    const int64_t K = isRight ? rows : columns;
    const Type type = kind.elements;
    const int64_t length = kind.length ? kind.length : K; // one scale that nobody reads
    ScaledFactor made;
    made.numbers.resize(batch * rows * columns);
    made.elements.resize(made.numbers.size() / (isPacked(type) ? 2 : 1));
    made.scales.resize(made.numbers.size() / length);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          const int64_t k = isRight ? r : c;
          const auto placeOf = [&](int64_t each) { // of an array with K / each in place of K
            return isRight ? (b * (K / each) + k / each) * columns + c : (b * rows + r) * (K / each) + k / each;
          };
          uint64_t &scale = made.scales[placeOf(length)];
          if (k % length == 0)
            scale = kind.scales == f8e4m3 ? finite(f8e4m3) : 110 + random() % 35;
          double number;
          if (isPacked(type)) {
            const uint64_t code = random() & 15;
            made.elements[placeOf(2)] |= code << (k % 2 * 4);
            number = realOfHalfByte(code);
          } else {
            made.elements[placeOf(1)] = finite(type);
            number = toDouble(type, made.elements[placeOf(1)]);
          }
          const double factor = !kind.length        ? 1
                                : kind.scales == u8 ? std::ldexp(1, static_cast<int>(scale) - 127)
                                                    : toDouble(kind.scales, scale);
          made.numbers[(b * rows + r) * columns + c] = number * factor;
        }
    return made;
  }
  static int64_t stored(Type type, int64_t K) { return isPacked(type) ? K / 2 : K; }

  std::mt19937 random{7};

  /// Compares a product of such operands with double precision. Elements times scales are exact in bf16.
  void expectProduct(int form, const ScaledKind &left, const ScaledKind &right, bool batched) {
    const auto [M, N, K] = scaledForms[form];
    const int64_t batch = batched ? 2 : 1;
    const bool sum = !batched && (form + 1) / 2 % 2 == 1; // forms 1, 2 and 5: pairs of equal types, too
    const ScaledFactor a = factor(left, batch, M, K, false), b = factor(right, batch, K, N, true);
    const auto scalesOf = [&](const ScaledKind &kind) { return kind.length ? K / kind.length : 1; };
    const Tensor x = tensor(left.elements, {batch, M, stored(left.elements, K)}, a.elements),
                 sx = tensor(left.scales, {batch, M, scalesOf(left)}, a.scales),
                 y = tensor(right.elements, {batch, stored(right.elements, K), N}, b.elements),
                 sy = tensor(right.scales, {batch, scalesOf(right), N}, b.scales),
                 c = tensor(f32, {batch, M, N}, Raw(batch * M * N, 0));
    launch(scaledKernel, {x.ref(), sx.ref(), y.ref(), sy.ref(), c.ref()},
           fmt::format("form={},packedA={:d},packedB={:d},batched={:d},sum={:d},lengthA={},lengthB={}", form,
                       isPacked(left.elements), isPacked(right.elements), batched, sum, left.length, right.length));
    const Raw got = read(c);
    for (int64_t i = 0; i < batch * M * N; ++i) {
      const int64_t row = i / N, column = i % N, pair = i / (M * N);
      double want = sum ? 1.5 : 0, size = want;
      for (int64_t k = 0; k < K; ++k) {
        const double term = a.numbers[row * K + k] * b.numbers[(pair * K + k) * N + column];
        want += term;
        size += std::abs(term);
      }
      ASSERT_LE(std::abs(toDouble(f32, got[i]) - want), 3 * static_cast<double>(K + 1) * roundoff * size)
          << nameOf(left.elements) << " by " << nameOf(right.elements) << ", scales of " << nameOf(left.scales)
          << " for " << left.length << " and of " << nameOf(right.scales) << " for " << right.length << ", form "
          << form << ", at " << i << ": got " << toDouble(f32, got[i]) << ", want " << want;
    }
  }
};

TEST_P(ScaledProducts, AreThoseOfElementsTimesTheirScales) {
  int cases = 0;
  for (int form = 0; form < 4; ++form)
    for (const Type left : {f8e4m3, f8e5m2, u8})
      for (const Type right : {f8e4m3, f8e5m2, f4e2m1x2}) {
        ++cases;
        expectProduct(form, {.elements = left}, {.elements = right, .scales = cases % 3 == 1 ? f8e8m0 : u8},
                      cases % 2 == 0); // nine of a form: others of the next one
      }
}

// NVFP4 is e2m1 with a scale of e4m3 for each 16. The lengths and types of the two operands' scales are independent.
TEST_P(ScaledProducts, HaveAScaleForEach16Or32) {
  for (const int form : {2, 4, 5})
    for (const Type type : {f8e4m3, f8e5m2, u8})
      for (const Type scales : {u8, f8e4m3}) {
        expectProduct(form, {type, scales, 16}, {u8, f8e4m3, 16}, false);
        expectProduct(form, {f4e2m1x2, f8e4m3, 16}, {type, scales, 16}, form == 2);
        if (form == 2) {
          expectProduct(form, {type, scales, 32}, {u8, f8e4m3, 16}, true);
          expectProduct(form, {u8, f8e8m0, 16}, {type, scales, 32}, false);
        }
      }
}

// An operand without scales is unchanged.
TEST_P(ScaledProducts, MayHaveOneFactorWithoutScales) {
  for (const int form : {1, 2, 5})
    for (const Type type : {bf16, f8e4m3, f8e5m2})
      for (const ScaledKind &kind : {ScaledKind{u8, f8e4m3, 16}, ScaledKind{f8e5m2, u8, 16}, ScaledKind{u8, u8, 16}}) {
        expectProduct(form, kind, {.elements = type, .length = 0}, form == 2);
        expectProduct(form, {.elements = type, .length = 0}, kind, form == 5);
      }
}

// The least scale is 2^-127, and that of NaN makes a whole block NaN, elements of 0 too.
TEST_P(ScaledProducts, KnowTheEndsOfScales) {
  for (const Type type : {u8, f8e8m0}) {
    const int64_t K = 64;
    Raw elements(5 * K, rawOfReal(f8e4m3, 1)), scales(10, 127);
    for (int64_t k = 0; k < K; ++k)
      elements[K + k] = 0;
    scales[0] = 255, scales[2] = 255; // rows 0 and 1, the first block
    scales[4] = scales[5] = 254;      // row 2: 2^127
    scales[6] = scales[7] = 0;        // row 3
    const Tensor x = tensor(f8e4m3, {1, 5, K}, elements), sx = tensor(type, {1, 5, 2}, scales),
                 y = tensor(f8e5m2, {1, K, 7}, Raw(K * 7, rawOfReal(f8e5m2, 1))),
                 sy = tensor(type, {1, 2, 7}, Raw(14, 100)), c = tensor(f32, {1, 5, 7}, Raw(35, 0));
    launch(scaledKernel, {x.ref(), sx.ref(), y.ref(), sy.ref(), c.ref()}, "form=2");
    const Raw got = read(c);
    for (int64_t i = 0; i < 14; ++i)
      EXPECT_TRUE(std::isnan(toDouble(f32, got[i]))) << i;
    for (int64_t i = 14; i < 21; ++i)
      EXPECT_EQ(toDouble(f32, got[i]), 64 * 0x1p100) << i;
    for (int64_t i = 21; i < 28; ++i) // below f32's numbers
      EXPECT_LE(std::abs(toDouble(f32, got[i])), 64 * 0x1p-126) << i;
    for (int64_t i = 28; i < 35; ++i)
      EXPECT_EQ(toDouble(f32, got[i]), 64 * 0x1p-27) << i;
  }
}

// Processors and GPUs have different instructions for such products.
KILN_ON_EVERYTHING(NarrowProducts);
KILN_ON_EVERYTHING(ScaledProducts);

} // namespace
