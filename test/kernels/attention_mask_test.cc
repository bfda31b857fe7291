// What queries of attention may see, and whose keys: lengths that differ, grouped heads, ranges and free masks, against
// the plain formulas in double precision.

#include "kernels/attention.h"
#include "test/expect_error.h"
#include "test/kernels/attention_reference.h"

#include <cmath>

namespace kiln {
namespace {

/// Extents of a problem.
struct Extents {
  int64_t B, H, Hk, Tq, Tk, D;
};

/// [begin, end) for each of the queries, or of the keys, of each sequence.
using Ranges = std::vector<int32_t>;

class AttentionMaskTest : public KernelTest {
protected:
  struct Problem {
    Extents s;
    AttentionMask mask;
    Ranges ranges;            // (B, Tq, 2), or empty
    std::vector<double> free; // (B or 1, H or 1, Tq, Tk), or empty
    Array q, k, v, dout, o, lse, dq, dk, dv;
    std::vector<Array> held; // what `mask` refers to
    float scale() const { return static_cast<float>(1 / std::sqrt(double(s.D))); }

    bool sees(int64_t b, int64_t h, int64_t i, int64_t j) const {
      if (mask.causal && j > i + s.Tk - s.Tq)
        return false;
      if (!ranges.empty() && (j < ranges[2 * (b * s.Tq + i)] || j >= ranges[2 * (b * s.Tq + i) + 1]))
        return false;
      if (free.empty())
        return true;
      const Shape &extents = mask.mask->extents;
      const int64_t first = extents[0] == 1 ? 0 : b, second = extents[1] == 1 ? 0 : h;
      return free[((first * extents[1] + second) * s.Tq + i) * s.Tk + j] != 0;
    }
  };

  Problem problem(Extents s, bool causal) {
    const Shape queries = {s.B, s.H, s.Tq, s.D}, keys = {s.B, s.Hk, s.Tk, s.D};
    return {.s = s,
            .mask = {.causal = causal},
            .q = uniform(queries, type(), 2),
            .k = uniform(keys, type(), 2),
            .v = uniform(keys, type(), 2),
            .dout = uniform(queries, type()),
            .o = unwritten(queries, type()),
            .lse = unwritten({s.B, s.H, s.Tq}, f32),
            .dq = unwritten(queries, type()),
            .dk = unwritten(keys, type()),
            .dv = unwritten(keys, type())};
  }
  void setRanges(Problem &p, Ranges ranges) {
    const Ranges columns = columnRanges(ranges, p.s.Tq, p.s.Tk);
    p.held.push_back(array({p.s.B, p.s.Tq, 2}, i32, {ranges.begin(), ranges.end()}));
    p.mask.ranges = p.held.back().ref();
    p.held.push_back(array({p.s.B, p.s.Tk, 2}, i32, {columns.begin(), columns.end()}));
    p.mask.columnRanges = p.held.back().ref();
    p.ranges = std::move(ranges);
  }
  void setMask(Problem &p, int64_t B, int64_t H, std::vector<double> free) {
    p.held.push_back(array({B, H, p.s.Tq, p.s.Tk}, i8, free));
    p.mask.mask = p.held.back().ref();
    p.free = std::move(free);
  }
  /// Zeros and ones, and for every eighth query zeros alone.
  std::vector<double> randomMask(int64_t matrices, int64_t Tq, int64_t Tk) {
    std::vector<double> free(matrices * Tq * Tk);
    for (size_t i = 0; i < free.size(); ++i)
      free[i] = (i / Tk) % 8 != 3 && random() % 3 != 0;
    return free;
  }

  AttentionConfig tiles(bool whole, int bm = 16, int bn = 16) const {
    AttentionConfig config{.bm = bm, .bn = bn, .precision = precision()};
    config.whole = whole;
    return config;
  }
  void launch(const Problem &p, const std::optional<AttentionConfig> &config) {
    run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, config));
    const AttentionSaved saved = {p.q, p.k, p.v, p.o, p.lse, p.dout};
    run(planAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask, config));
  }
  void check(const Problem &p, const std::optional<AttentionConfig> &config);
  /// With tiles so small that there are several, by whole heads and by blocks.
  void checkBoth(const Problem &p) {
    for (const bool whole : {true, false})
      check(p, tiles(whole));
  }
};

