// Loads and stores in every state space, and the resolution of addresses.

#include "runtime/simulator/Access.h"

#include "runtime/simulator/BulkCopies.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <limits>
#include <mutex>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Space;
using ptx::Type;

// --- Addresses -----------------------------------------------------------------------------------------------------

std::array<uint64_t, lanesOfWarp> addressesOf(Warp &warp, const Step &step, const AccessShape &shape) {
  std::array<uint64_t, lanesOfWarp> addresses;
  if (step.slots[0] == Step::none) {
    addresses.fill(step.detail);
  } else if (shape.wideAddress) {
    const auto *base = warp.reg<uint64_t>(step.slots[0]);
    KILN_VECTORISE_LANES
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      addresses[lane] = base[lane] + step.detail;
  } else {
    const auto *base = warp.reg<uint32_t>(step.slots[0]);
    KILN_VECTORISE_LANES
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      addresses[lane] = static_cast<uint32_t>(base[lane] + step.detail);
  }
  return addresses;
}

void setAddress(Step &step, AccessShape &shape, const Decoder::Address &address) {
  step.slots[0] = address.slot;
  step.detail = static_cast<uint64_t>(address.offset);
  shape.space = address.space;
  shape.wideAddress = address.wide;
  step.target = shape.pack();
}

static const char *verb(AccessKind kind) {
  return isRead(kind) ? "reads" : kind == AccessKind::atomic || kind == AccessKind::mbarrier ? "updates" : "writes";
}

std::optional<uint32_t> sharedPlace(const Warp &warp, const char *at) {
  const auto offset = static_cast<uint64_t>(at - warp.cta.shared());
  return offset < warp.cta.sharedBytes() ? std::optional(static_cast<uint32_t>(offset)) : std::nullopt;
}

/// Reports a lane that accesses an mbarrier object with another kind of instruction.
static void expectNoMbarrier(Warp &warp, const Step &step, int lane, uint32_t offset, int bytes, AccessKind kind) {
  if (const auto place = warp.cta.mbarriers.overlapping(offset, static_cast<uint32_t>(bytes)))
    warp.report(Check::mbarrier, step, lane,
                fmt::format("{} {} bytes at {}, where the mbarrier at {} lies", verb(kind), bytes, offset,
                            warp.cta.placeText(*place)));
}

/// Resolves offsets into a window of `size` bytes at host address `base`; lanes are `stride` bytes apart.
static void resolveWindow(Warp &warp, const Step &step, Space space, const std::array<uint64_t, lanesOfWarp> &addresses,
                          int bytes, AccessKind kind, char *base, uint64_t size, uint64_t stride, Mask lanes,
                          LanePointers &pointers) {
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const uint64_t offset = addresses[static_cast<size_t>(lane)] & ~windowMask;
    if (offset + static_cast<uint64_t>(bytes) <= size) {
      pointers.at[static_cast<size_t>(lane)] = base + offset + static_cast<uint64_t>(lane) * stride;
      pointers.valid |= Mask{1} << lane;
      if (space == Space::shared && kind != AccessKind::mbarrier && kind != AccessKind::mbarrierWrite &&
          warp.cta.mbarriers.mayOverlap(offset, static_cast<uint64_t>(bytes)))
        expectNoMbarrier(warp, step, lane, static_cast<uint32_t>(offset), bytes, kind);
    } else {
      warp.report(
          Check::bounds, step, lane,
          fmt::format("{} {} bytes at {} in .{}, which has {} bytes", verb(kind), bytes, offset, nameOf(space), size));
    }
  }
}

static void resolveGlobal(Warp &warp, const Step &step, const std::array<uint64_t, lanesOfWarp> &addresses, int width,
                          AccessKind kind, Mask lanes, LanePointers &pointers,
                          const std::array<uint32_t, lanesOfWarp> *sizes) {
  Allocation &recent = warp.recent;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const int bytes = sizes ? static_cast<int>((*sizes)[static_cast<size_t>(lane)]) : width;
    const uint64_t address = addresses[static_cast<size_t>(lane)];
    if (!recent.holds(address, static_cast<uint64_t>(bytes)))
      std::swap(recent, warp.older);
    if (!recent.holds(address, static_cast<uint64_t>(bytes)))
      recent = warp.cta.grid.memory.find(address);
    if (!recent.holds(address, static_cast<uint64_t>(bytes))) {
      warp.report(Check::bounds, step, lane,
                  fmt::format("{} {} bytes at {}, {}", verb(kind), bytes, warp.cta.grid.outsideText(address),
                              warp.cta.grid.memory.describe(address, static_cast<uint64_t>(bytes))));
      continue;
    }
    if (recent.isConstant && !isRead(kind)) {
      warp.report(Check::readOnly, step, lane, fmt::format("writes {} bytes of constant memory", bytes));
      continue;
    }
    pointers.at[static_cast<size_t>(lane)] = reinterpret_cast<char *>(address);
    pointers.valid |= Mask{1} << lane;
  }
}

