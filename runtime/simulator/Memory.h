// What a launch can address: device allocations with redzones round them, and the windows through which generic
// addresses reach shared, local and parameter memory, and calls reach functions. A global address is the host's own, so
// that tensors need no translation; it is looked up in the table of allocations before anything is touched.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <string>

namespace kiln::simulator {

/// A generic address in one of these windows means an offset into that space.
inline constexpr uint64_t windowShift = 56;
inline constexpr uint64_t sharedWindow = uint64_t{1} << windowShift, localWindow = uint64_t{2} << windowShift,
                          paramWindow = uint64_t{3} << windowShift;
/// The address of a function is its number in the module in this window; nothing can be read there.
inline constexpr uint64_t functionWindow = uint64_t{4} << windowShift;
inline constexpr uint64_t functionAddress(int number) { return functionWindow | static_cast<uint64_t>(number) << 4; }
inline constexpr uint64_t windowMask = ~uint64_t{0} << windowShift;

/// Bytes [begin, end) that a kernel may touch.
struct Allocation {
  uint64_t begin = 0, end = 0;
  bool isConstant = false;

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address < end && bytes <= end - address;
  }
};

/// The device's memory. Thread-safe.
class Memory {
public:
  Memory() = default;
  ~Memory();
  Memory(const Memory &) = delete;

  /// `bytes` of zeroed memory at a multiple of 256; throws Error (device) when there is none. The bytes round it belong
  /// to nobody.
  void *allocate(int64_t bytes, bool isConstant = false);
  /// Gives memory back. For a while nobody gets it again, and it holds the poison. False when it is no allocation.
  bool release(void *memory);
  /// Lets kernels touch `bytes` of the host's memory at `memory`, which overlap no other allocation, until takeBack().
  void lend(void *memory, int64_t bytes);
  void takeBack(void *memory);
  /// The allocation that holds `address`, or an empty one.
  Allocation find(uint64_t address) const;
  /// Where bytes lie that no allocation holds: "4 bytes beyond an allocation of 64 bytes", "16 bytes into 64 bytes that
  /// were released".
  std::string describe(uint64_t address, uint64_t bytes) const;

  /// What bytes without a value hold: in every float format a NaN.
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
  std::deque<Block> released;       // the oldest first
  uint64_t releasedBytes = 0;
};

} // namespace kiln::simulator
