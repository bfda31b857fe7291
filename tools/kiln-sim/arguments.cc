// Parses arguments and the texts of tensor maps, and creates arrays.

#include "tools/kiln-sim/arguments.h"

#include "dialect/dsl/Types.h"
#include "runtime/AvailableMemory.h"
#include "runtime/Files.h"
#include "runtime/simulator/TensorMap.h"
#include "tools/files/Files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <sstream>

namespace kiln::simulator {

static std::string trimmed(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

static std::vector<std::string> split(const std::string &text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    parts.push_back(trimmed(part));
  return parts;
}

// --- Arrays --------------------------------------------------------------------------------------------------------

std::string fileOf(const Argument &argument) {
  NpyArray after = argument.array;
  std::memcpy(after.data.data(), argument.memory, after.data.size());
  return npyFile(after);
}

/// Zeros, from `f32[4x500]`.
static void makeZeros(const std::string &text, Argument &argument) {
  const size_t bracket = text.find('[');
  const std::string name = text.substr(0, bracket);
  NpyArray &array = argument.array;
  array.type = typeNamed(name);
  int64_t count = 1;
  for (const std::string &extent : split(text.substr(bracket + 1, text.size() - bracket - 2), 'x')) {
    int64_t value = -1;
    const auto [stop, failure] = std::from_chars(extent.data(), extent.data() + extent.size(), value);
    if (failure != std::errc() || stop != extent.data() + extent.size() || value < 0 ||
        __builtin_mul_overflow(count, value, &count) || count > int64_t{1} << 36)
      throw Error(fmt::format("expected extents such as 4x500 in --args, but got '{}'", text));
    array.extents.push_back(value);
  }
  const int64_t bytes = count * bytesOf(array.type);
  if (!isMemoryFor(2 * bytes)) // the array and its copy in the simulator's memory
    throw Error(fmt::format("expected memory for twice the {} bytes of '{}' in --args, but {} are available", bytes,
                            text, availableMemory()),
                Fault::device);
  array.data.resize(static_cast<size_t>(bytes));
}

static Argument parseArgument(const std::string &text, const Parameter &parameter, Memory &memory) {
  Argument argument;
  const size_t arrow = text.find("->");
  const std::string input = trimmed(text.substr(0, arrow));
  if (input.ends_with(".npy")) {
    argument.array = parseNpy(tools::readInput(input), input);
  } else if (input.ends_with(']') && input.find('[') != std::string::npos) {
    makeZeros(input, argument);
  } else {
    if (arrow != std::string::npos)
      throw Error(fmt::format("expected an array before '->' in --args, but got '{}'", text));
    argument.bits = numberFor(parameter, text);
    return argument;
  }
  if (arrow != std::string::npos)
    expectFile(argument.output = trimmed(text.substr(arrow + 2)));
  if (parameter.bytes != 8)
    throw Error(fmt::format("expected an argument of {} bytes for parameter '{}' in --args, but got the array '{}'",
                            parameter.bytes, parameter.name, text));
  argument.memory = memory.allocate(static_cast<int64_t>(argument.array.data.size()));
  std::copy(argument.array.data.begin(), argument.array.data.end(), static_cast<char *>(argument.memory));
  argument.bits = reinterpret_cast<uint64_t>(argument.memory);
  return argument;
}

// --- Tensor maps ---------------------------------------------------------------------------------------------------

template <class Number> static std::vector<Number> numbersOf(const std::string &text) {
  std::vector<Number> numbers;
  for (const char *at = text.data(), *const end = at + text.size(); at < end;) {
    Number number = 0;
    const auto [stop, failure] = std::from_chars(at, end, number);
    if (failure != std::errc() || (stop != end && (*stop != 'x' || stop + 1 == end)))
      throw Error(fmt::format("expected numbers such as 64x32 in a tensor map, but got '{}'", text));
    numbers.push_back(number);
    at = stop == end ? end : stop + 1;
  }
  return numbers;
}

static Swizzle swizzleOf(uint64_t bytes) {
  for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes32, Swizzle::bytes64, Swizzle::bytes128})
    if (bytes == bytesOf(swizzle))
      return swizzle;
  throw Error(fmt::format("expected a swizzle of 0, 32, 64 or 128 bytes, but got {}", bytes));
}

