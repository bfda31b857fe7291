// Tensor maps (TMA descriptors): an array in global memory, and the box that a bulk tensor copy moves. And the swizzles
// of shared memory.
//
// The driver's 128 bytes are undocumented; these are the simulator's own. All lists are innermost first.

#pragma once

#include "runtime/simulator/ptx/Module.h"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::simulator {

// --- Swizzles -------------------------------------------------------------------------------------------------------
//
// The swizzles of TMA and wgmma: within 128 bytes, 16-byte chunks are permuted depending on their row.

/// The bytes of a swizzled row: 32, 64 or 128; 0 for none. Values are those of tensor maps and PTX.
enum class Swizzle : uint8_t { none, bytes32, bytes64, bytes128 };
inline constexpr uint32_t bytesOf(Swizzle swizzle) {
  return swizzle == Swizzle::none ? 0 : 16u << static_cast<int>(swizzle);
}

/// The swizzled place in shared memory of a byte at `place`. Address bits 4 to 6, or fewer if a row has fewer chunks,
/// are XORed with bits 7 to 9.
inline constexpr uint32_t swizzled(uint32_t place, Swizzle swizzle) {
  if (swizzle == Swizzle::none)
    return place;
  return place ^ (place >> 3 & (bytesOf(swizzle) - 16));
}

// --- Tensor maps ----------------------------------------------------------------------------------------------------

inline constexpr int maxTensorRank = 5;

/// Element types, with the numbers of `tensormap.replace` and of the map.
enum class TensorElement : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f32Ftz, f64, bf16, tf32, tf32Ftz };
inline constexpr int tensorElements = static_cast<int>(TensorElement::tf32Ftz) + 1;
/// The PTX type of an element.
ptx::Type typeOf(TensorElement element);
/// The element type with this name (`f16`, `s32`, …); throws Error for another name.
TensorElement tensorElementNamed(const std::string &name);

/// A tensor map in memory. All zeros are a map of rank 1 whose other fields are still to be set.
struct alignas(64) TensorMap {
  uint32_t mark = 0; // identifies a tensor map
  uint8_t element = 0, rankLessOne = 0, interleave = 0, swizzle = 0, nanFill = 0;
  uint64_t address = 0;
  std::array<uint64_t, maxTensorRank> dims{};
  std::array<uint64_t, maxTensorRank - 1> strides{}; // in bytes, from the second dimension
  std::array<uint32_t, maxTensorRank> box{};         // elements of the array that the box spans
  std::array<uint8_t, maxTensorRank> elementStrides{};

  static constexpr uint32_t markOfMap = 0x50414d54;
  int rank() const { return rankLessOne + 1; }
  TensorElement elementType() const { return static_cast<TensorElement>(element); }
  int elementBytes() const { return ptx::bytesOf(typeOf(elementType())); }
  /// The elements of the box in shared memory along a dimension; the innermost stride does not count.
  uint32_t boxElements(int dimension) const;
  uint32_t boxBytes() const;
};
static_assert(sizeof(TensorMap) == 128);

/// The arguments of cuTensorMapEncodeTiled.
struct TensorMapDescription {
  TensorElement element = TensorElement::f32;
  uint64_t address = 0;
  std::vector<uint64_t> dims, strides;       // strides in bytes, one fewer than dims
  std::vector<uint32_t> box, elementStrides; // no strides: all 1
  Swizzle swizzle = Swizzle::none;
  bool nanFill = false;
};
/// The map of a description; throws Error where the driver would refuse it.
TensorMap makeTensorMap(const TensorMapDescription &description);
/// The error in a map, or an empty text: the conditions of cuTensorMapEncodeTiled.
std::string findFault(const TensorMap &map);

/// Bytes of a box that are contiguous in shared memory and in the array.
struct BoxRun {
  uint32_t shared = 0; // offset in shared memory, swizzled
  uint64_t global = 0; // 0: out of bounds of the array
  uint32_t bytes = 0;
};
/// Calls `visit` for the runs of the box at `coordinates`, which is at offset `shared`, a multiple of 16.
void forEachRun(const TensorMap &map, const std::array<int32_t, maxTensorRank> &coordinates, uint32_t shared,
                const std::function<void(const BoxRun &)> &visit);

/// The tensor maps in global memory that a launch has changed. Thread-safe.
class TensorMapChanges {
public:
  void changed(uint64_t address);
  /// How often a map was changed.
  int64_t version(uint64_t address) const;

private:
  mutable std::mutex mutex;
  std::map<uint64_t, int64_t> versions;
};

} // namespace kiln::simulator
