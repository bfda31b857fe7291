// Idioms that combine several rules, as in the test suites of other tile languages: scatters with repeated positions,
// masked blocks, results of atomics as positions, and sums in a given type.

#include "test/runtime/semantics/semantics.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace kiln;
using namespace kiln::test;

namespace {

class Idioms : public Semantics {
protected:
  static double numberOf(Type type, uint64_t raw) {
    return isFloat(type) ? toDouble(type, raw) : static_cast<double>(wideOf(type, raw));
  }
};

// --- Atomics at positions that are computed --------------------------------------------------------------------------

struct PlaceConfig {
  int rows = 1, columns = 1;
  int step = 1;         // how many neighbours share a place
  bool shifted = false; // position i + j
};
const std::vector<Field> placeFields = {field("rows", &PlaceConfig::rows), field("columns", &PlaceConfig::columns),
                                        field("step", &PlaceConfig::step), field("shifted", &PlaceConfig::shifted)};
const Type addedTypes[] = {i32, u32, i64, u64, f32, f64, bf16, f16};

/// Adds 1, 2, …, 7, 1, … at a tile of positions.
void addShared(View x, View before, PlaceConfig cfg) {
  Tile row = unsqueeze(iota(cfg.rows), 1), column = unsqueeze(iota(cfg.columns), 0),
       number = row * cfg.columns + column;
  Tile at = cfg.shifted ? row + column : number / cfg.step;
  store(before, {0, 0}, atomic_add(x, {at}, cast(number % 7 + 1, x.type())));
}
const Kernel addSharedKernel = kernel("add_shared", addShared, {"x", "before"}, placeFields);

// Neighbours share a position, or rows overlap by all but one element: each addition counts once, and its result
// contains some earlier additions at its position.
TEST_P(Idioms, ElementsThatShareAPlaceAllAddToIt) {
  int cases = 0;
  for (const auto &[rows, columns] : {std::pair(1, 128), {4, 33}, {32, 4}})
    for (const int step : {0, 2, 3, 16}) { // 0: rows that overlap
      const PlaceConfig cfg{rows, columns, std::max(step, 1), step == 0};
      const Type type = addedTypes[cases++ % std::size(addedTypes)];
      std::map<int64_t, std::vector<int64_t>> there; // the numbers of each place
      const auto placeOf = [&](int64_t i) { return step ? i / step : i / columns + i % columns; };
      for (int64_t i = 0; i < rows * columns; ++i)
        there[placeOf(i)].push_back(i);
      const auto places = static_cast<int64_t>(there.size());
      const Tensor x = tensor(type, {places}, Raw(places, wordOf(type, 100))), before(device, type, {rows, columns});
      launch(addSharedKernel, {x.ref(), before.ref()}, cfg);
      const Raw left = read(x), old = read(before);
      for (const auto &[place, numbers] : there) {
        double sum = 100;
        std::map<double, double> next; // from what each has seen to what it left: a chain
        for (const int64_t i : numbers) {
          sum += static_cast<double>(i % 7 + 1);
          next[numberOf(type, old[i])] = numberOf(type, old[i]) + static_cast<double>(i % 7 + 1);
        }
        ASSERT_EQ(numberOf(type, left[place]), sum)
            << nameOf(type) << ", " << textOf(placeFields, cfg) << ", place " << place;
        double at = 100;
        for (size_t n = 0; n < numbers.size(); ++n) {
          ASSERT_EQ(next.count(at), 1u) << nameOf(type) << ", " << textOf(placeFields, cfg) << ", place " << place;
          at = next[at];
        }
        ASSERT_EQ(at, sum) << nameOf(type) << ", " << textOf(placeFields, cfg) << ", place " << place;
      }
    }
}

void maxOfSome(View x, Tile limit) {
  Tile p = program_id(0);
  if_(p < limit, [&] { atomic_max(x, {0}, cast(p, x.type())); });
}
const Kernel maxOfSomeKernel = kernel("most_of_some", maxOfSome, {"x", "limit"});

// Of thousands of programs, only those that the branch selects run its body.
TEST_P(Idioms, OnlyProgramsInTheBranchChangeTheMaximum) {
  for (const Type type : {i32, u64, f32}) {
    const Tensor x = tensor(type, {1}, Raw(1, 0));
    launch(maxOfSomeKernel, {x.ref(), int64_t{64}}, "", 4096);
    EXPECT_EQ(numberOf(type, read(x)[0]), 63) << nameOf(type);
  }
}

/// Slots of `out`, numbered by a counter, get the programs' numbers; `sums` gets the sums that they read.
void takeSlots(View counter, View out, View sums) {
  Tile number = cast(program_id(0), i32) * 48 + iota(48);
  Tile slot = atomic_add(counter, {iota(48) * 0}, full(counter.type(), {48}, 1));
  store(out, {slot}, number);
  store(sums, {program_id(0)}, sum(cast(slot, i64)));
}
const Kernel takeSlotsKernel = kernel("take_slots", takeSlots, {"counter", "out", "sums"});

// Results of atomics are usable like other values: as positions of a store, and as terms of a sum.
TEST_P(Idioms, OldValuesArePositions) {
  constexpr int64_t programs = 5, count = 48 * programs;
  for (const Type type : {i32, i64, u32}) {
    const Tensor counter = tensor(type, {1}, Raw(1, 0)), out = tensor(i32, {count}, Raw(count, 0)),
                 sums(device, i64, {programs});
    launch(takeSlotsKernel, {counter.ref(), out.ref(), sums.ref()}, "", programs);
    EXPECT_EQ(read(counter)[0], static_cast<uint64_t>(count));
    const Raw numbers = read(out), seen = read(sums);
    Raw sorted = numbers, all(count);
    std::ranges::sort(sorted);
    std::vector<int64_t> want(programs, 0);
    for (int64_t i = 0; i < count; ++i) {
      all[i] = i;
      want[std::min<int64_t>(static_cast<int64_t>(numbers[i]) / 48, programs - 1)] += i;
    }
    EXPECT_EQ(sorted, all) << nameOf(type);
    for (int64_t p = 0; p < programs; ++p)
      EXPECT_EQ(static_cast<int64_t>(seen[p]), want[p]) << nameOf(type) << ", program " << p;
  }
}

struct OrderConfig {
  int order = 0;
};

/// All elements of all programs try to write to a position that holds 0; each has a different number.
void wantPlaces(View x, View before, OrderConfig cfg) {
  Tile number = cast(program_id(0), i32) * 24 + iota(24) + 1;
  Tile old = atomic_compare_exchange(x, {iota(24) % 5}, cast(iota(24) * 0, x.type()), cast(number, x.type()),
                                     static_cast<Order>(cfg.order));
  store(before, {program_id(0), 0}, old);
}
const Kernel wantPlacesKernel =
    kernel("want_places", wantPlaces, {"x", "before"}, {field("order", &OrderConfig::order)});

// Of many elements that try to write to one position, one succeeds, for every memory order; all others read its number.
TEST_P(Idioms, OneOfManyExchangesWhatItExpects) {
  constexpr int64_t programs = 6;
  for (int order = 0; order < 4; ++order)
    for (const Type type : {i32, u64, f32}) {
      const Tensor x = tensor(type, {7}, Raw(7, 0)), before(device, type, {programs, 24});
      launch(wantPlacesKernel, {x.ref(), before.ref()}, OrderConfig{order}, programs);
      const Raw left = read(x), old = read(before);
      std::vector<int> winners(5, 0);
      for (int64_t i = 0; i < programs * 24; ++i) {
        const int64_t place = i % 24 % 5;
        if (old[i] == 0) {
          ++winners[place];
          ASSERT_EQ(numberOf(type, left[place]), static_cast<double>(i + 1)) << nameOf(type) << ", order " << order;
        } else {
          ASSERT_EQ(old[i], left[place]) << nameOf(type) << ", order " << order << ", element " << i;
        }
      }
      EXPECT_EQ(winners, std::vector<int>(5, 1)) << nameOf(type) << ", order " << order;
      EXPECT_EQ(left[5], 0u); // which nobody wants
    }
}

// --- Zeros -----------------------------------------------------------------------------------------------------------

/// Minima and maxima of pairs: by atomics, elementwise, and along an axis.
void extremesOfPairs(View x, View y, View least, View most, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent}), b = load(y, {0}, {cfg.extent});
  store(least, {0, 0}, min(a, b));
  store(most, {0, 0}, max(a, b));
  store(least, {1, 0}, reduce_min(join(a, b)));
  store(most, {1, 0}, reduce_max(join(a, b)));
  store(least, {2, 0}, a);
  store(most, {2, 0}, a);
  atomic_min(least, {2, 0}, b);
  atomic_max(most, {2, 0}, b);
}
const Kernel extremesOfPairsKernel =
    kernel("extremes_of_pairs", extremesOfPairs, {"x", "y", "least", "most"}, extentField());

