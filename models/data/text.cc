// Reading and splitting a text.

#include "models/data/text.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

/// Bytes that one read asks for.
static constexpr int64_t mostAtOnce = int64_t{1} << 20;

int64_t mostTextBytes() { return ::sysconf(_SC_PHYS_PAGES) / 4 * ::sysconf(_SC_PAGESIZE); }

namespace {
/// An open file that closes itself.
struct Input {
  explicit Input(const std::string &path) : descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Input() {
    if (descriptor >= 0)
      ::close(descriptor);
  }
  Input(const Input &) = delete;
  const int descriptor;
};
} // namespace

/// Throws unless `mode` is that of a file or a pipe: a folder has no text, and a device's has no end.
static void verifyKind(const std::string &path, mode_t mode) {
  const char *const kind = S_ISDIR(mode)    ? "a folder"
                           : S_ISCHR(mode)  ? "a device"
                           : S_ISBLK(mode)  ? "a device"
                           : S_ISSOCK(mode) ? "a socket"
                                            : nullptr;
  if (kind)
    throw Error(fmt::format("expected a text file or a pipe, but '{}' is {}", path, kind));
}

[[noreturn]] static void fail(const std::string &path) {
  throw Error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)), Fault::device);
}

[[noreturn]] static void rejectLength(const std::string &path, int64_t most, const std::string &got) {
  throw Error(fmt::format("expected at most {} bytes of text (a quarter of this machine's memory), but '{}' has {}",
                          most, path, got));
}

/// All that comes out of `file`, probably `likely` bytes.
static std::vector<uint8_t> readToEnd(const std::string &path, int file, int64_t likely, int64_t most) {
  std::vector<uint8_t> bytes(likely + 1); // one more, so that the end is seen without making it longer
  int64_t size = 0;
  while (true) {
    if (size == static_cast<int64_t>(bytes.size()))
      bytes.resize(size + mostAtOnce);
    const ssize_t got = ::read(file, bytes.data() + size, std::min<int64_t>(mostAtOnce, std::ssize(bytes) - size));
    if (got == 0)
      break;
    if (got < 0 && errno != EINTR)
      fail(path);
    size += std::max<ssize_t>(got, 0);
    if (size > most)
      rejectLength(path, most, "more");
  }
  bytes.resize(size);
  return bytes;
}

static std::vector<uint8_t> readBytes(const std::string &path, int64_t most) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      throw Error(fmt::format("expected a text file, but '{}' does not exist", path));
    fail(path);
  }
  verifyKind(path, status.st_mode); // before it is opened: opening some devices does something
  const Input in(path);
  if (in.descriptor < 0 || ::fstat(in.descriptor, &status) != 0)
    fail(path);
  verifyKind(path, status.st_mode);
  if (status.st_size > most)
    rejectLength(path, most, std::to_string(status.st_size));
  return readToEnd(path, in.descriptor, status.st_size, most);
}

/// Throws for files that hold texts in another form, which nobody wants to train on as bytes.
static void expectPlain(const std::string &path, const std::vector<uint8_t> &bytes) {
  struct Form {
    std::string_view begin;
    const char *name;
    bool isRead; // by `tokens encode`
  };
  static constexpr Form forms[] = {{"\x1f\x8b", "gzip", true},
                                   {"BZh", "bzip2", true},
                                   {"\x28\xb5\x2f\xfd", "zstd", false},
                                   {"\xfd"
                                    "7zXZ",
                                    "xz", false},
                                   {"PK\x03\x04", "zip", false},
                                   {"PAR1", "parquet", false}};
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const auto *const form =
      std::find_if(std::begin(forms), std::end(forms), [&](const Form &form) { return text.starts_with(form.begin); });
  const bool isLines = path.find(".jsonl") != std::string::npos;
  if (form == std::end(forms) && !isLines)
    return;
  const bool isRead = form == std::end(forms) || form->isRead;
  throw Error(fmt::format("expected a text, but '{}' holds {}; {}", path,
                          form == std::end(forms) ? "JSON lines" : form->name,
                          isRead ? fmt::format("`tokens encode {} --tokens TOKENS -o FILE.bin` makes a file of tokens "
                                               "of its documents, which --data takes",
                                               path)
                                 : "convert it to text, or to JSON lines for `tokens encode`"));
}

std::vector<uint8_t> readWholeText(const std::string &path, int64_t most) {
  std::vector<uint8_t> text = readBytes(path, most);
  if (text.empty())
    throw Error(fmt::format("expected text in '{}', but the file is empty", path));
  expectPlain(path, text);
  return text;
}

Text readText(const std::string &path, int64_t context, int64_t most) {
  Text text;
  text.train = readWholeText(path, most);
  const int64_t size = text.train.size(), validation = size / 10, least = 10 * (context + 1);
  if (validation < context + 1)
    throw Error(
        fmt::format("expected at least {} bytes in '{}' for a context of {} (the last tenth validates), but got {}",
                    least, path, context, size));
  text.validation.assign(text.train.end() - validation, text.train.end());
  text.train.resize(size - validation);
  return text;
}

} // namespace kiln
