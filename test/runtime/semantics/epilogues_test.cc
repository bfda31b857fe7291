// Epilogues of a product: transposition, addition, normalisation and a second product, for operands of every type in
// row-major and column-major order, at any number of stages and warps. The operands are small integers, most of them 0.
// So every sum is exact, and every operand of a second product is exact in its type.

#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Epilogues : public Semantics {};

enum class Epilogue { none, turned, matrix, rows, columns, softmax, chain };
constexpr int epilogues = 7;

struct EpilogueConfig {
  int m = 16, n = 16, k = 16; // of a tile, which is the whole result; k: terms of a round
  bool ta = false, tb = false;
  int epilogue = 0;
  Precision precision = Precision::ieee;
  int warps = 4, stages = 2;
};
const std::vector<Field> epilogueFields = {field("m", &EpilogueConfig::m),
                                           field("n", &EpilogueConfig::n),
                                           field("k", &EpilogueConfig::k),
                                           field("ta", &EpilogueConfig::ta),
                                           field("tb", &EpilogueConfig::tb),
                                           field("epilogue", &EpilogueConfig::epilogue),
                                           field("precision", &EpilogueConfig::precision, precisionNames),
                                           field("warps", &EpilogueConfig::warps),
                                           field("stages", &EpilogueConfig::stages)};

/// c = epilogue(a · b); z is the operand that is added or multiplied.
void multiplyThen(View a, View b, View z, View c, EpilogueConfig cfg) {
  const int64_t M = cfg.m, N = cfg.n, K = cfg.k;
  const Type sums = c.type();
  Tile acc = zeros(sums, {M, N});
  for (Tile k : range(0, a.dim(cfg.ta ? 0 : 1), K)) {
    Tile left = cfg.ta ? transpose(load(a, {k, 0}, {K, M})) : load(a, {0, k}, {M, K});  // (M, K)
    Tile right = cfg.tb ? transpose(load(b, {0, k}, {N, K})) : load(b, {k, 0}, {K, N}); // (K, N)
    acc = dot(left, right, acc, cfg.precision);                                         // (M, N)
  }
  switch (static_cast<Epilogue>(cfg.epilogue)) {
  case Epilogue::none:
    break;
  case Epilogue::turned:
    acc = transpose(acc); // (N, M)
    break;
  case Epilogue::matrix:
    acc += cast(load(z, {0, 0}, {M, N}), sums);
    break;
  case Epilogue::rows: // a number for each
    acc += cast(load(z, {0, 0}, {M, 1}), sums);
    break;
  case Epilogue::columns:
    acc += cast(load(z, {0, 0}, {N}), sums);
    break;
  case Epilogue::softmax:
    acc = cast(softmax(cast(acc, f32)) * 64.0, sums);
    break;
  case Epilogue::chain:
    acc = dot(cast(acc, a.type()), load(z, {0, 0}, {N, N}), cfg.precision);
    break;
  }
  store(c, {0, 0}, acc);
}
const Kernel multiplyThenKernel = kernel("multiply_then", multiplyThen, {"a", "b", "z", "c"}, epilogueFields);

/// Few of a row, in every round.
int leftAt(int64_t i, int64_t k) { return k % 37 == i * 5 % 13 ? 1 : k == i * 3 % 17 + 1 ? -1 : 0; }
int rightAt(int64_t k, int64_t j) { return static_cast<int>((k * 7 + j * 11 + k * j) % 5) - 2; }
int furtherAt(int64_t i, int64_t j) { return (i * 3 + j * 5) % 11 < 2 ? 1 : (i + j * 7) % 13 == 0 ? -1 : 0; }

class Problem {
public:
  int64_t m, n, k; // of the matrices
  Epilogue epilogue;

