// Random bits for dropout from Philox numbers, eight elements per number.

#include "kernels/dropout_rng.h"
#include "dialect/dsl/Kernel.h"
#include "kernels/dropout.h"
#include "kernels/operands.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace kiln {

static constexpr int64_t unit = 128, lanes = 16;

DropoutKind dropoutKindNamed(const std::string &text) {
  return static_cast<DropoutKind>(parseChoice("dropout-kind", text, dropoutKindNames));
}

int64_t DropoutRate::threshold() const { return std::min<int64_t>(std::lround(asked * 65536), 65535); }

void verify(const DropoutRate &rate) {
  if (!(rate.asked >= 0 && rate.asked < 1))
    throw Error("expected a dropout rate of at least 0 and below 1, but got " + std::to_string(rate.asked));
}

DropoutMode chooseDropoutMode(const std::optional<Dropout> &dropout) {
  if (!dropout || dropout->rate.threshold() == 0)
    return DropoutMode::off;
  if (dropout->rngState)
    return DropoutMode::random;
  return dropout->rate.evaluationScale() == 1 ? DropoutMode::off : DropoutMode::scale_only;
}

void appendArgs(std::vector<Arg> &args, const std::optional<Dropout> &dropout, const TensorRef &unused) {
  const Dropout d = dropout.value_or(Dropout());
  const double scale = d.rngState ? d.rate.scale() : d.rate.evaluationScale();
  for (const Arg &arg : {Arg(d.rngState.value_or(unused)), Arg(d.time), Arg(d.maxLength), Arg(d.rate.threshold()),
                         Arg(static_cast<float>(scale))})
    args.push_back(arg);
}

void expectDropout(const char *plan, const Dropout &dropout, int64_t N) {
  verify(dropout.rate);
  if (!dropout.rngState)
    return;
  checkOperands(dropoutKernel, {{}, {}, *dropout.rngState}, plan);
  if (dropout.time < 1 || dropout.maxLength < dropout.time || N % dropout.time != 0)
    throw Error("'" + std::string(plan) + "': expected whole sequences of at most " +
                std::to_string(dropout.maxLength) + " rows, but got " + std::to_string(N) + " rows in sequences of " +
                std::to_string(dropout.time));
}

Tile countUnits(Tile C) { return (C + (unit - 1)) / unit; }

/// 16-bit halves `first` … first + parts of each number, as i32; several are a new dimension before the last one.
/// `first` is a multiple of `parts`, a power of two, so their words are selected once for all of them.
static Tile selectHalves(const std::array<Tile, 4> &words, Tile first, int64_t parts) {
  std::vector<Tile> some(words.begin(), words.end());
  for (int64_t left = 8; left > parts && some.size() > 1; left /= 2) {
    Tile isUpper = first % left >= left / 2;
    for (size_t i = 0; i < some.size() / 2; ++i)
      some[i] = where(isUpper, some[i + some.size() / 2], some[i]);
    some.resize(some.size() / 2);
  }
  Tile half = parts > 1 ? reshape(iota(parts), {parts, 1}) : first, word = some.back();
  for (int64_t i = std::ssize(some) - 2; i >= 0; --i)
    word = where(half < 2 * (i + 1), some[i], word);
  return (word >> (half % 2 * 16)) & 0xFFFF;
}

Tile kept(Tile key, Tile row, Tile units, Tile column, int64_t columns, Tile threshold) {
  const int64_t R = row.extent(0), piece = std::gcd(columns, unit);
  Tile least = cast(threshold, i32);
  if (piece < lanes) {                                                                       // one number per element
    Tile c = column + iota(columns, i64);                                                    // (C)
    Tile number = (unsqueeze(row, -1) * units + c / unit) * lanes + c % lanes;               // (R, C)
    return selectHalves(random_words(key, number), cast(c % unit / lanes, i32), 1) >= least; // (R, C)
  }
  // Pieces within one unit each, so that each has 16 numbers; and their offset in the unit.
  const int64_t pieces = columns / piece, parts = piece / lanes;
  Tile c = column + iota(pieces, i64) * piece;                                           // (P)
  Tile place = reshape(c / unit, {pieces, 1, 1});                                        // (P, 1, 1)
  Tile number = (reshape(row * units, {R, 1, 1, 1}) + place) * lanes + iota(lanes, i64); // (R, P, 1, 16)
  Tile first = reshape(cast(c % unit / lanes, i32), {pieces, 1, 1});                     // (P, 1, 1)
  Tile bits = selectHalves(random_words(key, number), first, parts);                     // (R, P, parts, 16)
  return reshape(bits >= least, {R, columns});
}

Tile kept(const DropoutArgs &args, Tile n, int64_t rows, Tile C, Tile column, int64_t columns) {
  Tile place = n + iota(rows, i64);                                 // (R)
  Tile sequence = load(args.rngState, {1}, {}) + place / args.time; // (R)
  Tile row = sequence * args.maxLength + place % args.time;         // (R)
  return kept(load(args.rngState, {0}, {}), row, countUnits(C), column, columns, args.threshold);
}

Tile dropped(Tile x, DropoutMode drop, const DropoutArgs &args, Tile n, Tile C, Tile column) {
  if (drop == DropoutMode::off)
    return x;
  if (drop == DropoutMode::scale_only)
    return x * args.scale;
  return where(kept(args, n, x.extent(0), C, column, x.extent(1)), x * args.scale, 0.0);
}

} // namespace kiln
