// Decides when operations are performed, and performs them.

#include "runtime/simulator/BulkQueue.h"

#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Metrics.h"
#include "runtime/simulator/Shadow.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace kiln::simulator {

static constexpr int poison = 0xff; // NaN in every float type

/// Repeats the fill's pattern over a piece.
static void fillPiece(const BulkOperation &operation, char *to, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i)
    to[i] = operation.fill[i % operation.fillBytes];
}

// --- The two halves ------------------------------------------------------------------------------------------------

void BulkQueue::begin(Warp &warp, const Step &step, const BulkOperation &operation) {
  Shadow &shadow = *cta.shadow;
  const int engine =
      operation.completion == BulkOperation::Completion::mbarrier ? cta.engineOf(operation.mbarrier) : -1;
  for (const BulkOperation::Piece &piece : operation.pieces) {
    if (piece.from)
      shadow.beginRead(warp, step, operation.lane, const_cast<char *>(piece.from), piece.bytes, engine);
    if (operation.overwrites) {
      shadow.beginWrite(warp, step, operation.lane, piece.to, piece.bytes);
      continue;
    }
    LanePointers pointers;
    pointers.at[static_cast<size_t>(operation.lane)] = piece.to;
    shadow.access({warp, step, pointers, Mask{1} << operation.lane, piece.bytes, AccessKind::atomic});
  }
}

void BulkQueue::read(BulkOperation &operation) const {
  size_t bytes = 0;
  for (const BulkOperation::Piece &piece : operation.pieces)
    bytes += piece.bytes;
  operation.data.resize(bytes);
  char *at = operation.data.data();
  for (const BulkOperation::Piece &piece : operation.pieces) {
    if (piece.from)
      std::memcpy(at, piece.from, piece.bytes);
    else
      fillPiece(operation, at, piece.bytes);
    at += piece.bytes;
  }
}

void BulkQueue::write(BulkOperation &operation) {
  const char *at = operation.data.data();
  const bool toMbarrier = operation.completion == BulkOperation::Completion::mbarrier;
  for (const BulkOperation::Piece &piece : operation.pieces) {
    if (operation.combine)
      operation.combine(piece.to, at, piece.bytes);
    else
      std::memcpy(piece.to, at, piece.bytes);
    at += piece.bytes;
    if (!cta.shadow || !toMbarrier)
      continue;
    const int engine = cta.engineOf(operation.mbarrier);
    if (piece.from)
      cta.shadow->endRead(engine, 0, const_cast<char *>(piece.from), piece.bytes);
    if (operation.overwrites || operation.combine) // ordered before whoever waits at the mbarrier from here on
      cta.shadow->endWrite(engine, 0, piece.to, piece.bytes);
  }
  if (toMbarrier)
    cta.completeTransactions(operation.mbarrier, operation.transactions, operation.place);
  if (operation.completion == BulkOperation::Completion::run)
    operation.run();
  operation.data = {};
  ++completed;
}

/// Reads, or writes if the read is done. An operation of a bulk group is written by a later call, others at once.
void BulkQueue::doNext(BulkOperation &operation) {
  using Stage = BulkOperation::Stage;
  if (operation.stage == Stage::issued) {
    read(operation);
    operation.stage = Stage::read;
    if (operation.completion == BulkOperation::Completion::group)
      return;
  }
  operation.stage = Stage::written;
  write(operation);
}

/// Whether a finished operation must be kept until its thread has waited for it.
bool BulkQueue::isKept(const BulkOperation &operation) const {
  return operation.completion == BulkOperation::Completion::group && (cta.shadow || !operation.readSeen);
}

void BulkQueue::step(size_t index) {
  // Performing it may add operations and thus reallocate the list, so it is moved out of the list first.
  BulkOperation operation = std::move(operations[index]);
  doNext(operation);
  cta.noteChange();
  if (operation.stage != BulkOperation::Stage::written || isKept(operation))
    operations[index] = std::move(operation);
  else
    operations.erase(operations.begin() + static_cast<std::ptrdiff_t>(index));
}

