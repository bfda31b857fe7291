// Addressable memory: device allocations with redzones, and the windows for generic addresses of shared, local and
// parameter memory and of functions. A global address is a host address, so tensors need no translation. It is looked
// up in the table of allocations before every access.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace kiln::simulator {

/// A generic address in one of these windows is an offset into that state space.
inline constexpr uint64_t windowShift = 56;
inline constexpr uint64_t sharedWindow = uint64_t{1} << windowShift, localWindow = uint64_t{2} << windowShift,
                          paramWindow = uint64_t{3} << windowShift;
/// The address of a function is its index in the module, in this window. Nothing can be read there.
inline constexpr uint64_t functionWindow = uint64_t{4} << windowShift;
inline constexpr uint64_t functionAddress(int number) { return functionWindow | static_cast<uint64_t>(number) << 4; }
inline constexpr uint64_t windowMask = ~uint64_t{0} << windowShift;

/// Bytes [begin, end) that a kernel may access.
struct Allocation {
  uint64_t begin = 0, end = 0;
  bool isConstant = false;

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address < end && bytes <= end - address;
  }
};

/// Device memory. Thread-safe.
class Memory {
public:
  Memory() = default;
  ~Memory();
  Memory(const Memory &) = delete;

  /// `bytes` of zeroed memory at a multiple of 256, with redzones around it. Throws Error (device) if there is not
  /// enough.
  void *allocate(int64_t bytes, bool isConstant = false);
  /// Frees memory. It is poisoned and not reused for a while. False if it is not an allocation.
  bool release(void *memory);
  /// Lets kernels touch `bytes` of the host's memory at `memory`, which overlap no other allocation, until takeBack().
  void lend(void *memory, int64_t bytes);
  void takeBack(void *memory);
  /// The allocation that contains `address`, or an empty one.
  Allocation find(uint64_t address) const;
  /// Describes bytes outside all allocations: "4 bytes beyond an allocation of 64 bytes", "16 bytes into 64 bytes that
  /// were released".
  std::string describe(uint64_t address, uint64_t bytes) const;

  /// The pattern of uninitialised bytes: a NaN in every float format.
  static constexpr int poison = 0xff;

private:
  struct Block {
    Allocation allocation;
    void *base; // null: it was lent
    uint64_t bytes() const { return allocation.end - allocation.begin; }
  };
  Allocation nearest(uint64_t address) const;
  mutable std::shared_mutex mutex;
  std::map<uint64_t, Block> blocks; // by begin
  std::deque<Block> released;       // oldest first
  uint64_t releasedBytes = 0;
};

} // namespace kiln::simulator
