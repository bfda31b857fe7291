// Tensor maps: what a bulk tensor copy knows of an array in global memory and of the box that it moves.
//
// The driver's 128 bytes are nobody's business but its own; these are the simulator's. All numbers are innermost first.

#pragma once

#include "runtime/simulator/Swizzle.h"
#include "runtime/simulator/ptx/Module.h"

#include <array>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace kiln::simulator {

inline constexpr int mostTensorRank = 5;

/// Element types by the number that `tensormap.replace` and the map give them.
enum class TensorElement : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f32Ftz, f64, bf16, tf32, tf32Ftz };
inline constexpr int tensorElements = static_cast<int>(TensorElement::tf32Ftz) + 1;
/// The PTX type of an element.
ptx::Type typeOf(TensorElement element);
/// The element named `f16`, `s32`, …; throws Error for another name.
TensorElement tensorElementNamed(const std::string &name);

/// A tensor map, as it lies in memory. Zeros are a map of rank 1 of which all else is still to be filled in.
struct alignas(64) TensorMap {
  uint32_t mark = 0; // whether this is a tensor map at all
  uint8_t element = 0, rankLessOne = 0, interleave = 0, swizzle = 0, nanFill = 0;
  uint64_t address = 0;
  std::array<uint64_t, mostTensorRank> dims{};
  std::array<uint64_t, mostTensorRank - 1> strides{}; // bytes, from the second dimension
  std::array<uint32_t, mostTensorRank> box{};         // elements of the array that the box spans
  std::array<uint8_t, mostTensorRank> elementStrides{};

  static constexpr uint32_t markOfMap = 0x50414d54;
  int rank() const { return rankLessOne + 1; }
  TensorElement elementType() const { return static_cast<TensorElement>(element); }
  int elementBytes() const { return ptx::bytesOf(typeOf(elementType())); }
  /// Elements that the box has in shared memory along a dimension; the innermost stride does not count.
  uint32_t boxElements(int dimension) const;
  uint32_t boxBytes() const;
};
static_assert(sizeof(TensorMap) == 128);

/// What cuTensorMapEncodeTiled takes.
struct TensorMapDescription {
  TensorElement element = TensorElement::f32;
  uint64_t address = 0;
  std::vector<uint64_t> dims, strides;       // strides in bytes, one fewer than dims
  std::vector<uint32_t> box, elementStrides; // no strides: all 1
  Swizzle swizzle = Swizzle::none;
  bool nanFill = false;
};
/// The map of a description; throws Error for what the driver refuses, too.
TensorMap makeTensorMap(const TensorMapDescription &description);
/// What is wrong with a map, or nothing: the conditions of cuTensorMapEncodeTiled.
std::string faultOf(const TensorMap &map);

/// Bytes of a box that lie together in shared memory and in the array.
struct BoxRun {
  uint32_t shared = 0; // from the beginning of shared memory, swizzled
  uint64_t global = 0; // 0: outside the array
  uint32_t bytes = 0;
};
/// Calls `visit` for the runs of the box that begins at `coordinates` and lies at `shared`, a multiple of 16.
void forEachRun(const TensorMap &map, const std::array<int32_t, mostTensorRank> &coordinates, uint32_t shared,
                const std::function<void(const BoxRun &)> &visit);

/// Which tensor maps in global memory a launch has changed. Thread-safe.
class TensorMapChanges {
public:
  void changed(uint64_t address);
  /// How often a map has been changed.
  int64_t version(uint64_t address) const;

private:
  mutable std::mutex mutex;
  std::map<uint64_t, int64_t> versions;
};

} // namespace kiln::simulator
