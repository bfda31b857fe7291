// cp.async.bulk and cp.reduce.async.bulk on plain bytes, prefetches, and groups of bulk operations; reductions element
// by element, and st.async and red.async of single elements.

#include "runtime/simulator/BulkCopies.h"

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Shadow.h"

#include <atomic>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// --- Common parts of bulk instructions -----------------------------------------------------------------------------

uint64_t addressOf(Warp &warp, const Decoder::Address &address, int lane) {
  const auto offset = static_cast<uint64_t>(address.offset);
  if (address.slot == Step::none)
    return offset;
  return address.wide ? warp.reg<uint64_t>(address.slot)[lane] + offset
                      : static_cast<uint32_t>(warp.reg<uint32_t>(address.slot)[lane] + offset);
}

BulkOperation operationOf(Warp &warp, const Step &step, int lane) {
  BulkOperation operation;
  operation.warp = warp.index;
  operation.lane = lane;
  operation.place = warp.place(step);
  return operation;
}

bool completeAt(Warp &warp, const Step &step, int lane, const Decoder::Address &mbarrier, uint32_t bytes,
                BulkOperation &operation) {
  const char *at = locate(warp, step, lane, mbarrier, 8, 8, AccessKind::mbarrier);
  const auto place = at ? sharedPlace(warp, at) : std::nullopt;
  const Mbarriers::Object *object = place ? warp.cta.mbarriers.find(*place) : nullptr;
  if (object) {
    if (warp.cta.shadow && object->made.time && !object->madeFenced &&
        !warp.cta.shadow->order.isFenced(object->made, warp.index))
      warp.report(Check::proxy, step, lane,
                  fmt::format("an asynchronous engine is to complete bytes at the mbarrier at {}, with no "
                              "fence.proxy.async or fence.mbarrier_init since it was made",
                              warp.cta.placeText(*place)));
    operation.completion = BulkOperation::Completion::mbarrier;
    operation.mbarrier = *place;
    operation.transactions = bytes;
    return true;
  }
  if (place)
    warp.report(Check::mbarrier, step, lane,
                fmt::format("is to complete bytes at an mbarrier at {}, {}", warp.cta.placeText(*place),
                            warp.cta.mbarriers.absence(*place)));
  else if (at)
    warp.report(Check::mbarrier, step, lane, "expected an mbarrier in shared memory, but got an address elsewhere");
  return false;
}

void expectOnlyBlock(Warp &warp, const Step &step, int lane, uint32_t slot) {
  if (slot == Step::none)
    return;
  if (const uint32_t mask = warp.reg<uint32_t>(slot)[lane] & 0xffff; mask != 1)
    warp.report(Check::bounds, step, lane,
                fmt::format("expected a mask of the cluster's blocks, of which there is one, but got {:#x}", mask));
}

// --- Copies --------------------------------------------------------------------------------------------------------

namespace {
struct CopyOperands {
  Decoder::Address to, from, mbarrier;
  uint32_t bytes = 0, mask = 0; // slots
  Combine combine = nullptr;    // of a reduction
};
} // namespace

static void runCopy(Warp &warp, const Step &step) {
  const auto operands = fieldsOf<CopyOperands>(warp, step);
  forEachLane(warp, [&](int lane) {
    const uint32_t bytes = warp.reg<uint32_t>(operands.bytes)[lane];
    if (bytes % 16 != 0 || bytes > 1u << 30)
      return warp.report(Check::alignment, step, lane,
                         fmt::format("expected a number of bytes that is a multiple of 16, but got {}", bytes));
    expectOnlyBlock(warp, step, lane, operands.mask);
    BulkOperation operation = operationOf(warp, step, lane);
    char *to = locate(warp, step, lane, operands.to, bytes, 16, AccessKind::write, true);
    const char *from = locate(warp, step, lane, operands.from, bytes, 16, AccessKind::read, true);
    if (operands.to.space == Space::global)
      operation.completion = BulkOperation::Completion::group;
    else if (!completeAt(warp, step, lane, operands.mbarrier, bytes, operation))
      return;
    if (to && from)
      operation.pieces.push_back({to, from, bytes});
    operation.combine = operands.combine;
    operation.overwrites = !operands.combine;
    warp.cta.bulk.issue(warp, step, std::move(operation));
  });
}

std::pair<Space, Space> takeSpaces(Decoder &d) {
  const std::vector<std::string_view> rest = d.rest();
  std::array<Space, 2> spaces{};
  for (size_t i = 0; i < 2; ++i) {
    if (i >= rest.size() || (rest[i] != "global" && rest[i] != "shared::cta" && rest[i] != "shared::cluster"))
      d.wrong("the state spaces of the destination and the source");
    d.take(rest[i]);
    spaces[i] = rest[i] == "global" ? Space::global : Space::shared;
  }
  return {spaces[0], spaces[1]};
}

