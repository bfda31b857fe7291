// A tape in double precision (reverse-mode differentiation): operations on its values are recorded, and play() computes
// the gradient by every value. A model on it is its forward pass alone, so no derivative that a test compares kernels
// with is written by hand.
//
//     Tape tape;
//     Value w = tape.value(2, 3, numbers), x = tape.value(4, 2, more);
//     Value loss = crossEntropy(matmul(x, w), {0, 2, 1, 1});
//     tape.play(loss);                                          // w.gradient() is that of the loss by w
//
// Every value is a matrix (rows, columns); a number is (1, 1). An operand of one row is added to or multiplied with
// every row of the other operand.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace kiln::test {

class Tape;

/// A node of the tape: a value, its gradient and its backward function.
struct Node {
  Tape *tape;
  int64_t rows, columns;
  std::vector<double> numbers, gradient;
  std::function<void()> backward; // adds to the gradients of what it was made of
  double &at(int64_t r, int64_t c) { return numbers[r * columns + c]; }
  double &slope(int64_t r, int64_t c) { return gradient[r * columns + c]; }
};

/// A value on a tape, which must outlive it.
class Value {
public:
  explicit Value(Node *node) : node(node) {}
  int64_t rows() const { return node->rows; }
  int64_t columns() const { return node->columns; }
  const std::vector<double> &numbers() const { return node->numbers; }
  const std::vector<double> &gradient() const { return node->gradient; }
  Node *operator->() const { return node; }

private:
  Node *node;
};

class Tape {
public:
  Value value(int64_t rows, int64_t columns, std::vector<double> numbers);
  /// Zeros, to be filled by the next recorded operation.
  Value make(int64_t rows, int64_t columns) { return value(rows, columns, std::vector<double>(rows * columns)); }
  /// The gradients of `result`, a number, by all values before it.
  void play(Value result);

  /// From now on every computed number, and every complete gradient, is rounded by this function: the result of a
  /// machine that stores them all in a narrow type.
  using Rounding = std::function<double(double)>;
  void setRounding(Rounding given) { rounding = std::move(given); }
  void round(std::vector<double> &numbers) const;

private:
  std::deque<Node> nodes; // in the order of their making
  Rounding rounding;      // none: nothing is rounded
};

/// Rounds to numbers of `significant` bits and exponents from `least` on (8 and −126: bf16; 11 and −14: f16),
/// stochastically to one of the two neighbours, so that the mean is correct. A representable number is unchanged. The
/// errors have the variance p (1 − p) in units in the last place, where p is the fraction of the way to the upper
/// neighbour. Its average is 1/6, twice the 1/12 of rounding to nearest.
Tape::Rounding stochasticRounding(int significant, int least, uint32_t seed);

/// The sum of (a[i] − b[i])².
double squaredDistance(const std::vector<double> &a, const std::vector<double> &b);

Value matmul(Value a, Value b);
Value transposed(Value a);
Value operator+(Value a, Value b);
Value operator*(Value a, Value b);
Value operator*(Value a, double factor);
/// Rows `begin` … `begin + count`, and columns.
Value rowsOf(Value a, int64_t begin, int64_t count);
Value columnsOf(Value a, int64_t begin, int64_t count);
/// Concatenation of rows, and of columns.
Value stacked(const std::vector<Value> &parts);
Value joined(const std::vector<Value> &parts);
/// Row index[n] of the table as row n; zeros for an index below 0.
Value gathered(Value table, const std::vector<int32_t> &index);

/// How rows are normalised: (x − mean) · r with r = 1 / √(v + ε), or 1 / (√v + ε) with ε outside; v is the sum of
/// squares over n − ddof.
struct NormOptions {
  int ddof = 0;
  double epsilon = 1e-5;
  bool outside = false;
};
Value normalised(Value x, const NormOptions &options = {});
/// exp(x) over its sum in each row, over the columns of the mask (rows · columns); a row without columns is zeros.
Value softmax(Value x, const std::vector<bool> &mask = {});
/// The tanh form of GELU.
Value gelu(Value x);
/// x times the share of a normal distribution below it.
Value geluErf(Value x);
/// x / (1 + exp(−x)).
Value silu(Value x);
/// 0 below 0, and where x is 0 a derivative of 0.
Value relu(Value x);
/// Mean over the rows whose target is not below 0 of (1 − smoothing) · −log p[target] + smoothing · mean of −log p.
Value crossEntropy(Value logits, const std::vector<int32_t> &targets, double smoothing = 0);

} // namespace kiln::test
