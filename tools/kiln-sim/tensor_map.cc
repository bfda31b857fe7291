// Parses the texts of tensor maps.

#include "tools/kiln-sim/arguments.h"

#include "dialect/dsl/Types.h"

#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <sstream>

namespace kiln::simulator {

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

NamedTensorMap tensorMapNamed(const std::string &text) {
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

std::string tensorMapBytes(TensorMapDescription description, uint64_t address) {
  description.address = address;
  const TensorMap map = makeTensorMap(description);
  std::string bytes(sizeof(map), '\0');
  std::memcpy(bytes.data(), &map, sizeof(map));
  return bytes;
}

} // namespace kiln::simulator
