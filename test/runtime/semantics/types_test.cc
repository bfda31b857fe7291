// Rules that hold for unsigned integers or 8-bit floats only. The other tests cover the rules of all types.

#include "test/runtime/semantics/semantics.h"

#include <cmath>

using namespace kiln;
using namespace kiln::test;

namespace {

class Types : public Semantics {};

// --- Unsigned integers -----------------------------------------------------------------------------------------------

void namedBy(View x, View ids, View out, View blocks) {
  Tile id = load(ids, {0}, {8});
  store(out, {0}, load(x, {id}));
  store(blocks, {0}, load(x, {reduce_max(id)}, {2}));
}
const Kernel namedByKernel = kernel("named_by", namedBy);

// A position is the number that it is: the upper half of a type is far outside, and not before the view.
TEST_P(Types, UnsignedSubscripts) {
  for (const Type type : {u8, u16, u32, u64}) {
    const int64_t bits = bytesOf(type) * 8;
    const uint64_t top = ~uint64_t(0) >> (64 - bits);
    const Raw ids = {0, 1, 199, top, top - 1, top / 2 + 1, 200, 131};
    const Tensor x = counting(i32, {200}, 1), at = tensor(type, {8}, ids), out(device, i32, {8}),
                 blocks(device, i32, {2});
    launch(namedByKernel, {x.ref(), at.ref(), out.ref(), blocks.ref()});
    const Raw got = read(out);
    for (size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(got[i], ids[i] < 200 ? ids[i] + 1 : 0) << nameOf(type) << " " << ids[i];
    EXPECT_EQ(read(blocks), (Raw{0, 0})) << nameOf(type);
  }
}

void carryUnsigned(View x, View out, Tile n) {
  Tile a = load(x, {0}, {16}), most = zeros(x.type(), {16});
  for (Tile i : range(0, 3)) {
    most = max(most, a);
    if_(i == 1, [&] { a = a / 3; }, [&] { a = a >> 1; });
  }
  store(out, {0, 0}, most);
  store(out, {1, 0}, a);
  store(out, {2, 0}, full(x.type(), {16}, n) / 2);
}
const Kernel carryUnsignedKernel = kernel("carry_unsigned", carryUnsigned);

// Loops and branches carry tiles that stay unsigned, and so do scalars of a launch.
TEST_P(Types, LoopsAndBranchesCarryUnsignedTiles) {
  for (const Type type : {u8, u16, u32, u64}) {
    const uint64_t top = ~uint64_t(0) >> (64 - bytesOf(type) * 8);
    Raw raw = words(type, 16, 1, 7);
    raw[0] = top;
    const Tensor x = tensor(type, {16}, raw), out(device, type, {3, 16});
    launch(carryUnsignedKernel, {x.ref(), out.ref(), Arg(top).as(type)});
    const Raw got = read(out);
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(got[i], raw[i]) << nameOf(type);
      EXPECT_EQ(got[16 + i], raw[i] / 2 / 3 / 2) << nameOf(type) << " " << raw[i];
      EXPECT_EQ(got[32 + i], top / 2) << nameOf(type);
    }
  }
}

// --- Floats of 8 bits ------------------------------------------------------------------------------------------------

void moveBytes(View x, View out, View bits) {
  Tile tile = load(x, {0}, {256});
  store(out, {0, 0}, where(iota(256) % 2 == 0, tile, flip(flip(tile))));
  store(out, {1, 0}, reshape(transpose(transpose(reshape(tile, {16, 16}))), {256}));
  store(bits, {0}, bitcast(tile, u8));
}
const Kernel moveBytesKernel = kernel("move_bytes", moveBytes);

// Operations that move elements keep every bit, also of infinities and NaN.
TEST_P(Types, MovesKeepEveryByte) {
  for (const Type type : byteFloats) {
    Raw raw(256);
    for (size_t i = 0; i < raw.size(); ++i)
      raw[i] = i;
    const Tensor x = tensor(type, {256}, raw), out(device, type, {2, 256}), bits(device, u8, {256});
    launch(moveBytesKernel, {x.ref(), out.ref(), bits.ref()});
    const Raw got = read(out);
    EXPECT_EQ(read(bits), raw) << nameOf(type);
    for (size_t i = 0; i < 512; ++i)
      ASSERT_EQ(got[i], raw[i % 256]) << nameOf(type) << " " << i;
  }
}

void sumBytes(View x, View out) {
  Tile tile = load(x, {0}, {64});
  store(out, {0}, unsqueeze(sum(tile), 0));
  store(out, {1}, unsqueeze(reduce_max(tile), 0));
  store(out, {2}, unsqueeze(abs(reduce_min(tile)), 0));
}
const Kernel sumBytesKernel = kernel("sum_bytes", sumBytes);

// Sums are of f32, rounded once, and saturate.
TEST_P(Types, SumsOfBytesRoundOnce) {
  for (const Type type : byteFloats) {
    Raw raw(64, rawOfReal(type, 1));
    raw[7] = rawOfReal(type, -0.25);
    const Tensor x = tensor(type, {64}, raw), out(device, type, {3});
    launch(sumBytesKernel, {x.ref(), out.ref()});
    EXPECT_EQ(read(out), (Raw{rawOfReal(type, 62.75), rawOfReal(type, 1), rawOfReal(type, 0.25)})) << nameOf(type);
    const Tensor large = tensor(type, {64}, Raw(64, rawOfReal(type, INFINITY)));
    launch(sumBytesKernel, {large.ref(), out.ref()});
    EXPECT_EQ(read(out), Raw(3, rawOfReal(type, INFINITY))) << nameOf(type);
  }
}

KILN_ON_PROCESSORS(Types);

} // namespace
