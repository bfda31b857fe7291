// Compiled objects on disk.

#include "runtime/Cache.h"

#include "dialect/dsl/Types.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln {

static constexpr std::string_view suffix = ".o", temporarySuffix = ".tmp";
static constexpr int64_t defaultCapacity = int64_t(256) << 20;
/// A temporary file that nobody has written to for so many seconds was left by a process that died.
static constexpr int64_t abandonedSeconds = 600;

namespace {
/// What an entry begins with; the content follows.
struct Header {
  char magic[8] = {'K', 'I', 'L', 'N', 'O', 'B', 'J', '1'};
  char key[64] = {};
  char hash[64] = {}; // of the content
  uint64_t length = 0;
};

/// A file descriptor that closes itself.
struct File {
  explicit File(int descriptor) : descriptor(descriptor) {}
  ~File() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  File(const File &) = delete;
  const int descriptor;
};
} // namespace

std::string sha256(std::string_view text) {
  const auto digest = llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

static Header headerOf(const std::string &key, std::string_view content) {
  Header header;
  std::memcpy(header.key, key.data(), sizeof header.key);
  const std::string hash = sha256(content);
  std::memcpy(header.hash, hash.data(), sizeof header.hash);
  header.length = content.size();
  return header;
}

static bool readAll(int file, char *to, size_t bytes) {
  while (bytes) {
    const ssize_t got = ::read(file, to, bytes);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    to += got;
    bytes -= got;
  }
  return true;
}

static bool writeAll(int file, const char *from, size_t bytes) {
  while (bytes) {
    const ssize_t put = ::write(file, from, bytes);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return false;
    from += put;
    bytes -= put;
  }
  return true;
}

// --- The folder -----------------------------------------------------------------------------------------------------

/// Makes the folder; what keeps it from holding code that is run, or nothing.
static std::string openFolder(const std::string &folder) {
  std::error_code failure;
  fs::create_directories(fs::path(folder).parent_path(), failure);
  struct stat status;
  if ((::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) || ::stat(folder.c_str(), &status) != 0)
    return std::strerror(errno);
  if (!S_ISDIR(status.st_mode))
    return "it is not a folder";
  if (status.st_uid != ::geteuid())
    return "it belongs to another user";
  if ((status.st_mode & 022) != 0)
    return "others may write to it (chmod 700 makes it private)";
  return "";
}

DiskCache::DiskCache(std::string path, int64_t capacity)
    : folder(std::move(path)), capacity(capacity), readable(false), writable(false) {
  if (folder.empty())
    return;
  if (const std::string fault = openFolder(folder); fault.empty())
    readable = writable = true;
  else
    sayNotKept(fault);
}

DiskCache DiskCache::fromEnvironment() {
  const auto variable = [](const char *name) -> std::optional<std::string> {
    const char *text = std::getenv(name);
    return text ? std::optional<std::string>(text) : std::nullopt;
  };
  int64_t capacity = defaultCapacity;
  if (const auto text = variable("KILN_CACHE_BYTES"); text && !text->empty()) {
    const auto [stop, failure] = std::from_chars(text->data(), text->data() + text->size(), capacity);
    if (failure != std::errc() || *stop || capacity < 0)
      throw Error(fmt::format("expected KILN_CACHE_BYTES to be a number of bytes, but got '{}'", *text));
  }
  if (const auto folder = variable("KILN_CACHE"))
    return DiskCache(*folder, capacity);
  if (const auto cache = variable("XDG_CACHE_HOME"); cache && cache->starts_with('/'))
    return DiskCache(*cache + "/kiln", capacity);
  if (const auto home = variable("HOME"); home && !home->empty())
    return DiskCache(*home + "/.cache/kiln", capacity);
  return DiskCache("", capacity);
}

void DiskCache::sayNotKept(const std::string &why) {
  static std::atomic<bool> said = false;
  if (!said.exchange(true))
    fmt::print(stderr, "kiln: warning: compiled kernels are not kept in '{}': {}\n", folder, why);
}

// --- Entries --------------------------------------------------------------------------------------------------------

std::optional<std::vector<char>> DiskCache::load(const std::string &key) {
  if (!readable)
    return std::nullopt;
  const std::string path = fmt::format("{}/{}{}", folder, key, suffix);
  // Not blocking, lest a pipe of that name be waited for.
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.descriptor < 0)
    return std::nullopt;
  struct stat status;
  Header header;
  std::vector<char> content;
  bool whole = ::fstat(file.descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid() &&
               readAll(file.descriptor, reinterpret_cast<char *>(&header), sizeof header) &&
               header.length == static_cast<uint64_t>(status.st_size) - sizeof header;
  if (whole) {
    content.resize(header.length);
    whole = readAll(file.descriptor, content.data(), content.size());
  }
  const Header expected = headerOf(key, std::string_view(content.data(), content.size()));
  if (!whole || std::memcmp(&header, &expected, sizeof header) != 0) {
    ::unlink(path.c_str());
    return std::nullopt;
  }
  ::futimens(file.descriptor, nullptr); // used now: the time that trim() goes by
  return content;
}

void DiskCache::store(const std::string &key, const std::vector<char> &content) {
  if (!writable || static_cast<int64_t>(content.size() + sizeof(Header)) > capacity)
    return;
  write(key, content);
  if (writable)
    trim(key);
}

void DiskCache::write(const std::string &key, const std::vector<char> &content) {
  static std::atomic<int64_t> written = 0;
  const std::string path = fmt::format("{}/{}{}", folder, key, suffix);
  const std::string aside = fmt::format("{}/{}.{}.{}{}", folder, key, ::getpid(), written++, temporarySuffix);
  const Header header = headerOf(key, std::string_view(content.data(), content.size()));
  const File file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.descriptor >= 0 && writeAll(file.descriptor, reinterpret_cast<const char *>(&header), sizeof header) &&
      writeAll(file.descriptor, content.data(), content.size()) && ::fsync(file.descriptor) == 0 &&
      ::rename(aside.c_str(), path.c_str()) == 0)
    return;
  const int failure = errno;
  if (file.descriptor >= 0)
    ::unlink(aside.c_str());
  writable = false;
  sayNotKept(std::strerror(failure));
}

/// Removes what dead processes left, then the entries used longest ago until the rest fits. Another process may be
/// doing the same: a file that is gone already is as good as removed.
void DiskCache::trim(const std::string &keep) {
  struct Entry {
    int64_t used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total = 0;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    struct stat status;
    if (::stat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    const std::string name = it->path().filename().string();
    if (name.ends_with(temporarySuffix) && std::time(nullptr) - status.st_mtim.tv_sec > abandonedSeconds) {
      ::unlink(it->path().c_str());
      continue;
    }
    total += status.st_size;
    if (name.ends_with(suffix) && !name.starts_with(keep))
      entries.push_back({status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, status.st_size, it->path()});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) { return a.used < b.used; });
  for (const Entry &entry : entries) {
    if (total <= capacity)
      return;
    ::unlink(entry.path.c_str());
    total -= entry.bytes;
  }
}

} // namespace kiln
