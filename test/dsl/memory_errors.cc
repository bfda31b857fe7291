// Mistakes with views: dimensions, offsets, padding, and the tiles that are read and written.

#include "test/dsl/ErrorCases.h"

namespace kiln::testing {
namespace {

const ArgFacts row = view(f32, {64}), matrix = view(bf16, {64, 32}), integers = view(i32, {64, 32});

void dimensions(View a) {
  // expected-error@+1 {{'dim' expected a dimension from 0 to 1, but got 2}}
  a.dim(2);
  // expected-error@+1 {{'extent' expected a dimension from 0 to 1, but got -1}}
  a.extent(-1);
}
const ErrorCase dimensionsCase("Views", "Dimensions", dimensions, {matrix});

void offsets(View a) {
  // expected-error@+1 {{'load' expected 2 offsets for a view of rank 2, but got 1}}
  load(a, {0}, {4});
  // expected-error@+1 {{'load' expected an integer scalar as offset, but got f32 scalar}}
  load(a, {0, full(f32, {}, 0)}, {4});
  // expected-error@+1 {{'load' expected an integer scalar as offset, but got i32[4]}}
  load(a, {iota(4), 0}, {4});
  // expected-error@+1 {{'load' expected a number that fits i64, but got 1.5}}
  load(a, {0, 1.5}, {4});
  // expected-error@+1 {{'gather' expected 1 offset for a view of rank 2, but got 2}}
  gather(a, iota(4), {0, 0}, {4});
}
const ErrorCase offsetsCase("Views", "Offsets", offsets, {matrix});

void selections(View a, View b) {
  // expected-error@+1 {{'select' expected an integer scalar as index, but got i32[4]}}
  View row = a.select(0, iota(4));
  View column = a.select(1, 3);
  // expected-error@+1 {{'load' expected 1 offset for a view of rank 1, but got 2}}
  load(column, {0, 0}, {4});
  // expected-error@+1 {{'dim' expected a dimension from 0 to 0, but got 1}}
  column.dim(1);
  // expected-error@+1 {{'gather' expected a view with the first dimension of its argument, whose rows it names, but}}
  gather(b.select(0, 1), iota(4), {}, {});
  // expected-error@+1 {{'select' expected a dimension from 0 to 1, but got 2}}
  b.select(2, 0);
}
const ErrorCase selectionsCase("Views", "Selections", selections, {matrix, matrix});

void ranks(View a) {
  // expected-error@+1 {{'load' expected a tile of at most the view's rank 2, but got shape 1x4x4}}
  load(a, {0, 0}, {1, 4, 4});
  // expected-error@+1 {{'store' expected a tile of at most the view's rank 2, but got shape 1x4x4}}
  store(a, {0, 0}, zeros(bf16, {1, 4, 4}));
  // expected-error@+1 {{'gather' expected a tile of at most the view's rank 1, but got shape 4x4}}
  gather(a, iota(4), {0}, {4, 4});
}
const ErrorCase ranksCase("Views", "Ranks", ranks, {matrix});

void padding(View a) {
  // expected-error@+1 {{'load' expected padding zero on a view of i32, but got neg_inf}}
  load(a, {0, 0}, {4}, Padding::neg_inf);
  // expected-error@+1 {{'gather' expected padding zero on a view of i32, but got nan}}
  gather(a, iota(4), {0}, {4}, Padding::nan);
}
const ErrorCase paddingCase("Views", "PaddingOfIntegers", padding, {integers});

void storedType(View a) {
  // expected-error@+1 {{'store' expected a tile of the view's type bf16, but got f32[4]; use cast()}}
  store(a, {0, 0}, zeros(f32, {4}));
  // expected-error@+1 {{'scatter' expected a tile of the view's type bf16, but got f32[4x4]; use cast()}}
  scatter(a, iota(4), {0}, zeros(f32, {4, 4}));
}
const ErrorCase storedTypeCase("Views", "StoredType", storedType, {matrix});

void storedNumber(View a) {
  // expected-error@+1 {{'store' expected a number that fits i32, but got 0.5}}
  store(a, {0, 0}, 0.5);
}
const ErrorCase storedNumberCase("Views", "StoredNumber", storedNumber, {integers});

void rows(View a) {
  // expected-error@+1 {{'gather' expected row indices as an i32 or i64 tile of rank 1, but got f32[4]}}
  gather(a, zeros(f32, {4}), {0}, {4});
  // expected-error@+1 {{'gather' expected row indices as an i32 or i64 tile of rank 1, but got i64 scalar}}
  gather(a, program_id(), {0}, {4});
  // expected-error@+1 {{'scatter' expected one row for each of the 4 indices, but got bf16[5x4]}}
  scatter(a, iota(4), {0}, zeros(bf16, {5, 4}));
}
const ErrorCase rowsCase("Views", "RowIndices", rows, {matrix});

void atomics(View a) {
  // expected-error@+1 {{'atomic_add' expected a view of i32, i64, f32 or f64, but got bf16}}
  atomic_add(a, {0, 0}, zeros(bf16, {4}));
}
const ErrorCase atomicsCase("Views", "AtomicType", atomics, {matrix});

} // namespace
} // namespace kiln::testing
