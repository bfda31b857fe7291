// A stub of NCCL's library: ranks are processes of one machine, and their GPUs those of the stub driver, whose memory
// is the host's. The stub driver executes a stream's operations in order, and retries one that waits for others. A
// message is a file in a folder named by the identity of the ranks.
//
// KILN_STUB_NCCL has words separated by blanks that select faults: `version=2600` is the reported version, `size=3` the
// reported number of ranks, `refuse=ncclSend` makes the call fail, `die=1:2` ends the process of rank 1 at its second
// operation, and with `hang=1:2` that operation and later ones never begin.

#include "models/parallel/nccl.h"
#include "test/runtime/cuda/stub/controls.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <sys/file.h>
#include <unistd.h>
#include <utility>
#include <vector>

extern "C" {
using namespace kiln::nccl;
#define KILN_NCCL_CALL(member, symbol, ...) Result symbol(__VA_ARGS__);
#include "models/parallel/nccl_calls.def"
const char *ncclGetErrorString(Result);
}

namespace {

constexpr auto success = Result::success;
constexpr auto unhandledCudaError = Result(1), systemError = Result(2), internalError = Result(3),
               invalidArgument = Result(4), invalidUsage = Result(5), remoteError = Result(6);
constexpr int driverSuccess = 0, driverNotReady = 600;

/// The value of `key` in KILN_STUB_NCCL; empty without it.
std::string readValue(const std::string &key) {
  const char *const all = std::getenv("KILN_STUB_NCCL");
  std::istringstream words(all ? all : "");
  for (std::string word; words >> word;)
    if (word.starts_with(key + "="))
      return word.substr(key.size() + 1);
  return "";
}

bool isRefused(const char *call) { return readValue("refuse") == call; }

/// A message that a group sends or receives.
struct Message {
  char *place;
  size_t bytes;
  int peer;
  bool isSent;
};

/// One operation of a stream: the messages of a group.
struct Group {
  ncclComm *comm;
  std::vector<Message> messages;
  int64_t number; // of those of the rank, from 1
};

std::vector<Message> pending; // of the group that was begun
ncclComm *pendingOn = nullptr;
StreamHandle pendingStream = nullptr;
int depth = 0;

} // namespace

struct ncclComm {
  std::filesystem::path folder;
  int rank, size;
  int alive = -1; // a file that this process has locked while it lives
  int64_t groups = 0;
  std::vector<int64_t> sent, received; // messages to and from each rank
  Result error = success;

