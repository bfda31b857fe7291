// Mistakes with views: dimensions, offsets, padding, and the tiles that are read and written.

#include "test/dsl/ErrorCases.h"

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64}), matrix = view(bf16, {64, 32}), integers = view(i32, {64, 32});

KILN_ERRORS(Views, Dimensions, (View a), matrix) {
  // expected-error@+1 {{'dim' expected a dimension from 0 to 1 of argument 0 (a view of rank 2), but got 2}}
  a.dim(2);
  // expected-error@+1 {{'extent' expected a dimension from 0 to 1 of argument 0 (a view of rank 2), but got -1}}
  a.extent(-1);
}

// A registered view has its name and its shape in the error; a part of it has its name and its rank.
void namedDimensions(View a) {
  View row = a.select(0, 3);
  // expected-error@+1 {{'dim' expected a dimension from 0 to 0 of 'a' (a view of rank 1), but got 1}}
  row.dim(1);
  // expected-error@+1 {{'extent' expected a dimension from 0 to 1 of 'a' (M, K), but got 2}}
  a.extent(2);
}
const ErrorCase namedDimensionsCase("Views", "NamedDimensions",
                                    kernel("named", namedDimensions, {"a (M, K), a matrix"}), {matrix});

KILN_ERRORS(Views, Offsets, (View a), matrix) {
  // expected-error@+1 {{'load' expected 2 offsets for a view of rank 2, but got 1}}
  load(a, {0}, {4});
  // expected-error@+1 {{'load' expected an integer scalar as offset, but got f32 scalar}}
  load(a, {0, full(f32, {}, 0)}, {4});
  // expected-error@+1 {{'load' expected integers as subscripts, but got f32[4]}}
  load(a, {zeros(f32, {4}), 0}, {4});
  // expected-error@+1 {{'load' expected integers as subscripts, but got boolean[4]}}
  load(a, {0, iota(4) < 2}, {4});
  // expected-error@+1 {{'load' expected subscripts of shapes that broadcast, but got 4 and 5}}
  load(a, {iota(4), iota(5)});
  // expected-error@+1 {{'load' expected a number that fits i64, but got 1.5}}
  load(a, {0, 1.5}, {4});
  // expected-error@+1 {{'load' expected 2 offsets for a view of rank 2, but got 3}}
  load(a, {iota(4), 0, 0}, {4});
}

KILN_ERRORS(Views, Selections, (View a, View b), matrix, matrix) {
  // expected-error@+1 {{'select' expected an integer scalar as index, but got i32[4]}}
  View row = a.select(0, iota(4));
  View column = a.select(1, 3);
  // expected-error@+1 {{'load' expected 1 offset for a view of rank 1, but got 2}}
  load(column, {0, 0}, {4});
  // expected-error@+1 {{'dim' expected a dimension from 0 to 0 of argument 0 (a view of rank 1), but got 1}}
  column.dim(1);
  // expected-error@+1 {{'select' expected a dimension from 0 to 1 of argument 1 (a view of rank 2), but got 2}}
  b.select(2, 0);
}

// Tracing cannot continue without a view or an extent.
KILN_ERRORS(Views, SliceOfNoDimension, (View a), matrix) {
  // expected-error@+1 {{'slice' expected a dimension from 0 to 1 of argument 0 (a view of rank 2), but got 2}}
  a.slice(2, 0, 1);
}
KILN_ERRORS(Views, SliceToNoInteger, (View a), matrix) {
  // expected-error@+1 {{'slice' expected an integer scalar as end, but got f32 scalar}}
  a.slice(0, 0, full(f32, {}, 1.5));
}
KILN_ERRORS(Views, ExtentOfASlice, (View a), matrix) {
  const View part = a.slice(1, 0, 4);
  part.extent(0);
  // expected-error@+1 {{a dimension of argument 0 (a view of rank 2) that is not sliced, but got 1; use dim()}}
  part.extent(1);
}

KILN_ERRORS(Views, Ranks, (View a), matrix) {
  // expected-error@+1 {{at most 2 dimensions, the rank of the view, but got shape 1x4x4; leave out extents of 1}}
  load(a, {0, 0}, {1, 4, 4});
  // expected-error@+1 {{at most 2 dimensions, the rank of the view, but got shape 1x4x4; use squeeze()}}
  store(a, {0, 0}, zeros(bf16, {1, 4, 4}));
  // A hint names the function that removes dimensions of extent 1, only if that is enough.
  // expected-error@+1 {{'store' expected a tile of at most 2 dimensions, the rank of the view, but got shape 4x4x4}}
  store(a, {0, 0}, zeros(bf16, {4, 4, 4}));
  // expected-error@+1 {{'load' expected at most 1 extent, one for each scalar subscript, but got shape}}
  load(a, {iota(4), 0}, {4, 4});
  // expected-error@+1 {{'load' expected no extents, because every subscript is a tile, but got shape 4; leave}}
  load(a, {iota(4), 1 + iota(4)}, {4});
  // expected-error@+1 {{'load' expected subscripts of at most 5 dimensions together, but got tiles of shape 1x1x1x1x4}}
  load(a, {0, reshape(iota(4), {1, 1, 1, 1, 4})});
}

