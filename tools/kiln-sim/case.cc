// Reading and comparing.

#include "tools/kiln-sim/case.h"

#include "tools/kiln-sim/tensor_map.h"

#include "dialect/dsl/Types.h"
#include "tools/files/Files.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::simulator {

// --- Reading -------------------------------------------------------------------------------------------------------

static size_t bytesOfElement(const std::string &descr) {
  const int digit = descr.empty() ? 0 : descr.back() - '0';
  if (digit < 1 || digit > 8)
    throw Error(fmt::format("expected an array of a numeric type, but got '{}'", descr));
  return static_cast<size_t>(digit);
}

/// Elements of `width` bytes that lie column by column, row by row.
static std::string rowByRow(const std::string &columns, const std::vector<size_t> &extents, size_t width) {
  std::string rows(columns.size(), 0);
  for (size_t i = 0; i < columns.size() / width; ++i) { // in the order of columns
    size_t rest = i, to = 0;
    std::vector<size_t> index;
    for (const size_t extent : extents) {
      index.push_back(rest % extent);
      rest /= extent;
    }
    for (size_t dimension = 0; dimension < extents.size(); ++dimension)
      to = to * extents[dimension] + index[dimension];
    rows.replace(to * width, width, columns, i * width, width);
  }
  return rows;
}

/// The numbers in the parentheses after 'shape'.
static std::vector<size_t> extentsIn(const std::string &header) {
  std::vector<size_t> extents;
  const size_t begin = header.find('(', header.find("'shape'"));
  for (const char *at = header.c_str() + std::min(begin, header.size()); *at && *at != ')';)
    if (*at >= '0' && *at <= '9') {
      char *end = nullptr;
      extents.push_back(std::strtoull(at, &end, 10));
      at = end;
    } else {
      ++at;
    }
  return extents;
}

/// The elements of a .npy file, row by row, and the name of their type, which may be one that Kiln lacks.
static CaseArray readArray(const std::string &path) {
  const std::string file = tools::readInput(path);
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(file[i])); };
  const auto wrong = [&] { return Error(fmt::format("'{}': expected a .npy file, but it is none", path)); };
  if (file.size() < 12 || !file.starts_with("\x93NUMPY"))
    throw wrong();
  const size_t begin = byte(6) == 1 ? 10 : 12;
  const size_t end = begin + (byte(8) | byte(9) << 8);
  const size_t key = file.find("'descr': '"), name = key + std::strlen("'descr': '");
  if (end > file.size() || key == std::string::npos || name >= end)
    throw wrong();
  CaseArray array{file.substr(name, file.find('\'', name) - name), file.substr(end)};
  const std::string header = file.substr(begin, end - begin);
  const std::vector<size_t> extents = extentsIn(header);
  size_t bytes = bytesOfElement(array.descr);
  for (const size_t extent : extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes))
      throw wrong();
  if (array.data.size() != bytes)
    throw Error(fmt::format("'{}': expected {} bytes of elements, as its header says, but got {}", path, bytes,
                            array.data.size()));
  if (header.find("'fortran_order': True") != std::string::npos)
    array.data = rowByRow(array.data, extents, bytesOfElement(array.descr));
  return array;
}

static CaseArgument readArgument(const nlohmann::json &json, const std::string &folder) {
  CaseArgument argument{.kind = json.at("kind").get<std::string>()};
  if (argument.kind == "tensormap") {
    argument.map = tensorMapOf(json);
    argument.mapped = json.value("buffer", int64_t{-1});
  }
  if (argument.kind == "buffer" || (argument.kind == "tensormap" && argument.mapped < 0)) {
    argument.name = json.at("file").get<std::string>();
    argument.before = readArray(folder + "/" + argument.name);
    argument.bits = json.value("bits", "");
    if (json.contains("want")) {
      argument.want = readArray(folder + "/" + json.at("want").get<std::string>());
      argument.atol = json.at("atol").get<double>();
      argument.rtol = json.at("rtol").get<double>();
    }
  } else if (argument.kind == "scratch") {
    argument.bytes = json.at("bytes").get<int64_t>();
  } else if (argument.kind == "i32" || argument.kind == "i64") {
    argument.value = static_cast<uint64_t>(json.at("value").get<int64_t>());
  } else if (argument.kind == "f32") {
    argument.value = std::bit_cast<uint32_t>(static_cast<float>(json.at("value").get<double>()));
  } else if (argument.kind != "null" && argument.kind != "tensormap") {
    throw Error(fmt::format(
        "expected an argument of kind buffer, scratch, i32, i64, f32, null or tensormap, but got '{}'", argument.kind));
  }
  return argument;
}

