// A warpgroup's instructions in order.

#include "runtime/simulator/Warpgroup.h"

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

} // namespace kiln::simulator
