// Views with strided elements, every second one or fewer: all elements of the view are accessed, those in between stay,
// and none before the first or after the last is touched.

#include "test/runtime/semantics/guarded_page.h"
#include "test/runtime/semantics/semantics.h"

#include <limits>

namespace {

using namespace kiln;
using namespace kiln::test;

/// x from `from` on to y from `to` on, in each of two rows.
void moveRows(View x, View y, Tile from, Tile to, ExtentConfig cfg) {
  store(y, {0, to}, load(x, {0, from}, {2, cfg.extent}));
}
const Kernel moveRowsKernel = kernel("move_rows", moveRows, extentField());

class Strided : public Semantics {
protected:
  /// Two rows of `count` elements `stride` apart; the first begins, or the last ends, where memory does.
  static TensorRef rows(const GuardedPage &page, Type type, int64_t count, int64_t stride, bool atEnd) {
    const int64_t pitch = count * stride + 3, needed = pitch + (count - 1) * stride + 1;
    char *const first = atEnd ? page.end() - needed * bytesOf(type) : page.begin();
    return {first, type, {2, count}, {pitch, stride}};
  }
  /// The offset of an element in the page.
  static int64_t byteOf(const GuardedPage &page, const TensorRef &view, int64_t row, int64_t column) {
    const int64_t element = row * view.strides[0] + column * view.strides[1];
    return static_cast<char *>(view.data) - page.begin() + element * bytesOf(view.type);
  }
};

TEST_P(Strided, RowsMoveWithinTheirViews) {
  GuardedPage source(*device), target(*device);
  constexpr int64_t count = 41, farthest = std::numeric_limits<int64_t>::max() - 2;
  for (const Type type : {i8, bf16, f32, i64})
    for (const int64_t stride : {2, 3, 4, 5, 8, 9})
      for (const int64_t extent : {5, 37})
        for (const bool atEnd : {false, true}) {
          if (stride * bytesOf(type) > 40) // two rows would be longer than the page
            continue;
          const TensorRef x = rows(source, type, count, stride, atEnd), y = rows(target, type, count, stride, atEnd);
          for (const auto &[from, to] :
               {std::pair<int64_t, int64_t>{0, count - extent}, {-3, 2}, {count - 4, -1}, {farthest, 0}}) {
            std::vector<uint8_t> have(source.bytes(), 0x55); // what lies between, and must not be seen
            std::vector<uint8_t> want(target.bytes(), 0x66);
            for (int64_t i = 0; i < 2 * count; ++i)
              std::fill_n(&have[byteOf(source, x, i / count, i % count)], bytesOf(type),
                          static_cast<uint8_t>(i / count * 41 + i % count + 1));
            source.write(have);
            target.write(want);
            launch(moveRowsKernel, {x, y, from, to}, extentText(extent));
            for (int64_t i = 0; i < 2 * extent; ++i) {
              const int64_t row = i / extent, lane = i % extent, left = std::min(from, count) + lane, right = to + lane;
              if (right < 0 || right >= count)
                continue;
              std::fill_n(&want[byteOf(target, y, row, right)], bytesOf(type),
                          left < 0 || left >= count ? 0 : static_cast<uint8_t>(row * 41 + left + 1));
            }
            ASSERT_TRUE(want == target.read())
                << nameOf(type) << " stride " << stride << ", tile of " << extent << " from " << from << " to " << to;
          }
        }
}

/// y is x with the elements of each pair swapped, `extent` pairs in each of two rows.
void swapPairs(View x, View y, ExtentConfig cfg) {
  const auto [even, odd] = split(reshape(load(x, {0, 0}, {2, 2 * cfg.extent}), {2, cfg.extent, 2}));
  store(y, {0, 0}, interleave(odd, even));
}
const Kernel swapPairsKernel = kernel("swap_pairs", swapPairs, extentField());

// Both elements of a pair may be read by one vector, but memory after the row need not exist.
TEST_P(Strided, PairsAreReadWithinTheirViews) {
  GuardedPage source(*device), target(*device);
  for (const Type type : {i8, bf16, f32, i64})
    for (const int64_t extent : {4, 7, 24, 35, 64})
      for (const int64_t missing : {0, 1, 3})
        for (const bool atEnd : {false, true}) {
          const int64_t columns = 2 * extent - missing;
          const TensorRef x = rows(source, type, columns, 1, atEnd), y = rows(target, type, columns, 1, atEnd);
          std::vector<uint8_t> have(source.bytes(), 0x55), want(target.bytes(), 0x66);
          for (int64_t i = 0; i < 2 * columns; ++i) {
            const int64_t row = i / columns, column = i % columns, partner = column ^ 1;
            std::fill_n(&have[byteOf(source, x, row, column)], bytesOf(type), static_cast<uint8_t>(i + 1));
            std::fill_n(&want[byteOf(target, y, row, column)], bytesOf(type),
                        partner < columns ? static_cast<uint8_t>(row * columns + partner + 1) : 0);
          }
          source.write(have);
          target.write(std::vector<uint8_t>(target.bytes(), 0x66));
          launch(swapPairsKernel, {x, y}, extentText(extent));
          ASSERT_TRUE(want == target.read())
              << nameOf(type) << ", " << extent << " pairs, " << missing << " missing" << (atEnd ? ", at the end" : "");
        }
}

/// A product whose accumulator is stored after a strided row has been added to it.
void addRow(View a, View b, View row, View c) {
  Tile sums = dot(load(a, {0, 0}, {32, 32}), load(b, {0, 0}, {32, 32}));
  store(c, {0, 0}, broadcast(load(row, {0, 0}, {1, 32}), {32, 32}) + sums);
}
const Kernel addRowKernel = kernel("add_row", addRow);

TEST_P(Strided, RowsAreAddedToSumsInRegisters) {
  const Tensor a = counting(f32, {32, 32}), b = counting(f32, {32, 32}), c(device, f32, {32, 32});
  for (const int64_t stride : {1, 2, 7}) {
    const Tensor memory = counting(f32, {32 * stride});
    TensorRef row = memory.ref();
    row.extents = {1, 32};
    row.strides = {32 * stride, stride};
    launch(addRowKernel, {a.ref(), b.ref(), row, c.ref()});
    const Raw got = read(c);
    for (int64_t m = 0; m < 32; ++m)
      for (int64_t n = 0; n < 32; ++n) {
        double want = static_cast<double>(n * stride);
        for (int64_t k = 0; k < 32; ++k)
          want += static_cast<double>((m * 32 + k) * (k * 32 + n));
        ASSERT_NEAR(realOf(f32, got[m * 32 + n]), want, want * 32 * 0x1p-24) << m << ", " << n << " stride " << stride;
      }
  }
}

/// Twos from one before the first element on, in every dimension.
void setAround(View x) { store(x, {-1, -1, -1}, full(f32, {5, 4, 3}, 2.0)); }
const Kernel setAroundKernel = kernel("set_around", setAround);

// The stride of a dimension with one element, negative or of up to 64 bits, has no effect.
TEST_P(Strided, NoStrideCountsWithoutASecondElement) {
  for (const int64_t stride : {int64_t(-9), int64_t(7), int64_t(1) << 29, -(int64_t(1) << 40), int64_t(1) << 61}) {
    const Tensor memory = tensor(f32, {5}, Raw(5));
    TensorRef x = memory.ref();
    x.data = static_cast<char *>(x.data) + 2 * bytesOf(f32);
    x.extents = {1, 1, 1};
    x.strides = {stride, stride, 1};
    launch(setAroundKernel, {x});
    const uint64_t two = rawOfReal(f32, 2);
    EXPECT_EQ(read(memory), (Raw{0, 0, two, 0, 0})) << "stride " << stride;
  }
}

KILN_ON_PROCESSORS(Strided);

} // namespace
