// Mistakes with scans, functions of reductions, parts of tiles, and sorts.

#include "test/dsl/ErrorCases.h"

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64});

KILN_ERRORS(Scans, AxesAndTypes, (View a), row) {
  Tile x = load(a, {0}, {4}), s = 1.0f;
  // expected-error@+1 {{'cumsum' expected an axis from -1 to 0, but got 1}}
  cumsum(x, 1);
  // expected-error@+1 {{'cumprod' expected a tile of rank 1 or more, but got f32 scalar}}
  cumprod(s);
  // expected-error@+1 {{'cumxor' expected integers or booleans, but got f32[4]; use bitcast()}}
  cumxor(x);
}

KILN_ERRORS(Scans, OperandsOfAFunction, (View a), row) {
  Tile x = load(a, {0}, {4}), y = load(a, {0}, {8});
  const auto first = [](std::array<Tile, 2> p, std::array<Tile, 2>) { return p; };
  // expected-error@+1 {{'scan' expected shapes that broadcast, but got 4 and 8}}
  scan({x, y}, 0, first);
  // expected-error@+1 {{'reduce' expected an axis from -1 to 0, but got -2}}
  reduce({x, x}, -2, first);
}

KILN_ERRORS(Scans, Functions, (View a), row) {
  Tile x = load(a, {0}, {4});
  // expected-note@+1 {{declared here}}
  Tile total = 0.0f;
  // expected-error@+1 {{'scan' expected a function that returns f32 scalar, the type of its arguments, but got}}
  scan(x, 0, [](Tile p, Tile q) { return p < q; });
  // expected-error@+1 {{'scan' expected a function that returns f32 scalar, the type of its arguments, but got f32[4]}}
  scan(x, 0, [&](Tile p, Tile) { return p + x; });
  // expected-error@+1 {{'reduce' expected a function that changes no tile from outside}}
  reduce(x, 0, [&](Tile p, Tile q) { return total = p + q; });
  reduce(x, 0, [&](Tile p, Tile q) {
    // expected-error@+1 {{'reduce' expected a function of scalars that reads neither tiles nor memory}}
    return p + q * sum(x);
  });
  scan(x, 0, [&](Tile p, Tile q) {
    // expected-error@+1 {{'scan' expected a function of scalars that reads neither tiles nor memory}}
    return p + q * load(a, {0});
  });
  reduce(x, 0, [&](Tile p, Tile q) { return p + q * total; });
  scan(x, 0, [&](Tile p, Tile q) {
    // expected-error@+1 {{'scan' expected a function of scalars that reads neither tiles nor memory}}
    device_assert(x < 1, "small");
    return p + q;
  });
  scan(x, 0, [&](Tile p, Tile q) {
    // expected-error@+1 {{'device_assert' expected a boolean condition, but got f32 scalar}}
    device_assert(p, "small");
    return p + q;
  });
}

KILN_ERRORS(Parts, OfTiles, (View a), row) {
  Tile x = load(a, {0}, {4}), s = 1.0f;
  // expected-error@+1 {{'extract' expected positions from 0 to 3 in dimension 0, but got 2 to 5}}
  extract(x, {2}, {4});
  // expected-error@+1 {{'extract' expected positions from 0 to 3 in dimension 0, but got 1 to -1}}
  extract(x, {1}, {2}, {-2});
  // expected-error@+1 {{'extract' expected steps that are not 0, but got one in dimension 0}}
  extract(x, {1}, {2}, {0});
  // expected-error@+1 {{'extract' expected positions from 0 to 3 in dimension 0, but got 0 and 4 steps of 46116860}}
  extract(x, {0}, {5}, {int64_t{1} << 62});
  // expected-error@+1 {{'extract' expected a begin, an extent and a step for each dimension of f32[4], but got 2}}
  extract(x, {0, 0}, {1});
  // expected-error@+1 {{'flip' expected an axis from -1 to 0, but got 1}}
  flip(x, 1);
  // expected-error@+1 {{'split' expected a last extent of 2, but got 4}}
  split(x);
  // expected-error@+1 {{'concat' expected parts of one type, and of one shape except along axis 0, but got f32}}
  concat({x, iota(3)});
  // expected-error@+1 {{'concat' expected at least one part}}
  concat({});
  // expected-error@+1 {{'interleave' expected tiles of rank 1 or more}}
  interleave(s, s);
  // expected-error@+1 {{'join' expected tiles of rank 4 or less, but got 1x1x1x1x2}}
  join(zeros(f32, {1, 1, 1, 1, 2}), 1);
  // expected-error@+1 {{'pad' expected numbers of elements, from 0 to 2147483647, before and after each of 1}}
  pad(x, {-1}, {0}, 0);
  // expected-error@+1 {{'insert' expected a part of the type of f32[4] that lies in it, but got f32[4] at 1}}
  insert(x, x, {1});
}

KILN_ERRORS(Sorts, AxesCountsAndTypes, (View a), row) {
  Tile x = load(a, {0}, {4}), s = 1.0f;
  // expected-error@+1 {{'sort' expected an axis from -1 to 0, but got 1}}
  sort(x, 1);
  // expected-error@+1 {{'sort_at' expected a tile of rank 1 or more, but got f32 scalar}}
  sort_at(s);
  // expected-error@+1 {{'topk' expected a number of elements from 1 to 4, but got 5}}
  topk(x, 5);
  // expected-error@+1 {{'topk' expected a number of elements from 1 to 4, but got 0}}
  topk(x, 0);
  // expected-error@+1 {{'gather' expected positions of integers, but got f32[4]}}
  gather(x, x);
  // expected-error@+1 {{'gather' expected positions of integers, but got i32 scalar}}
  gather(x, 3);
  // expected-error@+1 {{'gather' expected an axis from -1 to 0, but got 1}}
  gather(x, iota(3), 1);
  // expected-error@+1 {{'gather' expected extents that agree except along axis 0, but got 4 and 3x1}}
  gather(x, unsqueeze(iota(3), 1));
  // expected-error@+1 {{'histogram' expected a tile of integers, but got f32[4]}}
  histogram(x, 8);
  // expected-error@+1 {{'histogram' expected 1 bin or more, but got 0}}
  histogram(iota(4), 0);
  // expected-error@+1 {{'histogram' expected a boolean mask, but got f32[4]}}
  histogram(iota(4), 2, x);
  // expected-error@+1 {{'histogram' expected a mask that broadcasts to shape 4, but got shape 3}}
  histogram(iota(4), 2, iota(3) < 2);
}

} // namespace
} // namespace kiln::testing
