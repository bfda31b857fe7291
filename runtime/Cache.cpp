// The disk cache of compiled objects.

#include "runtime/Cache.h"

#include "dialect/dsl/Types.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

static constexpr int64_t defaultCapacity = int64_t(256) << 20;
/// Far above the size of any kernel's object. Larger files are not read.
static constexpr int64_t largestEntry = int64_t(64) << 20;
/// A temporary file that was not written for this many seconds belongs to a dead process.
static constexpr int64_t abandonedSeconds = 600;

// --- Names -----------------------------------------------------------------------------------------------------------
//
// An entry's file is kiln-KEY.kernel, and kiln-KEY.PROCESS.NUMBER.tmp while it is written. Files of other names are
// left alone.

static constexpr std::string_view prefix = "kiln-", suffix = ".kernel", temporarySuffix = ".tmp";
static constexpr size_t keyDigits = 64;

static std::string entryName(std::string_view key) { return fmt::format("{}{}{}", prefix, key, suffix); }

static bool isAll(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
}

/// The name without `kiln-KEY` and without `ending`; none if it has another form.
static std::optional<std::string_view> afterKey(std::string_view name, std::string_view ending) {
  if (!name.starts_with(prefix) || !name.ends_with(ending) || name.size() < prefix.size() + keyDigits + ending.size() ||
      !isAll(name.substr(prefix.size(), keyDigits), "0123456789abcdef"))
    return std::nullopt;
  name.remove_prefix(prefix.size() + keyDigits);
  name.remove_suffix(ending.size());
  return name;
}

static bool isEntry(std::string_view name) { return afterKey(name, suffix) == ""; }

static bool isTemporary(std::string_view name) {
  const std::optional<std::string_view> numbers = afterKey(name, temporarySuffix); // .PROCESS.NUMBER
  const size_t dot = numbers ? numbers->rfind('.') : std::string_view::npos;
  return dot != std::string_view::npos && dot > 0 && numbers->front() == '.' &&
         isAll(numbers->substr(1, dot - 1), "0123456789") && isAll(numbers->substr(dot + 1), "0123456789");
}

// --- The folder -----------------------------------------------------------------------------------------------------

/// Bytes stored between two trims, which take time proportional to the number of entries.
static int64_t bytesPerLook(int64_t capacity) { return std::max<int64_t>(capacity / 32, 1); }

static int64_t randomBelow(int64_t end) {
  std::random_device random;
  return std::uniform_int_distribution<int64_t>(0, end - 1)(random);
}

DiskCache::DiskCache(std::string path, int64_t capacity)
    : path(std::move(path)), capacity(capacity), writable(false), unseen(randomBelow(bytesPerLook(capacity))) {
  if (this->path.empty())
    return;
  try {
    folder.emplace(this->path);
    writable = true;
  } catch (const Error &fault) {
    sayNotKept(fault.what());
  }
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
    say(fmt::format("kiln: warning: compiled kernels are not kept in '{}': {}\n", path, why));
}

// --- Entries --------------------------------------------------------------------------------------------------------

/// The content of an open entry, if it is complete, was stored under `key`, and belongs to this user.
static std::optional<std::vector<char>> readEntry(const Descriptor &file, const std::string &key,
                                                  const struct stat &status) {
  if (status.st_uid != ::geteuid() || (status.st_mode & 022) != 0 || status.st_size > largestEntry)
    return std::nullopt;
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  if (!file.readAll(bytes.data(), bytes.size()))
    return std::nullopt;
  try {
    std::string_view left = bytes;
    const Record record = takeRecord(left);
    if (record.key == key && left.empty())
      return std::vector<char>(record.content.begin(), record.content.end());
  } catch (const Error &) { // damaged, or of another version
  }
  return std::nullopt;
}

std::optional<std::vector<char>> DiskCache::load(const std::string &key) {
  if (!folder)
    return std::nullopt;
  const std::string name = entryName(key);
  // Nonblocking, so that a pipe of that name does not block.
  const Descriptor file = folder->open(name, O_RDONLY | O_NONBLOCK);
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  std::optional<std::vector<char>> content = readEntry(file, key, status);
  if (content)
    ::futimens(file.get(), nullptr); // records the last use, for trim()
  else if (struct stat now; ::fstat(folder->open(name, O_PATH).get(), &now) == 0 && now.st_ino == status.st_ino)
    folder->remove(name); // not if another process has replaced it meanwhile
  return content;
}

void DiskCache::store(const std::string &key, const std::vector<char> &content) {
  const int64_t bytes = static_cast<int64_t>(content.size() + Record::headerBytes);
  if (!writable || bytes > capacity || bytes > largestEntry)
    return;
  write(key, content);
  if (!writable || (unseen += bytes) < bytesPerLook(capacity))
    return;
  unseen = 0;
  trim(key);
}

/// Creates the temporary file of an entry under a unique name; processes on two machines may have equal numbers.
Descriptor DiskCache::openAside(const std::string &key, std::string &name) const {
  static std::atomic<int64_t> written = 0;
  constexpr int maxTries = 100;
  Descriptor file;
  for (int i = 0; i < maxTries && !file && (i == 0 || errno == EEXIST); ++i) {
    name = fmt::format("{}{}.{}.{}{}", prefix, key, ::getpid(), written++, temporarySuffix);
    file = folder->open(name, O_WRONLY | O_CREAT | O_EXCL);
  }
  return file;
}

void DiskCache::write(const std::string &key, const std::vector<char> &content) {
  std::string aside;
  const std::string record = makeRecord(key, {content.data(), content.size()});
  const Descriptor file = openAside(key, aside);
  // Not synchronised to disk, which can take longer than the compilation. An entry damaged by a crash of the machine
  // does not match its hash.
  if (file && file.writeAll(record) && folder->rename(aside, entryName(key)))
    return;
  const int failure = errno;
  if (file)
    folder->remove(aside);
  writable = false;
  sayNotKept(std::strerror(failure));
}

/// Removes files of dead processes, then the least recently used entries until the rest fits. Another process may
/// remove them, too, so a missing file counts as removed.
void DiskCache::trim(const std::string &keep) {
  const time_t abandoned = std::time(nullptr) - abandonedSeconds;
  std::vector<PrivateFolder::Entry> entries;
  int64_t total = 0;
  for (PrivateFolder::Entry &file : folder->files()) {
    if (isTemporary(file.name) && file.modified.first < abandoned)
      folder->remove(file.name);
    if (!isEntry(file.name))
      continue;
    total += file.bytes;
    if (file.name != entryName(keep))
      entries.push_back(std::move(file));
  }
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) { return a.modified < b.modified; });
  for (const PrivateFolder::Entry &entry : entries) {
    if (total <= capacity)
      return;
    folder->remove(entry.name);
    total -= entry.bytes;
  }
}

} // namespace kiln
