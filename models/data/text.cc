// Reads a text and splits it.

#include "models/data/text.h"
#include "dialect/dsl/Types.h"
#include "models/data/shards.h"
#include "runtime/Files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

/// Bytes of one read() call.
static constexpr int64_t mostAtOnce = int64_t{1} << 20;

int64_t mostTextBytes(const std::string &limit) {
  const int64_t quarter = ::sysconf(_SC_PHYS_PAGES) / 4 * ::sysconf(_SC_PAGESIZE);
  std::ifstream file(limit);
  int64_t most = 0;
  return file >> most ? std::min(quarter, most / 4) : quarter; // `max`: no limit
}

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

/// Throws unless `mode` is that of a file or a pipe; a device's text might never end.
static void verifyKind(const std::string &path, mode_t mode) {
  if (!S_ISREG(mode) && !S_ISFIFO(mode))
    throw Error(fmt::format("expected a text file or a pipe, but '{}' is {}", path, kindOf(mode)));
}

[[noreturn]] static void fail(const std::string &path) {
  throw Error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)), Fault::device);
}

[[noreturn]] static void rejectLength(const std::string &path, int64_t most, const std::string &got) {
  throw Error(fmt::format("expected at most {} bytes of text (a quarter of the memory that there is), but '{}' has {}",
                          most, path, got));
}

/// Reads `file` to its end; its expected size is `likely` bytes.
static std::vector<uint8_t> readToEnd(const std::string &path, int file, int64_t likely, int64_t most) {
  std::vector<uint8_t> bytes(likely + 1); // one more, so that the end is found without growing the buffer
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
  verifyKind(path, status.st_mode); // before opening, because opening some devices has side effects
  const Input in(path);
  if (in.descriptor < 0 || ::fstat(in.descriptor, &status) != 0)
    fail(path);
  verifyKind(path, status.st_mode);
  if (status.st_size > most)
    rejectLength(path, most, std::to_string(status.st_size));
  return readToEnd(path, in.descriptor, status.st_size, most);
}

/// Throws for compressed and structured files, which must not be trained on as raw bytes.
static void expectPlain(const std::string &path, const std::vector<uint8_t> &bytes) {
  enum class Cure { encode, convert, none };
  struct Form {
    std::string_view begin;
    const char *name;
    Cure cure;
  };
  static constexpr Form forms[] = {{"\x1f\x8b", "gzip", Cure::encode},
                                   {"BZh", "bzip2", Cure::encode},
                                   {"\x28\xb5\x2f\xfd", "zstd", Cure::convert},
                                   {"\xfd"
                                    "7zXZ",
                                    "xz", Cure::convert},
                                   {"7z\xbc\xaf", "7z", Cure::convert},
                                   {"\x04\x22\x4d\x18", "lz4", Cure::convert},
                                   {"PK\x03\x04", "zip", Cure::convert},
                                   {"PAR1", "parquet", Cure::convert},
                                   {"ARROW1", "arrow", Cure::convert},
                                   {"\x93NUMPY", "NumPy's numbers", Cure::convert},
                                   {"\x89HDF", "HDF5", Cure::convert},
                                   {"SQLite format 3", "an SQLite database", Cure::convert},
                                   {"%PDF-", "PDF", Cure::convert},
                                   {"\xff\xfe", "UTF-16", Cure::convert},
                                   {"\xfe\xff", "UTF-16", Cure::convert},
                                   {"\x89PNG", "a picture (PNG)", Cure::none},
                                   {"\xff\xd8\xff", "a picture (JPEG)", Cure::none},
                                   {"\x7f"
                                    "ELF",
                                    "a program or library (ELF)", Cure::none}};
  const std::string_view text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  const auto *const form =
      std::find_if(std::begin(forms), std::end(forms), [&](const Form &form) { return text.starts_with(form.begin); });
  const bool isKnown = form != std::end(forms), isLines = path.find(".jsonl") != std::string::npos;
  if (beginsAsShard(bytes))
    throw Error(fmt::format("expected a text, but '{}' holds tokens; files of tokens are named *.bin", path));
  if (!isKnown && !isLines)
    return;
  const Cure cure = isKnown ? form->cure : Cure::encode;
  throw Error(fmt::format("expected a text, but '{}' holds {}; {}", path, isKnown ? form->name : "JSON lines",
                          cure == Cure::encode
                              ? fmt::format("`tokens encode {} --tokens TOKENS -o FILE.bin` makes a file of "
                                            "tokens of its documents, which --data takes",
                                            path)
                          : cure == Cure::convert ? "convert it to text in UTF-8, or to JSON lines for `tokens encode`"
                                                  : "name a file of text"));
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
