// What the module `libkiln_mpi.so` exports: the few calls of MPI that ranks need, as a table. The module is the only
// thing that is built with MPI, and is opened where a launcher started the process, so that no program depends on it.
// It includes nothing else of Kiln, and MPI's types stay inside: another MPI is another module.

#pragma once

#include <cstdint>

namespace kiln {

/// Where this process is among those of its job.
struct MpiPlace {
  int rank, size, localRank, localSize;
};

/// Each call returns null, or what went wrong. All from one thread.
struct MpiModule {
  int version; // of this table
  /// `MPI_Init_thread`.
  const char *(*open)(MpiPlace *place);
  /// As Collective has them; any number of bytes.
  const char *(*exchange)(const void *from, void *to, int64_t bytes);
  const char *(*gather)(void *all, int64_t bytes);
  const char *(*broadcast)(void *data, int64_t bytes);
  /// `MPI_Finalize`, which waits for all ranks.
  const char *(*close)();
  /// `MPI_Abort`: ends all processes of the job with this exit status. After close() it does nothing.
  void (*abort)(int status);
};
inline constexpr int mpiModuleVersion = 1;

/// The name of the function that gives the table, and its type.
inline constexpr const char *mpiModuleEntry = "kilnMpiModule";
using MpiModuleEntry = const MpiModule *();

} // namespace kiln