/// One of `count` equal parts.
std::vector<double> part(const std::vector<double> &all, int64_t which, int64_t count) {
  const int64_t each = static_cast<int64_t>(all.size()) / count;
  return {all.begin() + which * each, all.begin() + (which + 1) * each};
}

void AttentionMaskTest::check(const Problem &p, const std::optional<AttentionConfig> &config) {
  const Extents &s = p.s;
  SCOPED_TRACE(testing::Message() << s.B << " x " << s.H << " of " << s.Hk << ", " << s.Tq << " see " << s.Tk << ", D "
                                  << s.D << (p.mask.causal ? " causal" : "")
                                  << (config && config->whole ? " whole" : ""));
  launch(p, config);
  const auto o = p.o.read(), lse = p.lse.read(), dq = p.dq.read(), dk = p.dk.read(), dv = p.dv.read();
  const AttentionErrors errors = {productError(s.D), productError(s.H / s.Hk * std::max(s.Tq, s.Tk)),
                                  type() == f32 ? 0 : unit(type()), tiny(type())};
  for (int64_t b = 0; b < s.B; ++b)
    for (int64_t hk = 0; hk < s.Hk; ++hk) {
      AttentionBackward backward;
      const int64_t own = b * s.Hk + hk, keys = s.B * s.Hk, queries = s.B * s.H;
      for (int64_t h = hk * s.H / s.Hk; h < (hk + 1) * s.H / s.Hk; ++h) {
        const int64_t at = b * s.H + h;
        const AttentionHead head = {.Tq = s.Tq,
                                    .Tk = s.Tk,
                                    .D = s.D,
                                    .q = part(p.q.values, at, queries),
                                    .k = part(p.k.values, own, keys),
                                    .v = part(p.v.values, own, keys),
                                    .o = part(o, at, queries),
                                    .dout = part(p.dout.values, at, queries),
                                    .scale = p.scale(),
                                    .seen = [&](int64_t i, int64_t j) { return p.sees(b, h, i, j); }};
        const AttentionForward forward = attentionForward(head, errors);
        expectClose("o", head.o, forward.o, type());
        expectClose("lse", part(lse, at, queries), forward.lse, f32);
        addAttentionBackward(head, errors, backward);
        expectClose("dq", part(dq, at, queries), backward.dq, type());
      }
      expectClose("dk", part(dk, own, keys), backward.dk, type());
      expectClose("dv", part(dv, own, keys), backward.dv, type());
    }
}

// Fewer and more keys than queries, which see the last of them; of fewer, the first queries see none.
TEST_P(AttentionMaskTest, LengthsThatDiffer) {
  for (const bool causal : {true, false})
    for (const auto &[Tq, Tk] : {std::pair(1, 37), {37, 1}, {20, 50}, {50, 20}, {33, 34}}) {
      checkBoth(problem({1, 1, 1, Tq, Tk, 8}, causal));
      if (Tk == 50)
        check(problem({1, 2, 2, Tq, Tk, 16}, causal), {});
    }
}

// Several heads of queries share one of keys, whose gradients are the sums of all.
TEST_P(AttentionMaskTest, GroupedHeads) {
  for (const bool causal : {true, false})
    for (const auto &[H, Hk] : {std::pair(4, 2), {3, 1}}) {
      checkBoth(problem({1, H, Hk, 37, 37, 8}, causal));
      check(problem({2, H, Hk, 20, 30, 8}, causal), {});
    }
}

/// Causal within documents of these lengths; queries behind the last one see nothing.
Ranges packed(std::initializer_list<int> lengths, int64_t T) {
  Ranges ranges;
  int32_t begin = 0;
  for (const int length : lengths) {
    for (int32_t i = 0; i < length; ++i)
      ranges.insert(ranges.end(), {begin, begin + i + 1});
    begin += length;
  }
  while (static_cast<int64_t>(ranges.size()) < 2 * T)
    ranges.insert(ranges.end(), {begin, begin});
  return ranges;
}

