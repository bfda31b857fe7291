// From the addresses of 32 lanes to host memory, with every check that memory has.

#pragma once

#include "runtime/simulator/Causality.h"
#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"
#include "runtime/simulator/ptx/Flow.h"

#include <optional>

namespace kiln::simulator {

/// Strong accesses synchronise, and do not race with each other; those of a warp belong to all its lanes;
/// a copyRead is of bytes that are only stored again, which may be the padding of a structure. mbarrierWrite makes or
/// ends an mbarrier, mbarrier uses one: nothing else may touch it.
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

/// What a store is about to write, for those who must know it.
struct StoredBytes {
  const void *context;
  uint8_t (*byteOf)(const void *context, int lane, uint32_t byte);
};

/// What a memory instruction does, beside its address: kept in Step::target.
struct AccessShape {
  ptx::Space space = ptx::Space::generic;
  int bytes = 4; // of an element
  int elements = 1;
  bool wideAddress = false, wideData = false, isSigned = false;
  bool isCopy = false;                   // a load of what is only stored again
  std::optional<Ordering> ordering = {}; // of a strong access

  int pack() const {
    return static_cast<int>(space) | bytes << 4 | elements << 10 | wideAddress << 16 | wideData << 17 | isSigned << 18 |
           (ordering ? static_cast<int>(*ordering) + 1 : 0) << 19 | isCopy << 22;
  }
  static AccessShape unpack(int bits) {
    return {.space = static_cast<ptx::Space>(bits & 15),
            .bytes = bits >> 4 & 63,
            .elements = bits >> 10 & 63,
            .wideAddress = (bits >> 16 & 1) != 0,
            .wideData = (bits >> 17 & 1) != 0,
            .isSigned = (bits >> 18 & 1) != 0,
            .isCopy = (bits >> 22 & 1) != 0,
            .ordering = bits >> 19 & 7 ? std::optional(static_cast<Ordering>((bits >> 19 & 7) - 1)) : std::nullopt};
  }
  int total() const { return bytes * elements; }
};

/// Host addresses of what the executing lanes access; `valid` are those that may.
struct LanePointers {
  std::array<char *, lanesOfWarp> at;
  Mask valid = 0;
};

/// The lanes' addresses: of slot 0 and Step::detail.
std::array<uint64_t, lanesOfWarp> addressesOf(Warp &warp, const Step &step, const AccessShape &shape);

/// Finds and checks `bytes` bytes at each executing lane's address, which is a multiple of that; what is wrong is
/// reported, and such lanes are left out. `sizes`: how many of the bytes each lane touches, all of them without it.
LanePointers resolve(Warp &warp, const Step &step, ptx::Space space, const std::array<uint64_t, lanesOfWarp> &addresses,
                     int bytes, AccessKind kind, const std::array<uint32_t, lanesOfWarp> *sizes = nullptr,
                     const StoredBytes *stored = nullptr);

/// Marks the loads of a function whose results are only stored again, or put back with other bits among them; `uses`
/// are its instructions'.
void markCopies(const ptx::Function &function, const std::vector<ptx::Use> &uses, Code &code);

/// Finds and checks `bytes` bytes, of any number, at one lane's address, which is a multiple of `alignment`; null when
/// something was wrong, which is reported. `isLater`: it is an asynchronous unit that will touch them.
char *locate(Warp &warp, const Step &step, int lane, ptx::Space space, uint64_t address, uint32_t bytes,
             uint32_t alignment, AccessKind kind, bool isLater = false);

/// Where in shared memory a lane's access lies that `resolve` found; nothing when it is elsewhere.
std::optional<uint32_t> sharedPlace(const Warp &warp, const char *at);

/// Sets slot 0 and detail of a step from a decoded address, and the address fields of its shape.
void setAddress(Step &step, AccessShape &shape, const Decoder::Address &address);

} // namespace kiln::simulator
