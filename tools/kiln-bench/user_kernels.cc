// Four kernels that host loops unroll: the 8 rounds of a top-k, the 6 stages of a Fourier transform of 64 points, the 4
// gates of an LSTM's cell with their 8 products, the 36 steps of a sorting network of 256 elements.

#include "tools/kiln-bench/user_kernels.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace kiln::bench {

// --- Top-k -----------------------------------------------------------------------------------------------------------

static void topK(View x, View values, View places) {
  constexpr int rows = 4, width = 1024, k = 8;
  Tile m = program_id(0) * rows;
  Tile row = load(x, {m, 0}, {rows, width}, Padding::neg_inf); // (4, 1024)
  for (int i = 0; i < k; ++i) {
    Tile place = argmax(row, 1, true);               // (4, 1)
    store(values, {m, i}, reduce_max(row, 1, true)); // (4, 1)
    store(places, {m, i}, place);
    row = where(iota(width) == place, -std::numeric_limits<float>::infinity(), row); // (4, 1024)
  }
}
const Kernel topKKernel = kernel("top_k", topK);

// --- Fourier transform -----------------------------------------------------------------------------------------------

/// The part number `which` of two, along axis 1.
static Tile part(const Tile &pair, int which) {
  Tile isPart = reshape(iota(2), {1, 2, 1, 1}) == which;
  return sum(where(isPart, pair, 0.0), 1);
}

/// Two parts side by side along a new axis 2, by rows of `width` in all.
static Tile join(const Tile &first, const Tile &second, int64_t rows, int64_t width) {
  Tile isFirst = reshape(iota(2), {1, 1, 2, 1}) == 0;
  return reshape(where(isFirst, unsqueeze(first, 2), unsqueeze(second, 2)), {rows, width});
}

static void fft(View re, View im, View reOut, View imOut) {
  constexpr int64_t rows = 16, points = 64;
  Tile m = program_id(0) * rows;
  Tile a = load(re, {m, 0}, {rows, points}), b = load(im, {m, 0}, {rows, points}); // (16, 64)
  for (int64_t far = points / 2; far > 0; far /= 2) {
    const int64_t near = points / (2 * far);
    std::vector<double> cosines, sines;
    for (int64_t j = 0; j < far; ++j) {
      const double angle = -std::numbers::pi * static_cast<double>(j) / static_cast<double>(far);
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
    Tile c = constant(f32, {far, 1}, cosines), s = constant(f32, {far, 1}, sines); // (far, 1)
    Tile as = reshape(a, {rows, 2, far, near}), bs = reshape(b, {rows, 2, far, near});
    Tile a0 = part(as, 0), a1 = part(as, 1), b0 = part(bs, 0), b1 = part(bs, 1); // (16, far, near)
    Tile da = a0 - a1, db = b0 - b1;
    a = join(a0 + a1, da * c - db * s, rows, points); // (16, 64)
    b = join(b0 + b1, da * s + db * c, rows, points); // (16, 64)
  }
  store(reOut, {m, 0}, a);
  store(imOut, {m, 0}, b);
}
const Kernel fftKernel = kernel("fft", fft);

// --- LSTM ------------------------------------------------------------------------------------------------------------

static Tile sigmoid(const Tile &x) { return 1.0 / (1.0 + exp(-x)); }

static void lstm(View x, View h, View cell, View wx, View wh, View bias, View hNext, View cellNext) {
  constexpr int bm = 16, bn = 64, bk = 64;
  Tile m = program_id(0) * bm, n = program_id(1) * bn;
  Tile gates[4]; // input, forget, candidate, output
  for (int g = 0; g < 4; ++g) {
    Tile acc = broadcast(load(bias, {g, n}, {1, bn}), {bm, bn}); // (16, 64)
    for (Tile k : range(0, x.dim(1), bk))
      acc = dot(load(x, {m, k}, {bm, bk}), reshape(load(wx, {g, k, n}, {1, bk, bn}), {bk, bn}), acc);
    for (Tile k : range(0, h.dim(1), bk))
      acc = dot(load(h, {m, k}, {bm, bk}), reshape(load(wh, {g, k, n}, {1, bk, bn}), {bk, bn}), acc);
    gates[g] = acc;
  }
  Tile old = load(cell, {m, n}, {bm, bn});                                 // (16, 64)
  Tile now = sigmoid(gates[1]) * old + sigmoid(gates[0]) * tanh(gates[2]); // (16, 64)
  store(cellNext, {m, n}, now);
  store(hNext, {m, n}, sigmoid(gates[3]) * tanh(now));
}
const Kernel lstmKernel = kernel("lstm", lstm);

// --- Sorting ---------------------------------------------------------------------------------------------------------

static void sortRow(View x, View y) {
  constexpr int64_t count = 256;
  Tile keys = load(x, {program_id(0), 0}, {1, count}, Padding::inf); // (1, 256)
  for (int64_t size = 2; size <= count; size *= 2)
    for (int64_t apart = size / 2; apart > 0; apart /= 2) {
      const int64_t groups = count / (2 * apart);
      Tile pairs = reshape(keys, {groups, 2, apart});
      Tile low = reduce_min(pairs, 1, true), high = reduce_max(pairs, 1, true); // (groups, 1, apart)
      Tile ascends = reshape((iota(groups) * (2 * apart) & size) == 0, {groups, 1, 1});
      Tile isFirst = reshape(iota(2), {1, 2, 1}) == 0;
      keys = reshape(where(ascends == isFirst, low, high), {1, count}); // (1, 256)
    }
  store(y, {program_id(0), 0}, keys);
}
const Kernel sortKernel = kernel("bitonic_sort", sortRow);

} // namespace kiln::bench
