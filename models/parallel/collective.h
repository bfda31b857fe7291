// The processes that train one model together. Each is a rank, numbered from 0; what all of them call, all call in the
// same order. Sums are made in the order of ranks, so that a result depends on how many there are and on nothing else.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln {

class Collective {
public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The number of this rank among those on its machine, and how many these are.
  virtual int localRank() const = 0;
  virtual int localSize() const = 0;

  /// Piece r of `from`, of `bytes` each, goes to rank r; piece r of `to` is what rank r sent here. Memory of the host.
  /// Throws Error (device) with what the exchange said where it failed, as all of these do.
  virtual void exchange(const void *from, void *to, int64_t bytes) = 0;
  /// Piece r of `all`, of `bytes` each, is rank r's, and comes from there. Memory of the host.
  virtual void gather(void *all, int64_t bytes) = 0;
  /// What rank 0 has comes to all.
  virtual void broadcast(void *data, int64_t bytes) = 0;

  bool isFirst() const { return rank() == 0; }
  bool isAlone() const { return size() == 1; }

  /// The numbers of all ranks; their sum, in order.
  std::vector<double> gathered(double mine);
  double sum(double mine);
  /// Whether it is so on one of them.
  bool any(bool mine) { return sum(mine ? 1 : 0) > 0; }
  /// Returns when all have called it.
  void barrier() { any(false); }
  /// The text of rank 0.
  std::string broadcast(const std::string &text);
  /// Throws Error, which names the first rank that has another text than rank 0, and both as what `name` says, unless
  /// all have the same.
  void expectSame(const std::string &name, const std::string &mine);
};

/// The one rank of a process that trains alone.
std::shared_ptr<Collective> aloneCollective();

/// How many processes a launcher (mpirun, srun) says that it started together with this one; 1 without a launcher.
int launchedRanks();

/// The ranks that a launcher started: by MPI, which the module `libkiln_mpi.so` speaks (KILN_MPI names another).
/// Without a launcher, and where it started one alone, aloneCollective(), and no module is opened. Once in a process.
/// Throws Error (device) where there is no module, or MPI knows of another number of ranks.
///
/// A process that ends without giving it back, or with an exit status other than 0, ends the others: `rank 1 of 2 …`
/// is said on standard error, where that is not rank 0, after a second in which the first one may say the same.
std::shared_ptr<Collective> openRanks();

} // namespace kiln
