// The interface of the module `libkiln_mpi.so`: the few MPI calls that ranks need, as a table. Only the module is built
// with MPI. It is opened if a launcher started the process, so no program depends on MPI. It includes nothing else of
// Kiln, and MPI's types stay inside; another MPI needs another module.

#pragma once

#include <cstdint>

namespace kiln {

/// The place of this process in its job.
struct MpiPlace {
  int rank, size, localRank, localSize;
};

/// Each call returns null, or an error message. All calls must come from one thread.
struct MpiModule {
  int version; // of this table
  /// `MPI_Init_thread`.
  const char *(*open)(MpiPlace *place);
  /// As in Collective; any number of bytes.
  const char *(*exchange)(const void *from, void *to, int64_t bytes);
  const char *(*gather)(void *all, int64_t bytes);
  const char *(*broadcast)(void *data, int64_t bytes);
  /// `MPI_Finalize`, which waits for all ranks.
  const char *(*close)();
  /// `MPI_Abort`: ends all processes of the job with this exit status. After close() it does nothing.
  void (*abort)(int status);
};
inline constexpr int mpiModuleVersion = 1;

/// The module's file, which is found in LD_LIBRARY_PATH or in the folder `lib` next to the program's folder.
inline constexpr const char *mpiModuleName = "libkiln_mpi.so";

/// The name of the function that returns the table, and its type.
inline constexpr const char *mpiModuleEntry = "kilnMpiModule";
using MpiModuleEntry = const MpiModule *();

} // namespace kiln