/// Reports reads of local memory that the lane has not written.
static void checkLocal(Warp &warp, const Step &step, const LanePointers &pointers, Mask lanes, size_t bytes,
                       AccessKind kind) {
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const std::ptrdiff_t offset = pointers.at[static_cast<size_t>(lane)] - warp.localMemoryOf(lane);
    char *const written = warp.localWritten(lane) + offset;
    if (kind == AccessKind::copyRead)
      continue;
    if (isRead(kind) && std::memchr(written, 0, bytes))
      warp.report(Check::uninitialised, step, lane,
                  fmt::format("reads {} bytes at {} in .local, to which nothing was written", bytes, offset));
    std::memset(written, 1, bytes);
  }
}

static void resolveIn(Warp &warp, const Step &step, Space space, const std::array<uint64_t, lanesOfWarp> &addresses,
                      int bytes, AccessKind kind, Mask lanes, LanePointers &pointers,
                      const std::array<uint32_t, lanesOfWarp> *sizes) {
  switch (space) {
  case Space::shared:
    return resolveWindow(warp, step, space, addresses, bytes, kind, warp.cta.shared(), warp.cta.sharedBytes(), 0, lanes,
                         pointers);
  case Space::local: {
    // An address within a function's frame is relative to it; a generic one was made so by cvta.
    resolveWindow(warp, step, space, addresses, bytes, kind, warp.localMemoryOf(0), warp.localBytes(),
                  warp.localBytes(), lanes, pointers);
    return checkLocal(warp, step, pointers, lanes & pointers.valid, static_cast<size_t>(bytes), kind);
  }
  case Space::param:
    if (!isRead(kind))
      warp.report(Check::readOnly, step, std::countr_zero(lanes), "writes a parameter of the kernel");
    else
      resolveWindow(warp, step, space, addresses, bytes, kind, const_cast<char *>(warp.cta.grid.parameters),
                    warp.program.parameterBytes, 0, lanes, pointers);
    return;
  default:
    resolveGlobal(warp, step, addresses, bytes, kind, lanes, pointers, sizes);
  }
}

/// The common case: the whole warp, aligned, within shared memory or, for reads and writes, within one allocation.
/// False for all other cases.
static bool resolveAll(Warp &warp, Space space, const std::array<uint64_t, lanesOfWarp> &addresses, uint64_t bytes,
                       LanePointers &pointers) {
  if (space != Space::shared && space != Space::global)
    return false;
  const uint64_t mask = space == Space::shared ? ~windowMask : ~uint64_t{0};
  uint64_t any = 0;
  int64_t lowest = std::numeric_limits<int64_t>::max(), highest = 0; // signed, as AVX2 compares
  KILN_VECTORISE_LANES
  for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
    const uint64_t offset = addresses[lane] & mask;
    any |= offset;
    lowest = std::min(lowest, static_cast<int64_t>(offset));
    highest = std::max(highest, static_cast<int64_t>(offset));
  }
  const auto least = static_cast<uint64_t>(lowest), most = static_cast<uint64_t>(highest);
  if (any & (bytes - 1))
    return false;
  uint64_t base = 0;
  if (space == Space::shared) {
    if (most + bytes > warp.cta.sharedBytes())
      return false;
    base = reinterpret_cast<uint64_t>(warp.cta.shared());
  } else if (!warp.recent.holds(least, 1) && warp.older.holds(least, 1)) {
    std::swap(warp.recent, warp.older);
  }
  if (space == Space::global &&
      (!warp.recent.holds(least, 1) || !warp.recent.holds(most, bytes) || warp.recent.isConstant))
    return false;
  KILN_VECTORISE_LANES
  for (size_t lane = 0; lane < lanesOfWarp; ++lane)
    pointers.at[lane] = reinterpret_cast<char *>(base + (addresses[lane] & mask));
  pointers.valid = allLanes;
  return true;
}

