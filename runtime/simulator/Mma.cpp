// mma.sync: products of fragments in registers.
//
// Fragments follow the PTX ISA, "Warp-level matrix instructions". With g = lane / 4 and t = lane % 4, and E elements in
// a word (of 64 bits for f64, else of 32):
//
//     A (16 × K)   word r: row g + 8 (r & 1), columns E t + 4 E (r >> 1) … + E − 1
//     A (8 × K)    one word: row g, columns E t … + E − 1
//     B (K × 8)    word r: column g, rows E t + 4 E r … + E − 1
//     C (M × 8)    element i: row g + 8 (i >> 1), column 2 t + (i & 1)
//
// Sums run over K in order, each step one fused multiply-add. Hardware rounds differently, so results agree exactly
// only for integers that f32 represents. Every operand is read before a result is written.
//
// On sm_89 and from sm_120 on, tensor cores multiply 8-bit floats natively. Their sums keep only 13 bits after the
// leading one. This was measured by Zhang et al., "SageAttention2", 2024, and for wgmma by DeepSeek-AI, "DeepSeek-V3
// Technical Report", 2024. On sm_90 and sm_100 ptxas converts 8-bit floats to f16.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Fragments.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <fmt/format.h>
#include <span>

namespace kiln::simulator {

using ptx::Type;

/// The most rows and columns of A, in elements; single bits count by words.
static constexpr int maxRows = 16, maxK = 64;

namespace {
/// Element types of a matrix.
enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, s4, u4, b1, f64, f32, s32 };
constexpr std::string_view elementNames[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8",
                                             "s4",  "u4",   "b1",   "f64",  "f32",  "s32"};
constexpr int elementBits[] = {16, 16, 32, 8, 8, 8, 8, 4, 4, 1, 64, 32, 32};

int bitsOf(Element element) { return elementBits[static_cast<size_t>(element)]; }
bool isInteger(Element element) { return element >= Element::s8 && element <= Element::b1; }
bool isEighth(Element element) { return element == Element::e4m3 || element == Element::e5m2; }

/// A product, as a step's detail.
struct Product {
  uint16_t K = 16;
  uint8_t M = 16;
  Element a = Element::f16, b = Element::f16, c = Element::f32, d = Element::f32;
  bool saturates : 1 = false, isAnd : 1 = false, isCoarse : 1 = false;

  int wordBits() const { return a == Element::f64 ? 64 : 32; }
  int perWord() const { return wordBits() / bitsOf(a); }
  int wordsOf(int rows) const { return rows * K / (lanesOfWarp * perWord()); }
  int wordsOfA() const { return wordsOf(M); }
  int wordsOfB() const { return wordsOf(8); }
  int sumsOfLane() const { return M / 4; }
  /// Registers of C or D: two f16 share one.
  int wordsOfSums(Element sum) const { return sum == Element::f16 ? sumsOfLane() / 2 : sumsOfLane(); }
};
} // namespace

// --- Fragments -----------------------------------------------------------------------------------------------------

static float numberIn(Element element, uint32_t word, int index) {
  switch (element) {
  case Element::f16:
    return fromHalf(static_cast<uint16_t>(word >> (16 * index)));
  case Element::bf16:
    return fromBf16(static_cast<uint16_t>(word >> (16 * index)));
  case Element::e4m3:
  case Element::e5m2:
    return static_cast<float>(fromEighth(element == Element::e5m2, static_cast<uint8_t>(word >> (8 * index))));
  default: // tf32: the lowest 13 bits are ignored
    return std::bit_cast<float>(word & 0xffffe000);
  }
}

static int32_t integerIn(Element element, uint32_t word, int index) {
  const int bits = bitsOf(element), from = 32 - bits * (index + 1);
  const uint32_t top = word << from;
  const bool isSigned = element == Element::s8 || element == Element::s4;
  return isSigned ? static_cast<int32_t>(top) >> (32 - bits) : static_cast<int32_t>(top >> (32 - bits));
}