static bool isNanFill(const std::string &fill) {
  if (fill != "nan" && fill != "zero")
    throw Error(fmt::format("expected a tensor map's fill to be zero or nan, but got '{}'", fill));
  return fill == "nan";
}

namespace {
/// A tensor map that describes an array of the launch.
struct NamedTensorMap {
  size_t array = 0; // index of the argument
  TensorMapDescription description;
};
} // namespace

/// From `tensormap 0 f16 dims=64x32 strides=128 box=32x8`, and if wanted `swizzle=128`, `steps=1x2`, `fill=nan`:
/// innermost first; strides in bytes from the second dimension. Throws Error for another text.
static NamedTensorMap tensorMapNamed(const std::string &text) {
  std::stringstream words(text);
  std::string word, array, element;
  words >> word >> array >> element;
  NamedTensorMap map;
  const std::vector<size_t> index = numbersOf<size_t>(array);
  if (word != "tensormap" || index.size() != 1)
    throw Error(fmt::format("expected 'tensormap' and the number of an argument, but got '{}'", text));
  map.array = index[0];
  map.description.element = tensorElementNamed(element);
  while (words >> word) {
    const size_t equals = word.find('=');
    const std::string field = word.substr(0, equals),
                      value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (field == "dims")
      map.description.dims = numbersOf<uint64_t>(value);
    else if (field == "strides")
      map.description.strides = numbersOf<uint64_t>(value);
    else if (field == "box")
      map.description.box = numbersOf<uint32_t>(value);
    else if (field == "steps")
      map.description.elementStrides = numbersOf<uint32_t>(value);
    else if (field == "swizzle" && numbersOf<uint64_t>(value).size() == 1)
      map.description.swizzle = swizzleOf(numbersOf<uint64_t>(value)[0]);
    else if (field == "fill")
      map.description.nanFill = isNanFill(value);
    else
      throw Error(
          fmt::format("expected dims=, strides=, box=, steps=, swizzle= or fill= in a tensor map, but got '{}'", word));
  }
  return map;
}

/// The bytes of the map of an array at `address`. Throws Error for maps that the driver would refuse, too.
static std::string tensorMapBytes(TensorMapDescription description, uint64_t address) {
  description.address = address;
  const TensorMap map = makeTensorMap(description);
  std::string bytes(sizeof(map), '\0');
  std::memcpy(bytes.data(), &map, sizeof(map));
  return bytes;
}

static bool isTensorMap(const std::string &text) { return text.starts_with("tensormap "); }

/// The map itself for a parameter of 128 bytes; otherwise its address in memory.
static void placeTensorMap(const std::string &text, const Parameter &parameter, const std::vector<Argument> &arguments,
                           Memory &memory, Argument &argument) {
  const NamedTensorMap map = tensorMapNamed(text);
  if (map.array >= arguments.size() || !arguments[map.array].memory)
    throw Error(fmt::format("expected the tensor map of an array, but argument {} is not an array", map.array));
  const std::string bytes = tensorMapBytes(map.description, arguments[map.array].bits);
  if (parameter.bytes == bytes.size()) {
    argument.bytes = bytes;
    return;
  }
  char *place = static_cast<char *>(memory.allocate(static_cast<int64_t>(bytes.size())));
  std::copy(bytes.begin(), bytes.end(), place);
  argument.bits = reinterpret_cast<uint64_t>(place);
}

std::vector<Argument> parseArguments(const Program &program, const std::string &text, Memory &memory) {
  const std::vector<std::string> parts = split(text, ',');
  if (parts.size() != program.parameters.size()) {
    std::string names;
    for (const Parameter &parameter : program.parameters)
      names += fmt::format("{}{} ({} bytes)", names.empty() ? "" : ", ", parameter.name, parameter.bytes);
    throw Error(fmt::format("kernel '{}': expected {} arguments in --args, {}, but got {}", program.name,
                            program.parameters.size(), names, parts.size()));
  }
  std::vector<Argument> arguments;
  for (size_t i = 0; i < parts.size(); ++i)
    arguments.push_back(isTensorMap(parts[i]) ? Argument() : parseArgument(parts[i], program.parameters[i], memory));
  // After all arrays have addresses.
  for (size_t i = 0; i < parts.size(); ++i)
    if (isTensorMap(parts[i]))
      placeTensorMap(parts[i], program.parameters[i], arguments, memory, arguments[i]);
  return arguments;
}

} // namespace kiln::simulator
