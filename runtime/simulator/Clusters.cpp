// Instructions of clusters, which have one block here, and of warpgroups except wgmma: mapa, getctarank,
// griddepcontrol, setmaxnreg.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Wgmma.h"

#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

/// The address in another block of the cluster; the cluster has only this block.
template <class Word> static void runMapa(Warp &warp, const Step &step) {
  const auto *rank = warp.reg<uint32_t>(step.slots[2]);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    if (rank[lane] != 0)
      warp.report(Check::bounds, step, lane, fmt::format("names block {} of a cluster that has one block", rank[lane]));
    warp.reg<Word>(step.slots[0])[lane] = warp.reg<Word>(step.slots[1])[lane];
  }
}

static Type takeClusterAddressType(Decoder &d) {
  d.take("shared::cluster");
  const Type type = d.type();
  if (type != Type::u32 && type != Type::u64)
    d.wrong("'.u32' or '.u64'");
  return type;
}

static void decodeMapa(Decoder &d) {
  const Type type = takeClusterAddressType(d);
  d.expectCount(3, 3);
  d.emit(type == Type::u64 ? runMapa<uint64_t> : runMapa<uint32_t>,
         {d.result(0, type), d.source(1, type), d.source(2, Type::u32)});
}

static void decodeRank(Decoder &d) {
  const Type type = takeClusterAddressType(d);
  d.expectCount(2, 2);
  d.source(1, type);
  d.emit(elementwise<uint32_t, uint32_t>([](uint32_t zero) { return zero; }),
         {d.result(0, Type::u32), d.constant(0, 4)});
}

static void decodeGridControl(Decoder &d) { // launches do not overlap here
  if (d.takeOne({"launch_dependents", "wait"}) < 0)
    d.unsupported();
  d.expectCount(0, 0);
}

// --- setmaxnreg ----------------------------------------------------------------------------------------------------

/// Registers of a thread at launch: the number in the PTX, or the register file divided among the threads.
static int registersAtLaunch(const Warp &warp) {
  if (warp.program.maxRegisters)
    return warp.program.maxRegisters;
  static constexpr int registerFile = 65536, maxOfThread = 248;
  return std::min(maxOfThread, registerFile / warp.cta.grid.threads() / 8 * 8);
}

/// detail: registers; target: 1 for increase, 0 for decrease.
static void runSetRegisters(Warp &warp, const Step &step) {
  const auto wanted = static_cast<int>(step.detail);
  const bool takes = step.target == 1;
  const int had = warp.registersOfLane ? warp.registersOfLane : registersAtLaunch(warp);
  const int more = wanted - had;
  if (takes && more * lanesOfWarp > warp.cta.freeRegisters && more > 0)
    return warp.waitFor({.kind = Wait::Kind::registers, .index = static_cast<uint32_t>(more)});
  agree(warp, step, step.detail, static_cast<uint64_t>(step.target));
  warp.cta.warpgroupOf(warp).done(warp.index % warpsOfGroup);
  if (takes ? more < 0 : more > 0) {
    if (warp.registersOfLane || warp.program.maxRegisters) // otherwise the number is unknown
      warp.report(Check::registers, step, 0,
                  fmt::format("asks for {} registers instead of {}, which is no {}", wanted, had,
                              takes ? "increase" : "decrease"));
    return;
  }
  warp.cta.freeRegisters -= int64_t{more} * lanesOfWarp;
  warp.registersOfLane = wanted;
}

static void decodeSetRegisters(Decoder &d) {
  const int direction = d.takeOne({"dec", "inc"});
  if (direction < 0 || !d.take("sync") || !d.take("aligned") || d.type() != Type::u32)
    d.unsupported();
  d.expectCount(1, 1);
  const Operand &number = d.operand(0);
  if (number.kind != Operand::Kind::integer || number.bits % 8 != 0 || number.bits < 24 || number.bits > 256)
    d.wrong("a multiple of 8 registers from 24 to 256");
  Step &step = d.emit(runSetRegisters, {}, number.bits);
  step.target = direction;
}

void addClusters(InstructionTable &table) {
  table["mapa"] = decodeMapa;
  table["getctarank"] = decodeRank;
  table["griddepcontrol"] = decodeGridControl;
  table["setmaxnreg"] = decodeSetRegisters;
}

} // namespace kiln::simulator