  int product(int64_t i, int64_t j) const {
    int sum = 0;
    for (int64_t s = 0; s < k; ++s)
      sum += leftAt(i, s) * rightAt(s, j);
    return sum;
  }
  /// The expected value of an element.
  double want(int64_t i, int64_t j) const {
    switch (epilogue) {
    case Epilogue::none:
      break;
    case Epilogue::turned:
      return product(j, i);
    case Epilogue::matrix:
      return product(i, j) + furtherAt(i, j);
    case Epilogue::rows:
      return product(i, j) + furtherAt(i, 0);
    case Epilogue::columns:
      return product(i, j) + furtherAt(0, j);
    case Epilogue::softmax: {
      double total = 0;
      for (int64_t s = 0; s < n; ++s)
        total += std::exp(product(i, s) - product(i, j));
      return 64 / total;
    }
    case Epilogue::chain: {
      double sum = 0;
      for (int64_t s = 0; s < n; ++s)
        sum += product(i, s) * furtherAt(s, j);
      return sum;
    }
    }
    return product(i, j);
  }
};

/// A matrix of rows × columns in memory, by rows or, if `turned`, by columns.
Raw matrix(Type type, int64_t rows, int64_t columns, bool turned, int (*element)(int64_t, int64_t)) {
  Raw raw;
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int value = turned ? element(i % rows, i / rows) : element(i / columns, i % columns);
    raw.push_back(isFloat(type) ? rawOfReal(type, value) : rawOfInteger(type, value));
  }
  return raw;
}

// Each epilogue with each order of the operands in memory, and of each type twice; the other choices vary. Sums are
// exact. In a softmax the differences are exact, too. Its powers have errors of 2.3 units in the last place, and their
// sum n roundings more. Its quotient rounds once, and its product with 64 is exact.
TEST_P(Epilogues, OfFactorsByRowsAndByColumns) {
  struct Kind {
    Type type;
    Precision precision;
  };
  const Kind kinds[] = {{f16, Precision::ieee},  {f32, Precision::ieee},   {bf16, Precision::ieee},
                        {f32, Precision::tf32},  {i8, Precision::ieee},    {f8e5m2, Precision::ieee},
                        {f64, Precision::ieee},  {f32, Precision::tf32x3}, {f8e4m3, Precision::ieee},
                        {f32, Precision::bf16x3}};
  const int64_t shapes[][4] = {{16, 16, 32, 16}, {32, 64, 80, 32}, {17, 33, 21, 8}, {1, 32, 48, 16},
                               {64, 8, 37, 16},  {16, 1, 16, 16},  {16, 32, 0, 16}}; // M, N, K, terms of a round
  for (int number = 0; number < 2 * epilogues * 4; ++number) {
    const bool ta = number & 1, tb = number & 2;
    const auto epilogue = static_cast<Epilogue>(number / 4 % epilogues);
    const auto [type, precision] = kinds[(number + number / 10) % std::size(kinds)];
    const auto &[m, n, k, round] = shapes[(number + number / 7) % std::size(shapes)];
    const Type sums = type == i8 ? i32 : type == f64 ? f64 : f32;
    const int64_t further = std::max(m, n);
    const Tensor a = tensor(type, ta ? Shape{k, m} : Shape{m, k}, matrix(type, m, k, ta, leftAt)),
                 b = tensor(type, tb ? Shape{n, k} : Shape{k, n}, matrix(type, k, n, tb, rightAt)),
                 z = tensor(type, {further, n}, matrix(type, further, n, false, furtherAt));
    const Shape shape = epilogue == Epilogue::turned ? Shape{n, m} : Shape{m, n};
    const Tensor c(device, sums, shape);
    const std::string config =
        fmt::format("m={},n={},k={},ta={:d},tb={:d},epilogue={},precision={},warps={},stages={}", m, n, round, ta, tb,
                    static_cast<int>(epilogue), precisionNames[static_cast<size_t>(precision)], 1 << number / 3 % 4,
                    1 + number % 5);
    launch(multiplyThenKernel, {a.ref(), b.ref(), z.ref(), c.ref()}, config);
    const Raw got = read(c);
    const Problem problem{m, n, k, epilogue};
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j) {
        const uint64_t word = got[i * shape[1] + j];
        const double want = problem.want(i, j);
        const double value = isFloat(sums) ? realOf(sums, word) : static_cast<double>(integerOf(sums, word));
        double bound = epilogue == Epilogue::softmax ? want * (2 * 4.6 + static_cast<double>(n) + 1) * 0x1p-24 : 0;
        if (epilogue == Epilogue::softmax && !isFloat(sums))
          bound = 1; // truncated
        ASSERT_NEAR(value, want, bound) << nameOf(type) << ", " << config << ", at " << i << ", " << j;
      }
  }
}

