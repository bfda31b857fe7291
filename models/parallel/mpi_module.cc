// Ranks through MPI. Waiting yields the core, because there may be more ranks than cores.

#include "models/parallel/mpi_module.h"

#include <algorithm>
#include <mpi.h>
#include <sched.h>

namespace {

/// The maximum size of a message in bytes: MPI counts them in an int.
constexpr int64_t most = int64_t{1} << 26;

char text[MPI_MAX_ERROR_STRING + 1];

/// Null, or an error message.
const char *wordsFor(int error) {
  if (error == MPI_SUCCESS)
    return nullptr;
  int length = 0;
  MPI_Error_string(error, text, &length);
  text[length] = 0;
  return text;
}

/// Waits for a nonblocking call.
int finish(int error, MPI_Request &request) {
  for (int done = 0; error == MPI_SUCCESS && !done;) {
    error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done)
      sched_yield();
  }
  return error;
}

const char *open(kiln::MpiPlace *place) {
  int provided = 0;
  int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (error != MPI_SUCCESS)
    return wordsFor(error);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &place->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &place->size);
  MPI_Comm local;
  error = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &local);
  if (error != MPI_SUCCESS)
    return wordsFor(error);
  MPI_Comm_rank(local, &place->localRank);
  MPI_Comm_size(local, &place->localSize);
  return wordsFor(MPI_Comm_free(&local));
}

const char *exchange(const void *from, void *to, int64_t bytes) {
  if (bytes <= most) {
    MPI_Request request;
    const int count = static_cast<int>(bytes);
    return wordsFor(
        finish(MPI_Ialltoall(from, count, MPI_BYTE, to, count, MPI_BYTE, MPI_COMM_WORLD, &request), request));
  }
  return "more than 64 MiB for each rank at once";
}

const char *gather(void *all, int64_t bytes) {
  if (bytes > most)
    return "more than 64 MiB from each rank at once";
  MPI_Request request;
  return wordsFor(finish(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, static_cast<int>(bytes), MPI_BYTE,
                                        MPI_COMM_WORLD, &request),
                         request));
}

const char *broadcast(void *data, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += most) {
    MPI_Request request;
    const int count = static_cast<int>(std::min(most, bytes - at));
    if (const char *wrong = wordsFor(
            finish(MPI_Ibcast(static_cast<char *>(data) + at, count, MPI_BYTE, 0, MPI_COMM_WORLD, &request), request)))
      return wrong;
  }
  return nullptr;
}

bool isOpen() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun && !ended;
}

const char *close() { return isOpen() ? wordsFor(MPI_Finalize()) : nullptr; }

void abort(int status) {
  if (isOpen())
    MPI_Abort(MPI_COMM_WORLD, status);
}

} // namespace

extern "C" const kiln::MpiModule *kilnMpiModule() {
  static const kiln::MpiModule table = {kiln::mpiModuleVersion, open, exchange, gather, broadcast, close, abort};
  return &table;
}
