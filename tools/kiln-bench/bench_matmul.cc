// GEMMs: twelve of the blocks of a GPT-2 124M step (forward, input gradient and weight gradient of four linear layers),
// and three of its output layer. Each is measured at 256 and at 1024 tokens, and again with ragged extents. Then the
// errors against double precision, Kiln's and oneDNN's.

#include "kernels/matmul.h"
#include "tools/kiln-bench/bench.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

using namespace kiln;

namespace {

/// C (M, N) with inner extent K, and operands stored in `layout`.
struct Product {
  std::string name;
  Layout layout;
  int64_t M, N, K;

  bool isWeightGradient() const { return layout == Layout::tn; }
  Shape shapeOfA() const { return layout == Layout::tn ? Shape{K, M} : Shape{M, K}; }
  Shape shapeOfB() const { return layout == Layout::nt ? Shape{N, K} : Shape{K, N}; }
  std::string text() const {
    static const char *const names[] = {"nn", "nt", "tn"};
    return fmt::format("{} {}x{}x{} {}", name, M, N, K, names[static_cast<int>(layout)]);
  }
  double flops() const { return 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K); }
};

/// Ratios to each peer, for the final means.
struct Ratios {
  std::map<std::string, std::vector<double>> products, weightGradients;

  void add(const Product &p, const std::string &peer, double ratio) {
    (p.isWeightGradient() ? weightGradients : products)[peer].push_back(ratio);
  }
  void add(const Ratios &others) {
    for (auto member : {&Ratios::products, &Ratios::weightGradients})
      for (const auto &[peer, ratios] : others.*member)
        (this->*member)[peer].insert((this->*member)[peer].end(), ratios.begin(), ratios.end());
  }
};

} // namespace

/// The GEMMs of a step on `tokens` tokens. With `ragged`, every extent differs slightly from a multiple of vectors.
static std::vector<Product> productsOfStep(int64_t tokens, bool ragged) {
  int64_t off = ragged ? 1 : 0, T = tokens - 5 * off;
  std::vector<Product> products;
  struct Layer {
    const char *name;
    int64_t in, out;
  };
  for (auto [name, in, out] :
       {Layer{"qkv", 768, 2304}, Layer{"proj", 768, 768}, Layer{"fc", 768, 3072}, Layer{"fcproj", 3072, 768}}) {
    int64_t I = in - off, O = out + off; // x (T, I), W (I, O)
    products.push_back({std::string(name) + " fwd", Layout::nn, T, O, I});
    products.push_back({std::string(name) + " dX", Layout::nt, T, I, O});
    products.push_back({std::string(name) + " dW", Layout::tn, I, O, T});
  }
  int64_t V = ragged ? 50257 : 50304, C = 768 - off; // the output layer's W is the token table (V, C)
  products.push_back({"lm head fwd", Layout::nt, T, V, C});
  products.push_back({"lm head dX", Layout::nn, T, C, V});
  products.push_back({"lm head dW", Layout::tn, V, C, T});
  return products;
}

static Plan planOf(const bench::Setting &setting, const Product &p, const Tensor &a, const Tensor &b, const Tensor &c) {
  if (p.isWeightGradient() && isFloat(a.type()))
    return planWeightGradient(setting.target(), a, b, c, {});
  return planMatmul(setting.target(), p.layout, a, b, c);
}

static bench::PeerProduct peerProduct(const Product &p) {
  return {p.layout == Layout::tn, p.layout == Layout::nt, p.M, p.N, p.K};
}

/// Weight gradients are f32 like the accumulator, other results have the operands' type; accumulators of i8 are i32.
static Type typeOfC(const Product &p, Type operands) {
  return operands == Type::i8 ? Type::i32 : p.isWeightGradient() ? Type::f32 : operands;
}

/// Checks the result: both sums are within K · ε of the exact one for operands below 1, and are rounded once more for a
/// narrow C. Integers must be equal.
static void expectClose(const Product &p, const Tensor &got, const Tensor &want) {
  std::vector<float> a = got.downloadFloats(), b = want.downloadFloats();
  const double sums = isFloat(got.type()) ? 2.0 * static_cast<double>(p.K) * 0x1p-23 : 0;
  const double rounding = got.type() == Type::bf16 ? 0x1p-7 : 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (!(std::abs(x - y) <= sums + rounding * std::abs(y)))
      throw Error(fmt::format("{}: element {} is {}, but the peer's is {}", p.text(), i, a[i], b[i]), Fault::internal);
  }
}

/// One GEMM with its operands and result.
struct Operands {
  Operands(const bench::Setting &setting, const Product &p)
      : a(bench::randomTensor(setting, p.shapeOfA(), 1)), b(bench::randomTensor(setting, p.shapeOfB(), 2)),
        c(bench::zeroTensor(setting, {p.M, p.N}, typeOfC(p, setting.type))) {}
  Tensor a, b, c;
};