/// Whether a store leaves all bytes as they are, in shared memory.
static bool changesNothing(const Warp &warp, const LanePointers &pointers, Mask lanes, uint32_t bytes,
                           const StoredBytes &stored) {
  const char *const begin = warp.cta.shared(), *const end = begin + warp.cta.sharedBytes();
  for (; lanes; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const char *const at = pointers.at[static_cast<size_t>(lane)];
    if (at < begin || at >= end)
      return false;
    for (uint32_t byte = 0; byte < bytes; ++byte)
      if (static_cast<uint8_t>(at[byte]) != stored.byteOf(stored.context, lane, byte))
        return false;
  }
  return true;
}

LanePointers resolve(Warp &warp, const Step &step, Space space, const std::array<uint64_t, lanesOfWarp> &addresses,
                     int bytes, AccessKind kind, const std::array<uint32_t, lanesOfWarp> *sizes,
                     const StoredBytes *stored, bool inBlock) {
  LanePointers pointers;
  const auto note = [&](Mask part) { // records the access for the shadow and the metrics
    // Atomics and operations on mbarriers record changes themselves.
    if (part && !isRead(kind) && kind != AccessKind::atomic && kind != AccessKind::mbarrier &&
        !(stored && !sizes && changesNothing(warp, pointers, part, static_cast<uint32_t>(bytes), *stored)))
      warp.noteChange();
    if (part && warp.cta.shadow)
      warp.cta.shadow->access({warp, step, pointers, part, static_cast<uint32_t>(bytes), kind, sizes, stored, inBlock});
    if (part && warp.cta.metrics) {
      const char *const first = pointers.at[static_cast<size_t>(std::countr_zero(part))];
      const bool isShared = first >= warp.cta.shared() && first < warp.cta.shared() + warp.cta.sharedBytes();
      warp.cta.metrics->addAccess(warp.cta.metrics->at(warp.path.code, warp.path.pc - 1), isShared, pointers.at, part,
                                  bytes);
    }
  };
  const auto noteLocal = [&](Mask part) {
    if (warp.cta.metrics)
      warp.cta.metrics->addLocalAccess(warp.cta.metrics->at(warp.path.code, warp.path.pc - 1), warp.localMemoryOf(0),
                                       warp.localBytes(), pointers.at, part & pointers.valid, bytes);
  };
  if (warp.exec == allLanes && !sizes && resolveAll(warp, space, addresses, static_cast<uint64_t>(bytes), pointers)) {
    note(allLanes);
    return pointers;
  }
  Mask aligned = 0, shared = 0, local = 0, param = 0;
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    const uint64_t address = addresses[static_cast<size_t>(lane)], window = address & windowMask;
    aligned |= static_cast<Mask>((address & static_cast<uint64_t>(bytes - 1)) == 0) << lane;
    shared |= static_cast<Mask>(window == sharedWindow) << lane;
    local |= static_cast<Mask>(window == localWindow) << lane;
    param |= static_cast<Mask>(window == paramWindow) << lane;
  }
  Mask lanes = warp.exec;
  if (const Mask crooked = lanes & ~aligned) {
    const int lane = std::countr_zero(crooked);
    warp.report(Check::alignment, step, lane,
                fmt::format("{} {} bytes at {:#x}, which is no multiple of {}", verb(kind), bytes,
                            addresses[static_cast<size_t>(lane)], bytes));
    lanes &= aligned;
  }
  if (space != Space::generic) {
    resolveIn(warp, step, space, addresses, bytes, kind, lanes, pointers, sizes);
    if (space == Space::shared || space == Space::global)
      note(pointers.valid);
    else if (space == Space::local)
      noteLocal(lanes);
    return pointers;
  }
  if (const Mask part = lanes & shared)
    resolveIn(warp, step, Space::shared, addresses, bytes, kind, part, pointers, sizes);
  if (const Mask part = lanes & local)
    resolveIn(warp, step, Space::local, addresses, bytes, kind, part, pointers, sizes);
  noteLocal(lanes & local);
  if (const Mask part = lanes & param)
    resolveIn(warp, step, Space::param, addresses, bytes, kind, part, pointers, sizes);
  if (const Mask part = lanes & ~(shared | local | param))
    resolveIn(warp, step, Space::global, addresses, bytes, kind, part, pointers, sizes);
  note(pointers.valid & ~(local | param));
  return pointers;
}

