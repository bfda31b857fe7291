// bra, brx.idx, ret, exit, trap, nanosleep and other instructions that compute nothing.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Lanes.h"

#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

static void decodeBra(Decoder &d) {
  const bool uniform = d.take("uni");
  d.expectCount(1, 1);
  if (d.operand(0).kind != Operand::Kind::label)
    d.wrong("a label");
  Step &step = d.emit(uniform ? Handler([](Warp &warp, const Step &step) {
    if (warp.exec != warp.path.mask)
      warp.report(Check::uniform, step, std::countr_zero(warp.exec),
                  fmt::format("lanes {:#x} branch and {:#x} do not, where '.uni' says that all do the same", warp.exec,
                              warp.path.mask & ~warp.exec));
    warp.branch(step);
  })
                              : Handler([](Warp &warp, const Step &step) { warp.branch(step); }));
  step.isBranch = true;
  step.target = d.operand(0).index;
}

static void decodeBrx(Decoder &d) {
  if (!d.take("idx"))
    d.unsupported();
  d.take("uni");
  d.expectCount(2, 2);
  if (d.operand(1).kind != Operand::Kind::list)
    d.wrong("a list of branch targets");
  Step &step = d.emit([](Warp &warp, const Step &step) { warp.branchIndexed(step); }, {d.source(0, Type::u32)},
                      static_cast<uint64_t>(d.operand(1).index));
  step.isBranch = true;
}

/// A cache policy is a number without effect.
static void decodePolicy(Decoder &d) {
  if (d.takeOne({"fractional", "range", "cvt"}) < 0)
    d.unsupported();
  while (d.takeOne({"global", "L2", "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"}) >=
         0)
    continue;
  if (d.type() != Type::b64)
    d.wrong("'.b64'");
  d.expectCount(1, 4);
  d.emit([](Warp &warp, const Step &step) { setLanes<uint64_t>(warp, step.slots[0], 0); }, {d.result(0, Type::b64)});
}

static void decodeGridControl(Decoder &d) { // launches do not overlap here
  if (d.takeOne({"launch_dependents", "wait"}) < 0)
    d.unsupported();
  d.expectCount(0, 0);
}

void addControl(InstructionTable &table) {
  table["griddepcontrol"] = decodeGridControl;
  table["createpolicy"] = decodePolicy;
  table["bra"] = decodeBra;
  table["brx"] = decodeBrx;
  table["ret"] = [](Decoder &d) {
    d.take("uni");
    d.emit([](Warp &warp, const Step &) { warp.returnLanes(); });
  };
  table["exit"] = [](Decoder &d) { d.emit([](Warp &warp, const Step &) { warp.exitLanes(); }); };
  table["trap"] = [](Decoder &d) {
    d.emit([](Warp &warp, const Step &step) {
      warp.report(Check::trap, step, std::countr_zero(warp.exec), "trap");
      warp.exitLanes();
    });
  };
  // Hints, and waits that do not affect results.
  for (const char *name : {"nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "pmevent", "brkpt"})
    table[name] = [](Decoder &d) {
      if ((d.instruction.opcode == "applypriority" || d.instruction.opcode == "discard") &&
          (d.count() != 2 || d.operand(1).bits != 128))
        d.wrong("an address and 128 bytes");
      while (d.takeOne({"u32", "global", "local", "L1", "L2", "inc", "dec", "sync", "aligned", "L2::evict_last",
                        "L2::evict_normal", "tensormap", "const", "param"}) >= 0)
        continue;
      d.emit([](Warp &, const Step &) {}); // counted, but without effect
    };
}

} // namespace kiln::simulator
