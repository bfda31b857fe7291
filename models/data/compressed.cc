// Decompression by zlib and libbz2, one megabyte at a time.

#include "models/data/compressed.h"
#include "dialect/dsl/Types.h"
#include "models/data/files.h"

#include <bzlib.h>
#include <fmt/format.h>
#include <memory>
#include <zlib.h>

namespace kiln {

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