/// Places the elements of A and B as matrices of T, `perWord` from each word: `elementOf(element, word, index)`.
template <class Word, class T, class ElementOf>
static void gatherOperands(Warp &warp, const uint32_t *slots, const Product &p, int perWord, ElementOf elementOf,
                           T (&a)[maxRows][maxK], T (&b)[maxK][8]) {
  const int halves = p.M / 8;
  for (int r = 0; r < p.wordsOfA(); ++r) {
    const auto *words = warp.reg<Word>(slots[r]);
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      for (int e = 0; e < perWord; ++e)
        a[lane / 4 + 8 * (r % halves)][perWord * (lane % 4) + 4 * perWord * (r / halves) + e] =
            elementOf(p.a, words[lane], e);
  }
  for (int r = 0; r < p.wordsOfB(); ++r) {
    const auto *words = warp.reg<Word>(slots[p.wordsOfA() + r]);
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      for (int e = 0; e < perWord; ++e)
        b[perWord * (lane % 4) + 4 * perWord * r + e][lane / 4] = elementOf(p.b, words[lane], e);
  }
}

/// C's words: one of T for each element, or a word of 32 bits for two halves.
template <class T> static void gatherSums(Warp &warp, const uint32_t *slots, const Product &p, T (&c)[maxRows][8]) {
  slots += p.wordsOfA() + p.wordsOfB();
  for (int i = 0; i < p.sumsOfLane(); ++i)
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      T &element = c[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
      if (p.c == Element::f16)
        element =
            static_cast<T>(fromHalf(static_cast<uint16_t>(warp.reg<uint32_t>(slots[i / 2])[lane] >> (16 * (i & 1)))));
      else
        element = fromWord<T>(warp.reg<WordOf<T>>(slots[i])[lane]);
    }
}

template <class T>
static void scatterSums(Warp &warp, const uint32_t *slots, const Product &p, const T (&c)[maxRows][8]) {
  slots += p.wordsOfA() + p.wordsOfB() + p.wordsOfSums(p.c);
  const bool packed = p.d == Element::f16;
  for (int i = 0; i < p.sumsOfLane(); i += packed ? 2 : 1)
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      const T *element = &c[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
      if (packed)
        warp.reg<uint32_t>(slots[i / 2])[lane] = toHalf(static_cast<float>(element[0])) |
                                                 static_cast<uint32_t>(toHalf(static_cast<float>(element[1]))) << 16;
      else
        warp.reg<WordOf<T>>(slots[i])[lane] = toWord<T>(element[0]);
    }
}

// --- Products ------------------------------------------------------------------------------------------------------

/// Multiplies matrices of floats; sums are in f32 or f64.
template <class T, class Word, class ElementOf>
static void multiplyFloats(Warp &warp, const Step &step, const Product &p, ElementOf elementOf) {
  T a[maxRows][maxK], b[maxK][8], c[maxRows][8];
  gatherOperands<Word>(warp, warp.list(step), p, p.perWord(), elementOf, a, b);
  gatherSums(warp, warp.list(step), p, c);
  for (int m = 0; m < p.M; ++m)
    for (int k = 0; k < p.K; ++k)
      for (int n = 0; n < 8; ++n)
        c[m][n] = std::fma(a[m][k], b[k][n], c[m][n]);
  scatterSums(warp, warp.list(step), p, c);
}

template <Type type, Element element> static void runFloats(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto p = unpackDetail<Product>(step);
  if (p.c != Element::f32 || p.d != Element::f32)
    return multiplyFloats<float, uint32_t>(
        warp, step, p, [](Element, uint32_t word, int index) { return numberIn(element, word, index); });
  std::array<uint32_t *, 14> words; // of A, B, C and D
  const size_t operands = static_cast<size_t>(p.wordsOfA()) + static_cast<size_t>(p.wordsOfB());
  for (size_t i = 0; i < operands + 8; ++i)
    words[i] = warp.reg<uint32_t>(warp.list(step)[i]);
  uint32_t *const *const c = words.data() + operands;
  multiplyFragments(type, p.K, words.data(), words.data() + p.wordsOfA(), c, c + 4);
}

/// The sum of the terms on a tensor core that keeps 13 bits after the leading bit of the largest term: lower bits of
/// each term and of the sum are truncated.
static float coarseSum(std::span<const double> terms) {
  double largest = 0, sum = 0;
  for (const double term : terms) {
    largest = std::max(largest, std::abs(term));
    sum += term;
  }
  if (!std::isfinite(sum) || largest == 0) // NaN, too
    return static_cast<float>(sum);
  const auto cut = [](double value, int exponent) {
    const double unit = std::ldexp(1.0, exponent - 13);
    return std::trunc(value / unit) * unit;
  };
  const int exponent = std::ilogb(largest);
  sum = 0;
  for (const double term : terms)
    sum += cut(term, exponent);
  return sum == 0 ? 0 : static_cast<float>(cut(sum, std::max(std::ilogb(sum), exponent)));
}