void decodeCompletion(Decoder &d, bool intoShared) {
  if (!d.take(intoShared ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    d.wrong(intoShared ? "'.mbarrier::complete_tx::bytes'" : "'.bulk_group'");
}

/// A prefetch has no visible effect, but its operands are checked.
static void decodePrefetch(Decoder &d) {
  const bool hasPolicy = d.take("L2::cache_hint");
  if (!d.take("L2") || !d.take("global"))
    d.unsupported();
  d.expectCount(2 + hasPolicy, 2 + hasPolicy);
  d.address(d.operand(0), Space::global);
  d.source(1, Type::u32);
}

static void decodeGroups(Decoder &d, bool waits) {
  if (!waits) {
    d.expectCount(0, 0);
    d.emit([](Warp &warp, const Step &) { warp.cta.bulk.commit(warp.index, warp.exec); });
    return;
  }
  const bool onlyReads = d.take("read");
  d.expectCount(1, 1);
  if (d.operand(0).kind != Operand::Kind::integer)
    d.wrong("a number of groups");
  Step &step = d.emit(
      [](Warp &warp, const Step &step) {
        const auto most = static_cast<uint32_t>(step.detail);
        const bool onlyReads = step.target != 0;
        if (warp.cta.bulk.pending(warp.index, warp.exec, most, onlyReads))
          return warp.waitFor(
              {.kind = Wait::Kind::bulkGroups, .onlyReads = onlyReads, .index = most, .lanes = warp.exec});
        warp.cta.bulk.see(warp.index, warp.exec, most, onlyReads);
      },
      {}, d.operand(0).bits);
  step.target = onlyReads;
}

void decodeBulkCopy(Decoder &d, bool reduces) {
  if (!reduces) {
    if (d.take("prefetch"))
      return d.take("tensor") ? decodeTensorPrefetch(d) : decodePrefetch(d);
    if (const int group = d.takeOne({"commit_group", "wait_group"}); group >= 0)
      return decodeGroups(d, group == 1);
  }
  if (d.take("tensor"))
    return decodeTensorCopy(d, reduces);
  const auto [to, from] = takeSpaces(d);
  if (to == from && to == Space::global)
    d.unsupported();
  const bool intoShared = to == Space::shared;
  decodeCompletion(d, intoShared);
  const bool isMulticast = intoShared && !reduces && d.take("multicast::cluster"), hasPolicy = d.take("L2::cache_hint");
  const uint32_t least = intoShared ? 4 : 3;
  d.expectCount(least + isMulticast + hasPolicy, least + isMulticast + hasPolicy);
  CopyOperands operands{d.address(d.operand(0), to), d.address(d.operand(1), from)};
  if (intoShared)
    operands.mbarrier = d.address(d.operand(3), Space::shared);
  if (d.operand(2).kind == ptx::Operand::Kind::integer && d.operand(2).bits % 16 != 0)
    d.wrong("a multiple of 16 bytes");
  operands.bytes = d.source(2, Type::u32);
  operands.mask = isMulticast ? d.source(4, Type::b16) : Step::none;
  if (hasPolicy)
    d.source(least + isMulticast, Type::b64);
  if (reduces) {
    const AtomicOperation reduction = takeReduction(d);
    const bool isExact = d.take("noftz");
    const Type type = d.type();
    if ((type == Type::f16 || type == Type::bf16) && reduction == AtomicOperation::add && !isExact)
      d.wrong("'.noftz'");
    operands.combine = combineFor(reduction, type);
    if (!operands.combine)
      d.unsupported();
  }
  giveFields(d, d.emit(runCopy), operands);
}

// --- Reductions -----------------------------------------------------------------------------------------------------

AtomicOperation takeReduction(Decoder &d) {
  const int number = d.takeOne({"add", "min", "max", "and", "or", "xor", "inc", "dec"});
  if (number < 0)
    d.wrong("a reduction");
  return static_cast<AtomicOperation>(number);
}

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
/// The slots of the elements follow.
struct ElementOperands {
  Decoder::Address to, mbarrier;
  uint32_t width = 0;        // bytes of an element
  Combine combine = nullptr; // of a reduction
};
} // namespace

static void runElements(Warp &warp, const Step &step) {
  const auto operands = fieldsOf<ElementOperands>(warp, step);
  const std::span<const uint32_t> slots = slotsAfter<ElementOperands>(warp, step);
  const auto bytes = static_cast<uint32_t>(operands.width * slots.size());
  forEachLane(warp, [&](int lane) {
    BulkOperation operation = operationOf(warp, step, lane);
    char *to = locate(warp, step, lane, operands.to, bytes, bytes, AccessKind::write, true);
    if (!completeAt(warp, step, lane, operands.mbarrier, bytes, operation) || !to)
      return;
    for (const uint32_t slot : slots) {
      const uint64_t word = operands.width == 8 ? warp.reg<uint64_t>(slot)[lane] : warp.reg<uint32_t>(slot)[lane];
      const auto *first = reinterpret_cast<const char *>(&word);
      operation.data.insert(operation.data.end(), first, first + operands.width);
    }
    operation.stage = BulkOperation::Stage::read; // from registers
    operation.pieces.push_back({to, nullptr, bytes});
    operation.combine = operands.combine;
    operation.overwrites = !operands.combine;
    warp.cta.bulk.issue(warp, step, std::move(operation));
  });
}

static void emitElements(Decoder &d, Type type, std::span<const Operand> elements, Combine combine) {
  if (ptx::bitsOf(type) != 32 && ptx::bitsOf(type) != 64)
    d.unsupported();
  const ElementOperands operands{d.address(d.operand(0), Space::shared), d.address(d.operand(2), Space::shared),
                                 static_cast<uint32_t>(ptx::bytesOf(type)), combine};
  std::vector<uint32_t> slots;
  for (const Operand &element : elements)
    slots.push_back(d.source(element, type));
  giveFields(d, d.emit(runElements), operands, slots);
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
  emitElements(d, type, elements, nullptr);
}

void decodeAsyncReduction(Decoder &d) {
  takeAsyncModifiers(d);
  const AtomicOperation reduction = takeReduction(d);
  const Type type = d.type();
  const Combine combine = combineFor(reduction, type);
  if (!combine || ptx::isFloat(type))
    d.unsupported();
  emitElements(d, type, d.elements(d.operand(1)), combine);
}

} // namespace kiln::simulator