static void measureProduct(bench::Setting &setting, const Product &p, Ratios &ratios) {
  Operands own(setting, p);
  Tensor peerC = bench::zeroTensor(setting, {p.M, p.N}, own.c.type());
  std::vector<bench::Contender> contenders = {bench::Runner(setting, planOf(setting, p, own.a, own.b, own.c))};
  std::vector<const char *> names = {"kiln"};
  if (const auto peer = bench::oneDnnContender(setting, peerProduct(p), own.a, own.b, peerC)) {
    contenders.push_back(*peer);
    names.push_back("onednn");
  }
  std::optional<Operands> wide;
  if (setting.type != Type::f32) {
    bench::Setting floats = setting;
    floats.type = Type::f32;
    wide.emplace(floats, p);
    contenders.push_back(bench::Runner(floats, planOf(floats, p, wide->a, wide->b, wide->c)));
    names.push_back("f32");
  }
  const std::vector<double> seconds = setting.measure(contenders, 0.03);
  const auto rate = [&](size_t i) { return p.flops() / seconds[i] / 1e9; };
  bench::Row row{.shape = p.text(), .metric = "gflops", .value = rate(0)};
  if (names.size() == 1)
    setting.report.add(row);
  for (size_t i = 1; i < names.size(); ++i) {
    if (names[i] == std::string("onednn"))
      expectClose(p, own.c, peerC);
    row.peer = names[i];
    row.peerValue = rate(i);
    ratios.add(p, names[i], rate(0) / rate(i));
    setting.report.add(row);
  }
}

static void addMeans(bench::Setting &setting, const std::string &name, const Ratios &all) {
  for (const auto &[products, what] : {std::pair{&all.products, "fwd and dX"}, {&all.weightGradients, "dW"}})
    for (const auto &[peer, ratios] : *products) {
      bench::Row row{.shape = fmt::format("{}, {}, to {}", what, name, peer),
                     .metric = "ratio_mean",
                     .value = bench::geometricMean(ratios)};
      setting.report.add(row);
      row.metric = "ratio_min";
      row.value = *std::min_element(ratios.begin(), ratios.end());
      setting.report.add(row);
    }
}

/// The largest error of C against double precision.
static double largestError(const Product &p, const Tensor &a, const Tensor &b, const Tensor &c) {
  std::vector<float> A = a.downloadFloats(), B = b.downloadFloats(), C = c.downloadFloats();
  int64_t strideA[2] = {p.K, 1}, strideB[2] = {p.N, 1};
  if (p.layout == Layout::tn)
    strideA[0] = 1, strideA[1] = p.M;
  if (p.layout == Layout::nt)
    strideB[0] = 1, strideB[1] = p.K;
  double largest = 0;
  for (int64_t m = 0; m < p.M; ++m)
    for (int64_t n = 0; n < p.N; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < p.K; ++k)
        sum += static_cast<double>(A[static_cast<size_t>(m * strideA[0] + k * strideA[1])]) *
               static_cast<double>(B[static_cast<size_t>(k * strideB[0] + n * strideB[1])]);
      largest = std::max(largest, std::abs(sum - static_cast<double>(C[static_cast<size_t>(m * p.N + n)])));
    }
  return largest;
}

static void measureErrors(bench::Setting &setting) {
  setting.report.section("largest error against double precision");
  for (int64_t K : setting.quick ? std::vector<int64_t>{768} : std::vector<int64_t>{768, 3072, 50257})
    for (Layout layout : {Layout::nn, Layout::nt, Layout::tn}) {
      Product p{"error", layout, 128, 96, K};
      Operands own(setting, p);
      Tensor peerC = bench::zeroTensor(setting, {p.M, p.N}, own.c.type());
      bench::Runner(setting, planOf(setting, p, own.a, own.b, own.c))();
      bench::Row row{.shape = p.text(), .metric = "max_error", .value = largestError(p, own.a, own.b, own.c)};
      if (const auto peer = bench::oneDnnContender(setting, peerProduct(p), own.a, own.b, peerC)) {
        (*peer)();
        row.peer = "onednn";
        row.peerValue = largestError(p, own.a, own.b, peerC);
      }
      setting.report.add(row);
    }
}

void bench::benchMatmul(Setting &setting) {
  Ratios all;
  for (bool ragged : {false, true}) {
    Ratios ratios;
    for (int64_t tokens : setting.quick ? std::vector<int64_t>{32} : std::vector<int64_t>{256, 1024}) {
      setting.report.section(fmt::format("{} products of GPT-2 124M, {} tokens{}", nameOf(setting.type), tokens,
                                         ragged ? ", ragged" : ""));
      for (const Product &product : productsOfStep(tokens, ragged))
        measureProduct(setting, product, ratios);
    }
    setting.report.section(ragged ? "ragged: ratios" : "aligned: ratios");
    addMeans(setting, ragged ? "ragged" : "aligned", ratios);
    all.add(ratios);
  }
  addMeans(setting, "all", all);
  if (isFloat(setting.type))
    measureErrors(setting);
}
