// The tape: every operation's derivative compared with central differences.

#include "test/models/reference/tape.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace kiln::test;

namespace {

std::vector<double> drawn(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> numbers(count);
  for (double &number : numbers)
    number = normal(engine);
  return numbers;
}

using Numbers = std::vector<double>;
using Function = std::function<Value(Tape &, Value a, Value b)>;

/// A weighted sum of all results of a function.
Value weighed(Tape &tape, Value y) {
  const Value weighted = y * tape.value(y.rows(), y.columns(), drawn(y.rows() * y.columns(), 9));
  return matmul(matmul(tape.value(1, y.rows(), Numbers(y.rows(), 1)), weighted),
                tape.value(y.columns(), 1, Numbers(y.columns(), 1)));
}

/// The derivative of a function of a (4, 3) and a second operand equals central differences. Their error is h² of the
/// third derivative, and 10⁻¹⁶ / h of rounding; with h = 10⁻⁵ both are below 10⁻⁹.
void expectDerivative(int64_t rows, int64_t columns, const Function &function) {
  const Numbers first = drawn(12, 1), second = drawn(rows * columns, 2);
  const auto result = [&](const Numbers &a, const Numbers &b) {
    Tape tape;
    return weighed(tape, function(tape, tape.value(4, 3, a), tape.value(rows, columns, b))).numbers()[0];
  };
  Tape tape;
  const Value a = tape.value(4, 3, first), b = tape.value(rows, columns, second);
  tape.play(weighed(tape, function(tape, a, b)));
  constexpr double h = 1e-5;
  for (const bool isFirst : {true, false})
    for (size_t i = 0; i < (isFirst ? first : second).size(); ++i) {
      Numbers up[2] = {first, second}, down[2] = {first, second};
      up[!isFirst][i] += h;
      down[!isFirst][i] -= h;
      const double want = (result(up[0], up[1]) - result(down[0], down[1])) / (2 * h);
      EXPECT_NEAR((isFirst ? a : b).gradient()[i], want, 1e-7) << (isFirst ? "a" : "b") << " " << i;
    }
}

TEST(Tape, Products) {
  expectDerivative(3, 5, [](Tape &, Value a, Value b) { return matmul(a, b); });
}

TEST(Tape, SumsAndProductsOfElements) {
  for (const int64_t rows : {4, 1}) {
    expectDerivative(rows, 3, [](Tape &, Value a, Value b) { return a + b; });
    expectDerivative(rows, 3, [](Tape &, Value a, Value b) { return a * b * 3.0; });
  }
}

TEST(Tape, Parts) {
  expectDerivative(2, 3, [](Tape &, Value a, Value b) { return stacked({rowsOf(a, 1, 2), b, b}); });
  expectDerivative(4, 2, [](Tape &, Value a, Value b) { return joined({columnsOf(a, 1, 2), b}); });
  expectDerivative(1, 3, [](Tape &, Value a, Value b) { return gathered(a, {2, -1, 0, 2}) + b; });
}

TEST(Tape, Norms) {
  for (const int ddof : {0, 1})
    for (const bool outside : {false, true})
      expectDerivative(1, 3, [=](Tape &, Value a, Value b) {
        return normalised(a, {.ddof = ddof, .epsilon = 0.1, .outside = outside}) * b;
      });
}

// With a mask, too; a row that sees nothing is zeros and has no gradient.
TEST(Tape, Softmax) {
  expectDerivative(1, 3, [](Tape &, Value a, Value b) { return softmax(a) * b; });
  const std::vector<bool> mask = {true, false, true, false, false, false, true, true, true, false, true, false};
  expectDerivative(1, 3, [&](Tape &, Value a, Value b) { return softmax(a, mask) * b; });
  Tape tape;
  EXPECT_EQ(softmax(tape.value(1, 2, {1, 2}), {false, false}).numbers(), Numbers({0, 0}));
}

TEST(Tape, Activations) {
  expectDerivative(1, 3, [](Tape &, Value a, Value b) { return gelu(a) + relu(a * 2.0) * b; });
  expectDerivative(1, 3, [](Tape &, Value a, Value b) { return geluErf(a) + silu(a) * b; });
}

TEST(Tape, CrossEntropy) {
  for (const double smoothing : {0.0, 0.1})
    expectDerivative(1, 3, [=](Tape &, Value a, Value b) { return crossEntropy(a + b, {2, -1, 0, 1}, smoothing); });
}

// Missing targets do not count: the mean is over the present ones.
TEST(Tape, MissingTargetsCountNothing) {
  Tape tape;
  const Value two = tape.value(2, 3, drawn(6, 1));
  EXPECT_DOUBLE_EQ(crossEntropy(two, {1, -1}).numbers()[0], crossEntropy(rowsOf(two, 0, 1), {1}).numbers()[0]);
}

// Stochastic rounding gives one of the two neighbours, and the number itself on average. The mean of 4096 draws is
// within five deviations, half a unit over √4096 each at most. Representable numbers, zero, and the smallest number of
// the type are unchanged.
TEST(Tape, RoundsByChanceToNeighbours) {
  const Tape::Rounding rounding = stochasticRounding(8, -126, 1);
  for (const double x : {1.001, -1.001, 300.3, 0x1.3p-132}) {
    const double place = std::ldexp(1.0, std::max(std::ilogb(x), -126) - 7);
    double sum = 0;
    for (int i = 0; i < 4096; ++i) {
      const double rounded = rounding(x);
      ASSERT_LT(std::abs(rounded - x), place);
      ASSERT_EQ(rounded, std::floor(rounded / place) * place);
      sum += rounded / 4096;
    }
    EXPECT_NEAR(sum, x, 5 * place / 2 / 64) << x;
  }
  for (const double x : {0.0, 1.0, -1.0078125, 0x1p-133})
    EXPECT_EQ(rounding(x), x);
}

} // namespace