// The smaller of two zeros is unspecified; compared with any other number, a zero keeps its sign.
TEST_P(Idioms, AZeroBesideANumberKeepsItsSign) {
  for (const Type type : {f32, f64}) {
    Raw left, right;
    for (const uint64_t zero : {rawOfReal(type, 0.0), rawOfReal(type, -0.0)})
      for (const uint64_t word : specialWords(type))
        for (const bool first : {true, false}) {
          if (toDouble(type, word) == 0)
            continue;
          left.push_back(first ? zero : word);
          right.push_back(first ? word : zero);
        }
    const auto count = static_cast<int64_t>(left.size());
    const Tensor x = tensor(type, {count}, left), y = tensor(type, {count}, right), least(device, type, {3, count}),
                 most(device, type, {3, count});
    launch(extremesOfPairsKernel, {x.ref(), y.ref(), least.ref(), most.ref()}, extentText(count));
    const Raw low = read(least), high = read(most);
    for (int64_t i = 0; i < 3 * count; ++i) {
      const double a = toDouble(type, left[i % count]), b = toDouble(type, right[i % count]);
      ASSERT_TRUE(same(type, low[i], rawOfReal(type, std::fmin(a, b)))) << nameOf(type) << ", " << a << " and " << b;
      ASSERT_TRUE(same(type, high[i], rawOfReal(type, std::fmax(a, b)))) << nameOf(type) << ", " << a << " and " << b;
    }
  }
}