  std::filesystem::path aliveOf(int r) const { return folder / ("alive-" + std::to_string(r)); }
  std::filesystem::path message(int from, int to, int64_t number) const {
    return folder / (std::to_string(from) + "-" + std::to_string(to) + "-" + std::to_string(number));
  }
  /// Whether the process of rank `r` has ended, or given up, before it gave its communicator back.
  bool hasEnded(int r) const {
    const int file = ::open(aliveOf(r).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return false;
    const bool isFree = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    ::close(file);
    return isFree;
  }
  bool isToldTo(const char *what, const Group &group) const {
    int r = -1;
    long long from = 0;
    return std::sscanf(readValue(what).c_str(), "%d:%lld", &r, &from) == 2 && r == rank && group.number >= from;
  }
};

/// Sends the messages not yet sent, and receives those that have arrived; the others stay pending.
static int progress(void *given) {
  auto *const group = static_cast<Group *>(given);
  ncclComm &comm = *group->comm;
  if (comm.isToldTo("die", *group))
    ::_exit(9);
  if (comm.error == internalError)
    return driverSuccess;
  if (comm.isToldTo("hang", *group))
    return driverNotReady;
  std::erase_if(group->messages, [&](const Message &m) {
    if (m.isSent) {
      const auto to = comm.message(comm.rank, m.peer, comm.sent[m.peer]++);
      std::ofstream(to.string() + "~", std::ios::binary).write(m.place, static_cast<std::streamsize>(m.bytes));
      std::filesystem::rename(to.string() + "~", to);
      return true;
    }
    const auto from = comm.message(m.peer, comm.rank, comm.received[m.peer]);
    if (!std::filesystem::exists(from))
      return false;
    if (std::filesystem::file_size(from) != m.bytes)
      comm.error = invalidUsage; // the ranks ask for different things
    std::ifstream(from, std::ios::binary).read(m.place, static_cast<std::streamsize>(m.bytes));
    std::filesystem::remove(from);
    ++comm.received[m.peer];
    return true;
  });
  if (!group->messages.empty())
    return driverNotReady;
  delete group;
  return driverSuccess;
}

/// Asks the stub driver.
static Result ask(ncclComm *comm, const char *what, std::vector<Message> messages, StreamHandle stream) {
  void *const driver = ::dlopen(std::getenv("KILN_CUDA_DRIVER"), RTLD_NOW | RTLD_LOCAL);
  const auto stub = driver ? reinterpret_cast<decltype(&kiln_stub_ask)>(::dlsym(driver, "kiln_stub_ask")) : nullptr;
  if (!stub)
    return systemError;
  auto *const group = new Group{comm, std::move(messages), ++comm->groups};
  return stub(stream, what, progress, group) == driverSuccess ? success : unhandledCudaError;
}

const char *ncclGetErrorString(Result result) {
  static const char *const texts[] = {"no error",
                                      "unhandled cuda error",
                                      "unhandled system error",
                                      "internal error",
                                      "invalid argument",
                                      "invalid usage",
                                      "remote process exited or there was a network error"};
  return int(result) < 7 ? texts[int(result)] : "unknown";
}

Result ncclGetVersion(int *version) {
  const std::string told = readValue("version");
  *version = told.empty() ? 22809 : std::stoi(told);
  return success;
}

Result ncclGetUniqueId(UniqueId *id) {
  std::string folder = (std::filesystem::temp_directory_path() / "nccl-stub-XXXXXX").string();
  if (isRefused(__func__) || !::mkdtemp(folder.data()) || folder.size() >= sizeof(id->bytes))
    return systemError;
  std::strcpy(id->bytes, folder.c_str());
  return success;
}

Result ncclCommInitRank(CommHandle *comm, int size, UniqueId id, int rank) {
  if (isRefused(__func__))
    return systemError;
  if (rank < 0 || rank >= size)
    return invalidArgument;
  auto *const made = new ncclComm{id.bytes, rank, size};
  made->sent.assign(size, 0);
  made->received.assign(size, 0);
  const std::string mine = made->aliveOf(rank).string();
  made->alive = ::open((mine + "~").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (made->alive < 0 || ::flock(made->alive, LOCK_EX) != 0)
    return systemError;
  std::filesystem::rename(mine + "~", mine);
  for (int r = 0; r < size; ++r)
    while (!std::filesystem::exists(made->aliveOf(r)))
      ::usleep(100);
  *comm = made;
  return success;
}

Result ncclCommCount(CommHandle comm, int *count) {
  const std::string told = readValue("size");
  *count = told.empty() ? comm->size : std::stoi(told);
  return success;
}

Result ncclCommUserRank(CommHandle comm, int *rank) {
  *rank = comm->rank;
  return success;
}

Result ncclCommGetAsyncError(CommHandle comm, Result *error) {
  *error = comm->error;
  for (int r = 0; r < comm->size; ++r)
    if (r != comm->rank && *error == success && comm->hasEnded(r))
      *error = remoteError;
  return success;
}

/// The last rank removes the folder. A stream may still execute its pending operations.
Result ncclCommDestroy(CommHandle comm) {
  if (isRefused(__func__))
    return systemError;
  std::error_code ignored;
  std::filesystem::rename(comm->aliveOf(comm->rank), comm->folder / ("gone-" + std::to_string(comm->rank)), ignored);
  for (int r = 0; r < comm->size; ++r)
    if (std::filesystem::exists(comm->aliveOf(r)))
      return success;
  std::filesystem::remove_all(comm->folder, ignored);
  return success;
}

Result ncclCommAbort(CommHandle comm) {
  comm->error = internalError; // what it was asked for never ends
  ::close(comm->alive);
  return success;
}

Result ncclGroupStart() {
  ++depth;
  return success;
}

Result ncclGroupEnd() {
  if (isRefused(__func__) || depth == 0)
    return invalidUsage;
  if (--depth > 0 || pending.empty())
    return success;
  return ask(pendingOn, "ncclGroupEnd", std::exchange(pending, {}), pendingStream);
}

static Result add(const char *call, ncclComm *comm, Message message, StreamHandle stream) {
  if (isRefused(call) || message.peer < 0 || message.peer >= comm->size)
    return invalidArgument;
  if (depth == 0 || (!pending.empty() && (pendingOn != comm || pendingStream != stream)))
    return invalidUsage; // messages to oneself, and back and forth, would wait for ever
  pendingOn = comm;
  pendingStream = stream;
  pending.push_back(message);
  return success;
}

Result ncclSend(const void *from, size_t count, DataType, int peer, CommHandle comm, StreamHandle stream) {
  return add(__func__, comm, {static_cast<char *>(const_cast<void *>(from)), count, peer, true}, stream);
}

Result ncclRecv(void *to, size_t count, DataType, int peer, CommHandle comm, StreamHandle stream) {
  return add(__func__, comm, {static_cast<char *>(to), count, peer, false}, stream);
}

Result ncclAllGather(const void *from, void *to, size_t count, DataType, CommHandle comm, StreamHandle stream) {
  if (isRefused(__func__))
    return invalidArgument;
  std::vector<Message> messages;
  for (int r = 0; r < comm->size; ++r) {
    messages.push_back({static_cast<char *>(const_cast<void *>(from)), count, r, true});
    messages.push_back({static_cast<char *>(to) + r * count, count, r, false});
  }
  return ask(comm, __func__, std::move(messages), stream);
}