char *locate(Warp &warp, const Step &step, int lane, Space space, uint64_t address, uint32_t bytes, uint32_t alignment,
             AccessKind kind, bool isLater) {
  if (address % alignment != 0) {
    warp.report(Check::alignment, step, lane,
                fmt::format("{} {} bytes at {:#x}, which is no multiple of {}", verb(kind), bytes, address, alignment));
    return nullptr;
  }
  if (space == Space::generic) {
    const uint64_t window = address & windowMask;
    space = window == sharedWindow  ? Space::shared
            : window == localWindow ? Space::local
            : window == paramWindow ? Space::param
                                    : Space::global;
  }
  LanePointers pointers;
  std::array<uint64_t, lanesOfWarp> addresses{};
  addresses[static_cast<size_t>(lane)] = address;
  resolveIn(warp, step, space, addresses, static_cast<int>(bytes), kind, Mask{1} << lane, pointers, nullptr);
  if (pointers.valid && warp.cta.shadow && !isLater && (space == Space::shared || space == Space::global))
    warp.cta.shadow->access({warp, step, pointers, pointers.valid, bytes, kind});
  return pointers.valid ? pointers.at[static_cast<size_t>(lane)] : nullptr;
}

// --- Loads and stores ----------------------------------------------------------------------------------------------

/// Reads one element after the other, so that the width is a constant of the inner loop.
template <class T>
static void readElements(Warp &warp, const Step &step, const AccessShape &shape, const LanePointers &pointers) {
  const uint32_t *slots = warp.list(step);
  const bool narrow = !shape.wideData && !shape.isSigned && (warp.exec & pointers.valid) == allLanes;
  for (uint32_t element = 0; element < step.count; ++element) {
    if (slots[element] == Step::none)
      continue;
    if (narrow) {
      auto *words = warp.reg<uint32_t>(slots[element]);
      for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
        T value;
        std::memcpy(&value, pointers.at[lane] + element * sizeof(T), sizeof(T));
        words[lane] = static_cast<uint32_t>(value);
      }
      continue;
    }
    for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(warp.exec >> lane & 1))
        continue;
      std::make_signed_t<T> value = 0; // bytes that must not be read are 0
      if (pointers.valid >> lane & 1)
        std::memcpy(&value, pointers.at[lane] + element * sizeof(T), sizeof(T));
      const uint64_t word = shape.isSigned ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<T>(value);
      if (shape.wideData)
        warp.reg<uint64_t>(slots[element])[lane] = word;
      else
        warp.reg<uint32_t>(slots[element])[lane] = static_cast<uint32_t>(word);
    }
  }
}

template <class T>
static void writeElements(Warp &warp, const Step &step, const AccessShape &shape, const LanePointers &pointers) {
  const uint32_t *slots = warp.list(step);
  if (!shape.wideData && pointers.valid == allLanes) {
    for (uint32_t element = 0; element < step.count; ++element) {
      const auto *words = warp.reg<uint32_t>(slots[element]);
      for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
        const T value = static_cast<T>(words[lane]);
        std::memcpy(pointers.at[lane] + element * sizeof(T), &value, sizeof(T));
      }
    }
    return;
  }
  for (size_t lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(pointers.valid >> lane & 1))
      continue;
    for (uint32_t element = 0; element < step.count; ++element) {
      const T value = static_cast<T>(shape.wideData ? warp.reg<uint64_t>(slots[element])[lane]
                                                    : warp.reg<uint32_t>(slots[element])[lane]);
      std::memcpy(pointers.at[lane] + element * sizeof(T), &value, sizeof(T));
    }
  }
}

