// The header is JSON. Data are written unchanged, and converted during reading if requested.

#include "models/data/safetensors.h"
#include "models/data/files.h"
#include "models/data/json.h"
#include "runtime/Files.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace kiln {

static int64_t count(const Shape &extents) {
  int64_t n = 1;
  for (int64_t extent : extents)
    n *= extent;
  return n;
}

int64_t HostTensor::bytes() const { return count(extents) * bytesOf(type); }

static std::string checksumKey(const std::string &name) { return "kiln.xxh3." + name; }

std::map<std::string, std::string> computeChecksums(const std::vector<HostTensor> &tensors) {
  std::map<std::string, std::string> checksums;
  std::vector<char> place;
  for (const HostTensor &t : tensors)
    checksums.emplace(checksumKey(t.name),
                      checksum({static_cast<const char *>(t.read(place)), static_cast<size_t>(t.bytes())}));
  return checksums;
}

std::map<std::string, std::string> blankChecksums(const std::vector<HostTensor> &tensors) {
  std::map<std::string, std::string> checksums;
  for (const HostTensor &t : tensors)
    checksums.emplace(checksumKey(t.name), checksum(""));
  return checksums;
}

/// The header of a file with its length before it; the tensors follow.
static std::string writeHeader(const std::vector<HostTensor> &tensors,
                               const std::map<std::string, std::string> &metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  int64_t at = 0;
  for (const HostTensor &t : tensors) {
    const int64_t bytes = t.bytes();
    header[t.name] = {{"dtype", infoOf(t.type).safetensors}, {"shape", t.extents}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = kiln::textOf(header);
  text.resize((text.size() + 7) / 8 * 8, ' '); // the data begin at a multiple of eight
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof(length)) + text;
}

std::map<std::string, std::string> writeSafetensors(const std::string &path, const std::vector<HostTensor> &tensors,
                                                    const std::map<std::string, std::string> &metadata) {
  const std::string header = writeHeader(tensors, metadata);
  std::map<std::string, std::string> checksums;
  std::vector<char> place;
  writeSynced(path, 1 + std::ssize(tensors), [&](int64_t i) -> Bytes {
    if (i == 0)
      return {header.data(), std::ssize(header)};
    const HostTensor &t = tensors[i - 1];
    const Bytes bytes = {t.read(place), t.bytes()};
    checksums.emplace(checksumKey(t.name),
                      checksum({static_cast<const char *>(bytes.data), static_cast<size_t>(bytes.size)}));
    return bytes;
  });
  return checksums;
}

void replaceMetadata(const std::string &path, const std::vector<HostTensor> &tensors,
                     const std::map<std::string, std::string> &metadata) {
  const std::string header = writeHeader(tensors, metadata);
  uint64_t length = 0;
  InputFile(path).read(0, &length, sizeof(length));
  if (length + sizeof(length) != header.size())
    throw Error(
        fmt::format("expected a header of {} bytes for '{}', but got {}", length + sizeof(length), path, header.size()),
        Fault::internal);
  overwriteSynced(path, {header.data(), std::ssize(header)});
}

Safetensors::Safetensors(const std::string &path) : path(path), file(std::make_shared<const InputFile>(path)) {
  const int64_t size = file->size();
  if (size < 8)
    throw Error(fmt::format("expected the 8 bytes of a header's length in '{}', but the file has {}", path, size));
  uint64_t length = 0;
  file->read(0, &length, 8);
  if (length > static_cast<uint64_t>(size - 8))
    throw Error(fmt::format("expected a header of {} bytes in '{}', but the file ends {} bytes after its length",
                            length, path, size - 8));
  if (length > static_cast<uint64_t>(mostJsonBytes))
    throw Error(fmt::format("expected a header of at most {} bytes in '{}', but got {}", mostJsonBytes, path, length));
  std::string header(length, '\0');
  file->read(8, header.data(), static_cast<int64_t>(length));
  dataBegin = 8 + static_cast<int64_t>(length);
  dataBytes = size - dataBegin;
  parse(header);
}

void Safetensors::parse(const std::string &header) {
  const JsonObject json(path, header);
  for (const std::string &name : json.names()) {
    if (name == "__metadata__") {
      texts = json.texts(name);
      continue;
    }
    const JsonObject tensor = json.object(name);
    const std::vector<int64_t> offsets = tensor.naturals("data_offsets");
    if (offsets.size() != 2 || offsets[1] < offsets[0])
      throw Error(fmt::format("expected two offsets in order for tensor '{}' of '{}', but got {}", name, path,
                              fmt::join(offsets, " and ")));
    entries.emplace(name, Entry{tensor.text("dtype"), tensor.naturals("shape"), offsets[0], offsets[1]});
  }
  verifyPlaces();
}

/// Verifies that tensors are contiguous up to the end of the file and do not overlap.
void Safetensors::verifyPlaces() const {
  std::vector<std::pair<std::string, Entry>> inOrder(entries.begin(), entries.end());
  std::sort(inOrder.begin(), inOrder.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second.begin, a.second.end) < std::pair(b.second.begin, b.second.end);
  });
  int64_t end = 0;
  for (const auto &[name, entry] : inOrder) {
    if (entry.begin != end)
      throw Error(fmt::format("expected tensor '{}' of '{}' to begin at byte {}, where the one before it ends, but got "
                              "{}",
                              name, path, end, entry.begin));
    end = entry.end;
  }
  if (end != dataBytes)
    throw Error(fmt::format("expected {} bytes of tensors in '{}', but got {}", end, path, dataBytes));
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> all;
  for (const auto &[name, entry] : entries)
    all.push_back(name);
  return all;
}

