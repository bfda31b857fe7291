// atom and red: lane by lane, in lane order. Each is also atomic on the host, because blocks run on several threads.

#include "runtime/simulator/Access.h"
#include "runtime/simulator/AtomicOperations.h"
#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <span>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// Updates each of a lane's adjacent words atomically with `next(old, lane, element)`. The old words are the results,
/// if the instruction has any. Without results it is a reduction, whose read is not part of an acquire pattern.
template <class Word, class Next>
static void updateLanes(Warp &warp, const Step &step, std::span<const uint32_t> results, Next next) {
  const AccessShape shape = AccessShape::unpack(step.target);
  const LanePointers pointers = resolve(warp, step, shape.space, addressesOf(warp, step, shape), shape.total(),
                                        AccessKind::atomic, nullptr, nullptr, shape.inBlock);
  Shadow *const shadow = warp.cta.shadow.get();
  const bool acquires = shape.ordering == Ordering::acquire || shape.ordering == Ordering::both ||
                        std::ranges::any_of(results, [](uint32_t result) { return result != Step::none; });
  for (size_t element = 0; element < results.size(); ++element) {
    LanePointers words = pointers;
    for (char *&at : words.at)
      at += element * sizeof(Word);
    if (shadow)
      shadow->publish(warp, words, shape.ordering, shape.inBlock);
    for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(warp.exec >> lane & 1))
        continue;
      Word old = 0;
      if (words.valid >> lane & 1) {
        std::atomic_ref<Word> place(*reinterpret_cast<Word *>(words.at[lane]));
        old = place.load();
        Word now = next(old, lane, element);
        while (!place.compare_exchange_weak(old, now))
          now = next(old, lane, element);
        if (now != old)
          warp.noteChange();
      }
      if (results[element] != Step::none)
        warp.reg<WordOf<Word>>(results[element])[lane] = old;
    }
    if (shadow && acquires)
      shadow->collect(warp, words, shape.ordering, shape.inBlock);
  }
}

/// Elements of the longest vector.
static constexpr size_t maxElements = 8;

template <class T> static void runAtomic(Warp &warp, const Step &step) {
  using Word = typename AtomicWord<T>::Word;
  const auto operation = static_cast<AtomicOperation>(warp.list(step)[0]);
  const auto *b = warp.reg<WordOf<T>>(step.slots[2]);
  const auto *c = step.slots[3] == Step::none ? b : warp.reg<WordOf<T>>(step.slots[3]);
  // The result may be one of the sources.
  std::array<WordOf<T>, lanesOfWarp> left, right;
  std::copy_n(b, lanesOfWarp, left.begin());
  std::copy_n(c, lanesOfWarp, right.begin());
  updateLanes<Word>(warp, step, {&step.slots[1], 1}, [&](Word old, size_t lane, size_t) {
    return AtomicWord<T>::word(
        updated<T>(operation, AtomicWord<T>::number(old), fromWord<T>(left[lane]), fromWord<T>(right[lane])));
  });
}

/// One number or one vector per lane. The list holds the operation, the results, the sources.
template <class Element> static void runVector(Warp &warp, const Step &step) {
  using Word = typename Element::Word;
  const size_t elements = (step.count - 1) / 2;
  const uint32_t *const list = warp.list(step);
  const auto operation = static_cast<AtomicOperation>(list[0]);
  std::array<std::array<uint32_t, lanesOfWarp>, maxElements> sources; // may overlap with the results
  for (size_t element = 0; element < elements; ++element)
    std::copy_n(warp.reg<uint32_t>(list[1 + elements + element]), lanesOfWarp, sources[element].begin());
  updateLanes<Word>(warp, step, {list + 1, elements}, [&](Word old, size_t lane, size_t element) {
    return Element::next(operation, old, static_cast<Word>(sources[element][lane]));
  });
}

static Handler pickHandler(Decoder &d, AtomicOperation operation, Type type) {
  const bool exchanges = operation == AtomicOperation::compare || operation == AtomicOperation::exchange;
  const bool isBitwise = operation >= AtomicOperation::and_ && operation <= AtomicOperation::xor_;
  if (type == Type::b16 ? !exchanges : type == Type::b32 || type == Type::b64 ? !exchanges && !isBitwise : false)
    d.unsupported();
  if (ptx::isFloat(type) && operation != AtomicOperation::add && operation != AtomicOperation::exchange)
    d.unsupported();
  switch (type) {
  case Type::b16:
    return runAtomic<uint16_t>;
  case Type::b32:
  case Type::u32:
    return runAtomic<uint32_t>;
  case Type::b64:
  case Type::u64:
    return runAtomic<uint64_t>;
  case Type::s32:
    return runAtomic<int32_t>;
  case Type::s64:
    return runAtomic<int64_t>;
  case Type::f32:
    return runAtomic<float>;
  case Type::f64:
    return runAtomic<double>;
  default:
    d.unsupported();
  }
}

/// As above, for vectors and narrow floats.
static Handler pickVectorHandler(Decoder &d, Type type) {
  switch (type) {
  case Type::f32:
    return runVector<AtomicWord<float>>;
  case Type::f16:
    return runVector<NarrowWord<false>>;
  case Type::bf16:
    return runVector<NarrowWord<true>>;
  case Type::f16x2:
    return runVector<NarrowPair<false>>;
  case Type::bf16x2:
    return runVector<NarrowPair<true>>;
  default:
    d.unsupported();
  }
}

