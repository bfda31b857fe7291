// What attention's plans ask of their operands, and ranges from the keys' side.

#include "kernels/heads.h"

#include <string>

namespace kiln {

/// An optional operand with the extents and the type that it must have, but that extents may be 1 where `repeats`.
static void expectMask(const char *plan, const TensorRef &mask, const AttentionExtents &s) {
  Shape wanted = {s.B, s.H, s.Tq, s.Tk};
  if (mask.rank() == 4)
    for (const int axis : {0, 1})
      if (mask.extents[axis] == 1)
        wanted[axis] = 1;
  expectShape(plan, "mask", mask, wanted);
  expectType(plan, "mask", mask, {i8});
}

/// Dropout of the weights of these heads.
static void expectWeights(const char *plan, const Dropout &dropout, const AttentionExtents &s) {
  expectDropout(plan, dropout, s.Tq);
  if (dropout.site && dropout.most < s.Tk)
    throw Error("'" + std::string(plan) + "': expected at most " + std::to_string(dropout.most) +
                " keys, the longest sequence that 'dropout' allows, but got " + std::to_string(s.Tk));
}

AttentionExtents expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                             const TensorRef &o, const AttentionMask &mask, float scale) {
  expectRank(plan, "q", q, 4);
  expectFloat(plan, "q", q);
  expectRank(plan, "k", k, 4);
  const AttentionExtents s = {q.extents[0], q.extents[1], k.extents[1], q.extents[2], k.extents[2], q.extents[3]};
  expectShape(plan, "k", k, s.keys());
  if (s.Hk < 1 || s.H % s.Hk != 0)
    throw Error("'" + std::string(plan) + "': expected the number of heads of 'k' to divide that of 'q', but got " +
                std::to_string(s.Hk) + " and " + std::to_string(s.H));
  expectShape(plan, "v", v, s.keys());
  expectShape(plan, "o", o, s.queries());
  for (const TensorRef *tensor : {&k, &v, &o})
    expectType(plan, "k, v, o", *tensor, {q.type});
  if (mask.ranges) {
    expectShape(plan, "ranges", *mask.ranges, {s.B, s.Tq, 2});
    expectType(plan, "ranges", *mask.ranges, {i32});
  }
  if (mask.columnRanges) {
    expectShape(plan, "columnRanges", *mask.columnRanges, {s.B, s.Tk, 2});
    expectType(plan, "columnRanges", *mask.columnRanges, {i32});
  }
  if (mask.mask)
    expectMask(plan, *mask.mask, s);
  if (mask.dropout)
    expectWeights(plan, *mask.dropout, s);
  if (!(scale > 0))
    throw Error("'" + std::string(plan) + "': expected 'scale' to be above 0, but got " + std::to_string(scale));
  return s;
}

void expectSums(const char *plan, const TensorRef &lse, const AttentionExtents &s) {
  expectShape(plan, "lse", lse, {s.B, s.H, s.Tq});
  expectType(plan, "lse", lse, {f32});
}

/// Numbers of Philox serve eight weights of a row each where a block has so many keys, or a multiple.
static constexpr int fewestOfChances = 16;

AttentionConfig configFor(const std::optional<AttentionConfig> &given, AttentionConfig picked,
                          const AttentionExtents &extents, const AttentionMask &mask) {
  const DropoutMode drop = dropoutModeOf(mask.dropout);
  if (drop == DropoutMode::random)
    picked.bn = static_cast<int>(cdiv(picked.bn, fewestOfChances)) * fewestOfChances;
  // What chooses among scores takes registers beside them: a warp then has 16 rows, those of an instruction.
  if (drop == DropoutMode::random || mask.mask)
    picked.warps = std::clamp(picked.bm / 16, picked.warps, 2 * picked.warps);
  AttentionConfig tiles = given.value_or(picked);
  tiles.drop = drop;
  tiles.causal = mask.causal;
  tiles.unequalLengths = extents.Tq != extents.Tk || (picked.unequalLengths && !mask.causal);
  tiles.hasBounds = mask.ranges.has_value();
  tiles.masked = mask.mask.has_value();
  tiles.group = static_cast<int>(extents.H / extents.Hk);
  return tiles;
}

void appendDropout(std::vector<Arg> &args, const AttentionMask &mask, const Arg &unused) {
  const Dropout d = mask.dropout.value_or(Dropout());
  const double scale = d.site ? d.rate.scale() : d.rate.evaluationScale();
  args.insert(args.end(),
              {d.site ? Arg(*d.site) : unused, Arg(d.most), Arg(d.rate.threshold()), Arg(static_cast<float>(scale))});
}

TensorRef wholeMask(const AttentionMask &mask, const AttentionExtents &extents, const TensorRef &other) {
  if (!mask.mask)
    return other;
  TensorRef whole = *mask.mask;
  const int64_t wanted[] = {extents.B, extents.H};
  for (const int axis : {0, 1})
    if (whole.extents[axis] != wanted[axis]) {
      whole.extents[axis] = wanted[axis];
      whole.strides[axis] = 0;
    }
  return whole;
}

/// Throws Error unless the ranges of one sequence, of Tq queries, are such of Tk keys.
static void expectRanges(const int32_t *ranges, int64_t Tq, int64_t Tk) {
  const auto fail = [](int64_t row, const std::string &expected, const int32_t *range) {
    throw Error("'columnRanges': expected the range of row " + std::to_string(row) + " " + expected + ", but got " +
                std::to_string(range[0]) + " to " + std::to_string(range[1]));
  };
  for (int64_t i = 0; i < Tq; ++i) {
    const int32_t *own = ranges + 2 * i;
    if (own[0] < 0 || own[0] > own[1] || own[1] > Tk)
      fail(i, "to lie within 0 to " + std::to_string(Tk) + " and not to end before it begins", own);
    if (i > 0 && (own[0] < own[-2] || own[1] < own[-1]))
      fail(i,
           "not to begin or end before the range of the row above, " + std::to_string(own[-2]) + " to " +
               std::to_string(own[-1]),
           own);
  }
}

std::vector<int32_t> columnRanges(const std::vector<int32_t> &ranges, int64_t Tq, int64_t Tk) {
  if (Tq < 1 || static_cast<int64_t>(ranges.size()) % (2 * Tq) != 0)
    throw Error("'columnRanges': expected two numbers for each of " + std::to_string(Tq) + " rows, but got " +
                std::to_string(ranges.size()));
  std::vector<int32_t> columns;
  for (const int32_t *own = ranges.data(); own != ranges.data() + ranges.size(); own += 2 * Tq) {
    expectRanges(own, Tq, Tk);
    // As neither bound falls, those that have begun at or before column j come first, those that have ended do, too.
    int32_t ended = 0, begun = 0;
    for (int64_t j = 0; j < Tk; ++j) {
      while (ended < Tq && own[2 * ended + 1] <= j)
        ++ended;
      while (begun < Tq && own[2 * begun] <= j)
        ++begun;
      columns.push_back(ended);
      columns.push_back(begun);
    }
  }
  return columns;
}

} // namespace kiln
