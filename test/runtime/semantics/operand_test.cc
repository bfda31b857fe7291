// Operands of products: either operand, transposed or not, read from views of every rank, directly or after arithmetic.

#include "test/runtime/semantics/semantics.h"

#include <fmt/format.h>

#include <functional>

namespace {

using namespace kiln;
using namespace kiln::test;

constexpr int64_t TM = 24, TN = 40, TK = 20; // the tiles
constexpr int64_t M = 19, N = 33, K = 17;    // the matrices, which end before the tiles do
constexpr int64_t batches = 2, batch = 1;    // of each dimension in front of a matrix or between its rows and columns

struct OperandConfig {
  bool between = false;  // the further dimensions lie between the last two
  bool computed = false; // factors are computed from what is loaded
};
const std::vector<Field> operandFields = {field("between", &OperandConfig::between),
                                          field("computed", &OperandConfig::computed)};

/// A matrix of the view, which may have further dimensions.
Tile factor(View view, int64_t rows, int64_t columns, OperandConfig cfg) {
  const int further = view.rank() - 2;
  Offsets offsets(further, full(i64, {}, batch));
  Shape shape(further, 1);
  offsets.insert(cfg.between ? offsets.begin() : offsets.end(), full(i64, {}, 0));
  shape.insert(cfg.between ? shape.begin() : shape.end(), rows);
  offsets.push_back(full(i64, {}, 0));
  shape.push_back(columns);
  Tile tile = reshape(load(view, offsets, shape), {rows, columns});
  return cfg.computed ? tile + tile : tile;
}

/// The product in each of its four forms, in separate rows of c. At and Bt hold A and B transposed.
void forms(View a, View at, View b, View bt, View c, OperandConfig cfg) {
  for (int form = 0; form < 4; ++form) {
    Tile left = form & 1 ? transpose(factor(at, TK, TM, cfg)) : factor(a, TM, TK, cfg);  // (TM, TK)
    Tile right = form & 2 ? transpose(factor(bt, TN, TK, cfg)) : factor(b, TK, TN, cfg); // (TK, TN)
    store(c, {form * TM, 0}, dot(left, right));
  }
}
const Kernel formsKernel = kernel("forms", forms, operandFields);

/// From views whose leading dimensions are dropped by the shape alone, added to a loop-carried accumulator.
void batched(View a, View at, View b, View bt, View c) {
  const Offsets front(a.rank() - 2, full(i64, {}, batch));
  auto part = [&](View view, Tile row, Tile column, Shape shape) {
    Offsets offsets = front;
    offsets.push_back(row);
    offsets.push_back(column);
    return load(view, offsets, shape);
  };
  for (int form = 0; form < 4; ++form) {
    Tile sum = zeros(c.type(), {TM, TN}), zero = full(i64, {}, 0);
    for (Tile k : range(0, K, 8)) {
      Tile left = form & 1 ? transpose(part(at, k, zero, {8, TM})) : part(a, zero, k, {TM, 8});
      Tile right = form & 2 ? transpose(part(bt, zero, k, {TN, 8})) : part(b, k, zero, {8, TN});
      sum = dot(left, right, sum);
    }
    store(c, {form * TM, 0}, sum);
  }
}
const Kernel batchedKernel = kernel("batched", batched);

int64_t leftAt(int64_t m, int64_t k) { return (m * 3 + k * 5) % 7 - 3; }
int64_t rightAt(int64_t k, int64_t n) { return (k * 4 + n * 2) % 9 - 4; }

class Operands : public Semantics {
protected:
  /// A view of `rank` whose matrix at `batch` holds element(row, column); all other matrices hold 7.
  Tensor matrices(Type type, int rank, bool between, int64_t rows, int64_t columns,
                  const std::function<int64_t(int64_t, int64_t)> &element) {
    int64_t others = 1;
    Shape shape(rank - 2, batches);
    for (int axis = 2; axis < rank; ++axis)
      others *= batches;
    shape.insert(between ? shape.begin() : shape.end(), rows);
    shape.push_back(columns);
    Raw raw;
    for (int64_t i = 0; i < others * rows * columns; ++i) {
      const int64_t column = i % columns, line = i / columns;
      const int64_t row = between ? line / others : line % rows, which = between ? line % others : line / rows;
      const int64_t value = which == others - 1 ? element(row, column) : 7; // `batch` is the last of each dimension
      raw.push_back(type == i8 ? rawOfInteger(i8, value) : rawOfReal(type, static_cast<double>(value)));
    }
    return tensor(type, shape, raw);
  }

  void expectProduct(const Kernel &kernel, Type type, int rank, bool between, int64_t scale,
                     const std::string &config) {
    const auto turned = [](int64_t (*element)(int64_t, int64_t)) {
      return [element](int64_t row, int64_t column) { return element(column, row); };
    };
    const Tensor a = matrices(type, rank, between, M, K, leftAt);
    const Tensor at = matrices(type, rank, between, K, M, turned(leftAt));
    const Tensor b = matrices(type, rank, between, K, N, rightAt);
    const Tensor bt = matrices(type, rank, between, N, K, turned(rightAt));
    const Type sums = type == i8 ? i32 : type == f64 ? f64 : f32;
    const Tensor c(device, sums, {4 * TM, TN});
    launch(kernel, {a.ref(), at.ref(), b.ref(), bt.ref(), c.ref()}, config);
    const Raw got = read(c);
    for (int form = 0; form < 4; ++form)
      for (int64_t m = 0; m < TM; ++m)
        for (int64_t n = 0; n < TN; ++n) {
          int64_t want = 0;
          for (int64_t k = 0; m < M && n < N && k < K; ++k)
            want += scale * leftAt(m, k) * rightAt(k, n);
          const uint64_t raw = got[(form * TM + m) * TN + n];
          const int64_t value = sums == i32 ? integerOf(i32, raw) : static_cast<int64_t>(realOf(sums, raw));
          ASSERT_EQ(value, want) << nameOf(type) << ", rank " << rank << ", " << config << ": "
                                 << (form & 1 ? "left turned " : "") << (form & 2 ? "right turned " : "") << "at " << m
                                 << ", " << n;
        }
  }
};

TEST_P(Operands, OfEveryFormGiveOneProduct) {
  for (int rank = 2; rank <= 5; ++rank)
    for (const bool between : {false, true}) {
      if (between && rank != 4)
        continue;
      expectProduct(formsKernel, f32, rank, between, 1, fmt::format("between={:d},computed=0", between));
    }
  for (const Type type : {i8, bf16, f64})
    expectProduct(formsKernel, type, 3, false, 1, "between=0,computed=0");
  expectProduct(formsKernel, f32, 3, false, 4, "between=0,computed=1");
}

TEST_P(Operands, DropTheLeadingDimensionsOfTheirViews) {
  for (const int rank : {3, 5})
    expectProduct(batchedKernel, f32, rank, false, 1, "");
}

KILN_ON_PROCESSORS(Operands);

} // namespace
