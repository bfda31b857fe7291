// Safetensors files written byte by byte, without Kiln's own code: a header as text, then numbers whose bits are
// computed here.

#pragma once

#include "models/nn/parameters.h"

#include <cstring>
#include <string>
#include <vector>

/// A tensor as the file holds it.
struct HandWritten {
  std::string name, dtype;
  std::string shape; // `[2,3]`
  std::string bytes;
};

/// The bytes of `number` / 1024, for a number from 1 to 255, which every type holds exactly.
inline std::string bytesOfShare(int number, const std::string &dtype) {
  const auto copied = [](const auto &value) {
    return std::string(reinterpret_cast<const char *>(&value), sizeof value);
  };
  const float single = static_cast<float>(number) / 1024;
  if (dtype == "F64")
    return copied(static_cast<double>(number) / 1024);
  if (dtype == "F32")
    return copied(single);
  if (dtype == "BF16") // the upper half of an f32
    return copied(single).substr(2);
  int exponent = 0; // F16: 5 bits of exponent + 15, 10 bits behind the leading one
  while (number >> (exponent + 1))
    ++exponent;
  return copied(static_cast<uint16_t>((exponent - 10 + 15) << 10 | (number << (10 - exponent) & 0x3ff)));
}

/// The file: eight bytes of length, the header, the tensors' bytes without gaps.
inline std::string handWrittenFile(const std::vector<HandWritten> &tensors) {
  std::string header = R"({"__metadata__":{"format":"pt"})", data;
  for (const HandWritten &t : tensors) {
    header += ",\"" + t.name + R"(":{"dtype":")" + t.dtype + R"(","shape":)" + t.shape + R"(,"data_offsets":[)" +
              std::to_string(data.size()) + "," + std::to_string(data.size() + t.bytes.size()) + "]}";
    data += t.bytes;
  }
  header += "}";
  uint64_t length = header.size();
  std::string file;
  for (int i = 0; i < 8; ++i, length >>= 8)
    file += static_cast<char>(length & 0xff);
  return file + header + data;
}

/// 1024 times element `i` of a model's hand-written tensor number `tensor`.
inline int handWrittenNumber(size_t tensor, int64_t i) { return static_cast<int>(1 + (tensor * 37 + i) % 251); }

/// Every parameter of a model, named with `prefix`.
inline std::vector<HandWritten> handWrittenModel(const kiln::ParameterList &list, const std::string &prefix = "",
                                                 const std::string &dtype = "F32") {
  std::vector<HandWritten> tensors;
  for (const kiln::Parameter &p : list.all()) {
    std::string shape, bytes;
    for (const int64_t extent : p.shape)
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    for (int64_t i = 0; i < p.count(); ++i)
      bytes += bytesOfShare(handWrittenNumber(tensors.size(), i), dtype);
    tensors.push_back({prefix + p.name, dtype, "[" + shape + "]", bytes});
  }
  return tensors;
}

/// The flat buffer of such a model after reading: zero between the tensors.
inline std::vector<char> handWrittenBuffer(const kiln::ParameterList &list) {
  std::vector<char> flat(list.count() * sizeof(float));
  for (size_t t = 0; t < list.all().size(); ++t)
    for (int64_t i = 0; i < list.all()[t].count(); ++i) {
      const float value = static_cast<float>(handWrittenNumber(t, i)) / 1024;
      std::memcpy(&flat[(list.all()[t].offset + i) * sizeof(float)], &value, sizeof value);
    }
  return flat;
}