void BulkQueue::issue(Warp &warp, const Step &step, BulkOperation operation) {
  if (const auto at = committed.find({operation.warp, operation.lane}); at != committed.end())
    operation.group = at->second;
  if (cta.metrics)
    for (const BulkOperation::Piece &piece : operation.pieces)
      cta.metrics->at(warp.path.code, warp.path.pc - 1).bulkBytes += piece.from ? piece.bytes : 0;
  if (cta.shadow)
    begin(warp, step, operation);
  if (cta.grid.delivery == Delivery::early) {
    while (operation.stage != BulkOperation::Stage::written)
      doNext(operation);
  } else if (operation.overwrites) {
    for (const BulkOperation::Piece &piece : operation.pieces)
      std::memset(piece.to, poison, piece.bytes);
  }
  if (operation.stage != BulkOperation::Stage::written || isKept(operation))
    operations.push_back(std::move(operation));
}

// --- Groups --------------------------------------------------------------------------------------------------------

void BulkQueue::commit(int warp, Mask lanes) {
  for (; lanes; lanes &= lanes - 1)
    ++committed[{warp, std::countr_zero(lanes)}];
}

/// Whether an operation belongs to a group that the lanes wait for.
bool BulkQueue::isDue(const BulkOperation &operation, int warp, Mask lanes, uint32_t most) const {
  if (operation.completion != BulkOperation::Completion::group || operation.warp != warp ||
      !(lanes >> operation.lane & 1))
    return false;
  const auto at = committed.find({warp, operation.lane});
  return at != committed.end() && operation.group + uint64_t{most} < at->second;
}

bool BulkQueue::pending(int warp, Mask lanes, uint32_t most, bool onlyReads) const {
  const auto wanted = onlyReads ? BulkOperation::Stage::read : BulkOperation::Stage::written;
  return std::any_of(operations.begin(), operations.end(), [&](const BulkOperation &operation) {
    return operation.stage < wanted && isDue(operation, warp, lanes, most);
  });
}

void BulkQueue::see(int warp, Mask lanes, uint32_t most, bool onlyReads) {
  std::erase_if(operations, [&](BulkOperation &operation) {
    if (!isDue(operation, warp, lanes, most))
      return false;
    for (const BulkOperation::Piece &piece : operation.pieces) {
      if (cta.shadow && piece.from && !operation.readSeen)
        cta.shadow->endRead(warp, operation.lane, const_cast<char *>(piece.from), piece.bytes);
      if (cta.shadow && operation.overwrites && !onlyReads)
        cta.shadow->endWrite(warp, operation.lane, piece.to, piece.bytes);
    }
    operation.readSeen = true;
    return !onlyReads || (operation.stage == BulkOperation::Stage::written && !isKept(operation));
  });
}

// --- When ----------------------------------------------------------------------------------------------------------

size_t BulkQueue::random(size_t below) {
  state += 0x9e3779b97f4a7c15;
  uint64_t mixed = (state ^ cta.grid.seed) * 0xbf58476d1ce4e5b9;
  mixed ^= mixed >> 29;
  return (mixed * 0x94d049bb133111eb >> 33) % below;
}

/// The pending operations.
std::vector<size_t> BulkQueue::open() const {
  std::vector<size_t> indices;
  for (size_t i = 0; i < operations.size(); ++i)
    if (operations[i].stage != BulkOperation::Stage::written)
      indices.push_back(i);
  return indices;
}

bool BulkQueue::advance() {
  const std::vector<size_t> indices = open();
  if (indices.empty())
    return false;
  // The newest first, because their order is not guaranteed.
  step(cta.grid.delivery == Delivery::random ? indices[random(indices.size())] : indices.back());
  return true;
}

void BulkQueue::advanceAtRandom() {
  if (cta.grid.delivery != Delivery::random)
    return;
  while (random(3) == 0) {
    const std::vector<size_t> indices = open();
    if (indices.empty())
      return;
    step(indices[random(indices.size())]);
  }
}

void BulkQueue::finish() {
  using Completion = BulkOperation::Completion;
  for (const BulkOperation &operation : operations)
    if (operation.completion == Completion::group ? !operation.readSeen : operation.completion == Completion::mbarrier)
      cta.report(
          Check::inFlight, operation.place,
          fmt::format("the block ends, but nobody has waited until a copy that it began has {} its shared memory",
                      operation.completion == Completion::group ? "read" : "written"));
  while (advance())
    continue;
}

} // namespace kiln::simulator