KILN_ERRORS(Views, PaddingOfIntegers, (View a), integers) {
  // expected-error@+1 {{'load' expected padding zero on a view of i32, but got neg_inf}}
  load(a, {0, 0}, {4}, Padding::neg_inf);
  // expected-error@+1 {{'load' expected padding zero on a view of i32, but got nan}}
  load(a, {iota(4), 0}, {4}, Padding::nan);
}

KILN_ERRORS(Views, StoredType, (View a), matrix) {
  // expected-error@+1 {{view's type bf16, but got f32[4]; use cast(), or launch with argument 0 of type f32}}
  store(a, {0, 0}, zeros(f32, {4}));
  // expected-error@+1 {{'store' expected a tile of the view's type bf16, but got f32[4x4]; use cast()}}
  store(a, {iota(4), 0}, zeros(f32, {4, 4}));
}

KILN_ERRORS(Views, StoredNumber, (View a), integers) {
  // expected-error@+1 {{'store' expected a number that fits i32, but got 0.5}}
  store(a, {0, 0}, 0.5);
}

KILN_ERRORS(Views, RowIndices, (View a), matrix) {
  // expected-error@+1 {{'store' expected a value that begins with the subscripts' shape 4, but got shape 5x4}}
  store(a, {iota(4), 0}, zeros(bf16, {5, 4}));
  // expected-error@+1 {{'store' expected a value that begins with the subscripts' shape 4, but got shape 3}}
  store(a, {iota(4), 0}, zeros(bf16, {3}));
}

KILN_ERRORS(Views, Masks, (View a), matrix) {
  // expected-error@+1 {{'load' expected a boolean mask, but got i32[4]}}
  load(a, {0, 0}, {4}, {.mask = iota(4)});
  // expected-error@+1 {{'load' expected a boolean mask, but got i32 scalar}}
  load(a, {0, 0}, {4}, {.mask = 1});
  // expected-error@+1 {{'load' expected a mask that broadcasts to shape 4, but got shape 8}}
  load(a, {0, 0}, {4}, {.mask = iota(8) < 3});
  // expected-error@+1 {{'load' expected a mask that broadcasts to shape 4, but got shape 2x4}}
  load(a, {iota(4), 0}, {}, {.mask = reshape(iota(8) < 3, {2, 4})});
  // expected-error@+1 {{'store' expected a mask that broadcasts to shape scalar, but got shape 4}}
  store(a, {0, 0}, 1, {.mask = iota(4) < 3});
}

KILN_ERRORS(Views, AtomicType, (View a, View b, View c), matrix, view(i8, {64, 32}), integers) {
  // expected-error@+1 {{'atomic_add' expected a view of i32, u32, i64, u64, bf16, f16, f32 or f64, but got i8}}
  atomic_add(b, {0, 0}, zeros(i8, {4}));
  // expected-error@+1 {{'atomic_max' expected a view of i32, u32, i64, u64, f32 or f64, but got bf16}}
  atomic_max(a, {0, 0}, zeros(bf16, {4}));
  // expected-error@+1 {{'atomic_xor' expected a view of i32, u32, i64 or u64, but got bf16}}
  atomic_xor(a, {0, 0}, zeros(bf16, {4}));
  // expected-error@+1 {{'atomic_compare_exchange' expected a view of i16, u16, i32, u32, i64, u64, bf16, f16, f32 or}}
  atomic_compare_exchange(b, {0, 0}, 0, 1);
  // expected-error@+1 {{'atomic_compare_exchange' expected shapes that broadcast, but got 4 and 5}}
  atomic_compare_exchange(c, {0, 0}, iota(4), iota(5));
  // expected-error@+1 {{'atomic_load' expected order relaxed or acquire, but got release}}
  atomic_load(c, {0, 0}, {}, Order::release);
  // expected-error@+1 {{'atomic_store' expected order relaxed or release, but got acq_rel}}
  atomic_store(c, {0, 0}, 1, Order::acq_rel);
}

} // namespace
} // namespace kiln::testing