// Results larger than a GPU's shared memory (256 KB; 96 to 227 KB) change their layout in rounds.
TEST_P(Epilogues, OfLargeTiles) {
  constexpr int64_t K = 48;
  const int64_t shapes[][2] = {{256, 256}, {192, 256}, {256, 128}}; // M, N
  for (const Epilogue epilogue : {Epilogue::none, Epilogue::turned, Epilogue::matrix}) {
    const auto [m, n] = shapes[static_cast<size_t>(epilogue)];
    const Problem problem{m, n, K, epilogue};
    const Tensor a = tensor(bf16, {m, K}, matrix(bf16, m, K, false, leftAt)),
                 b = tensor(bf16, {K, n}, matrix(bf16, K, n, false, rightAt)),
                 z = tensor(bf16, {m, n}, matrix(bf16, m, n, false, furtherAt));
    const Shape shape = epilogue == Epilogue::turned ? Shape{n, m} : Shape{m, n};
    const Tensor c(device, f32, shape);
    launch(multiplyThenKernel, {a.ref(), b.ref(), z.ref(), c.ref()},
           fmt::format("m={},n={},k=16,epilogue={},warps=8", m, n, static_cast<int>(epilogue)));
    const Raw got = read(c);
    for (int64_t i = 0; i < shape[0]; ++i)
      for (int64_t j = 0; j < shape[1]; ++j)
        ASSERT_EQ(realOf(f32, got[i * shape[1] + j]), problem.want(i, j)) << m << "x" << n << " at " << i << ", " << j;
  }
}

/// An operand joined from two halves, one that the program computes, and their product transposed.
void multiplyJoined(View x, View y, View out) {
  Tile halves = join(load(x, {0, 0}, {32, 16}), load(x, {0, 16}, {32, 16}));                 // (32, 16, 2)
  Tile left = reshape(halves, {32, 32});                                                     // interleaved
  const auto [even, odd] = split(reshape(load(y, {0, 0}, {32, 64}), {32, 32, 2}));           // (32, 32)
  Tile made = cast((unsqueeze(iota(32), 1) + unsqueeze(iota(32) * 3, 0)) % 5 - 2, x.type()); // (32, 32)
  store(out, {0, 0}, dot(left, even, dot(left, made)));
  store(out, {32, 0}, transpose(dot(transpose(odd), transpose(left))));
}
const Kernel multiplyJoinedKernel = kernel("multiply_joined", multiplyJoined, {"x", "y", "out"});

// Products of results of join and split, which were never in memory.
TEST_P(Epilogues, FactorsMayBeJoinedSplitAndMade) {
  for (const Type type : {bf16, f32}) {
    std::vector<int> x(32 * 32), y(32 * 64);
    Raw left, right;
    for (size_t i = 0; i < x.size(); ++i)
      left.push_back(rawOfReal(type, x[i] = static_cast<int>(i * 7 % 9) - 4));
    for (size_t i = 0; i < y.size(); ++i)
      right.push_back(rawOfReal(type, y[i] = static_cast<int>(i * 5 % 7) - 3));
    const Tensor a = tensor(type, {32, 32}, left), b = tensor(type, {32, 64}, right), out(device, f32, {64, 32});
    launch(multiplyJoinedKernel, {a.ref(), b.ref(), out.ref()});
    const Raw got = read(out);
    for (int i = 0; i < 32; ++i)
      for (int j = 0; j < 32; ++j) {
        int first = 0, second = 0;
        for (int k = 0; k < 32; ++k) {
          const int l = x[i * 32 + k % 2 * 16 + k / 2];
          first += l * (y[k * 64 + 2 * j] + (k + 3 * j) % 5 - 2);
          second += l * y[k * 64 + 2 * j + 1];
        }
        ASSERT_EQ(realOf(f32, got[i * 32 + j]), first) << nameOf(type) << " at " << i << ", " << j;
        ASSERT_EQ(realOf(f32, got[(32 + i) * 32 + j]), second) << nameOf(type) << " at " << i << ", " << j;
      }
  }
}

KILN_ON_PROCESSORS(Epilogues);

} // namespace
