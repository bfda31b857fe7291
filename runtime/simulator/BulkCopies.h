// What the files of asynchronous instructions share: their operands, which lie in a step's list, and reductions.

#pragma once

#include "runtime/simulator/Access.h"
#include "runtime/simulator/AtomicOperations.h"
#include "runtime/simulator/BulkQueue.h"

namespace kiln::simulator {

/// `cp.async.bulk…` and `cp.reduce.async.bulk…`, without and with a tensor.
void decodeBulkCopy(Decoder &decoder, bool reduces);
void decodeTensorCopy(Decoder &decoder, bool reduces);
void decodeTensorPrefetch(Decoder &decoder);
/// `cp.async.mbarrier.arrive`, `st.async`, `red.async`.
void decodeCopyArrival(Decoder &decoder);
void decodeAsyncStore(Decoder &decoder);
void decodeAsyncReduction(Decoder &decoder);
/// `fence.proxy.tensormap::generic`, of which the proxy has been taken.
void decodeTensorMapFence(Decoder &decoder);

/// An address operand that a list holds, for one lane at a time.
struct AddressOperand {
  static constexpr size_t words = 5;
  static void append(const Decoder::Address &address, std::vector<uint32_t> &list);
  static ptx::Space space(const uint32_t *list) { return static_cast<ptx::Space>(list[0]); }
  static uint64_t of(Warp &warp, const uint32_t *list, int lane);
};

/// Takes the spaces of a bulk instruction: of the destination and of the source. One of them is shared memory.
std::pair<ptx::Space, ptx::Space> takeSpaces(Decoder &decoder);
/// Takes the modifier that says how completion is told: at an mbarrier for what goes to shared memory, else by groups.
void decodeCompletion(Decoder &decoder, bool intoShared);
/// Takes the name of a reduction off the modifiers; throws without one.
AtomicOperation takeReduction(Decoder &decoder);
/// What updates memory so, element by element, each indivisible; null when the type has no such reduction.
Combine combineFor(AtomicOperation reduction, ptx::Type type);

/// Fills in whose the operation is, and where it stands.
BulkOperation operationOf(Warp &warp, const Step &step, int lane);
/// Makes it complete `bytes` bytes at the mbarrier whose address operand is in `list`; false when that is no place for
/// one, which is reported.
bool completeAt(Warp &warp, const Step &step, int lane, const uint32_t *list, uint32_t bytes, BulkOperation &operation);
/// Complains about a mask of the cluster's blocks that has others than the only one.
void expectOnlyBlock(Warp &warp, const Step &step, int lane, uint32_t slot);

} // namespace kiln::simulator
