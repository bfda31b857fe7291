// Shared by the files of asynchronous instructions: operands in a step's list, and reductions.

#pragma once

#include "runtime/simulator/Access.h"
#include "runtime/simulator/AtomicOperations.h"
#include "runtime/simulator/BulkQueue.h"

namespace kiln::simulator {

/// `cp.async.bulk…` and `cp.reduce.async.bulk…`, without and with a tensor map.
void decodeBulkCopy(Decoder &decoder, bool reduces);
void decodeTensorCopy(Decoder &decoder, bool reduces);
void decodeTensorPrefetch(Decoder &decoder);
/// `cp.async.mbarrier.arrive`, `st.async`, `red.async`.
void decodeCopyArrival(Decoder &decoder);
void decodeAsyncStore(Decoder &decoder);
void decodeAsyncReduction(Decoder &decoder);
/// `fence.proxy.tensormap::generic`; the modifier of the proxy has been taken.
void decodeTensorMapFence(Decoder &decoder);

/// A lane's address, and its memory as of `locate` (Access.h).
uint64_t addressOf(Warp &warp, const Decoder::Address &address, int lane);
inline char *locate(Warp &warp, const Step &step, int lane, const Decoder::Address &address, uint32_t bytes,
                    uint32_t alignment, AccessKind kind, bool isLater = false) {
  return locate(warp, step, lane, address.space, addressOf(warp, address, lane), bytes, alignment, kind, isLater);
}

/// Takes the state spaces of a bulk instruction: destination and source. One of them is shared memory.
std::pair<ptx::Space, ptx::Space> takeSpaces(Decoder &decoder);
/// Takes the completion mechanism: an mbarrier for copies to shared memory, otherwise groups.
void decodeCompletion(Decoder &decoder, bool intoShared);
/// Takes the name of a reduction from the modifiers; throws without one.
AtomicOperation takeReduction(Decoder &decoder);
/// The function that updates memory element by element, each atomically; null if the type has no such reduction.
Combine combineFor(AtomicOperation reduction, ptx::Type type);

/// Fills in the thread and the place of an operation.
BulkOperation operationOf(Warp &warp, const Step &step, int lane);
/// Lets the operation complete `bytes` bytes at the mbarrier with this address. False, reported, if there cannot be an
/// mbarrier.
bool completeAt(Warp &warp, const Step &step, int lane, const Decoder::Address &mbarrier, uint32_t bytes,
                BulkOperation &operation);
/// Reports a mask of CTAs of the cluster that names others than the only one.
void expectOnlyBlock(Warp &warp, const Step &step, int lane, uint32_t slot);

} // namespace kiln::simulator