/// The ISA's rules for vectors and narrow floats; `elements` is 0 without a vector.
static void checkVector(Decoder &d, AtomicOperation operation, Type type, size_t elements, bool noflush) {
  const bool isNarrow = type != Type::f32;
  const bool isExtremum = operation == AtomicOperation::min || operation == AtomicOperation::max;
  if (operation != AtomicOperation::add && !(isExtremum && isNarrow && elements))
    d.unsupported();
  if (isNarrow != noflush)
    d.wrong(isNarrow ? "'.noftz'" : "no '.noftz'");
  if (elements == 8 && ptx::bitsOf(type) == 32)
    d.unsupported("no vector has so many bytes");
  if (elements)
    d.expectTarget(90, 81);
  else
    type == Type::f16x2 ? d.expectTarget(60, 62) : type == Type::f16 ? d.expectTarget(70, 63) : d.expectTarget(90, 78);
}

/// The elements of an operand: a vector, or one number if `elements` is 0.
static std::span<const Operand> elementsOf(Decoder &d, const Operand &operand, size_t elements) {
  const std::span<const Operand> found = d.elements(operand);
  if (found.size() != std::max<size_t>(elements, 1))
    d.wrong(fmt::format("a vector of {} elements, but got {},", elements, found.size()));
  return found;
}

/// atom and red on vectors and narrow floats, after their modifiers. `first`: the index of the address operand.
static void decodeVector(Decoder &d, AtomicOperation operation, Type type, size_t elements, bool noflush,
                         AccessShape shape, size_t first) {
  checkVector(d, operation, type, elements, noflush);
  if (elements && shape.space != Space::global && shape.space != Space::generic)
    d.unsupported("vectors in global memory alone");
  shape.elements = static_cast<uint8_t>(std::max<size_t>(elements, 1));
  const Decoder::Address address = d.address(d.operand(first), elements ? Space::global : shape.space);
  std::vector<uint32_t> list = {static_cast<uint32_t>(operation)};
  const std::span<const Operand> sources = elementsOf(d, d.operand(first + 1), elements);
  if (first == 0 || d.operand(0).kind == Operand::Kind::sink)
    list.resize(1 + sources.size(), Step::none);
  else
    for (const Operand &result : elementsOf(d, d.operand(0), elements))
      list.push_back(result.kind == Operand::Kind::sink ? Step::none : d.result(result, type));
  for (const Operand &source : sources)
    list.push_back(d.source(source, type));
  Step &step = d.emit(pickVectorHandler(d, type));
  setAddress(step, shape, address);
  d.giveList(step, list);
}

template <bool Returns> static void decodeAtomic(Decoder &d) {
  if (!Returns && d.take("async"))
    return decodeAsyncReduction(d);
  const int order = Returns ? d.takeOne({"relaxed", "acquire", "release", "acq_rel"}, 0)
                            : 2 * d.takeOne({"relaxed", "release"}, 0); // a reduction acquires nothing
  d.take("sem");
  const bool inBlock = takeScope(d);
  const size_t policies = d.take("L2::cache_hint") ? 1 : 0; // an operand without effect
  const Space space = d.space();
  if (policies && space != Space::global && space != Space::generic)
    d.wrong("'.L2::cache_hint' only of .global");
  const int number = d.takeOne({"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"});
  if (number < 0)
    d.unsupported();
  const auto operation = static_cast<AtomicOperation>(number);
  const bool noflush = d.take("noftz");
  const int vector = d.takeOne({"v2", "v4", "v8"});
  const Type type = d.type();
  const bool compares = operation == AtomicOperation::compare;
  const size_t first = Returns ? 1 : 0;
  const size_t operands = first + (compares ? 3 : 2);
  d.expectCount(operands + policies, operands + policies);
  if (policies)
    d.source(operands, Type::b64);
  AccessShape shape;
  shape.space = space;
  shape.bytes = static_cast<uint8_t>(ptx::bytesOf(type));
  shape.ordering = static_cast<Ordering>(order + 1); // they begin with none
  shape.inBlock = inBlock;
  if (vector >= 0 || (ptx::isFloat(type) && type != Type::f32 && type != Type::f64))
    return decodeVector(d, operation, type, vector < 0 ? 0 : size_t{2} << vector, noflush, shape, first);
  if (noflush)
    d.unsupported();
  const Decoder::Address address = d.address(d.operand(first), space);
  Step &step = d.emit(pickHandler(d, operation, type));
  setAddress(step, shape, address);
  if (Returns && d.operand(0).kind != Operand::Kind::sink)
    step.slots[1] = d.result(0, type);
  step.slots[2] = d.source(first + 1, type);
  if (compares)
    step.slots[3] = d.source(first + 2, type);
  d.giveList(step, {static_cast<uint32_t>(operation)});
}

void addAtomics(InstructionTable &table) {
  table["atom"] = decodeAtomic<true>;
  table["red"] = decodeAtomic<false>;
}

} // namespace kiln::simulator
