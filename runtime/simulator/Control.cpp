// bra, brx.idx, call, ret, exit, trap, nanosleep and other instructions that compute nothing.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Warp.h"

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

// --- Calls ---------------------------------------------------------------------------------------------------------

namespace {
/// Bytes of a lane's local memory that a call copies, caller's and callee's offsets relative to their frames.
struct Copy {
  uint32_t caller, callee, bytes;
};
} // namespace

/// Local bytes copied between a caller's frame and its callee's; `detail` is the callee's distance.
template <bool Back> static void copyLocals(Warp &warp, const Step &step) {
  const uint32_t *list = warp.list(step);
  for (uint32_t i = 0; i + 2 < step.count; i += 3) {
    const Copy copy{list[i], list[i + 1], list[i + 2]};
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(warp.exec >> lane & 1))
        continue;
      char *base = warp.localOf(lane) + warp.path.local;
      char *caller = base + copy.caller, *callee = base + step.detail + copy.callee;
      std::memcpy(Back ? caller : callee, Back ? callee : caller, copy.bytes);
      char *const written = warp.localWritten(lane) + warp.path.local;
      char *const ofCaller = written + copy.caller, *const ofCallee = written + step.detail + copy.callee;
      std::memcpy(Back ? ofCaller : ofCallee, Back ? ofCallee : ofCaller, copy.bytes);
    }
  }
}

/// The copies that pass `actual` variables as the `formal` ones of a function.
static std::vector<uint32_t> copiesFor(Decoder &d, std::span<const Operand> actual, const ptx::Function &callee,
                                       const LocalLayout &layout, const std::vector<int> &formal) {
  if (actual.size() != formal.size())
    d.wrong(fmt::format("{} arguments for function '{}', but got {},", formal.size(), callee.name, actual.size()));
  std::vector<uint32_t> list;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i].kind != Operand::Kind::variable || !d.isInFrame(actual[i]))
      d.unsupported("arguments that are no .param variables of the function");
    const ptx::Variable &from = d.builder.function.variables[static_cast<size_t>(actual[i].index)];
    const ptx::Variable &to = callee.variables[static_cast<size_t>(formal[i])];
    list.insert(list.end(), {d.builder.localOffset(actual[i].index),
                             static_cast<uint32_t>(layout.offsets[static_cast<size_t>(formal[i])]),
                             static_cast<uint32_t>(std::min(from.bytes(), to.bytes()))});
  }
  return list;
}

static void decodeCall(Decoder &d) {
  d.take("uni");
  size_t at = 0;
  std::span<const Operand> results, arguments;
  if (d.count() > at && d.operand(at).kind == Operand::Kind::list)
    results = d.elements(d.operand(at++));
  const Operand &target = d.operand(at++);
  if (d.count() > at && d.operand(at).kind == Operand::Kind::list)
    arguments = d.elements(d.operand(at++));
  if (target.kind != Operand::Kind::function)
    d.unsupported("an indirect call");
  const ptx::Function &callee = d.builder.module.functions[static_cast<size_t>(target.index)];
  if (callee.isEntry)
    d.unsupported("a call of a kernel");
  if (callee.registerParameters)
    d.unsupported("parameters in registers");
  const uint32_t distance = d.builder.code.localBytes;
  const LocalLayout layout = layOutLocals(callee);
  const std::vector<uint32_t> in = copiesFor(d, arguments, callee, layout, callee.parameters);
  const std::vector<uint32_t> out = copiesFor(d, results, callee, layout, callee.results);
  // The callee's memory must be there before its arguments are.
  d.emit([](Warp &warp, const Step &step) { warp.makeRoomForCall(step, static_cast<uint32_t>(step.detail)); }, {},
         distance + layout.bytes);
  d.giveList(d.emit(copyLocals<false>, {}, distance), in);
  Step &call = d.emit([](Warp &warp, const Step &step) { warp.call(step, step.target); });
  call.target = d.builder.codeOf(target.index);
  d.giveList(d.emit(copyLocals<true>, {}, distance), out);
}

/// A cache policy is a number that nobody looks at.
static void decodePolicy(Decoder &d) {
  if (d.takeOne({"fractional", "range", "cvt"}) < 0)
    d.unsupported();
  while (d.takeOne({"global", "L2", "L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"}) >=
         0)
    continue;
  if (d.type() != Type::b64)
    d.wrong("'.b64'");
  d.expectCount(1, 4);
  d.emit(
      [](Warp &warp, const Step &step) {
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          if (warp.exec >> lane & 1)
            warp.reg<uint64_t>(step.slots[0])[lane] = 0;
      },
      {d.result(0, Type::b64)});
}

void addControl(InstructionTable &table) {
  table["createpolicy"] = decodePolicy;
  table["bra"] = decodeBra;
  table["brx"] = decodeBrx;
  table["call"] = decodeCall;
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
  // Hints, and waits that no result depends on.
  for (const char *name : {"nanosleep", "prefetch", "prefetchu", "applypriority", "discard", "pmevent", "brkpt"})
    table[name] = [](Decoder &d) {
      while (d.takeOne({"u32", "global", "local", "L1", "L2", "inc", "dec", "sync", "aligned", "L2::evict_last",
                        "L2::evict_normal"}) >= 0)
        continue;
      d.emit([](Warp &, const Step &) {}); // which is counted
    };
}

} // namespace kiln::simulator