static void runEighths(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto p = unpackDetail<Product>(step);
  if (!p.isCoarse)
    return multiplyFloats<float, uint32_t>(warp, step, p, numberIn);
  float a[maxRows][maxK], b[maxK][8], c[maxRows][8];
  gatherOperands<uint32_t>(warp, warp.list(step), p, p.perWord(), numberIn, a, b);
  gatherSums(warp, warp.list(step), p, c);
  for (int m = 0; m < p.M; ++m)
    for (int n = 0; n < 8; ++n) {
      std::array<double, maxK + 1> terms; // products are exact
      for (int k = 0; k < p.K; ++k)
        terms[static_cast<size_t>(k)] = static_cast<double>(a[m][k]) * b[k][n];
      terms[static_cast<size_t>(p.K)] = c[m][n];
      c[m][n] = coarseSum(std::span(terms).first(static_cast<size_t>(p.K) + 1));
    }
  scatterSums(warp, warp.list(step), p, c);
}

static void runDoubles(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  multiplyFloats<double, uint64_t>(warp, step, unpackDetail<Product>(step),
                                   [](Element, uint64_t word, int) { return std::bit_cast<double>(word); });
}

/// Sums of integers: exact, then clamped or wrapped.
template <class T, class Multiply>
static void sumIntegers(Warp &warp, const Step &step, const Product &p, int K, const T (&a)[maxRows][maxK],
                        const T (&b)[maxK][8], Multiply multiply) {
  int32_t c[maxRows][8];
  gatherSums(warp, warp.list(step), p, c);
  for (int m = 0; m < p.M; ++m)
    for (int n = 0; n < 8; ++n) {
      int64_t sum = c[m][n];
      for (int k = 0; k < K; ++k)
        sum += multiply(a[m][k], b[k][n]);
      c[m][n] = static_cast<int32_t>(p.saturates ? clamped(sum, 32, true) : sum);
    }
  scatterSums(warp, warp.list(step), p, c);
}

static void runIntegers(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto p = unpackDetail<Product>(step);
  int32_t a[maxRows][maxK], b[maxK][8];
  gatherOperands<uint32_t>(warp, warp.list(step), p, p.perWord(), integerIn, a, b);
  sumIntegers(warp, step, p, p.K, a, b, [](int32_t x, int32_t y) { return x * y; });
}

/// Single bits: the number of bits set in both, or in exactly one.
static void runBits(Warp &warp, const Step &step) {
  expectWholeWarp(warp, step);
  const auto p = unpackDetail<Product>(step);
  uint32_t a[maxRows][maxK], b[maxK][8];
  gatherOperands<uint32_t>(warp, warp.list(step), p, 1, [](Element, uint32_t word, int) { return word; }, a, b);
  sumIntegers(warp, step, p, p.K / 32, a, b,
              [&](uint32_t x, uint32_t y) { return std::popcount(p.isAnd ? x & y : x ^ y); });
}

// --- Decoding ------------------------------------------------------------------------------------------------------

namespace {
/// The ISA's extents for a range of element types of A, and the target and version that introduced them.
struct Shape {
  Element first, last;
  int M, K, target, version;
};
} // namespace

static constexpr Shape shapes[] = {
    {Element::f16, Element::f16, 16, 8, 75, 65},    {Element::f16, Element::bf16, 16, 16, 80, 70},
    {Element::bf16, Element::bf16, 16, 8, 80, 70},  {Element::tf32, Element::tf32, 16, 4, 80, 70},
    {Element::tf32, Element::tf32, 16, 8, 80, 70},  {Element::e4m3, Element::e5m2, 16, 32, 89, 84},
    {Element::e4m3, Element::e5m2, 16, 16, 89, 87}, {Element::s8, Element::u8, 8, 16, 75, 65},
    {Element::s8, Element::u8, 16, 16, 80, 70},     {Element::s8, Element::u8, 16, 32, 80, 70},
    {Element::s4, Element::u4, 8, 32, 75, 65},      {Element::s4, Element::u4, 16, 32, 80, 70},
    {Element::s4, Element::u4, 16, 64, 80, 70},     {Element::b1, Element::b1, 8, 128, 75, 70},
    {Element::b1, Element::b1, 16, 128, 80, 70},    {Element::b1, Element::b1, 16, 256, 80, 70},
    {Element::f64, Element::f64, 8, 4, 80, 70},     {Element::f64, Element::f64, 16, 4, 90, 78},
    {Element::f64, Element::f64, 16, 8, 90, 78},    {Element::f64, Element::f64, 16, 16, 90, 78},
};