/// No description comes near; a parser would make a value of each bracket.
static constexpr int64_t longestDescription = int64_t{1} << 20;

Case readCase(const std::string &folder) {
  Case item;
  item.text = tools::readInput(folder + "/kernel.ptx");
  const std::string path = folder + "/case.json";
  try {
    const auto json = nlohmann::json::parse(tools::readInput(path, longestDescription));
    item.kernel = json.at("kernel").get<std::string>();
    item.grid = json.at("grid").get<Extents>();
    item.block = json.at("block").get<Extents>();
    item.shared = json.at("shared").get<uint32_t>();
    for (const nlohmann::json &argument : json.at("args"))
      item.arguments.push_back(readArgument(argument, folder));
  } catch (const nlohmann::json::exception &error) {
    throw Error(
        fmt::format("'{}': expected the description of a case, but got one that is not: {}", path, error.what()));
  }
  return item;
}

/// Puts tensor maps into the parameter block, once the arrays lie somewhere.
static void placeTensorMaps(const Case &item, const Program &program, std::vector<char> &block) {
  for (size_t i = 0; i < item.arguments.size(); ++i) {
    const CaseArgument &argument = item.arguments[i];
    if (argument.kind != "tensormap")
      continue;
    const auto mapped = argument.mapped < 0 ? i : static_cast<size_t>(argument.mapped);
    if (mapped >= item.arguments.size() || (mapped != i && item.arguments[mapped].kind != "buffer"))
      throw Error(fmt::format("expected a tensor map of an array, but argument {} is none", mapped));
    const std::string bytes = tensorMapBytes(argument.map, item.arguments[mapped].value);
    if (program.parameters[i].bytes != bytes.size())
      throw Error(fmt::format("expected a parameter of {} bytes for a tensor map, but '{}' has {}", bytes.size(),
                              program.parameters[i].name, program.parameters[i].bytes));
    std::copy(bytes.begin(), bytes.end(), block.begin() + program.parameters[i].offset);
  }
}

std::vector<char> placeCase(Case &item, const Program &program, Memory &memory) {
  if (item.arguments.size() != program.parameters.size())
    throw Error(fmt::format("kernel '{}': expected {} arguments, but the case has {}", program.name,
                            program.parameters.size(), item.arguments.size()));
  std::vector<char> block(program.parameterBytes);
  for (size_t i = 0; i < item.arguments.size(); ++i) {
    CaseArgument &argument = item.arguments[i];
    const bool ownsArray = argument.kind == "tensormap" && argument.mapped < 0;
    if (argument.kind == "buffer" || argument.kind == "scratch" || ownsArray) {
      const std::string &data = argument.before.data;
      void *place = memory.allocate(argument.kind == "scratch" ? argument.bytes : static_cast<int64_t>(data.size()));
      std::memcpy(place, data.data(), data.size());
      argument.value = reinterpret_cast<uint64_t>(place);
    }
    std::memcpy(block.data() + program.parameters[i].offset, &argument.value,
                std::min<size_t>(8, program.parameters[i].bytes));
  }
  placeTensorMaps(item, program, block);
  return block;
}

// --- Comparing -----------------------------------------------------------------------------------------------------