namespace {
/// Data of strong accesses. Each lane's bytes move atomically, vectors included: host threads that run other blocks
/// read all of them or none. GPUs do so for naturally aligned data, although the PTX ISA guarantees it for elements
/// only. Look-back scans rely on it for a flag with its value.
class AtOnce {
public:
  AtOnce(Warp &warp, const LanePointers &memory, int bytes) : warp(warp), memory(memory), bytes(bytes) {
    copies.valid = memory.valid;
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      copies.at[lane] = reinterpret_cast<char *>(words[lane].data());
  }
  /// The copies of the lanes' bytes: load() fills them, store() writes them to memory.
  const LanePointers &copied() const { return copies; }
  void load() {
    moveAll([](auto memory, auto &copy) { copy = memory.load(); });
  }
  void store() {
    moveAll([](auto memory, auto &copy) { memory.store(copy); });
  }

private:
  template <class Word, class Move> void moveWords(Move move) {
    for (size_t lane = 0; lane < lanesOfWarp; ++lane)
      for (size_t at = 0; memory.valid >> lane & 1 && at < static_cast<size_t>(bytes); at += sizeof(Word))
        move(std::atomic_ref(*reinterpret_cast<Word *>(memory.at[lane] + at)),
             *reinterpret_cast<Word *>(copies.at[lane] + at));
  }
  template <class Move> void moveAll(Move move) {
    switch (bytes) {
    case 1:
      return moveWords<uint8_t>(move);
    case 2:
      return moveWords<uint16_t>(move);
    case 4:
      return moveWords<uint32_t>(move);
    case 8:
      return moveWords<uint64_t>(move);
    default: {
      const std::lock_guard lock(warp.cta.grid.wideAccesses);
      moveWords<uint64_t>(move);
    }
    }
  }
  Warp &warp;
  const LanePointers &memory;
  const int bytes;
  LanePointers copies;
  std::array<std::array<uint64_t, 4>, lanesOfWarp> words;
};
} // namespace

template <class T> static void load(Warp &warp, const Step &step) {
  const AccessShape shape = AccessShape::unpack(step.target);
  const LanePointers pointers = resolve(warp, step, shape.space, addressesOf(warp, step, shape), shape.total(),
                                        shape.isStrong() ? AccessKind::strongRead
                                        : shape.isCopy   ? AccessKind::copyRead
                                                         : AccessKind::read,
                                        nullptr, nullptr, shape.inBlock);
  if (!shape.isStrong())
    return readElements<T>(warp, step, shape, pointers);
  AtOnce all(warp, pointers, shape.total());
  all.load();
  readElements<T>(warp, step, shape, all.copied());
  if (warp.cta.shadow)
    warp.cta.shadow->collect(warp, pointers, shape.ordering, shape.inBlock);
}

/// A byte of a lane's stored value.
template <class T> static uint8_t storedByte(const void *context, int lane, uint32_t byte) {
  auto &[warp, step] = *static_cast<const std::pair<Warp &, const Step &> *>(context);
  const uint32_t slot = warp.list(step)[byte / sizeof(T)];
  const uint64_t word =
      AccessShape::unpack(step.target).wideData ? warp.reg<uint64_t>(slot)[lane] : warp.reg<uint32_t>(slot)[lane];
  return static_cast<uint8_t>(word >> (8 * (byte % sizeof(T))));
}

template <class T> static void store(Warp &warp, const Step &step) {
  const AccessShape shape = AccessShape::unpack(step.target);
  const std::pair<Warp &, const Step &> context(warp, step);
  const StoredBytes stored{&context, storedByte<T>};
  const LanePointers pointers =
      resolve(warp, step, shape.space, addressesOf(warp, step, shape), shape.total(),
              shape.isStrong() ? AccessKind::strongWrite : AccessKind::write, nullptr, &stored, shape.inBlock);
  if (!shape.isStrong())
    return writeElements<T>(warp, step, shape, pointers);
  if (warp.cta.shadow)
    warp.cta.shadow->publish(warp, pointers, shape.ordering, shape.inBlock);
  AtOnce all(warp, pointers, shape.total());
  writeElements<T>(warp, step, shape, all.copied());
  all.store();
}

static Handler pickWidth(Decoder &d, int bytes, bool isStore) {
  switch (bytes) {
  case 1:
    return isStore ? store<uint8_t> : load<uint8_t>;
  case 2:
    return isStore ? store<uint16_t> : load<uint16_t>;
  case 4:
    return isStore ? store<uint32_t> : load<uint32_t>;
  case 8:
    return isStore ? store<uint64_t> : load<uint64_t>;
  default:
    d.unsupported();
  }
}

/// Parses ordering, scope and cache modifiers; cache modifiers have no effect.
struct Hints {
  bool hasPolicy = false;      // L2::cache_hint: an operand
  bool needs32Bytes = false;   // an eviction priority of L2
  bool ofGlobalMemory = false; // hints that other spaces do not have
};

