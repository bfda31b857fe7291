// atom and red: lane by lane, in lane order, each indivisible on the host, too, since blocks run on several threads.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/AtomicOperations.h"
#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <atomic>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

static uint32_t addHalves(uint32_t a, uint32_t b, bool isBf16, bool flush) {
  uint32_t result = 0;
  for (const int shift : {0, 16}) {
    const auto x = static_cast<uint16_t>(a >> shift), y = static_cast<uint16_t>(b >> shift);
    uint16_t sum = isBf16 ? toBf16(double{fromBf16(x)} + fromBf16(y), Rounding::nearest)
                          : toHalf(double{fromHalf(x)} + fromHalf(y), Rounding::nearest);
    if (flush && (sum & 0x7c00) == 0 && !isBf16)
      sum &= 0x8000;
    result |= static_cast<uint32_t>(sum) << shift;
  }
  return result;
}

/// Runs `next(old, lane)` as one indivisible update of each lane's word; the old words become the results.
template <class Word, class Next> static void updateLanes(Warp &warp, const Step &step, Next next) {
  const AccessShape shape = AccessShape::unpack(step.target);
  const LanePointers pointers =
      resolve(warp, step, shape.space, addressesOf(warp, step, shape), sizeof(Word), AccessKind::atomic);
  Shadow *const shadow = warp.cta.shadow.get();
  if (shadow)
    shadow->publish(warp, pointers, *shape.ordering);
  for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    Word old = 0;
    if (pointers.valid >> lane & 1) {
      std::atomic_ref<Word> place(*reinterpret_cast<Word *>(pointers.at[lane]));
      old = place.load();
      Word now = next(old, lane);
      while (!place.compare_exchange_weak(old, now))
        now = next(old, lane);
      if (now != old)
        warp.noteChange();
    }
    if (step.slots[1] != Step::none)
      warp.reg<WordOf<Word>>(step.slots[1])[lane] = old;
  }
  if (shadow)
    shadow->collect(warp, pointers, *shape.ordering);
}

template <class T> static void runAtomic(Warp &warp, const Step &step) {
  using Word = typename AtomicWord<T>::Word;
  const auto operation = static_cast<AtomicOperation>(warp.list(step)[0]);
  const auto *b = warp.reg<WordOf<T>>(step.slots[2]);
  const auto *c = step.slots[3] == Step::none ? b : warp.reg<WordOf<T>>(step.slots[3]);
  // The result may be one of the sources.
  std::array<WordOf<T>, lanesOfWarp> left, right;
  std::copy_n(b, lanesOfWarp, left.begin());
  std::copy_n(c, lanesOfWarp, right.begin());
  updateLanes<Word>(warp, step, [&](Word old, size_t lane) {
    return AtomicWord<T>::word(
        updated<T>(operation, AtomicWord<T>::number(old), fromWord<T>(left[lane]), fromWord<T>(right[lane])));
  });
}

/// list: 1 for bf16, 1 for flushing.
static void runPair(Warp &warp, const Step &step) {
  const bool isBf16 = warp.list(step)[0] != 0, flush = warp.list(step)[1] != 0;
  std::array<uint32_t, lanesOfWarp> b;
  std::copy_n(warp.reg<uint32_t>(step.slots[2]), lanesOfWarp, b.begin());
  updateLanes<uint32_t>(warp, step, [&](uint32_t old, size_t lane) { return addHalves(old, b[lane], isBf16, flush); });
}
static void runHalf(Warp &warp, const Step &step) {
  const bool isBf16 = warp.list(step)[0] != 0;
  std::array<uint32_t, lanesOfWarp> b;
  std::copy_n(warp.reg<uint32_t>(step.slots[2]), lanesOfWarp, b.begin());
  updateLanes<uint16_t>(warp, step, [&](uint16_t old, size_t lane) {
    return static_cast<uint16_t>(addHalves(old, b[lane] & 0xffff, isBf16, false));
  });
}

static Handler pickHandler(Decoder &d, AtomicOperation operation, Type type) {
  const bool bitwise = operation >= AtomicOperation::and_ && operation <= AtomicOperation::compare;
  switch (type) {
  case Type::b16:
    if (operation == AtomicOperation::compare || operation == AtomicOperation::exchange)
      return runAtomic<uint16_t>;
    d.unsupported();
  case Type::b32:
    if (!bitwise)
      d.unsupported();
    return runAtomic<uint32_t>;
  case Type::b64:
    if (!bitwise)
      d.unsupported();
    return runAtomic<uint64_t>;
  case Type::u32:
    return runAtomic<uint32_t>;
  case Type::s32:
    return runAtomic<int32_t>;
  case Type::u64:
    return runAtomic<uint64_t>;
  case Type::s64:
    return runAtomic<int64_t>;
  case Type::f32:
  case Type::f64:
    if (operation != AtomicOperation::add && operation != AtomicOperation::exchange)
      d.unsupported();
    return type == Type::f32 ? runAtomic<float> : runAtomic<double>;
  case Type::f16:
  case Type::bf16:
    if (operation != AtomicOperation::add)
      d.unsupported();
    return runHalf;
  case Type::f16x2:
  case Type::bf16x2:
    if (operation != AtomicOperation::add)
      d.unsupported();
    return runPair;
  default:
    d.unsupported();
  }
}

template <bool Returns> static void decodeAtomic(Decoder &d) {
  if (!Returns && d.take("async"))
    return decodeAsyncReduction(d);
  const int order = d.takeOne({"relaxed", "acquire", "release", "acq_rel"}, 0);
  while (d.takeOne({"sem", "cta", "gpu", "sys", "cluster", "L2::cache_hint"}) >= 0)
    continue;
  const Space space = d.space();
  const int number = d.takeOne({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  if (number < 0)
    d.unsupported();
  const auto operation = static_cast<AtomicOperation>(number);
  const bool noflush = d.take("noftz");
  const Type type = d.type();
  const bool compares = operation == AtomicOperation::compare;
  const size_t first = Returns ? 1 : 0;
  d.expectCount(first + (compares ? 3 : 2), first + (compares ? 3 : 2));
  AccessShape shape;
  shape.bytes = ptx::bytesOf(type);
  shape.ordering = static_cast<Ordering>(order);
  const Decoder::Address address = d.address(d.operand(first), space);
  Step &step = d.emit(pickHandler(d, operation, type));
  setAddress(step, shape, address);
  if (Returns && d.operand(0).kind != Operand::Kind::sink)
    step.slots[1] = d.result(0, type);
  step.slots[2] = d.source(first + 1, type);
  if (compares)
    step.slots[3] = d.source(first + 2, type);
  const bool isBf16 = type == Type::bf16 || type == Type::bf16x2;
  const bool packed = ptx::isFloat(type) && type != Type::f32 && type != Type::f64;
  d.giveList(step, packed ? std::vector<uint32_t>{isBf16, !noflush}
                          : std::vector<uint32_t>{static_cast<uint32_t>(operation), 0});
}

void addAtomics(InstructionTable &table) {
  table["atom"] = decodeAtomic<true>;
  table["red"] = decodeAtomic<false>;
}

} // namespace kiln::simulator