// --- Sums of integers ------------------------------------------------------------------------------------------------

/// A running sum in its own type, without a cast; and a sum in the type of the elements.
void sumIntegers(View x, View running, View narrow, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent});
  store(running, {0}, cumsum(a));
  store(narrow, {0}, cast(sum(a), x.type() == boolean ? i8 : x.type()));
}
const Kernel sumIntegersKernel = kernel("sum_integers", sumIntegers, {"x", "running", "narrow"}, extentField());

// Small integers are summed in 32 bits; wrapping and casting back gives the sum in their own type.
TEST_P(Idioms, SumsOfIntegersWrapInTheirType) {
  for (const Type type : {boolean, i8, u8, i16, u16, i32, u32, i64, u64})
    for (const int64_t extent : {4, 300}) {
      const bool isNarrow = bytesOf(type) < 4;
      const Type sums = !isNarrow ? type : isUnsigned(type) ? u32 : i32, back = type == boolean ? i8 : type;
      const Raw raw = words(type, extent, 3, 5);
      const Tensor x = tensor(type, {extent}, raw), running(device, sums, {extent}), narrow(device, back, {1});
      launch(sumIntegersKernel, {x.ref(), running.ref(), narrow.ref()}, extentText(extent));
      const Raw got = read(running);
      uint64_t sum = 0;
      for (int64_t i = 0; i < extent; ++i) {
        sum += static_cast<uint64_t>(integerOf(type, raw[i]));
        ASSERT_EQ(got[i], rawOfInteger(sums, static_cast<int64_t>(sum))) << nameOf(type) << ", element " << i;
      }
      EXPECT_EQ(read(narrow)[0], rawOfInteger(back, static_cast<int64_t>(sum))) << nameOf(type);
    }
}

