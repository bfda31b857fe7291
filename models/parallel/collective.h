// Collective operations of the processes that train one model together (data parallel). Each is a rank, numbered from
// 0. All ranks make the collective calls in one order. Sums are computed in the order of ranks, so a result depends on
// their number and nothing else.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

class Collective {
public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The index of this rank among those of its machine, and the number of these.
  virtual int localRank() const = 0;
  virtual int localSize() const = 0;

  /// All-to-all: piece r of `from`, of `bytes` each, goes to rank r; piece r of `to` comes from rank r. Host memory.
  /// Like all of these it throws Error (device) with the reason of a failure.
  virtual void exchange(const void *from, void *to, int64_t bytes) = 0;
  /// All-gather: piece r of `all`, of `bytes` each, is rank r's, and is sent to all. Host memory.
  virtual void gather(void *all, int64_t bytes) = 0;
  /// Sends the data of rank 0 to all.
  virtual void broadcast(void *data, int64_t bytes) = 0;

  bool isFirst() const { return rank() == 0; }
  bool isAlone() const { return size() == 1; }

  /// The numbers of all ranks; their sum, in order.
  std::vector<double> gathered(double mine);
  double sum(double mine);
  /// Whether it is true on any rank.
  bool any(bool mine) { return sum(mine ? 1 : 0) > 0; }
  /// Returns when all have called it.
  void barrier() { any(false); }
  /// The text of rank 0.
  std::string broadcast(const std::string &text);
  /// Throws Error unless all ranks have equal texts. The error names the first rank that differs from rank 0, and both
  /// texts as the value of `name`.
  void expectSame(const std::string &name, const std::string &mine);
};

/// The single rank of a process that trains alone.
std::shared_ptr<Collective> aloneCollective();

/// The number of processes that a launcher (mpirun, srun) started together with this one; 1 without a launcher.
int launchedRanks();

/// The ranks that a launcher started, by MPI through the module `libkiln_mpi.so`. Without
/// a launcher, or with one process, aloneCollective(), without any module. To be called once in a process. Throws Error
/// (device) if there is no module, or MPI has another number of ranks.
///
/// A process that ends without releasing it, or with an exit status other than 0, ends the others. A rank other than 0
/// then prints `rank 1 of 2 …` on standard error, after a second in which rank 0 may do so.
std::shared_ptr<Collective> openRanks();

} // namespace kiln
