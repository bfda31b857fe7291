// What a block's asynchronous units have still to do: bulk copies and reductions, and arrivals that follow copies.
//
// An operation is put off: it is done when nothing else can go on (`late`), at once (`early`), or at a random moment.
// A copy out of shared memory has two halves, reading its source and writing its destination, since a thread may wait
// for the first one alone. What a copy will write holds a pattern until then.

#pragma once

#include "runtime/simulator/AsyncCopies.h"

#include <functional>
#include <map>

namespace kiln::simulator {

class Cta;

/// Updates `bytes` bytes of memory with as many from a source.
using Combine = void (*)(char *to, const char *from, uint32_t bytes);

/// A bulk operation of one thread.
struct BulkOperation {
  /// Bytes that lie together on both sides; `from` null: they get the fill.
  struct Piece {
    char *to = nullptr;
    const char *from = nullptr;
    uint32_t bytes = 0;
  };
  enum class Completion : uint8_t { none, mbarrier, group, run };
  std::vector<Piece> pieces;
  Combine combine = nullptr;                // null: copies
  std::array<char, 8> fill{};               // repeated over what is filled
  uint32_t fillBytes = 1;                   // of the pattern: 1, 2, 4 or 8
  bool overwrites = true;                   // its destination holds a pattern until it is done
  Completion completion = Completion::none; // what happens when it is done
  uint32_t mbarrier = 0, transactions = 0;  // place and bytes
  int warp = 0, lane = 0;                   // of the thread that issued it
  uint32_t group = 0;                       // of that thread
  ptx::Place place;                         // of the instruction
  std::function<void()> run;                // Completion::run: all that it does
  /// How far it is: nothing is done; its source has been read, into `data`; its destination has been written.
  enum class Stage : uint8_t { issued, read, written };
  Stage stage = Stage::issued;
  std::vector<char> data;
  bool readSeen = false; // its thread has waited for the first half
};

class BulkQueue {
public:
  explicit BulkQueue(Cta &cta) : cta(cta) {}

  /// Takes what an instruction of the warp begins.
  void issue(Warp &warp, const Step &step, BulkOperation operation);
  /// Closes the group of what the lanes have issued.
  void commit(int warp, Mask lanes);
  /// Whether more than `most` of a lane's groups are pending.
  bool pending(int warp, Mask lanes, uint32_t most, bool onlyReads) const;
  /// The lanes have waited for all but `most` groups: they know that these are done.
  void see(int warp, Mask lanes, uint32_t most, bool onlyReads);
  /// Does half an operation; false when there is none.
  bool advance();
  /// Does halves of operations at random, when deliveries are random.
  void advanceAtRandom();
  /// Does everything, because the block has ended: says what nobody has waited for that needed the block's memory.
  void finish();
  /// Operations that were done.
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
  std::vector<BulkOperation> operations; // in the order of their issue, with those that nobody has waited for
  std::map<std::pair<int, int>, uint32_t> committed;
  int64_t completed = 0;
  uint64_t state = 0;
};

} // namespace kiln::simulator