/// A transposed tile of rank 5 reduced to a scalar, an axis at a time and all at once.
void foldTurned(View x, View out) {
  Tile a = transpose(load(x, {0, 0, 0, 0, 0}, {2, 3, 4, 2, 5}), {3, 0, 4, 2, 1}); // (2, 2, 5, 4, 3)
  store(out, {0}, sum(sum(sum(sum(sum(a, 2), 0), 0), 1), 0));
  store(out, {1}, sum(a, everywhere));
  store(out, {2}, reduce_max(sum(sum(a, -1), 1), everywhere));
  store(out, {3}, sum(reduce_max(reduce_min(a, 4), {0, 2}), everywhere));
}
const Kernel foldTurnedKernel = kernel("fold_turned", foldTurned, {"x", "out"});

// Integers: any order gives the same sum.
TEST_P(Idioms, ReductionsOfReductionsOfTurnedTiles) {
  constexpr int64_t count = 2 * 3 * 4 * 2 * 5;
  std::vector<int64_t> numbers(count);
  Raw raw;
  for (int64_t i = 0; i < count; ++i) {
    numbers[i] = i * 37 % 101 - 40;
    raw.push_back(rawOfInteger(i32, numbers[i]));
  }
  const auto at = [&](int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) { // of the turned tile
    return numbers[(((b * 3 + e) * 4 + d) * 2 + a) * 5 + c];
  };
  int64_t total = 0, most = INT64_MIN, extremes = 0;
  for (int64_t a = 0; a < 2; ++a)
    for (int64_t c = 0; c < 5; ++c)
      for (int64_t d = 0; d < 4; ++d) {
        int64_t sum = 0;
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t e = 0; e < 3; ++e)
            sum += at(a, b, c, d, e);
        total += sum;
        most = std::max(most, sum);
      }
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t d = 0; d < 4; ++d) {
      int64_t largest = INT64_MIN;
      for (int64_t a = 0; a < 2; ++a)
        for (int64_t c = 0; c < 5; ++c)
          largest = std::max(largest, std::min({at(a, b, c, d, 0), at(a, b, c, d, 1), at(a, b, c, d, 2)}));
      extremes += largest;
    }
  const Tensor x = tensor(i32, {2, 3, 4, 2, 5}, raw), out(device, i32, {4});
  launch(foldTurnedKernel, {x.ref(), out.ref()});
  const Raw got = read(out);
  for (const auto &[place, want] : {std::pair(0, total), {1, total}, {2, most}, {3, extremes}})
    EXPECT_EQ(integerOf(i32, got[place]), want) << place;
}

// --- Parts and positions ---------------------------------------------------------------------------------------------

void splitPair(View x, View out) {
  const auto [a, b] = split(load(x, {0}, {2}));
  store(out, {0}, b);
  store(out, {1}, a);
  store(out, {2}, join(b, a));
  store(out, {4}, interleave(unsqueeze(a, 0), unsqueeze(b, 0)));
}
const Kernel splitPairKernel = kernel("split_pair", splitPair, {"x", "out"});

/// Along each of three dimensions: parts of different extents, and the elements reversed.
void cube(View x, View y, View out, View turned) {
  const Shape shape{2, 3, 5};
  Tile a = load(x, {0, 0, 0}, shape);
  for (int axis = 0; axis < 3; ++axis) {
    Shape more = shape;
    more[axis] = 2;
    const Offsets at{axis, 0, 0, 0};
    store(out, at, unsqueeze(concat({a, load(y, {0, 0, 0}, more)}, axis), 0));
    store(turned, at, unsqueeze(flip(a, axis - 3), 0)); // counted from the end
  }
}
const Kernel cubeKernel = kernel("cube", cube, {"x", "y", "out", "turned"});