/// Bounds that rise by chance, some ranges empty.
Ranges monotone(int64_t Tq, int64_t Tk, std::mt19937 &random) {
  Ranges ranges;
  int32_t begin = 0, end = 0;
  for (int64_t i = 0; i < Tq; ++i) {
    end = static_cast<int32_t>(std::min<int64_t>(Tk, end + random() % 5));
    begin = std::min<int32_t>(end, begin + random() % 4);
    ranges.insert(ranges.end(), {begin, end});
  }
  return ranges;
}

// Packed documents, windows, prefixes, padding and bounds that rise by chance, each sequence its own.
TEST_P(AttentionMaskTest, EveryKindOfRange) {
  constexpr int32_t T = 53;
  Ranges window, prefix, padding;
  for (int32_t i = 0; i < T; ++i) {
    window.insert(window.end(), {std::max(0, i - 9), i + 1});
    prefix.insert(prefix.end(), {0, std::max(21, i + 1)});
    padding.insert(padding.end(), {i < 40 ? 0 : 40, 40});
  }
  for (const Ranges &ranges : {packed({20, 1, 17, 10}, T), window, prefix, padding, monotone(T, T, random)}) {
    Problem p = problem({1, 2, 1, T, T, 8}, false);
    setRanges(p, ranges);
    checkBoth(p);
  }
  Problem p = problem({2, 1, 1, T, T, 16}, false);
  Ranges both = packed({30, 23}, T);
  both.insert(both.end(), window.begin(), window.end());
  setRanges(p, both);
  check(p, {});
}

// Ranges of other keys than the queries' own, also with the triangle of causal attention, which both must let see.
TEST_P(AttentionMaskTest, RangesOfOtherKeysAndTheTriangle) {
  for (const bool causal : {true, false})
    for (const auto &[Tq, Tk] : {std::pair(41, 60), {60, 41}, {1, 30}, {30, 1}}) {
      Problem p = problem({1, 1, 1, Tq, Tk, 8}, causal);
      setRanges(p, monotone(Tq, Tk, random));
      checkBoth(p);
    }
}

// A mask of any form, of its own for each head or one for several, with queries that see nothing; alone, with the
// triangle, and with ranges.
TEST_P(AttentionMaskTest, FreeMasks) {
  for (const auto &[B, H] : {std::pair(2, 2), {1, 2}, {2, 1}, {1, 1}}) {
    Problem p = problem({2, 2, 1, 19, 37, 8}, /*causal=*/B == H);
    setMask(p, B, H, randomMask(B * H, 19, 37));
    checkBoth(p);
  }
  Problem p = problem({1, 1, 1, 40, 40, 8}, false);
  setMask(p, 1, 1, randomMask(1, 40, 40));
  setRanges(p, monotone(40, 40, random));
  checkBoth(p);
  Problem none = problem({1, 1, 1, 20, 20, 8}, false);
  setMask(none, 1, 1, std::vector<double>(400, 0));
  checkBoth(none);
}

// Documents packed into one sequence give what each gives alone.
TEST_P(AttentionMaskTest, PackedDocumentsAreAsAlone) {
  constexpr int64_t T = 64, D = 8;
  Problem p = problem({1, 1, 1, T, T, D}, false);
  setRanges(p, packed({24, 40}, T));
  launch(p, tiles(false));
  int64_t begin = 0;
  for (const int64_t length : {24, 40}) {
    Problem alone = problem({1, 1, 1, length, length, D}, true);
    for (const auto &[from, to] :
         {std::pair(&p.q, &alone.q), {&p.k, &alone.k}, {&p.v, &alone.v}, {&p.dout, &alone.dout}}) {
      to->values.assign(from->values.begin() + begin * D, from->values.begin() + (begin + length) * D);
      to->reset();
    }
    launch(alone, tiles(false));
    for (const auto &[all, one] :
         {std::pair(&p.o, &alone.o), {&p.dq, &alone.dq}, {&p.dk, &alone.dk}, {&p.dv, &alone.dv}}) {
      const auto got = all->read(), want = one->read();
      std::vector<Want> wants;
      for (const double value : want)
        wants.push_back({value, 8 * unit(type()) * std::abs(value) + 1e-6});
      expectClose("packed", {got.begin() + begin * D, got.begin() + (begin + length) * D}, wants, type());
    }
    begin += length;
  }
}