static Hints takeHints(Decoder &d, AccessShape &shape) {
  d.take("mmio"); // nothing is cached anyway
  if (d.take("volatile") || d.take("relaxed"))
    shape.ordering = Ordering::relaxed;
  else if (d.take("acquire"))
    shape.ordering = Ordering::acquire;
  else if (d.take("release"))
    shape.ordering = Ordering::release;
  shape.inBlock = takeScope(d);
  while (d.takeOne({"weak", "ca", "cg", "cs", "cv", "lu", "wb", "wt", "unified"}) >= 0)
    continue;
  Hints hints;
  hints.ofGlobalMemory = d.take("nc");
  while (d.takeOne({"L1::evict_first", "L1::evict_last", "L1::evict_normal", "L1::evict_unchanged", "L1::no_allocate",
                    "L2::64B", "L2::128B", "L2::256B"}) >= 0)
    hints.ofGlobalMemory = true;
  hints.needs32Bytes = d.takeOne({"L2::evict_first", "L2::evict_last", "L2::evict_normal"}) >= 0;
  hints.hasPolicy = d.take("L2::cache_hint");
  hints.ofGlobalMemory |= hints.needs32Bytes || hints.hasPolicy;
  return hints;
}

/// Throws unless the ISA has vectors of so many bytes: 16 at most; 32 of global memory, of words from 4 bytes on.
static void expectSize(const Decoder &d, const AccessShape &shape, const Hints &hints, Space space) {
  const int bytes = shape.bytes * shape.elements;
  if (bytes == 32 && shape.bytes >= 4 && shape.bytes <= 8) {
    if (space != Space::global && space != Space::generic)
      d.wrong("an access of at most 16 bytes outside .global");
    d.expectTarget(100, 88);
  } else if (bytes > 16) {
    d.wrong(fmt::format("an access of at most 16 bytes, or of 32 bytes in words of 4 or 8, but got {},", bytes));
  } else if (hints.needs32Bytes) {
    d.wrong(fmt::format("an access of 32 bytes for an eviction priority of L2, but got {},", bytes));
  }
}

static void decodeAccess(Decoder &d, bool isStore) {
  AccessShape shape;
  const Hints hints = takeHints(d, shape);
  const Space space = d.space();
  if (hints.ofGlobalMemory && space != Space::global && space != Space::generic)
    d.wrong("hints for caches only of .global");
  const int vector = d.takeOne({"v2", "v4", "v8"});
  const Type type = d.type();
  d.expectCount(hints.hasPolicy ? 3 : 2, hints.hasPolicy ? 3 : 2);
  if (hints.hasPolicy)
    d.source(2, Type::b64);
  const Operand &data = d.operand(isStore ? 1 : 0);
  const auto elements = d.elements(data);
  if (elements.size() != (vector < 0 ? 1u : 2u << vector) || type == Type::pred)
    d.wrong(fmt::format("{} elements, but got {},", vector < 0 ? 1 : 2 << vector, elements.size()));
  shape.bytes = static_cast<uint8_t>(ptx::bytesOf(type));
  shape.elements = static_cast<uint8_t>(elements.size());
  shape.isSigned = ptx::isSigned(type);
  expectSize(d, shape, hints, space);
  std::vector<uint32_t> slots;
  for (const Operand &element : elements) {
    // A register may be wider than the access.
    const Type declared = element.kind == Operand::Kind::reg ? d.registerType(element) : type;
    d.expectKind(element, type);
    const Type word = ptx::bitsOf(declared) > ptx::bitsOf(type) ? declared : type;
    shape.wideData |= laneBytes(word) == 8;
    if (element.kind == Operand::Kind::sink && !isStore)
      slots.push_back(Step::none);
    else
      slots.push_back(isStore ? d.source(element, word) : d.result(element, word));
  }
  const Decoder::Address address = d.address(d.operand(isStore ? 0 : 1), space);
  Step &step = d.emit(pickWidth(d, shape.bytes, isStore));
  setAddress(step, shape, address);
  d.giveList(step, slots);
}

void addAccess(InstructionTable &table) {
  table["ld"] = [](Decoder &d) { decodeAccess(d, false); };
  table["ldu"] = table["ld"];
  table["st"] = [](Decoder &d) { d.take("async") ? decodeAsyncStore(d) : decodeAccess(d, true); };
}

} // namespace kiln::simulator