// A pair is split into scalars, and scalars are joined.
TEST_P(Idioms, PairsComeApartIntoScalars) {
  for (const Type type : everyType) {
    const Tensor x = tensor(type, {2}, {wordOf(type, 1), 0}), out(device, type, {6});
    const uint64_t one = wordOf(type, 1);
    launch(splitPairKernel, {x.ref(), out.ref()});
    EXPECT_EQ(read(out), (Raw{0, one, 0, one, one, 0})) << nameOf(type);
  }
}

// Tiles of rank 3 are concatenated and reversed along each of their dimensions, with infinities and NaN.
TEST_P(Idioms, CubesGrowAndTurnAlongEachDimension) {
  for (const Type type : {f32, f8e5m2, i16, boolean}) {
    const Raw left = words(type, 30, 1, 3), right = words(type, 30, 2, 4);
    const Tensor x = tensor(type, {2, 3, 5}, left), y = tensor(type, {2, 3, 5}, right),
                 out = tensor(type, {3, 4, 5, 7}, Raw(420, 0)), turned(device, type, {3, 2, 3, 5});
    launch(cubeKernel, {x.ref(), y.ref(), out.ref(), turned.ref()});
    const Raw got = read(out), back = read(turned);
    const int64_t shape[] = {2, 3, 5};
    for (int axis = 0; axis < 3; ++axis)
      for (int64_t i = 0; i < 140; ++i) {
        const int64_t at[] = {i / 35, i / 7 % 5, i % 7};
        const bool isMore = at[axis] >= shape[axis];
        bool isThere = true;
        int64_t from = 0, behind = 0, place = 0;
        for (int d = 0; d < 3; ++d) {
          isThere &= at[d] < (d == axis ? shape[d] + 2 : shape[d]);
          from = from * shape[d] + at[d];
          behind = behind * shape[d] + (d == axis ? at[d] - shape[d] : at[d]);
          place = place * shape[d] + (d == axis ? shape[d] - 1 - at[d] : at[d]);
        }
        const uint64_t want = !isThere ? 0 : isMore ? right[behind] : left[from];
        ASSERT_EQ(got[axis * 140 + i], want) << nameOf(type) << ", axis " << axis << ", element " << i;
        if (isThere && !isMore) {
          ASSERT_EQ(back[axis * 30 + place], left[from]) << nameOf(type) << ", axis " << axis << ", element " << i;
        }
      }
  }
}

/// Two counts and a sum, of one element or many, that are alive together.
void countBeside(View x, View y, View out, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent}), b = load(y, {0}, {cfg.extent});
  Tile few = histogram(a, 2), many = histogram(b, 70), total = sum(cast(a, i64) + cast(b, i64));
  store(out, {0}, cast(few, i64));
  store(out, {2}, cast(many, i64));
  store(out, {72}, total);
  store(out, {73}, cast(histogram(a, 1, b > 3), i64));
}
const Kernel countBesideKernel = kernel("count_beside", countBeside, {"x", "y", "out"}, extentField());

// Counts stay within their bins: values far outside, and masked-off ones, change no count and no other memory.
TEST_P(Idioms, CountsStayInTheirBins) {
  for (const int64_t extent : {1, 2, 33, 256}) {
    std::vector<int64_t> a(extent), b(extent);
    Raw left, right;
    const int64_t odd[] = {2, -1, INT32_MIN, INT32_MAX, 70, 71};
    for (int64_t i = 0; i < extent; ++i) {
      a[i] = i % 3 == 0 ? odd[i / 3 % 6] : i % 2;
      b[i] = i % 4 == 1 ? odd[i / 4 % 6] : i * 11 % 70;
      left.push_back(rawOfInteger(i32, a[i]));
      right.push_back(rawOfInteger(i32, b[i]));
    }
    std::vector<int64_t> want(80, 0);
    for (int64_t i = 0; i < extent; ++i) {
      if (a[i] >= 0 && a[i] < 2)
        ++want[a[i]];
      if (b[i] >= 0 && b[i] < 70)
        ++want[2 + b[i]];
      want[72] += a[i] + b[i];
      want[73] += a[i] == 0 && b[i] > 3;
    }
    for (int64_t i = 74; i < 80; ++i)
      want[i] = 5;
    const Tensor x = tensor(i32, {extent}, left), y = tensor(i32, {extent}, right), out = tensor(i64, {80}, Raw(80, 5));
    launch(countBesideKernel, {x.ref(), y.ref(), out.ref()}, extentText(extent));
    EXPECT_EQ(read(out), Raw(want.begin(), want.end())) << extent;
  }
}

