// mov, with packing and unpacking of vectors; activemask.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Lanes.h"

namespace kiln::simulator {

using ptx::Type;

/// The word composed of `parts`, lowest first. `detail`: bits of a part.
template <class Word> static void packParts(Warp &warp, const Step &step) {
  Word *result = warp.reg<Word>(step.slots[0]);
  const uint32_t *slots = warp.list(step);
  const auto bits = static_cast<unsigned>(step.detail);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    uint64_t word = 0;
    for (uint32_t part = 0; part < step.count; ++part)
      word |= (uint64_t{warp.reg<uint32_t>(slots[part])[lane]} & mask) << (part * bits);
    result[lane] = static_cast<Word>(word);
  }
}

template <class Word> static void unpackParts(Warp &warp, const Step &step) {
  const Word *source = warp.reg<Word>(step.slots[0]);
  const uint32_t *slots = warp.list(step);
  const auto bits = static_cast<unsigned>(step.detail);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const uint64_t word = source[lane]; // may be one of the results
    for (uint32_t part = 0; part < step.count; ++part)
      warp.reg<uint32_t>(slots[part])[lane] = static_cast<uint32_t>(word >> (part * bits) & mask);
  }
}

static void decodeVectorMove(Decoder &d, Type type) {
  const bool packs = d.operand(1).kind == ptx::Operand::Kind::vector;
  const auto parts = d.elements(d.operand(packs ? 1 : 0));
  const int bits = ptx::bitsOf(type) / static_cast<int>(std::max<size_t>(parts.size(), 1));
  if (ptx::bitsOf(type) > 64 || (bits != 8 && bits != 16 && bits != 32) ||
      bits * static_cast<int>(parts.size()) != ptx::bitsOf(type))
    d.unsupported();
  const Type part = bits == 32 ? Type::b32 : bits == 16 ? Type::b16 : Type::b8;
  std::vector<uint32_t> slots;
  for (const ptx::Operand &operand : parts)
    slots.push_back(packs ? d.source(operand, part) : d.result(operand, part));
  const bool wide = laneBytes(type) == 8;
  const uint32_t whole = packs ? d.result(0, type) : d.source(1, type);
  Step &step = d.emit(packs ? (wide ? packParts<uint64_t> : packParts<uint32_t>)
                            : (wide ? unpackParts<uint64_t> : unpackParts<uint32_t>),
                      {whole}, static_cast<uint64_t>(bits));
  d.giveList(step, slots);
}

static void decodeMov(Decoder &d) {
  const Type type = d.type();
  d.expectCount(2, 2);
  if (d.operand(0).kind == ptx::Operand::Kind::vector || d.operand(1).kind == ptx::Operand::Kind::vector)
    return decodeVectorMove(d, type);
  if (type == Type::pred) {
    bool negated = false;
    const uint32_t source = d.predicate(d.operand(1), negated);
    d.emit(
        [](Warp &warp, const Step &step) {
          Mask &result = warp.predicate(step.slots[0]);
          result = (result & ~warp.exec) | ((warp.predicate(step.slots[1]) ^ (step.detail ? allLanes : 0)) & warp.exec);
        },
        {d.result(0, type), source}, negated);
    return;
  }
  const auto same = [](auto a) { return a; };
  d.emit(laneBytes(type) == 8 ? elementwise<uint64_t, uint64_t>(same) : elementwise<uint32_t, uint32_t>(same),
         {d.result(0, type), d.source(1, type)});
}

static void decodeActivemask(Decoder &d) {
  if (d.type() != Type::b32)
    d.unsupported();
  d.expectCount(1, 1);
  d.emit(
      [](Warp &warp, const Step &step) {
        auto *result = warp.reg<uint32_t>(step.slots[0]);
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          if (warp.exec >> lane & 1)
            result[lane] = warp.exec;
      },
      {d.result(0, Type::b32)});
}

void addMoves(InstructionTable &table) {
  table["mov"] = decodeMov;
  table["activemask"] = decodeActivemask;
}

} // namespace kiln::simulator
