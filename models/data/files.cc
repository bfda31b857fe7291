// Writes and reads files; unpacks .gz and .bz2.

#include "models/data/files.h"
#include "dialect/dsl/Types.h"
#include "runtime/Files.h"

#include <algorithm>
#include <bzlib.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace kiln {

[[noreturn]] static void fail(const char *verb, const std::string &path, int error) {
  throw Error(fmt::format("cannot {} '{}': {}", verb, path, std::strerror(error)), Fault::device);
}

int writeAll(int file, const char *data, int64_t size) {
  while (size > 0) {
    const ssize_t wrote = write(file, data, static_cast<size_t>(std::min<int64_t>(size, int64_t{1} << 30)));
    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote < 0)
      return errno;
    data += wrote;
    size -= wrote;
  }
  return 0;
}

void writeSynced(const std::string &path, const std::vector<Bytes> &parts) {
  writeSynced(path, std::ssize(parts), [&](int64_t i) { return parts[i]; });
}

void writeSynced(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0)
    fail("create", path, errno);
  int error = 0;
  try {
    for (int64_t i = 0; i < count && !error; ++i) {
      const Bytes bytes = part(i);
      error = writeAll(file, static_cast<const char *>(bytes.data), bytes.size);
    }
  } catch (...) {
    close(file);
    unlink(path.c_str());
    throw;
  }
  if (!error && fsync(file) != 0)
    error = errno;
  if (close(file) != 0 && !error)
    error = errno;
  if (error) {
    unlink(path.c_str());
    fail("write", path, error);
  }
}

void overwriteSynced(const std::string &path, const Bytes &bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0)
    fail("open", path, errno);
  int error = writeAll(file, static_cast<const char *>(bytes.data), bytes.size);
  if (!error && fsync(file) != 0)
    error = errno;
  if (close(file) != 0 && !error)
    error = errno;
  if (error)
    fail("write", path, error);
}

void replaceFile(const std::string &path, const std::string &text) {
  replaceFile(path, std::vector<Bytes>{{text.data(), std::ssize(text)}});
}

void replaceFile(const std::string &path, const std::vector<Bytes> &parts) {
  replaceFile(path, std::ssize(parts), [&](int64_t i) { return parts[i]; });
}

void replaceFile(const std::string &path, int64_t count, const std::function<Bytes(int64_t)> &part) {
  const std::string aside = path + ".partial";
  writeSynced(aside, count, part);
  if (std::rename(aside.c_str(), path.c_str()) != 0)
    fail("replace", path, errno);
}

void syncFolder(const std::string &path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    fail("open folder", path, errno);
  const int error = fsync(folder) != 0 ? errno : 0;
  close(folder);
  if (error)
    fail("sync folder", path, error);
}

AppendedFile::AppendedFile(const std::string &path)
    : path(path), file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)) {
  if (file < 0)
    fail("write", path, errno);
}

AppendedFile::~AppendedFile() { close(file); }

void AppendedFile::write(std::string_view bytes) {
  if (const int error = writeAll(file, bytes.data(), std::ssize(bytes)))
    fail("write", path, error);
}

bool AppendedFile::isRemoved() const {
  struct stat status;
  return fstat(file, &status) == 0 && status.st_nlink == 0;
}

void forLines(std::string_view text, const std::function<void(std::string_view line)> &take) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    take(line);
  }
}

std::string readFile(const std::string &path, int64_t most) {
  const InputFile file(path);
  if (file.size() > most)
    throw Error(fmt::format("expected at most {} bytes in '{}', but it has {}", most, path, file.size()));
  std::string text(file.size(), '\0');
  file.read(0, text.data(), file.size());
  return text;
}

//===-- Compressed files ----------------------------------------------------------------------------------------===//

/// Bytes decompressed at a time.
static constexpr size_t atOnce = size_t{1} << 20;

