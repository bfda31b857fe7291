// Pending work of a CTA's asynchronous engines: bulk copies and reductions, and arrivals that follow copies.
//
// An operation runs when nothing else can continue (`late`), at once (`early`), or at a random moment. A copy from
// shared memory has two halves, reading the source and writing the destination, because a thread may wait for the first
// half only. The destination holds a pattern until the copy has landed.

#pragma once

#include "runtime/simulator/AsyncCopies.h"

#include <functional>
#include <map>

namespace kiln::simulator {

class Cta;

/// Updates `bytes` bytes of memory with the bytes of a source.
using Combine = void (*)(char *to, const char *from, uint32_t bytes);

/// A bulk operation of one thread.
struct BulkOperation {
  /// Contiguous bytes on both sides. If `from` is null, the destination gets the fill.
  struct Piece {
    char *to = nullptr;
    const char *from = nullptr;
    uint32_t bytes = 0;
  };
  enum class Completion : uint8_t { none, mbarrier, group, run };
  std::vector<Piece> pieces;
  Combine combine = nullptr;                // null: copies
  std::array<char, 8> fill{};               // repeated over filled bytes
  uint32_t fillBytes = 1;                   // size of the pattern: 1, 2, 4 or 8
  bool overwrites = true;                   // the destination holds a pattern until it is done
  Completion completion = Completion::none; // the action when it is done
  uint32_t mbarrier = 0, transactions = 0;  // place and bytes
  int warp = 0, lane = 0;                   // the issuing thread
  uint32_t group = 0;                       // of that thread
  ptx::Place place;                         // of the instruction
  std::function<void()> run;                // Completion::run: the whole operation
  /// Progress: nothing is done; the source has been read into `data`; the destination has been written.
  enum class Stage : uint8_t { issued, read, written };
  Stage stage = Stage::issued;
  std::vector<char> data;
  bool readSeen = false; // its thread has waited for the first half
};

class BulkQueue {
public:
  explicit BulkQueue(Cta &cta) : cta(cta) {}

  /// Takes an operation that an instruction of the warp begins.
  void issue(Warp &warp, const Step &step, BulkOperation operation);
  /// Closes the group of operations that the lanes have issued.
  void commit(int warp, Mask lanes);
  /// Whether more than `most` groups of a lane are pending.
  bool pending(int warp, Mask lanes, uint32_t most, bool onlyReads) const;
  /// The lanes have waited for all except `most` groups, and may rely on the others.
  void see(int warp, Mask lanes, uint32_t most, bool onlyReads);
  /// Runs one half of an operation; false if there is none.
  bool advance();
  /// Runs halves of operations at random, if the delivery is random.
  void advanceAtRandom();
  /// Runs everything at the end of the CTA. Reports operations that needed the CTA's memory and that no thread waited
  /// for.
  void finish();
  /// The number of completed operations.
  int64_t done() const { return completed; }

private:
  void begin(Warp &warp, const Step &step, const BulkOperation &operation);
  void read(BulkOperation &operation) const;
  void write(BulkOperation &operation);
  void doNext(BulkOperation &operation);
  void step(size_t index);
  std::vector<size_t> open() const;
  bool isDue(const BulkOperation &operation, int warp, Mask lanes, uint32_t most) const;
  bool isKept(const BulkOperation &operation) const;
  size_t random(size_t below);

  Cta &cta;
  std::vector<BulkOperation> operations; // in the order of issue, including those that no thread has waited for
  std::map<std::pair<int, int>, uint32_t> committed;
  int64_t completed = 0;
  uint64_t state = 0;
};

} // namespace kiln::simulator
