// Header by nlohmann-json, data by plain reads and writes.

#include "models/data/safetensors.h"
#include "models/data/files.h"

#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln {

using Json = nlohmann::ordered_json;

static const char *spelling(Type type) {
  switch (type) {
  case Type::boolean:
    return "BOOL";
  case Type::i8:
    return "I8";
  case Type::i32:
    return "I32";
  case Type::i64:
    return "I64";
  case Type::bf16:
    return "BF16";
  case Type::f16:
    return "F16";
  case Type::f32:
    return "F32";
  case Type::f64:
    return "F64";
  }
  return "";
}

static int64_t count(const Shape &extents) {
  int64_t n = 1;
  for (int64_t extent : extents)
    n *= extent;
  return n;
}

void writeSafetensors(const std::string &path, const std::vector<HostTensor> &tensors,
                      const std::map<std::string, std::string> &metadata) {
  Json header = Json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  std::vector<Bytes> parts(2);
  int64_t at = 0;
  for (const HostTensor &t : tensors) {
    const int64_t bytes = count(t.extents) * bytesOf(t.type);
    header[t.name] = {{"dtype", spelling(t.type)}, {"shape", t.extents}, {"data_offsets", {at, at + bytes}}};
    parts.push_back({t.data, bytes});
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' '); // the data begins at a multiple of eight
  const uint64_t length = text.size();
  parts[0] = {&length, 8};
  parts[1] = {text.data(), static_cast<int64_t>(length)};
  writeSynced(path, parts);
}

Safetensors::Safetensors(const std::string &path) : path(path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in)
    throw Error(fmt::format("expected a safetensors file, but '{}' cannot be read", path));
  const int64_t size = in.tellg();
  if (size < 8)
    throw Error(fmt::format("expected the 8 bytes of a header's length in '{}', but the file has {}", path, size));
  uint64_t length = 0;
  in.seekg(0);
  in.read(reinterpret_cast<char *>(&length), 8);
  if (length > static_cast<uint64_t>(size - 8))
    throw Error(fmt::format("expected a header of {} bytes in '{}', but the file ends {} bytes after its length",
                            length, path, size - 8));
  std::string header(length, '\0');
  in.read(header.data(), static_cast<std::streamsize>(length));
  dataBegin = 8 + static_cast<int64_t>(length);
  dataBytes = size - dataBegin;
  parse(header);
}

void Safetensors::parse(const std::string &header) {
  int64_t last = 0;
  try {
    const Json json = Json::parse(header);
    for (const auto &[name, value] : json.items()) {
      if (name == "__metadata__") {
        texts = value.get<std::map<std::string, std::string>>();
        continue;
      }
      Entry e{value.at("dtype"), value.at("shape").get<Shape>(), value.at("data_offsets").at(0),
              value.at("data_offsets").at(1)};
      if (e.begin < 0 || e.end < e.begin)
        throw Error(fmt::format("expected offsets in order for tensor '{}' of '{}', but got {} and {}", name, path,
                                e.begin, e.end));
      last = std::max(last, e.end);
      entries.emplace(name, std::move(e));
    }
  } catch (const nlohmann::json::exception &error) {
    throw Error(fmt::format("expected a JSON header in '{}', but got: {}", path, error.what()));
  }
  if (last != dataBytes)
    throw Error(fmt::format("expected {} bytes of tensors in '{}', but got {}", last, path, dataBytes));
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> all;
  for (const auto &[name, entry] : entries)
    all.push_back(name);
  return all;
}

void Safetensors::read(const std::string &name, Type type, const Shape &extents, void *to) const {
  const auto found = entries.find(name);
  if (found == entries.end())
    throw Error(fmt::format("expected a tensor '{}' in '{}', but there is none", name, path));
  const Entry &e = found->second;
  const int64_t bytes = count(extents) * bytesOf(type);
  if (e.type != spelling(type) || e.extents != extents || e.end - e.begin != bytes)
    throw Error(fmt::format("expected tensor '{}' of '{}' to be {} {}, but got {} {} of {} bytes", name, path,
                            spelling(type), textOf(extents), e.type, textOf(e.extents), e.end - e.begin));
  std::ifstream in(path, std::ios::binary);
  in.seekg(dataBegin + e.begin);
  in.read(static_cast<char *>(to), bytes);
  if (in.gcount() != bytes)
    throw Error(fmt::format("expected {} bytes of tensor '{}' in '{}', but got {}", bytes, name, path, in.gcount()));
}

} // namespace kiln