// --- Elements --------------------------------------------------------------------------------------------------------

/// Shifts by numbers that are known while tracing.
void shiftBy(View x, View out, ExtentConfig cfg) {
  Tile a = load(x, {0}, {cfg.extent});
  const int64_t bits = bytesOf(x.type()) * 8;
  int row = 0;
  for (const int64_t by : {int64_t{0}, int64_t{1}, bits / 2, bits - 1, bits, bits + 1}) {
    store(out, {row++, 0}, a << by);
    store(out, {row++, 0}, a >> by);
    store(out, {row++, 0}, (a >> 1) >> by);
  }
}
const Kernel shiftByKernel = kernel("shift_by", shiftBy, {"x", "out"}, extentField());

// A shift by the width or more gives only signs, or zeros for unsigned numbers.
TEST_P(Idioms, ShiftsByKnownAmounts) {
  for (const Type type : integerTypes) {
    const int64_t bits = bytesOf(type) * 8;
    const Raw raw = words(type, 40, 1, 9);
    const Tensor x = tensor(type, {40}, raw), out(device, type, {18, 40});
    launch(shiftByKernel, {x.ref(), out.ref()}, extentText(40));
    const Raw got = read(out);
    const int64_t amounts[] = {0, 1, bits / 2, bits - 1, bits, bits + 1};
    for (int64_t i = 0; i < 40; ++i)
      for (int n = 0; n < 6; ++n) {
        const __int128 a = wideOf(type, raw[i]), by = amounts[n];
        const __int128 shifted[] = {static_cast<__int128>(static_cast<unsigned __int128>(a) << by), a >> by,
                                    a >> (by + 1)};
        for (int form = 0; form < 3; ++form)
          ASSERT_EQ(got[(3 * n + form) * 40 + i], rawOfInteger(type, static_cast<int64_t>(shifted[form])))
              << nameOf(type) << ": " << raw[i] << " by " << amounts[n] << ", form " << form;
      }
  }
}

void signsOfBytes(View x, View out) {
  Tile a = load(x, {0}, {256});
  store(out, {0, 0}, abs(a));
  store(out, {1, 0}, -a);
  store(out, {2, 0}, abs(-a));
}
const Kernel signsOfBytesKernel = kernel("signs_of_bytes", signsOfBytes, {"x", "out"});

// Every 8-bit float: only the sign changes, and infinities saturate like all results.
TEST_P(Idioms, EveryByteHasASizeAndASign) {
  for (const Type type : byteFloats) {
    Raw raw(256);
    for (int i = 0; i < 256; ++i)
      raw[i] = i;
    const Tensor x = tensor(type, {256}, raw), out(device, type, {3, 256});
    launch(signsOfBytesKernel, {x.ref(), out.ref()});
    const Raw got = read(out);
    for (int i = 0; i < 256; ++i) {
      const uint64_t bare = i & 0x7f, turned = i ^ 0x80;
      const uint64_t want[] = {bare, turned, bare};
      for (int row = 0; row < 3; ++row)
        ASSERT_TRUE(same(type, got[row * 256 + i], computed(type, want[row])))
            << nameOf(type) << " " << i << ", " << row;
    }
  }
}

KILN_ON_DEVICES(Idioms);

// --- Host loops ------------------------------------------------------------------------------------------------------

// Kernels that users write by host loops, which unroll: many small loads, long dependences, deep selections. Whole
// numbers throughout, chosen so that every step is exact.

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
