// Each operation, followed by its derivative.

#include "test/models/reference/tape.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <ranges>
#include <stdexcept>

namespace kiln::test {

Value Tape::value(int64_t rows, int64_t columns, std::vector<double> numbers) {
  if (static_cast<int64_t>(numbers.size()) != rows * columns)
    throw std::invalid_argument("a value of another size");
  nodes.push_back({this, rows, columns, std::move(numbers), std::vector<double>(rows * columns), {}});
  return Value(&nodes.back());
}

void Tape::play(Value result) {
  for (Node &node : nodes)
    std::fill(node.gradient.begin(), node.gradient.end(), 0.0);
  std::fill(result->gradient.begin(), result->gradient.end(), 1.0);
  for (Node &node : std::views::reverse(nodes)) {
    round(node.gradient);
    if (node.backward)
      node.backward();
  }
}

void Tape::round(std::vector<double> &numbers) const {
  for (double &number : numbers)
    number = rounding ? rounding(number) : number;
}

Tape::Rounding stochasticRounding(int significant, int least, uint32_t seed) {
  return [=, engine = std::mt19937(seed)](double x) mutable {
    const int exponent = x == 0 ? least : std::max(std::ilogb(x), least);
    const double unit = std::ldexp(1.0, exponent - significant + 1); // in the last place
    const double place = x / unit, below = std::floor(place);
    const double chance = engine() * 0x1p-32; // uniform_real_distribution takes two logarithms a number
    return (below + (chance < place - below ? 1 : 0)) * unit;
  };
}

double squaredDistance(const std::vector<double> &a, const std::vector<double> &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (a[i] - b.at(i)) * (a[i] - b.at(i));
  return sum;
}

/// A value with the numbers `number(r, c)`; `back(r, c, slope)` adds the contribution of each of them to the operands'
/// gradients.
template <class Number, class Back>
static Value each(Tape *tape, int64_t rows, int64_t columns, Number number, Back back) {
  const Value y = tape->make(rows, columns);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      y->at(r, c) = number(r, c);
  tape->round(y->numbers);
  y->backward = [=] {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        back(r, c, y->slope(r, c));
  };
  return y;
}

static void expect(bool right, const char *what) {
  if (!right)
    throw std::invalid_argument(what);
}

Value matmul(Value a, Value b) {
  expect(a.columns() == b.rows(), "a product of other sizes");
  const int64_t inner = a.columns();
  return each(
      a->tape, a.rows(), b.columns(),
      [=](int64_t r, int64_t c) {
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += a->at(r, k) * b->at(k, c);
        return sum;
      },
      [=](int64_t r, int64_t c, double slope) {
        for (int64_t k = 0; k < inner; ++k) {
          a->slope(r, k) += slope * b->at(k, c);
          b->slope(k, c) += slope * a->at(r, k);
        }
      });
}

Value transposed(Value a) {
  return each(
      a->tape, a.columns(), a.rows(), [=](int64_t r, int64_t c) { return a->at(c, r); },
      [=](int64_t r, int64_t c, double slope) { a->slope(c, r) += slope; });
}

Value operator+(Value a, Value b) {
  expect(a.columns() == b.columns() && (b.rows() == a.rows() || b.rows() == 1), "a sum of other sizes");
  const int64_t step = b.rows() == 1 ? 0 : 1;
  return each(
      a->tape, a.rows(), a.columns(), [=](int64_t r, int64_t c) { return a->at(r, c) + b->at(r * step, c); },
      [=](int64_t r, int64_t c, double slope) {
        a->slope(r, c) += slope;
        b->slope(r * step, c) += slope;
      });
}

Value operator*(Value a, Value b) {
  expect(a.columns() == b.columns() && (b.rows() == a.rows() || b.rows() == 1), "a product of other sizes");
  const int64_t step = b.rows() == 1 ? 0 : 1;
  return each(
      a->tape, a.rows(), a.columns(), [=](int64_t r, int64_t c) { return a->at(r, c) * b->at(r * step, c); },
      [=](int64_t r, int64_t c, double slope) {
        a->slope(r, c) += slope * b->at(r * step, c);
        b->slope(r * step, c) += slope * a->at(r, c);
      });
}

Value operator*(Value a, double factor) {
  return each(
      a->tape, a.rows(), a.columns(), [=](int64_t r, int64_t c) { return a->at(r, c) * factor; },
      [=](int64_t r, int64_t c, double slope) { a->slope(r, c) += slope * factor; });
}

Value rowsOf(Value a, int64_t begin, int64_t count) {
  return each(
      a->tape, count, a.columns(), [=](int64_t r, int64_t c) { return a->at(begin + r, c); },
      [=](int64_t r, int64_t c, double slope) { a->slope(begin + r, c) += slope; });
}

Value columnsOf(Value a, int64_t begin, int64_t count) { return transposed(rowsOf(transposed(a), begin, count)); }

Value stacked(const std::vector<Value> &parts) {
  int64_t rows = 0;
  std::vector<std::pair<Value, int64_t>> places; // by row: the part, and the row in it
  for (const Value &part : parts) {
    expect(part.columns() == parts[0].columns(), "parts of other widths");
    for (int64_t r = 0; r < part.rows(); ++r)
      places.emplace_back(part, r);
    rows += part.rows();
  }
  return each(
      parts[0]->tape, rows, parts[0].columns(),
      [=](int64_t r, int64_t c) { return places[r].first->at(places[r].second, c); },
      [=](int64_t r, int64_t c, double slope) { places[r].first->slope(places[r].second, c) += slope; });
}

Value joined(const std::vector<Value> &parts) {
  std::vector<Value> turned;
  for (const Value &part : parts)
    turned.push_back(transposed(part));
  return transposed(stacked(turned));
}

Value gathered(Value table, const std::vector<int32_t> &index) {
  return each(
      table->tape, static_cast<int64_t>(index.size()), table.columns(),
      [=](int64_t r, int64_t c) { return index[r] < 0 ? 0.0 : table->at(index[r], c); },
      [=](int64_t r, int64_t c, double slope) {
        if (index[r] >= 0)
          table->slope(index[r], c) += slope;
      });
}

Value normalised(Value x, const NormOptions &o) {
  const Value y = x->tape->make(x.rows(), x.columns());
  const auto n = static_cast<double>(x.columns());
  std::vector<double> scales, roots; // r and √v of each row
  for (int64_t r = 0; r < x.rows(); ++r) {
    double mean = 0, squares = 0;
    for (int64_t c = 0; c < x.columns(); ++c)
      mean += x->at(r, c) / n;
    for (int64_t c = 0; c < x.columns(); ++c)
      squares += (x->at(r, c) - mean) * (x->at(r, c) - mean);
    const double v = squares / (n - o.ddof);
    roots.push_back(o.outside ? std::sqrt(v) : std::sqrt(v + o.epsilon));
    scales.push_back(roots.back() + (o.outside ? o.epsilon : 0) > 0 ? 1 / (roots.back() + (o.outside ? o.epsilon : 0))
                                                                    : 0);
    for (int64_t c = 0; c < x.columns(); ++c)
      y->at(r, c) = (x->at(r, c) - mean) * scales.back();
  }
  x->tape->round(y->numbers);
  y->backward = [=] {
    for (int64_t r = 0; r < x.rows(); ++r) {
      double mean = 0, along = 0; // of the slopes, and of slopes times y
      for (int64_t c = 0; c < x.columns(); ++c) {
        mean += y->slope(r, c) / n;
        along += y->slope(r, c) * y->at(r, c);
      }
      // d r / d x = −r² · (x − mean) / (root · (n − ddof)), and x − mean = y / r.
      const double turn = roots[r] > 0 ? along / (roots[r] * (n - o.ddof)) : 0;
      for (int64_t c = 0; c < x.columns(); ++c)
        x->slope(r, c) += scales[r] * (y->slope(r, c) - mean) - turn * y->at(r, c);
    }
  };
  return y;
}

Value softmax(Value x, const std::vector<bool> &mask) {
  const Value y = x->tape->make(x.rows(), x.columns());
  const auto sees = [=](int64_t r, int64_t c) { return mask.empty() || mask[r * x.columns() + c]; };
  for (int64_t r = 0; r < x.rows(); ++r) {
    double top = -INFINITY, sum = 0;
    for (int64_t c = 0; c < x.columns(); ++c)
      top = sees(r, c) ? std::max(top, x->at(r, c)) : top;
    for (int64_t c = 0; c < x.columns(); ++c)
      sum += y->at(r, c) = sees(r, c) ? std::exp(x->at(r, c) - top) : 0;
    for (int64_t c = 0; c < x.columns() && sum > 0; ++c)
      y->at(r, c) /= sum;
  }
  x->tape->round(y->numbers);
  y->backward = [=] {
    for (int64_t r = 0; r < x.rows(); ++r) {
      double along = 0;
      for (int64_t c = 0; c < x.columns(); ++c)
        along += y->slope(r, c) * y->at(r, c);
      for (int64_t c = 0; c < x.columns(); ++c)
        x->slope(r, c) += y->at(r, c) * (y->slope(r, c) - along);
    }
  };
  return y;
}

Value gelu(Value x) {
  const double a = std::sqrt(2 / M_PI), b = 0.044715;
  return each(
      x->tape, x.rows(), x.columns(),
      [=](int64_t r, int64_t c) {
        const double v = x->at(r, c);
        return 0.5 * v * (1 + std::tanh(a * (v + b * v * v * v)));
      },
      [=](int64_t r, int64_t c, double slope) {
        const double v = x->at(r, c), t = std::tanh(a * (v + b * v * v * v));
        x->slope(r, c) += slope * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * a * (1 + 3 * b * v * v));
      });
}