[[noreturn]] static void reject(const std::string &path, const char *kind, const std::string &what) {
  throw Error(fmt::format("expected a whole {} file, but '{}' is {}", kind, path, what));
}

/// Appends the output of one call. Throws if the total is too large.
static void append(std::string &all, const std::string &made, size_t count, const std::string &path, int64_t most) {
  if (std::ssize(all) + static_cast<int64_t>(count) > most)
    throw Error(fmt::format("expected at most {} bytes in '{}', but it unpacks to more", most, path));
  all.append(made, 0, count);
}

static std::string unpackGzip(const std::string &path, const std::string &packed, int64_t most) {
  const auto release = [](z_stream *stream) {
    inflateEnd(stream);
    delete stream;
  };
  const std::unique_ptr<z_stream, decltype(release)> stream(new z_stream{}, release);
  if (inflateInit2(stream.get(), 15 + 16) != Z_OK) // largest window; gzip header
    throw Error("cannot unpack: zlib has no memory", Fault::device);
  std::string all, made(atOnce, '\0');
  size_t given = 0;
  int state = Z_STREAM_END; // between two gzip members
  while (given < packed.size() || (state != Z_STREAM_END && stream->avail_in > 0)) {
    if (state == Z_STREAM_END && given > 0 && inflateReset(stream.get()) != Z_OK)
      reject(path, "gzip", "damaged");
    const size_t input = std::min(packed.size() - given, atOnce);
    stream->next_in = reinterpret_cast<Bytef *>(const_cast<char *>(packed.data() + given));
    stream->avail_in = static_cast<uInt>(input);
    do {
      stream->next_out = reinterpret_cast<Bytef *>(made.data());
      stream->avail_out = static_cast<uInt>(made.size());
      state = inflate(stream.get(), Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        reject(path, "gzip", stream->msg ? fmt::format("damaged ({})", stream->msg) : "damaged");
      append(all, made, made.size() - stream->avail_out, path, most);
    } while (state == Z_OK && stream->avail_out == 0);
    given += input - stream->avail_in;
  }
  if (state != Z_STREAM_END || packed.empty())
    reject(path, "gzip", fmt::format("cut off after {} bytes", packed.size()));
  return all;
}

static std::string unpackBzip2(const std::string &path, const std::string &packed, int64_t most) {
  std::string all, made(atOnce, '\0');
  int state = BZ_STREAM_END;
  for (size_t given = 0; given < packed.size();) {
    bz_stream stream = {};
    if (BZ2_bzDecompressInit(&stream, 0, 0) != BZ_OK)
      throw Error("cannot unpack: libbz2 has no memory", Fault::device);
    const std::unique_ptr<bz_stream, int (*)(bz_stream *)> release(&stream, BZ2_bzDecompressEnd);
    state = BZ_OK;
    while (state == BZ_OK) {
      const size_t input = std::min(packed.size() - given, atOnce);
      stream.next_in = const_cast<char *>(packed.data() + given);
      stream.avail_in = static_cast<unsigned>(input);
      stream.next_out = made.data();
      stream.avail_out = static_cast<unsigned>(made.size());
      state = BZ2_bzDecompress(&stream);
      given += input - stream.avail_in;
      const size_t count = made.size() - stream.avail_out;
      append(all, made, count, path, most);
      if (state == BZ_OK && given == packed.size() && count == 0)
        break; // needs more input
    }
    if (state != BZ_STREAM_END && state != BZ_OK)
      reject(path, "bzip2", "damaged");
  }
  if (state != BZ_STREAM_END || packed.empty())
    reject(path, "bzip2", fmt::format("cut off after {} bytes", packed.size()));
  return all;
}

std::string readUnpacked(const std::string &path, int64_t most) {
  const bool isGzip = path.ends_with(".gz"), isBzip2 = path.ends_with(".bz2");
  std::string file = readFile(path, most);
  return isGzip ? unpackGzip(path, file, most) : isBzip2 ? unpackBzip2(path, file, most) : file;
}

} // namespace kiln