/// Elements converted at a time.
static constexpr int64_t chunk = int64_t{1} << 16;

void Safetensors::read(const std::string &name, Type type, const Shape &extents, void *to) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    throw Error(fmt::format("expected a tensor '{}' in '{}', but there is none", name, path));
  const Entry &e = found->second;
  const std::optional<Type> held = findType(&TypeInfo::safetensors, e.type);
  const bool converts = held && *held != type && isFloat(*held) && isFloat(type);
  if (!held || (*held != type && !converts) || e.extents != extents ||
      e.end - e.begin != count(extents) * bytesOf(*held))
    throw Error(fmt::format("expected tensor '{}' of '{}' to be {} {}, but got {} {} of {} bytes", name, path,
                            infoOf(type).safetensors, textOf(extents), e.type, textOf(e.extents), e.end - e.begin));
  if (!converts) {
    file->read(dataBegin + e.begin, to, e.end - e.begin);
    return verify(name, {static_cast<const char *>(to), static_cast<size_t>(e.end - e.begin)});
  }
  // A checksum needs all bytes of the tensor; without one, it is read in parts.
  const int64_t parts = texts.count(checksumKey(name)) ? std::max<int64_t>(count(extents), 1) : chunk;
  std::vector<char> part(std::min(parts, count(extents)) * bytesOf(*held));
  for (int64_t i = 0; i < count(extents); i += parts) {
    const int64_t size = std::min(parts, count(extents) - i);
    file->read(dataBegin + e.begin + i * bytesOf(*held), part.data(), size * bytesOf(*held));
    if (size == count(extents))
      verify(name, {part.data(), part.size()});
    for (int64_t j = 0; j < size; j += chunk)
      fromDoubles(toDoubles(part.data() + j * bytesOf(*held), *held, std::min(chunk, size - j)), type,
                  static_cast<char *>(to) + (i + j) * bytesOf(type));
  }
}

void Safetensors::verify(const std::string &name, std::string_view bytes) const {
  const auto written = texts.find(checksumKey(name));
  if (written == texts.end())
    return;
  if (const std::string got = checksum(bytes); got != written->second)
    throw Error(fmt::format("expected tensor '{}' of '{}' to have the checksum {}, but got {}: the file is damaged",
                            name, path, written->second, got));
}

void Safetensors::verify() const {
  std::string bytes;
  for (const auto &[name, entry] : entries) {
    bytes.resize(entry.end - entry.begin);
    file->read(dataBegin + entry.begin, bytes.data(), std::ssize(bytes));
    verify(name, bytes);
  }
}

} // namespace kiln
