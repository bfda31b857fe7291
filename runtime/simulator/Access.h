// Translates the addresses of 32 lanes to host memory and checks them: bounds, alignment, races and more.

#pragma once

#include "runtime/simulator/Causality.h"
#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"
#include "runtime/simulator/ptx/Module.h"

#include <bit>
#include <optional>

namespace kiln::simulator {

/// Kinds of accesses.
/// - Strong accesses synchronise and do not race with each other.
/// - An access of a warp belongs to all its lanes.
/// - A copyRead loads bytes that are only stored again, such as the padding of a structure.
/// - mbarrierWrite creates or ends an mbarrier, mbarrier uses one; no other access may touch it.
enum class AccessKind : uint8_t {
  read,
  copyRead,
  write,
  atomic,
  strongRead,
  strongWrite,
  warpRead,
  warpWrite,
  asyncWrite,
  mbarrierWrite,
  mbarrier
};
inline bool isRead(AccessKind kind) {
  return kind == AccessKind::read || kind == AccessKind::copyRead || kind == AccessKind::strongRead ||
         kind == AccessKind::warpRead;
}

/// The bytes of a store, for checks that need their values.
struct StoredBytes {
  const void *context;
  uint8_t (*byteOf)(const void *context, int lane, uint32_t byte);
};

/// A memory instruction except for its address; kept in Step::target.
struct AccessShape {
  ptx::Space space = ptx::Space::generic;
  uint8_t bytes = 4; // of an element
  uint8_t elements = 1;
  bool wideAddress : 1 = false, wideData : 1 = false, isSigned : 1 = false;
  bool isCopy : 1 = false;  // a load of bytes that are only stored again
  bool inBlock : 1 = false; // its scope is the block, .cta or .cluster
  Ordering ordering : 3 = Ordering::none;

  int pack() const { return std::bit_cast<int>(*this); }
  static AccessShape unpack(int bits) { return std::bit_cast<AccessShape>(bits); }
  int total() const { return bytes * elements; }
  bool isStrong() const { return ordering != Ordering::none; }
};
static_assert(sizeof(AccessShape) == sizeof(int));

/// The host addresses of the executing lanes; `valid` are the lanes that may access them.
struct LanePointers {
  std::array<char *, lanesOfWarp> at;
  Mask valid = 0;
};

/// The addresses of the lanes, from slot 0 and Step::detail.
std::array<uint64_t, lanesOfWarp> addressesOf(Warp &warp, const Step &step, const AccessShape &shape);

/// Resolves and checks an access of `bytes` bytes at each executing lane's address, which must be a multiple of
/// `bytes`. Errors are reported, and their lanes are left out. `sizes`: the bytes that each lane touches, by default
/// all. `inBlock`: a strong access whose scope is the block.
LanePointers resolve(Warp &warp, const Step &step, ptx::Space space, const std::array<uint64_t, lanesOfWarp> &addresses,
                     int bytes, AccessKind kind, const std::array<uint32_t, lanesOfWarp> *sizes = nullptr,
                     const StoredBytes *stored = nullptr, bool inBlock = false);

/// Marks the loads of a function whose results are only stored again, possibly with other bits merged in. `uses` are
/// the uses of its instructions.
void markCopies(const ptx::Function &function, const std::vector<ptx::Use> &uses, Code &code);

/// Resolves and checks `bytes` bytes, of any number, at one lane's address, which must be a multiple of `alignment`.
/// Null after an error, which is reported. `isLater`: an asynchronous engine will access them.
char *locate(Warp &warp, const Step &step, int lane, ptx::Space space, uint64_t address, uint32_t bytes,
             uint32_t alignment, AccessKind kind, bool isLater = false);

/// The offset in shared memory of a resolved address; nothing if it is elsewhere.
std::optional<uint32_t> sharedPlace(const Warp &warp, const char *at);

/// Sets slot 0 and detail of a step from a decoded address, and the address fields of the shape.
void setAddress(Step &step, AccessShape &shape, const Decoder::Address &address);

} // namespace kiln::simulator
