// Allocations with guard zones on both sides: at least a kilobyte that belongs to no allocation.

#include "runtime/simulator/Memory.h"

#include "dialect/dsl/Types.h"
#include "runtime/AvailableMemory.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

namespace kiln::simulator {

static constexpr int64_t redzone = 1024, alignment = 256;
/// The maximum of released memory that is held back from reuse.
static constexpr uint64_t maxReleasedBytes = uint64_t{64} << 20;

Memory::~Memory() {
  for (const auto &[begin, block] : blocks)
    std::free(block.base);
  for (const Block &block : released)
    std::free(block.base);
}

void *Memory::allocate(int64_t bytes, bool isConstant) {
  void *base = nullptr;
  if (bytes >= 0 && bytes < int64_t{1} << 46 && isMemoryFor(bytes))
    base = std::calloc(1, static_cast<size_t>(bytes + 2 * redzone + alignment));
  if (!base)
    throw Error(fmt::format("out of memory: could not allocate {} bytes of simulated memory", bytes), Fault::device);
  const uint64_t begin = (reinterpret_cast<uint64_t>(base) + redzone + alignment - 1) / alignment * alignment;
  const std::unique_lock lock(mutex);
  blocks[begin] = {{begin, begin + static_cast<uint64_t>(bytes), isConstant}, base};
  return reinterpret_cast<void *>(begin);
}

bool Memory::release(void *memory) {
  const std::unique_lock lock(mutex);
  const auto at = blocks.find(reinterpret_cast<uint64_t>(memory));
  if (at == blocks.end() || !at->second.base)
    return false;
  std::memset(memory, poison, at->second.bytes());
  released.push_back(at->second);
  releasedBytes += at->second.bytes();
  blocks.erase(at);
  for (; releasedBytes > maxReleasedBytes; released.pop_front()) {
    releasedBytes -= released.front().bytes();
    std::free(released.front().base);
  }
  return true;
}

void Memory::lend(void *memory, int64_t bytes) {
  const uint64_t begin = reinterpret_cast<uint64_t>(memory), end = begin + static_cast<uint64_t>(bytes);
  const std::unique_lock lock(mutex);
  const auto after = blocks.lower_bound(begin);
  if ((after != blocks.end() && after->first < end) ||
      (after != blocks.begin() && std::prev(after)->second.allocation.end > begin))
    throw Error(fmt::format("expected {} bytes at {} that are no simulated memory yet, but some are", bytes, memory));
  blocks[begin] = {{begin, end}, nullptr};
}

void Memory::takeBack(void *memory) {
  const std::unique_lock lock(mutex);
  blocks.erase(reinterpret_cast<uint64_t>(memory));
}

Allocation Memory::find(uint64_t address) const {
  const std::shared_lock lock(mutex);
  auto at = blocks.upper_bound(address);
  if (at == blocks.begin())
    return {};
  --at;
  return address < at->second.allocation.end ? at->second.allocation : Allocation{};
}

/// The allocation nearest to an address outside of all allocations. The caller holds the lock.
Allocation Memory::nearest(uint64_t address) const {
  auto after = blocks.upper_bound(address);
  if (after == blocks.begin())
    return after == blocks.end() ? Allocation{} : after->second.allocation;
  const Allocation before = std::prev(after)->second.allocation;
  if (after == blocks.end() || address < before.end || address - before.end <= after->second.allocation.begin - address)
    return before;
  return after->second.allocation;
}

std::string Memory::describe(uint64_t address, uint64_t bytes) const {
  const std::shared_lock lock(mutex);
  for (const Block &block : released)
    if (address >= block.allocation.begin && address < block.allocation.end)
      return fmt::format("{} bytes into {} bytes that were released", address - block.allocation.begin, block.bytes());
  const Allocation near = nearest(address);
  if (!near.end)
    return "where no memory is";
  const bool before = address < near.begin;
  return fmt::format("{} bytes {} an allocation of {} bytes",
                     before ? near.begin - address : address + bytes - near.end, before ? "before" : "beyond",
                     near.end - near.begin);
}

} // namespace kiln::simulator
