// A warpgroup's instructions in order, and checks of fences, groups and registers.

#include "runtime/simulator/Warpgroup.h"

#include <algorithm>
#include <utility>

namespace kiln::simulator {

GroupInstruction &Warpgroup::next(int warp, bool &isFirst) {
  const uint64_t number = counts[static_cast<size_t>(warp)];
  isFirst = number - begin == instructions.size();
  if (isFirst)
    instructions.emplace_back().columns = std::exchange(spare, {});
  return instructions[number - begin];
}

void Warpgroup::done(int warp) {
  uint64_t &number = counts[static_cast<size_t>(warp)];
  --instructions[number - begin].left;
  ++number;
  while (!instructions.empty() && instructions.front().left == 0) {
    spare = std::move(instructions.front().columns);
    instructions.pop_front();
    ++begin;
  }
}

// --- Registers of wgmma ---------------------------------------------------------------------------------------------

void WgmmaRules::fence() { ++fences; }

void WgmmaRules::wait(uint64_t pending) { retired = std::max(retired, committed - std::min(committed, pending)); }

WgmmaRules::Register &WgmmaRules::at(uint64_t place) {
  const size_t index = place / slotBytes;
  if (index >= registers.size())
    registers.resize(index + index / 2 + 64);
  return registers[index];
}

std::string WgmmaRules::use(uint64_t place, Use use, uint32_t shape, bool isRead) {
  Register &it = at(place);
  std::string fault;
  if (inFlight(it) && (it.use != use || (use == Use::accumulator && it.shape != shape)))
    fault = "uses a register that another wgmma of which the group has not been waited for uses otherwise";
  else if (isRead && it.writtenAfter == fences + 1)
    fault = "reads a register that has been written since the last wgmma.fence";
  it.group = committed + 1;
  it.use = use;
  it.shape = shape;
  return fault;
}

std::string WgmmaRules::touch(uint64_t place, bool isWrite) {
  Register &it = at(place);
  if (isWrite)
    it.writtenAfter = fences + 1;
  if (!inFlight(it) || (!isWrite && it.use == Use::operand))
    return {};
  return isWrite ? "writes a register of a wgmma of which the group has not been waited for"
                 : "reads the result of a wgmma of which the group has not been waited for";
}

} // namespace kiln::simulator