Value geluErf(Value x) {
  const auto below = [](double v) { return 0.5 * std::erfc(-v * M_SQRT1_2); };
  return each(
      x->tape, x.rows(), x.columns(), [=](int64_t r, int64_t c) { return x->at(r, c) * below(x->at(r, c)); },
      [=](int64_t r, int64_t c, double slope) {
        const double v = x->at(r, c);
        x->slope(r, c) += slope * (below(v) + v * std::exp(-v * v / 2) / std::sqrt(2 * M_PI));
      });
}

Value silu(Value x) {
  const auto logistic = [](double v) { return 1 / (1 + std::exp(-v)); };
  return each(
      x->tape, x.rows(), x.columns(), [=](int64_t r, int64_t c) { return x->at(r, c) * logistic(x->at(r, c)); },
      [=](int64_t r, int64_t c, double slope) {
        const double v = x->at(r, c), s = logistic(v);
        x->slope(r, c) += slope * (s + v * s * (1 - s));
      });
}

Value relu(Value x) {
  return each(
      x->tape, x.rows(), x.columns(), [=](int64_t r, int64_t c) { return std::max(x->at(r, c), 0.0); },
      [=](int64_t r, int64_t c, double slope) { x->slope(r, c) += x->at(r, c) > 0 ? slope : 0; });
}

Value crossEntropy(Value logits, const std::vector<int32_t> &targets, double smoothing) {
  expect(static_cast<int64_t>(targets.size()) == logits.rows(), "other targets than rows");
  const Value p = softmax(logits), loss = logits->tape->make(1, 1);
  const auto present = static_cast<double>(std::count_if(targets.begin(), targets.end(), [](int t) { return t >= 0; }));
  const int64_t V = logits.columns();
  const auto share = [=](int64_t r, int64_t c) {
    return (smoothing / static_cast<double>(V) + (c == targets[r] ? 1 - smoothing : 0)) / present;
  };
  for (int64_t r = 0; r < logits.rows(); ++r)
    for (int64_t c = 0; c < V && targets[r] >= 0; ++c)
      loss->at(0, 0) -= share(r, c) > 0 ? share(r, c) * std::log(p->at(r, c)) : 0;
  loss->backward = [=] {
    for (int64_t r = 0; r < logits.rows(); ++r)
      for (int64_t c = 0; c < V && targets[r] >= 0; ++c)
        p->slope(r, c) -= loss->slope(0, 0) * share(r, c) / p->at(r, c);
  };
  return loss;
}

} // namespace kiln::test
