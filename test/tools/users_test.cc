// The kernels that `kiln-bench users` counts instructions of, compared with plain references: the counted kernels are
// right.

#include "test/kernels/harness.h"
#include "tools/kiln-bench/users/users.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace kiln {
namespace {

using namespace bench;

class UsersTest : public KernelTest {
protected:
  void launch(const Kernel &kernel, const std::string &config, const Grid &grid, const std::vector<Arg> &args) {
    run({{{&kernel, kernel.configText(config), grid, args}}, 0});
  }
  Array numbers(Shape extents, Type type, const std::function<double(int64_t)> &of) {
    std::vector<double> values(std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = of(static_cast<int64_t>(i));
    return array(extents, type, values);
  }
};

// Tolerances are sums of roundings, each by u = roundoff of what it rounds, to first order, which n of them leave by n²
// u² at most, a thousandth of it here. A sum of n terms is off by n u Σ|terms|. Of functions that may be approximate
// (Accuracy::fast) dialect/NUMERICS.md says units in the last place, each 2 u of the result at most:
constexpr double u = roundoff, fastExp2 = 8 * u, fastRsqrt = 4.4 * u, fastDivide = 4 * u, fastTanh = 0x1p-11;
double fastExp(double x) { return (8 + 2.6 * std::abs(x)) * u; }
// The multiple of a first-order error bound that covers the terms of second order.
constexpr double second = 1.01;

// --- Rows ------------------------------------------------------------------------------------------------------------

TEST_P(UsersTest, RmsNorm) {
  constexpr int64_t N = 5, C = 96;
  const Array x = uniform({N, C}, type()), gamma = uniform({C}, type()), y = unwritten({N, C}, type());
  launch(rmsNormKernel, "rows=2", programs(3), {x, gamma, y});
  std::vector<Want> want;
  for (int64_t n = 0; n < N; ++n) {
    double squares = 0;
    for (int64_t c = 0; c < C; ++c)
      squares += x[n * C + c] * x[n * C + c];
    for (int64_t c = 0; c < C; ++c) {
      const double v = x[n * C + c] / std::sqrt(squares / C + 1e-6) * gamma[c];
      // The square of a root: C terms, each a product, times the rounded 1 / C, plus the rounded epsilon: C + 4. Half
      // of it, the root itself, and two products.
      want.push_back({v, second * std::abs(v) * ((C + 4) / 2.0 * u + fastRsqrt + 2 * u)});
    }
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, SoftmaxOfRaggedRows) {
  constexpr int64_t N = 3, C = 100;
  const Array x = uniform({N, C}, type(), 4), y = unwritten({N, C}, type());
  launch(userSoftmaxKernel, "", programs(N), {x, y});
  std::vector<Want> want;
  for (int64_t n = 0; n < N; ++n) {
    const double top = *std::max_element(x.values.begin() + n * C, x.values.begin() + (n + 1) * C);
    // Of an exponential, relative: its argument's rounding and its own; of the sum, those of its terms and C more.
    const auto errorOf = [&](double d) { return std::abs(d) * u + fastExp(d); };
    double total = 0, totalError = 0;
    for (int64_t c = 0; c < C; ++c) {
      const double e = std::exp(x[n * C + c] - top);
      total += e;
      totalError += e * (errorOf(x[n * C + c] - top) + C * u);
    }
    for (int64_t c = 0; c < C; ++c) {
      const double d = x[n * C + c] - top, v = std::exp(d) / total;
      want.push_back({v, second * v * (errorOf(d) + totalError / total + fastDivide)});
    }
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, GroupNorm) {
  constexpr int64_t N = 2, C = 16, S = 32, G = 8;
  const Array x = uniform({N, C, S}, type()), gamma = uniform({C}, type()), beta = uniform({C}, type()),
              y = unwritten({N, C, S}, type());
  launch(groupNormKernel, fmt::format("channels={}", G), programs(C / G, N), {x, gamma, beta, y});
  std::vector<Want> want;
  for (int64_t row = 0; row < N * C; ++row) {
    const int64_t begin = row / G * G * S;
    double sum = 0, size = 0, squares = 0;
    for (int64_t i = begin; i < begin + G * S; ++i)
      sum += x[i], size += std::abs(x[i]);
    for (int64_t i = begin; i < begin + G * S; ++i)
      squares += (x[i] - sum / (G * S)) * (x[i] - sum / (G * S));
    for (int64_t s = 0; s < S; ++s) {
      // The mean is off by n + 2 roundings of the mean size, and what is centred by that and one rounding. Of the
      // variance, which does not change with the mean to first order, relative: n + 4 roundings, and two of centring;
      // half of it, the root, and a product. The last multiply-add rounds its result.
      constexpr double n = G * S;
      const double centred = x[row * S + s] - sum / n, scale = 1 / std::sqrt(squares / n + 1e-5), v = centred * scale;
      const double error = (n + 2) * u * size / n * scale + std::abs(v) * (u + (n + 6) / 2 * u + fastRsqrt + u);
      const double y = v * gamma[row % C] + beta[row % C];
      want.push_back({y, second * (error * std::abs(gamma[row % C]) + std::abs(y) * u)});
    }
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, KlLossAndItsGradient) {
  constexpr int64_t N = 2, C = 144;
  const Array p = uniform({N, C}, type(), 3), q = uniform({N, C}, type(), 3), losses = unwritten({N}, f32),
              gradient = unwritten({N, C}, type());
  launch(klLossKernel, "block=64,warps=2", programs(N), {p, q, losses, gradient, 0.5f});
  std::vector<Want> loss, slope;
  for (int64_t n = 0; n < N; ++n) {
    Want total;
    for (int64_t c = 0; c < C; ++c) {
      const double weight = std::exp(q[n * C + c]), term = weight * (q[n * C + c] - p[n * C + c]);
      // A term: its exponential and the difference; C multiply-adds and the sum of their results.
      total = {total.value + term, total.slack + second * std::abs(term) * (fastExp(q[n * C + c]) + u + C * u)};
      slope.push_back({-0.5 * weight, second * 0.5 * weight * (fastExp(q[n * C + c]) + u)});
    }
    loss.push_back(total);
  }
  expectClose("losses", losses, loss);
  expectClose("gradient", gradient, slope);
}

TEST_P(UsersTest, LargestElements) {
  constexpr int64_t N = 3, C = 100, k = 4;
  const Array x = integers({N, C}, f32, 30), values = unwritten({N, k}, f32), places = integers({N, k}, i32, 1);
  launch(largestKernel, fmt::format("k={}", k), programs(N), {x, values, places});
  std::vector<double> tops, where;
  for (int64_t n = 0; n < N; ++n) {
    std::vector<int64_t> order(C);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return x[n * C + a] > x[n * C + b]; });
    for (int64_t i = 0; i < k; ++i) {
      tops.push_back(x[n * C + order[i]]);
      where.push_back(static_cast<double>(order[i]));
    }
  }
  expectEqual("values", values.read(), tops);
  expectEqual("places", places.read(), where);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
/// Its error, of an argument that is off by `error`: its slope is 1/4 at most, and 1 − sigmoid is the exponential's
/// share of the sum that is divided by.
double sigmoidError(double x, double error = 0) {
  return error / 4 + sigmoid(x) * ((1 - sigmoid(x)) * fastExp(x) + u + fastDivide);
}

// --- Elements and their neighbours -----------------------------------------------------------------------------------

/// The first word of Philox with 10 rounds, as defined in dialect/SEMANTICS.md.
uint32_t philox(uint64_t seed, uint64_t index) {
  uint32_t c[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round, low += 0x9E3779B9, high += 0xBB67AE85) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b),
                              static_cast<uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<uint32_t>(a)};
    std::copy(next, next + 4, c);
  }
  return c[0];
}

TEST_P(UsersTest, DropoutIsReplayed) {
  constexpr int64_t n = 300, seed = 0x123456789;
  const Array x = uniform({n}, type()), y = unwritten({n}, type());
  launch(dropoutKernel, "block=128,warps=2", programs(3), {x, y, seed, 0.25f});
  std::vector<Want> want;
  for (int64_t i = 0; i < n; ++i) {
    const double v = static_cast<double>(philox(seed, i) >> 8) * 0x1p-24 >= 0.25 ? x[i] / 0.75 : 0;
    want.push_back({v, second * std::abs(v) * (fastDivide + 2 * u)}); // 1 - rate, 1 over it, a product
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, Rope) {
  constexpr int64_t B = 1, H = 2, T = 12, D = 32, half = D / 2;
  const Array x = uniform({B, H, T, D}, type()), c = uniform({T, half}, f32), s = uniform({T, half}, f32),
              y = unwritten({B, H, T, D}, type());
  launch(ropeKernel, "bt=8,warps=2", programs(2, H, B), {x, c, s, y});
  std::vector<Want> want;
  for (int64_t i = 0; i < B * H * T * D; ++i) {
    const int64_t t = i / D % T, d = i % D, turn = t * half + d % half;
    const double v = d < half ? x[i] * c[turn] - x[i + half] * s[turn] : x[i] * c[turn] + x[i - half] * s[turn];
    const double other = d < half ? x[i + half] * s[turn] : x[i - half] * s[turn]; // two products and a sum
    want.push_back({v, second * (std::abs(x[i] * c[turn]) + std::abs(other)) * 2 * u});
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, Stencil) {
  constexpr int64_t M = 11, N = 37;
  const Array x = integers({M, N}, f32, 50), y = unwritten({M, N}, f32);
  launch(stencilKernel, "bm=4,bn=32,warps=2", programs(3, 2), {x, y, 0.5f, 0.25f});
  std::vector<double> want;
  const auto at = [&](int64_t i, int64_t j) { return i >= 0 && i < M && j >= 0 && j < N ? x[i * N + j] : 0; };
  for (int64_t i = 0; i < M; ++i)
    for (int64_t j = 0; j < N; ++j)
      want.push_back(at(i, j) * 0.5 + 0.25 * (at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1)));
  expectEqual("y", y.read(), want);
}

TEST_P(UsersTest, ConvolutionAlongASequence) {
  constexpr int64_t B = 2, T = 19, D = 48;
  const Array x = uniform({B, T, D}, type()), w = uniform({4, D}, type()), bias = uniform({D}, type()),
              y = unwritten({B, T, D}, type());
  launch(convolveKernel, "bt=8,bd=32,warps=2", programs(2, 3, B), {x, w, bias, y});
  std::vector<Want> want;
  for (int64_t i = 0; i < B * T * D; ++i) {
    const int64_t t = i / D % T, d = i % D;
    double acc = bias[d], size = std::abs(acc);
    for (int64_t tap = 0; tap < 4; ++tap) {
      const double term = t + tap >= 3 ? x[i + (tap - 3) * D] * w[tap * D + d] : 0;
      acc += term, size += std::abs(term);
    }
    const double v = acc * sigmoid(acc); // whose slope is 1.1 at most; 4 multiply-adds
    want.push_back({v, second * (1.1 * 4 * u * size + std::abs(v) * (fastExp(acc) + u + fastDivide))});
  }
  expectClose("y", y, want);
}

// --- Products --------------------------------------------------------------------------------------------------------

/// a (M, K) · b (K, N), b beginning at an element.
std::vector<Want> wantedProduct(const Array &a, const Array &b, int64_t M, int64_t N, int64_t K, double error,
                                int64_t at = 0) {
  std::vector<Want> sums(M * N);
  for (int64_t i = 0; i < M * N; ++i)
    for (int64_t k = 0; k < K; ++k) {
      const double term = a[i / N * K + k] * b[at + k * N + i % N];
      sums[i] = {sums[i].value + term, sums[i].slack + std::abs(term) * error};
    }
  return sums;
}

TEST_P(UsersTest, SwiGlu) {
  constexpr int64_t M = 24, N = 40, K = 48;
  const Array x = uniform({M, K}, type()), gate = uniform({K, N}, type()), up = uniform({K, N}, type()),
              y = unwritten({M, N}, type());
  launch(swigluKernel, "bm=16,bn=32,bk=32,warps=2", programs(2, 2), {x, gate, up, y});
  const auto g = wantedProduct(x, gate, M, N, K, productError(K)),
             raised = wantedProduct(x, up, M, N, K, productError(K));
  std::vector<Want> want;
  for (size_t i = 0; i < g.size(); ++i) {
    const double v = g[i].value * sigmoid(g[i].value) * raised[i].value;
    const double silu = g[i].value * sigmoid(g[i].value); // whose slope is 1.1 at most; two products behind the sigmoid
    const double error = std::abs(g[i].value) * sigmoidError(g[i].value) + 1.1 * g[i].slack + 2 * u * std::abs(silu);
    want.push_back({v, second * (error * std::abs(raised[i].value) + raised[i].slack * std::abs(silu))});
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, WeightsOf8Bits) {
  constexpr int64_t M = 24, N = 40, K = 64, BK = 32;
  const Array x = integers({M, K}, type(), 4), w = integers({K, N}, i8, 16),
              scales = numbers({K / BK, N}, f32, [](int64_t i) { return i % 3 ? 0.5 : 2; }),
              y = unwritten({M, N}, type());
  launch(scaledProductKernel, fmt::format("bm=16,bn=32,bk={},warps=2", BK), programs(2, 2), {x, w, scales, y});
  std::vector<Want> want;
  for (int64_t i = 0; i < M * N; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < K; ++k)
      sum += x[i / N * K + k] * w[k * N + i % N] * scales[k / BK * N + i % N];
    want.push_back({sum, 0});
  }
  expectClose("y", y, want);
}

TEST_P(UsersTest, StepOfAnLstm) {
  constexpr int64_t M = 20, X = 32, H = 40;
  const Array x = uniform({M, X}, type()), h = uniform({M, H}, type()), cell = uniform({M, H}, f32),
              wx = uniform({4, X, H}, type()), wh = uniform({4, H, H}, type()), bias = uniform({4, H}, f32),
              hNext = unwritten({M, H}, type()), cellNext = unwritten({M, H}, f32);
  launch(lstmStepKernel, "bm=16,bn=32,bk=32,warps=2", programs(2, 2), {x, h, cell, wx, wh, bias, hNext, cellNext});
  std::vector<Want> gates[4], hs, cells;
  for (int64_t g = 0; g < 4; ++g) {
    gates[g] = wantedProduct(x, wx, M, H, X, productError(X + H), g * X * H);
    const auto more = wantedProduct(h, wh, M, H, H, productError(X + H), g * H * H);
    for (int64_t i = 0; i < M * H; ++i) { // the products' sums, and two additions
      const double offset = bias[g * H + i % H];
      gates[g][i] = {gates[g][i].value + more[i].value + offset,
                     gates[g][i].slack + more[i].slack +
                         2 * u * (std::abs(gates[g][i].value) + std::abs(more[i].value) + std::abs(offset))};
    }
  }
  const auto off = [](const Want &gate) { return sigmoidError(gate.value, gate.slack); };
  for (int64_t i = 0; i < M * H; ++i) {
    const double now = sigmoid(gates[1][i].value) * cell[i] + sigmoid(gates[0][i].value) * std::tanh(gates[2][i].value);
    // A product of a gate and a tanh, whose slope is 1 at most, and the sum of the two products.
    const double in = sigmoid(gates[0][i].value), fresh = std::abs(std::tanh(gates[2][i].value));
    const double error = off(gates[1][i]) * std::abs(cell[i]) + off(gates[0][i]) * fresh +
                         in * (fresh * fastTanh + gates[2][i].slack) +
                         2 * u * (std::abs(sigmoid(gates[1][i].value) * cell[i]) + in * fresh);
    cells.push_back({now, second * error});
    const double out = sigmoid(gates[3][i].value), kept = std::abs(std::tanh(now));
    hs.push_back(
        {out * std::tanh(now), second * (off(gates[3][i]) * kept + out * (kept * fastTanh + error) + u * out * kept)});
  }
  expectClose("cell", cellNext, cells);
  expectClose("h", hNext, hs);
}

TEST_P(UsersTest, PersistentProduct) {
  constexpr int64_t M = 40, N = 72, K = 48;
  const Array a = integers({M, K}, type(), 3), b = integers({K, N}, type(), 3), c = unwritten({M, N}, type());
  launch(persistentProductKernel, "bm=16,bn=32,bk=32,warps=2", programs(2), {a, b, c});
  expectClose("c", c, wantedProduct(a, b, M, N, K, 0));
}

// --- Attention -------------------------------------------------------------------------------------------------------

/// One row of softmax(scores) · values, taken in `rounds` with a running maximum. A weight is off, relative to itself,
/// by its score's error, by the rounding of its difference from the maximum and of those of the maxima, which go
/// through no more than the spread of the scores each, and by an exponential of its own and one and a product in each
/// round; what is multiplied with the values is rounded to `type` before, and `product` is that product's error. The
/// sum of the weights rounds once for each, and once a round.
void attend(const std::vector<Want> &scores, const std::function<double(size_t, int64_t)> &value, int64_t D,
            double rounds, Type type, double product, std::vector<Want> &want) {
  double top = -INFINITY, bottom = INFINITY, total = 0, totalError = 0;
  for (const Want &score : scores)
    top = std::max(top, score.value), bottom = std::min(bottom, score.value);
  const double common = 2 * (top - bottom) * u + fastExp2 + rounds * (fastExp2 + u);
  std::vector<double> weights;
  for (const Want &score : scores) {
    weights.push_back(std::exp(score.value - top));
    total += weights.back();
    totalError += weights.back() * (score.slack + common);
  }
  const double narrow = type == f32 ? 0 : unit(type);
  for (int64_t d = 0; d < D; ++d) {
    double sum = 0, error = 0;
    for (size_t n = 0; n < scores.size(); ++n) {
      const double term = weights[n] / total * value(n, d);
      sum += term;
      error += std::abs(term) * (scores[n].slack + common + narrow + product);
    }
    const double divisor = totalError / total + (static_cast<double>(scores.size()) + rounds) * u + fastDivide;
    want.push_back({sum, second * (error + std::abs(sum) * divisor)});
  }
}

TEST_P(UsersTest, AttentionWithAWindowAndBiases) {
  constexpr int64_t B = 1, H = 4, T = 70, D = 32, group = 2, window = 24;
  const Array q = uniform({B, H, T, D}, type()), k = uniform({B, H / group, T, D}, type()),
              v = uniform({B, H / group, T, D}, type()), slopes = uniform({H}, f32),
              o = unwritten({B, H, T, D}, type());
  launch(windowAttentionKernel, fmt::format("bm=32,bn=16,window={},group={},warps=2", window, group), programs(3, H, B),
         {q, k, v, slopes, o, 0.5f});
  std::vector<Want> want;
  for (int64_t row = 0; row < H * T; ++row) {
    const int64_t h = row / T, m = row % T, first = std::max<int64_t>(0, m - window + 1), keys = h / group * T + first;
    std::vector<Want> scores;
    for (int64_t n = first; n <= m; ++n) {
      double s = 0, size = 0;
      for (int64_t d = 0; d < D; ++d) {
        const double term = q[row * D + d] * k[(h / group * T + n) * D + d];
        s += term, size += std::abs(term);
      }
      // The product; the scale and the slope times the rounded log2 e, the product with the former, the multiply-add.
      const double bias = slopes[h] * static_cast<double>(m - n);
      scores.push_back({0.5 * s - bias, 0.5 * size * (productError(D) + 4 * u) + std::abs(bias) * 3 * u});
    }
    constexpr double rounds =
        (window + 32) / 16.0 + 2; // 32 queries that see so many keys, 16 at a time, from any place
    attend(
        scores, [&](size_t n, int64_t d) { return v[(keys + static_cast<int64_t>(n)) * D + d]; }, D, rounds, type(),
        productError(window), want);
  }
  expectClose("o", o, want);
}

TEST_P(UsersTest, AttentionToPages) {
  constexpr int64_t B = 2, H = 2, G = 16, D = 32, page = 8, pages = 6, blocks = 16, lengths[] = {21, 48};
  const Array q = uniform({B, H, G, D}, type()), k = uniform({blocks, H, page, D}, type()),
              v = uniform({blocks, H, page, D}, type()), o = unwritten({B, H, G, D}, type());
  const Array table = numbers({B, pages}, i32, [](int64_t i) { return i * 5 % blocks; }),
              length = numbers({B}, i32, [&](int64_t i) { return lengths[i]; });
  launch(pagedAttentionKernel, fmt::format("group={},page={},pages=2,warps=2", G, page), programs(H, B),
         {q, k, v, table, length, o, 0.5f});
  std::vector<Want> want;
  for (int64_t row = 0; row < B * H * G; ++row) {
    const int64_t h = row / G % H, b = row / G / H;
    const auto at = [&](int64_t n) {
      return ((static_cast<int64_t>(table[b * pages + n / page]) * H + h) * page + n % page) * D;
    };
    std::vector<Want> scores;
    for (int64_t n = 0; n < lengths[b]; ++n) {
      double s = 0, size = 0;
      for (int64_t d = 0; d < D; ++d) {
        const double term = q[row * D + d] * k[at(n) + d];
        s += term, size += std::abs(term);
      }
      scores.push_back({0.5 * s, 0.5 * size * (productError(D) + 3 * u)});
    }
    attend(
        scores, [&](size_t n, int64_t d) { return v[at(static_cast<int64_t>(n)) + d]; }, D, pages / 2, type(),
        productError(page * pages), want);
  }
  expectClose("o", o, want);
}

// --- Sequences and lookups -------------------------------------------------------------------------------------------

TEST_P(UsersTest, SelectiveScan) {
  constexpr int64_t B = 2, T = 9, D = 24, S = 16;
  const Array x = uniform({B, T, D}, f32), delta = uniform({B, T, D}, f32), a = uniform({D, S}, f32),
              b = uniform({B, T, S}, f32), c = uniform({B, T, S}, f32), y = unwritten({B, T, D}, f32);
  launch(selectiveScanKernel, "bd=16,warps=2", programs(2, B), {x, delta, a, b, c, y});
  std::vector<Want> want(B * T * D);
  for (int64_t n = 0; n < B; ++n)
    for (int64_t d = 0; d < D; ++d) {
      std::vector<double> state(S), size(S), worst(S);
      for (int64_t t = 0; t < T; ++t) {
        const int64_t at = (n * T + t) * D + d;
        for (int64_t s = 0; s < S; ++s) {
          const double shrink = std::exp2(delta[at] * a[d * S + s]), input = delta[at] * x[at] * b[(n * T + t) * S + s];
          state[s] = state[s] * shrink + input;
          size[s] = size[s] * shrink + std::abs(input);
          want[at].value += state[s] * c[(n * T + t) * S + s];
          // A step of the state, relative: the rounding of the exponent, 2 to it, the multiply-add; its input two
          // products. The sum over the state: a product and S additions.
          const double step = std::abs(delta[at]) * std::abs(a[d * S + s]) * u + fastExp2 + u;
          worst[s] = std::max(worst[s], step);
          want[at].slack += second * size[s] * std::abs(c[(n * T + t) * S + s]) *
                            (static_cast<double>(t + 1) * worst[s] + 2 * u + (S + 1) * u);
        }
      }
    }
  expectClose("y", y, want);
}

TEST_P(UsersTest, RunningSum) {
  constexpr int64_t B = 2, T = 7, D = 80;
  const Array x = integers({B, T, D}, type(), 9), y = unwritten({B, T, D}, type());
  launch(runningSumKernel, "block=64,warps=2", programs(2, B), {x, y});
  std::vector<double> want(x.values);
  for (int64_t i = 0; i < B * T * D; ++i)
    want[i] += i / D % T ? want[i - D] : 0;
  expectEqual("y", y.read(), want);
}

TEST_P(UsersTest, SortedRows) {
  constexpr int64_t N = 3, C = 64;
  const Array x = integers({N, C}, f32, 100), y = unwritten({N, C}, f32);
  launch(sortRowsKernel, "rows=2", programs(2), {x, y});
  std::vector<double> want(x.values);
  for (int64_t n = 0; n < N; ++n)
    std::sort(want.begin() + n * C, want.begin() + (n + 1) * C);
  expectEqual("y", y.read(), want);
}

TEST_P(UsersTest, RowsOfASparseMatrix) {
  constexpr int64_t M = 5, K = 11, D = 40, entries = 12;
  const Array starts = array({M + 1}, i32, {0, 3, 3, 7, 8, entries}),
              columns = numbers({entries}, i32, [](int64_t i) { return i * 7 % K; }),
              values = integers({entries}, f32, 5), x = integers({K, D}, f32, 9), y = unwritten({M, D}, f32);
  launch(sparseRowsKernel, "block=32,warps=1", programs(M, 2), {starts, columns, values, x, y});
  std::vector<double> want(M * D);
  for (int64_t i = 0; i < M * D; ++i)
    for (auto e = static_cast<int64_t>(starts[i / D]); e < static_cast<int64_t>(starts[i / D + 1]); ++e)
      want[i] += values[e] * x[static_cast<int64_t>(columns[e]) * D + i % D];
  expectEqual("y", y.read(), want);
}

TEST_P(UsersTest, BagsOfEmbeddings) {
  constexpr int64_t B = 6, L = 4, V = 20, D = 48;
  const Array ids = numbers({B, L}, i32, [](int64_t i) { return i * 11 % V; }), table = integers({V, D}, type(), 8),
              y = unwritten({B, D}, type());
  launch(bagsKernel, "bags=4,warps=2", programs(2), {ids, table, y});
  std::vector<double> want(B * D);
  for (int64_t i = 0; i < B * D; ++i)
    for (int64_t l = 0; l < L; ++l)
      want[i] += table[static_cast<int64_t>(ids[i / D * L + l]) * D + i % D] / L;
  expectEqual("y", y.read(), want);
}

TEST_P(UsersTest, Histogram) {
  constexpr int64_t n = 500, bins = 32;
  const Array x = numbers({n}, i32, [](int64_t i) { return i * i % bins; }),
              counts = numbers({bins}, i32, [](int64_t) { return 1; });
  launch(histogramKernel, fmt::format("bins={},block=64,chunk=256,warps=2", bins), programs(2), {x, counts});
  std::vector<double> want(bins, 1);
  for (int64_t i = 0; i < n; ++i)
    ++want[static_cast<size_t>(x[i])];
  expectEqual("counts", counts.read(), want);
}

KILN_ON_MACHINES(UsersTest);

} // namespace
} // namespace kiln
