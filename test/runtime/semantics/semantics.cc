// Element types on the host, bit by bit, and tensors of raw words.

#include "test/runtime/semantics/semantics.h"

#include <cmath>
#include <cstring>

namespace kiln::test {

/// Bits of exponent and mantissa.
struct Format {
  int exponent, mantissa;
};
static Format formatOf(Type type) {
  switch (type) {
  case Type::f8e4m3:
    return {4, 3};
  case Type::f8e5m2:
    return {5, 2};
  case Type::bf16:
    return {8, 7};
  case Type::f16:
    return {5, 10};
  case Type::f32:
    return {8, 23};
  default:
    return {11, 52};
  }
}

double toDouble(Type type, uint64_t raw) {
  if (type == f8e8m0)
    return raw == 0xff ? std::nan("") : std::ldexp(1.0, static_cast<int>(raw) - 127);
  const auto [exponentBits, mantissaBits] = formatOf(type);
  const int64_t bias = (1ll << (exponentBits - 1)) - 1, top = (1ll << exponentBits) - 1;
  const int64_t exponent = raw >> mantissaBits & top;
  const uint64_t mantissa = raw & ((1ull << mantissaBits) - 1);
  const double sign = raw >> (exponentBits + mantissaBits) & 1 ? -1 : 1;
  if (type == f8e4m3 && mantissa == 7 && exponent == top)
    return std::nan("");
  if (exponent == top && type != f8e4m3)
    return mantissa ? std::nan("") : sign * INFINITY;
  if (exponent == 0)
    return sign * std::ldexp(static_cast<double>(mantissa), static_cast<int>(1 - bias - mantissaBits));
  const double whole = static_cast<double>(mantissa | 1ull << mantissaBits);
  return sign * std::ldexp(whole, static_cast<int>(exponent - bias - mantissaBits));
}

int64_t integerOf(Type type, uint64_t raw) {
  switch (type) {
  case Type::boolean:
    return raw != 0;
  case Type::i8:
    return static_cast<int8_t>(raw);
  case Type::u8:
    return static_cast<uint8_t>(raw);
  case Type::i16:
    return static_cast<int16_t>(raw);
  case Type::u16:
    return static_cast<uint16_t>(raw);
  case Type::i32:
    return static_cast<int32_t>(raw);
  case Type::u32:
    return static_cast<uint32_t>(raw);
  default:
    return static_cast<int64_t>(raw);
  }
}

__int128 wideOf(Type type, uint64_t raw) {
  return type == u64 ? static_cast<__int128>(raw) : static_cast<__int128>(integerOf(type, raw));
}

uint64_t computed(Type type, uint64_t raw) {
  return isFloat(type) && bytesOf(type) == 1 ? rawOfReal(type, toDouble(type, raw)) : raw;
}

/// The number of a scale that is nearest to `value`, by a search of all 255.
static uint64_t rawOfScale(double value) {
  if (std::isnan(value) || value < 0)
    return 0xff;
  uint64_t word = 0;
  while (word < 0xfe && value - toDouble(f8e8m0, word) >= toDouble(f8e8m0, word + 1) - value)
    ++word;
  return word;
}

uint64_t rawOfReal(Type type, double value) {
  if (type == f8e8m0)
    return rawOfScale(value);
  const auto [exponentBits, mantissaBits] = formatOf(type);
  const int bias = (1 << (exponentBits - 1)) - 1;
  const uint64_t sign = static_cast<uint64_t>(std::signbit(value)) << (exponentBits + mantissaBits);
  const uint64_t infinityWord = ((1ull << exponentBits) - 1) << mantissaBits;
  if (std::isnan(value))
    return bytesOf(type) == 1 ? 0x7f : infinityWord | 1ull << (mantissaBits - 1);
  const uint64_t largest = type == f8e4m3 ? 0x7e : type == f8e5m2 ? 0x7b : infinityWord;
  if (std::isinf(value))
    return sign | largest;
  if (value == 0)
    return sign;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  // In units in the last place; nearbyint rounds to even. A carry propagates into the exponent correctly.
  const double units = std::nearbyint(std::ldexp(std::fabs(value), mantissaBits - exponent));
  const uint64_t word = static_cast<uint64_t>(units) + (static_cast<uint64_t>(exponent + bias - 1) << mantissaBits);
  return sign | std::min(word, largest);
}

uint64_t rawOfInteger(Type type, int64_t value) {
  if (type == boolean)
    return value != 0;
  const int64_t bits = bytesOf(type) * 8;
  return bits == 64 ? value : value & ((1ull << bits) - 1);
}

Raw specialWords(Type type) {
  Raw result;
  if (!isFloat(type)) {
    const int64_t bits = bytesOf(type) * 8;
    const int64_t least = -(1ll << (bits - 2)) * 2; // the bits of unsigned ones are the middle
    for (const int64_t value :
         {int64_t(0), int64_t(1), int64_t(-1), int64_t(2), int64_t(-2), int64_t(3), int64_t(7), int64_t(-7),
          int64_t(13), bits - 1, bits, bits + 1, least, least + 1, ~least, ~least - 1})
      result.push_back(rawOfInteger(type, value));
    return result;
  }
  if (type == f8e8m0)
    return {0, 1, 2, 63, 103, 126, 127, 128, 150, 253, 254, 255};
  const auto [exponentBits, mantissaBits] = formatOf(type);
  const uint64_t top = ((1ull << exponentBits) - 1) << mantissaBits, sign = 1ull << (exponentBits + mantissaBits);
  for (const uint64_t word : {uint64_t(0), uint64_t(1), (uint64_t(1) << mantissaBits) - 1, uint64_t(1) << mantissaBits,
                              rawOfReal(type, 0.5), rawOfReal(type, 1), rawOfReal(type, 1) + 1, rawOfReal(type, 1.5),
                              rawOfReal(type, 2.5), rawOfReal(type, 100), top - 1, top}) {
    result.push_back(word);
    result.push_back(word | sign);
  }
  result.push_back(top | 1ull << (mantissaBits - 1));
  result.push_back(top | 1); // a NaN whose payload is small and signalling
  if (type == f8e4m3)        // whose one NaN has all bits set, next to the largest number
    result.insert(result.end(), {0x7e, 0xfe, 0x7f, 0xff});
  return result;
}

Raw words(Type type, int64_t count, int64_t step, int seed) {
  const Raw special = specialWords(type);
  const int64_t size = static_cast<int64_t>(special.size());
  std::mt19937_64 random(seed);
  Raw result(count);
  for (int64_t i = 0; i < count; ++i)
    result[i] = i < size * size ? special[i / step % size] : rawOfInteger(type == boolean ? boolean : i64, random());
  for (uint64_t &word : result)
    if (type != boolean && bytesOf(type) < 8)
      word &= (1ull << (bytesOf(type) * 8)) - 1;
  return result;
}

bool same(Type type, uint64_t got, uint64_t want, bool signOfZero) {
  if (got == want)
    return true;
  if (!isFloat(type))
    return false;
  const double a = toDouble(type, got), b = toDouble(type, want);
  return (std::isnan(a) && std::isnan(b)) || (!signOfZero && a == 0 && b == 0);
}

std::vector<char> packed(Type type, const Raw &raw) {
  const int64_t size = bytesOf(type);
  std::vector<char> bytes(raw.size() * size);
  for (size_t i = 0; i < raw.size(); ++i)
    std::memcpy(&bytes[i * size], &raw[i], size);
  return bytes;
}

Raw unpacked(Type type, const std::vector<char> &bytes) {
  const int64_t size = bytesOf(type);
  Raw raw(bytes.size() / size, 0);
  for (size_t i = 0; i < raw.size(); ++i)
    std::memcpy(&raw[i], &bytes[i * size], size);
  return raw;
}

Tensor SemanticsOn::tensor(Type type, Shape extents, const Raw &raw) {
  Tensor result(device, type, std::move(extents));
  EXPECT_EQ(result.count(), static_cast<int64_t>(raw.size()));
  const std::vector<char> bytes = packed(type, raw);
  result.upload(bytes.data(), static_cast<int64_t>(bytes.size()));
  return result;
}

Tensor SemanticsOn::counting(Type type, Shape extents, int64_t first) {
  int64_t count = 1;
  for (const int64_t extent : extents)
    count *= extent;
  Raw raw(count);
  for (int64_t i = 0; i < count; ++i)
    raw[i] = wordOf(type, first + i);
  return tensor(type, std::move(extents), raw);
}

Raw SemanticsOn::read(const Tensor &tensor) const {
  EXPECT_NO_THROW(device->synchronize()); // a simulated GPU tells of races and the like
  std::vector<char> bytes(tensor.bytes());
  tensor.download(bytes.data(), tensor.bytes());
  return unpacked(tensor.type(), bytes);
}

} // namespace kiln::test