/// A floating-point number of `exponent` and `mantissa` bits below its sign; `hasInfinity`: as IEEE has it.
static double smallFloat(unsigned code, int exponentBits, int mantissaBits, bool hasInfinity) {
  const int bias = (1 << (exponentBits - 1)) - 1, most = (1 << exponentBits) - 1;
  const auto mantissa = static_cast<int>(code & ((1u << mantissaBits) - 1));
  const auto exponent = static_cast<int>(code >> mantissaBits) & most;
  const double sign = code >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  if (exponent == most && (hasInfinity || mantissa == (1 << mantissaBits) - 1))
    return mantissa ? std::nan("") : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1.0 + std::ldexp(mantissa, -mantissaBits), exponent - bias)
                          : std::ldexp(mantissa, 1 - bias - mantissaBits));
}

template <class T> static double numberAt(const char *data, size_t i) {
  T value;
  std::memcpy(&value, data + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

/// Element `i` of an array; integers beyond 2^53 lose their last bits.
static double elementAt(const std::string &descr, const std::string &bits, const char *data, size_t i) {
  const std::string kind = descr.substr(descr.find_first_not_of("<|"));
  if (kind == "u2" && bits == "bf16")
    return smallFloat(static_cast<unsigned>(numberAt<uint16_t>(data, i)), 8, 7, true);
  if (kind == "u1" && !bits.empty())
    return bits == "e4m3" ? smallFloat(static_cast<unsigned>(numberAt<uint8_t>(data, i)), 4, 3, false)
                          : smallFloat(static_cast<unsigned>(numberAt<uint8_t>(data, i)), 5, 2, true);
  if (kind == "f2")
    return smallFloat(static_cast<unsigned>(numberAt<uint16_t>(data, i)), 5, 10, true);
  return kind == "f4"   ? numberAt<float>(data, i)
         : kind == "f8" ? numberAt<double>(data, i)
         : kind == "i1" ? numberAt<int8_t>(data, i)
         : kind == "u1" ? numberAt<uint8_t>(data, i)
         : kind == "i2" ? numberAt<int16_t>(data, i)
         : kind == "u2" ? numberAt<uint16_t>(data, i)
         : kind == "i4" ? numberAt<int32_t>(data, i)
         : kind == "u4" ? numberAt<uint32_t>(data, i)
         : kind == "i8" ? numberAt<int64_t>(data, i)
         : kind == "u8" ? numberAt<uint64_t>(data, i)
                        : throw Error(fmt::format("expected an array of a numeric type, but got '{}'", descr));
}

/// What is wrong with one array, empty when nothing is.
static std::string compare(const CaseArgument &argument) {
  const size_t count = argument.before.data.size() / bytesOfElement(argument.before.descr);
  if (count != argument.want.data.size() / bytesOfElement(argument.want.descr))
    throw Error(fmt::format("'{}': expected as many elements as what is wanted has", argument.name));
  const auto *data = reinterpret_cast<const char *>(argument.value);
  const std::string wantBits = argument.want.descr == argument.before.descr ? argument.bits : "";
  size_t wrong = 0;
  std::string first;
  for (size_t i = 0; i < count; ++i) {
    const double got = elementAt(argument.before.descr, argument.bits, data, i);
    const double want = elementAt(argument.want.descr, wantBits, argument.want.data.data(), i);
    if (got == want || (std::isnan(got) && std::isnan(want)) ||
        std::abs(got - want) <= argument.atol + argument.rtol * std::abs(want))
      continue;
    if (wrong++ == 0)
      first = fmt::format("element {} is {}, want {}", i, got, want);
  }
  return wrong == 0 ? "" : fmt::format("{}: {} of {} elements are wrong: {}\n", argument.name, wrong, count, first);
}

std::string compareCase(const Case &item) {
  std::string text;
  for (const CaseArgument &argument : item.arguments)
    if (!argument.want.descr.empty())
      text += compare(argument);
  return text;
}

} // namespace kiln::simulator
