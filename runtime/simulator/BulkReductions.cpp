// Bulk reductions element by element, and the asynchronous store and reduction of single elements.

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/Cta.h"

#include <atomic>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

AtomicOperation takeReduction(Decoder &d) {
  using Op = AtomicOperation;
  static constexpr Op operations[] = {Op::add, Op::min,  Op::max,       Op::and_,
                                      Op::or_, Op::xor_, Op::increment, Op::decrement};
  const int number = d.takeOne({"add", "min", "max", "and", "or", "xor", "inc", "dec"});
  if (number < 0)
    d.wrong("a reduction");
  return operations[number];
}

// --- Elements ------------------------------------------------------------------------------------------------------

template <class Element, AtomicOperation operation> static void combine(char *to, const char *from, uint32_t bytes) {
  using Word = typename Element::Word;
  for (uint32_t at = 0; at + sizeof(Word) <= bytes; at += sizeof(Word)) {
    Word operand;
    std::memcpy(&operand, from + at, sizeof(Word));
    const std::atomic_ref<Word> place(*reinterpret_cast<Word *>(to + at));
    Word old = place.load();
    const auto next = [&] {
      if constexpr (std::is_same_v<Word, uint16_t>)
        return Element::next(operation, old, operand);
      else
        return Element::word(
            updated(operation, Element::number(old), Element::number(operand), Element::number(operand)));
    };
    while (!place.compare_exchange_weak(old, next()))
      continue;
  }
}

template <class Element> static Combine pickCombine(AtomicOperation operation, bool isInteger, bool isUnsigned) {
  using Op = AtomicOperation;
  switch (operation) {
  case Op::add:
    return combine<Element, Op::add>;
  case Op::min:
    return combine<Element, Op::min>;
  case Op::max:
    return combine<Element, Op::max>;
  case Op::and_:
    return isInteger ? combine<Element, Op::and_> : nullptr;
  case Op::or_:
    return isInteger ? combine<Element, Op::or_> : nullptr;
  case Op::xor_:
    return isInteger ? combine<Element, Op::xor_> : nullptr;
  case Op::increment:
    return isUnsigned ? combine<Element, Op::increment> : nullptr;
  case Op::decrement:
    return isUnsigned ? combine<Element, Op::decrement> : nullptr;
  default:
    return nullptr;
  }
}

Combine combineFor(AtomicOperation operation, Type type) {
  const bool isBitwise = operation >= AtomicOperation::and_ && operation <= AtomicOperation::xor_;
  switch (type) {
  case Type::b32:
    return isBitwise ? pickCombine<AtomicWord<uint32_t>>(operation, true, false) : nullptr;
  case Type::b64:
    return isBitwise ? pickCombine<AtomicWord<uint64_t>>(operation, true, false) : nullptr;
  case Type::u32:
    return pickCombine<AtomicWord<uint32_t>>(operation, true, true);
  case Type::u64:
    return pickCombine<AtomicWord<uint64_t>>(operation, true, false);
  case Type::s32:
    return pickCombine<AtomicWord<int32_t>>(operation, true, false);
  case Type::s64:
    return pickCombine<AtomicWord<int64_t>>(operation, true, false);
  case Type::f16:
    return pickCombine<NarrowWord<false>>(operation, false, false);
  case Type::bf16:
    return pickCombine<NarrowWord<true>>(operation, false, false);
  case Type::f32:
    return operation == AtomicOperation::add ? combine<AtomicWord<float>, AtomicOperation::add> : nullptr;
  case Type::f64:
    return operation == AtomicOperation::add ? combine<AtomicWord<double>, AtomicOperation::add> : nullptr;
  default:
    return nullptr;
  }
}

// --- st.async, red.async -------------------------------------------------------------------------------------------

namespace {
/// The list: two addresses, bytes of an element, the reduction's number + 1 or 0, its type, the slots of the elements.
struct ElementList {
  static constexpr size_t mbarrier = AddressOperand::words, bytes = 2 * AddressOperand::words, reduction = bytes + 1,
                          type = bytes + 2, elements = bytes + 3;
};
} // namespace

static void runElements(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  const uint32_t width = list[ElementList::bytes];
  const auto count = static_cast<uint32_t>(step.count - ElementList::elements);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    BulkOperation operation = operationOf(warp, step, lane);
    char *to = locate(warp, step, lane, AddressOperand::space(list), AddressOperand::of(warp, list, lane),
                      width * count, width * count, AccessKind::write, true);
    if (!completeAt(warp, step, lane, list + ElementList::mbarrier, width * count, operation) || !to)
      continue;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t slot = list[ElementList::elements + i];
      const uint64_t word = width == 8 ? warp.reg<uint64_t>(slot)[lane] : warp.reg<uint32_t>(slot)[lane];
      const auto *bytes = reinterpret_cast<const char *>(&word);
      operation.data.insert(operation.data.end(), bytes, bytes + width);
    }
    operation.stage = BulkOperation::Stage::read; // from registers
    operation.pieces.push_back({to, nullptr, width * count});
    if (list[ElementList::reduction]) {
      operation.combine = combineFor(static_cast<AtomicOperation>(list[ElementList::reduction] - 1),
                                     static_cast<Type>(list[ElementList::type]));
      operation.overwrites = false;
    }
    warp.cta.bulk.issue(warp, step, std::move(operation));
  }
}

static void emitElements(Decoder &d, Type type, std::span<const Operand> elements, uint32_t reduction) {
  if (ptx::bitsOf(type) != 32 && ptx::bitsOf(type) != 64)
    d.unsupported();
  std::vector<uint32_t> list;
  AddressOperand::append(d.address(d.operand(0), Space::shared), list);
  AddressOperand::append(d.address(d.operand(2), Space::shared), list);
  list.insert(list.end(), {static_cast<uint32_t>(ptx::bytesOf(type)), reduction, static_cast<uint32_t>(type)});
  for (const Operand &element : elements)
    list.push_back(d.source(element, type));
  d.giveList(d.emit(runElements), list);
}

/// Parses the modifiers that st.async and red.async share, except operation and type.
static void takeAsyncModifiers(Decoder &d) {
  d.takeOne({"weak", "relaxed"});
  d.take("cluster");
  d.take("shared::cluster");
  decodeCompletion(d, true);
  d.expectCount(3, 3);
}

void decodeAsyncStore(Decoder &d) {
  takeAsyncModifiers(d);
  const int vector = d.takeOne({"v2", "v4"});
  const Type type = d.type();
  const auto elements = d.elements(d.operand(1));
  if (elements.size() != (vector < 0 ? 1u : 2u << vector))
    d.wrong(fmt::format("{} elements, but got {},", vector < 0 ? 1 : 2 << vector, elements.size()));
  emitElements(d, type, elements, 0);
}

void decodeAsyncReduction(Decoder &d) {
  takeAsyncModifiers(d);
  const AtomicOperation reduction = takeReduction(d);
  const Type type = d.type();
  if (!combineFor(reduction, type) || ptx::isFloat(type))
    d.unsupported();
  emitElements(d, type, d.elements(d.operand(1)), static_cast<uint32_t>(reduction) + 1);
}

} // namespace kiln::simulator