/// Takes the next modifier that names an element type.
static Element takeElement(Decoder &d) {
  for (const std::string_view modifier : d.rest())
    for (size_t i = 0; i < std::size(elementNames); ++i)
      if (modifier == elementNames[i]) {
        d.take(modifier);
        return static_cast<Element>(i);
      }
  d.wrong("four types");
}

/// Whether this element type of B is allowed with that of A.
static bool isFactorFor(Element a, Element b) {
  return isEighth(a) ? isEighth(b) : isInteger(a) ? isInteger(b) && bitsOf(a) == bitsOf(b) : a == b;
}

/// Whether this accumulator type is allowed for these element types.
static bool isSumFor(Element a, Element sum) {
  if (isInteger(a))
    return sum == Element::s32;
  if (a == Element::f64)
    return sum == Element::f64;
  return sum == Element::f32 || (sum == Element::f16 && (a == Element::f16 || isEighth(a)));
}

static void checkProduct(Decoder &d, const Product &p, int N) {
  const auto *const shape = std::find_if(std::begin(shapes), std::end(shapes), [&](const Shape &s) {
    return p.a >= s.first && p.a <= s.last && p.M == s.M && N == 8 && p.K == s.K;
  });
  if (shape == std::end(shapes) || !isFactorFor(p.a, p.b) || !isSumFor(p.a, p.c) || !isSumFor(p.a, p.d) ||
      (p.saturates && (!isInteger(p.a) || p.a == Element::b1)))
    d.unsupported();
  d.expectTarget(shape->target, shape->version);
  if (isEighth(p.a) && (p.c == Element::f16 || p.d == Element::f16))
    d.expectTarget(89, 87);
  if (p.isAnd)
    d.expectTarget(80, 71);
}

static Handler handlerFor(Element a) {
  switch (a) {
  case Element::f16:
    return runFloats<Type::f16, Element::f16>;
  case Element::bf16:
    return runFloats<Type::bf16, Element::bf16>;
  case Element::tf32:
    return runFloats<Type::tf32, Element::tf32>;
  case Element::e4m3:
  case Element::e5m2:
    return runEighths;
  case Element::b1:
    return runBits;
  case Element::f64:
    return runDoubles;
  default:
    return runIntegers;
  }
}

/// Whether the target's tensor cores multiply 8-bit floats natively.
static bool hasEighths(std::string_view target) { return target == "sm_89" || target.starts_with("sm_12"); }

static void decodeMma(Decoder &d) {
  if (!d.take("sync") || !d.take("aligned"))
    d.unsupported();
  const auto [M, N, K] = takeShape(d);
  if (!d.take("row") || !d.take("col"))
    d.unsupported("only .row.col");
  Product p{.K = static_cast<uint16_t>(K), .M = static_cast<uint8_t>(M)};
  p.saturates = d.take("satfinite");
  p.d = takeElement(d);
  p.a = takeElement(d);
  p.b = takeElement(d);
  p.c = takeElement(d);
  if (p.a == Element::b1) {
    p.isAnd = d.take("and");
    if ((!p.isAnd && !d.take("xor")) || !d.take("popc"))
      d.wrong("'.and.popc' or '.xor.popc'");
  }
  if (p.a == Element::f64)
    d.take("rn"); // the only mode here
  checkProduct(d, p, N);
  p.isCoarse = isEighth(p.a) && hasEighths(d.builder.module.target);
  d.expectCount(4, 4);
  const Type word = p.wordBits() == 64 ? Type::f64 : Type::b32;
  std::vector<uint32_t> slots;
  addFragment(d, d.operand(1), static_cast<size_t>(p.wordsOfA()), word, false, slots);
  addFragment(d, d.operand(2), static_cast<size_t>(p.wordsOfB()), word, false, slots);
  addFragment(d, d.operand(3), static_cast<size_t>(p.wordsOfSums(p.c)), word, false, slots);
  addFragment(d, d.operand(0), static_cast<size_t>(p.wordsOfSums(p.d)), word, true, slots);
  d.giveList(d.emit(handlerFor(p.a), {}, asDetail(p)), slots);
}

void addMma(InstructionTable &table) { table["mma"] = decodeMma; }

} // namespace kiln::simulator
