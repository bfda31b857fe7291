// Kernels that users write by host loops, which unroll: many small loads, long dependences, deep selections. Whole
// numbers throughout, chosen so that every step is exact.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>

using namespace kiln;
using namespace kiln::test;

namespace {

class Unrolled : public Semantics {
protected:
  /// Whole numbers from `low` to `high`.
  std::vector<int64_t> numbers(int64_t count, int64_t low, int64_t high) {
    std::vector<int64_t> result(count);
    for (int64_t &number : result)
      number = low + static_cast<int64_t>(random() % (high - low + 1));
    return result;
  }
  Tensor upload(Type type, const Shape &extents, const std::vector<int64_t> &values) {
    Raw raw;
    for (const int64_t value : values)
      raw.push_back(wordOf(type, value));
    return tensor(type, extents, raw);
  }
  std::vector<int64_t> download(const Tensor &from) const {
    std::vector<int64_t> values;
    for (const uint64_t raw : read(from))
      values.push_back(isFloat(from.type()) ? static_cast<int64_t>(toDouble(from.type(), raw))
                                            : integerOf(from.type(), raw));
    return values;
  }
  std::mt19937 random{7};
};

/// The L of each A = L · Lᵀ of 8×8 (Cholesky), one matrix a program. a, l (N, 8, 8).
void cholesky(View a, View l) {
  constexpr int n = 8;
  Tile m = program_id(0), x[n][n];
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j)
      x[i][j] = load(a, {m, i, j}, {});
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k < j; ++k)
      for (int i = j; i < n; ++i)
        x[i][j] = x[i][j] - x[i][k] * x[j][k];
    Tile root = sqrt(x[j][j]);
    for (int i = j; i < n; ++i)
      x[i][j] = i == j ? root : x[i][j] / root;
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j)
      store(l, {m, i, j}, x[i][j]);
}
const Kernel choleskyKernel = kernel("cholesky", cholesky);

// Diagonals that are powers of two make every root and quotient exact.
TEST_P(Unrolled, CholeskyGivesTheFactor) {
  constexpr int64_t n = 8, count = 3;
  std::vector<int64_t> factor = numbers(count * n * n, -4, 4), product(count * n * n);
  for (int64_t at = 0; at < count * n * n; ++at) {
    const int64_t i = at / n % n, j = at % n;
    factor[at] = j > i ? 0 : j == i ? int64_t(1) << (i % 3) : factor[at];
  }
  for (int64_t at = 0; at < count * n * n; ++at)
    for (int64_t k = 0; k < n; ++k)
      product[at] += factor[at / n * n + k] * factor[(at / (n * n) * n + at % n) * n + k];
  const Tensor a = upload(f32, {count, n, n}, product), l(device, f32, {count, n, n});
  launch(choleskyKernel, {a.ref(), l.ref()}, "", count);
  EXPECT_EQ(download(l), factor);
}

/// y[h, w] = Σ x[h + i − 1, w + j − 1] · k[i, j], with zeros around x.
void convolve(View x, View k, View y) {
  Tile h = program_id(0) * 4, sum = zeros(f32, {4, 24});
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      sum += load(x, {h + (i - 1), j - 1}, {4, 24}) * load(k, {i, j}, {});
  store(y, {h, 0}, sum);
}
const Kernel convolveKernel = kernel("convolve", convolve);

TEST_P(Unrolled, ConvolutionReadsZerosRoundTheImage) {
  const int64_t height = 10, width = 21;
  const std::vector<int64_t> x = numbers(height * width, -9, 9), k = numbers(9, -3, 3);
  std::vector<int64_t> want(height * width);
  for (int64_t h = 0; h < height; ++h)
    for (int64_t w = 0; w < width; ++w)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 3; ++j)
          if (const int64_t r = h + i - 1, c = w + j - 1; r >= 0 && r < height && c >= 0 && c < width)
            want[h * width + w] += x[r * width + c] * k[i * 3 + j];
  const Tensor y(device, f32, {height, width});
  launch(convolveKernel, {upload(f32, {height, width}, x).ref(), upload(f32, {3, 3}, k).ref(), y.ref()}, "", 3);
  EXPECT_EQ(download(y), want);
}

/// Each row of 32 sorted: pairs at distance j along the third dimension, with groups of k in alternating order.
void bitonicSort(View x, View y) {
  constexpr int n = 32, rows = 3;
  Tile t = load(x, {0, 0}, {rows, n});
  for (int k = 2; k <= n; k *= 2)
    for (int j = k / 2; j > 0; j /= 2) {
      const Shape pairs{rows, n / (2 * j), 2, j};
      Tile p = reshape(t, pairs), side = reshape(iota(2), {1, 1, 2, 1});
      Tile low = broadcast(unsqueeze(reduce_min(p, 2), 2), pairs),
           high = broadcast(unsqueeze(reduce_max(p, 2), 2), pairs);
      Tile rises = ((reshape(iota(n / (2 * j)), {1, n / (2 * j), 1, 1}) * (2 * j)) & k) == 0;
      t = reshape(where(rises == (side == 0), low, high), {rows, n});
    }
  store(y, {0, 0}, t);
}
const Kernel bitonicSortKernel = kernel("bitonic_sort", bitonicSort);

TEST_P(Unrolled, BitonicNetworkSortsRows) {
  for (const Type type : {i32, f32}) {
    std::vector<int64_t> x = numbers(3 * 32, -50, 50);
    const Tensor from = upload(type, {3, 32}, x), to(device, type, {3, 32});
    launch(bitonicSortKernel, {from.ref(), to.ref()});
    for (auto row = x.begin(); row != x.end(); row += 32)
      std::sort(row, row + 32);
    EXPECT_EQ(download(to), x) << nameOf(type);
  }
}

/// y[n] = Σ x[n − i] · w[i] over 16 taps.
void filter(View x, View w, View y) {
  Tile n = program_id(0) * 64, sum = zeros(i32, {64});
  for (int i = 0; i < 16; ++i)
    sum += load(x, {n - i}, {64}) * load(w, {i}, {});
  store(y, {n}, sum);
}
const Kernel filterKernel = kernel("filter", filter);

TEST_P(Unrolled, FilterOfSixteenTaps) {
  const int64_t size = 150;
  const std::vector<int64_t> x = numbers(size, -99, 99), w = numbers(16, -9, 9);
  std::vector<int64_t> want(size);
  for (int64_t n = 0; n < size; ++n)
    for (int64_t i = 0; i <= std::min<int64_t>(n, 15); ++i)
      want[n] += x[n - i] * w[i];
  const Tensor y(device, i32, {size});
  launch(filterKernel, {upload(i32, {size}, x).ref(), upload(i32, {16}, w).ref(), y.ref()}, "", 3);
  EXPECT_EQ(download(y), want);
}

KILN_ON_PROCESSORS(Unrolled);

} // namespace