// Sums of grouped heads are in a written order: the same bits on any number of threads.
TEST_P(AttentionMaskTest, GroupsAreDeterministic) {
  Problem p = problem({1, 4, 2, 40, 40, 8}, true);
  launch(p, {});
  p.o.values = p.o.read();
  p.lse.values = p.lse.read();
  const AttentionSaved saved = {p.q, p.k, p.v, p.o, p.lse, p.dout};
  for (const bool whole : {true, false})
    expectSameBits(planAttentionBackward(target(), saved, p.dq, p.dk, p.dv, p.scale(), p.mask, tiles(whole)),
                   {&p.dq, &p.dk, &p.dv});
}

// A kernel says so when its ranges fall or leave the keys, at whatever query.
TEST_P(AttentionMaskTest, RangesAreChecked) {
  Problem p = problem({1, 1, 1, 40, 40, 8}, false);
  setRanges(p, packed({40}, 40));
  const Ranges right = p.ranges;
  const auto messageOf = [&](int64_t at, int32_t begin, int32_t end) {
    p.held[0].values.assign(right.begin(), right.end());
    p.held[0].values[2 * at] = begin;
    p.held[0].values[2 * at + 1] = end;
    p.held[0].reset();
    return errorOf([&] { run(planAttention(target(), p.q, p.k, p.v, p.o, p.lse, p.scale(), p.mask, tiles(true))); });
  };
  const char *const outside = "expected ranges that lie within the rows or columns that there are";
  EXPECT_NE(messageOf(39, 0, 41).find(outside), std::string::npos);
  EXPECT_NE(messageOf(0, -1, 1).find(outside), std::string::npos);
  EXPECT_NE(messageOf(20, 22, 21).find(outside), std::string::npos);
  for (const int64_t at : {5, 16, 32}) // also across blocks
    EXPECT_NE(messageOf(at, 0, 0).find("expected ranges that do not fall"), std::string::npos) << at;
}

INSTANTIATE_TEST_SUITE_P(Machines, AttentionMaskTest, testing::ValuesIn(productMachines()), machineName);

// The ranges of columns are those rows whose ranges hold the column, for random ranges.
TEST(ColumnRanges, AreTheRowsThatSeeAColumn) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto Tq = static_cast<int64_t>(1 + random() % 20), Tk = static_cast<int64_t>(1 + random() % 20);
    Ranges ranges = monotone(Tq, Tk, random);
    const Ranges second = monotone(Tq, Tk, random);
    ranges.insert(ranges.end(), second.begin(), second.end());
    const Ranges columns = columnRanges(ranges, Tq, Tk);
    ASSERT_EQ(columns.size(), static_cast<size_t>(4 * Tk));
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < Tq; ++i)
        for (int64_t j = 0; j < Tk; ++j) {
          const int32_t *row = &ranges[2 * (b * Tq + i)], *column = &columns[2 * (b * Tk + j)];
          EXPECT_EQ(row[0] <= j && j < row[1], column[0] <= i && i < column[1]) << i << " " << j;
        }
  }
}

// Ranges that are none are told with their row and what they should be.
TEST(ColumnRanges, TellWhatIsWrong) {
  EXPECT_EQ(errorOf([] { columnRanges({0, 1, 0, 5}, 2, 4); }),
            "'columnRanges': expected the range of row 1 to lie within 0 to 4 and to end no sooner than it begins, but "
            "got 0 to 5");
  EXPECT_EQ(errorOf([] { columnRanges({0, 2, 0, 1}, 2, 4); }),
            "'columnRanges': expected the range of row 1 not to fall behind 0 to 2, but got 0 to 1");
  EXPECT_EQ(errorOf([] { columnRanges({0, 2, 0}, 2, 4); }),
            "'columnRanges': expected two numbers for each of 2 rows, but got 3");
}

} // namespace
} // namespace kiln
