// Tensors, and conversions of their elements to and from the host's floating-point types.

#include "runtime/Tensor.h"
#include "runtime/Streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace kiln {

/// Elements converted at a time; a buffer of this many doubles fits the L1 cache.
static constexpr int64_t chunk = 1024;

// Starts without memory, so that the destructor runs if the rest throws.
Tensor::Tensor(std::shared_ptr<Device> opened, Type type, Shape extents) : Tensor() {
  int64_t bytes = bytesOf(type), most = bytes; // most: bytes if extents of 0 were 1
  for (int64_t extent : extents)
    if (extent < 0 || __builtin_mul_overflow(bytes, extent, &bytes) ||
        __builtin_mul_overflow(most, std::max<int64_t>(extent, 1), &most))
      throw Error(fmt::format("expected a tensor's extents to be at least 0 and to fit memory, but got {}[{}]",
                              nameOf(type), textOf(extents)));
  memory = TensorRef::dense(opened->allocate(bytes), type, std::move(extents));
  device = std::move(opened);
  memory.device = memoryDevice(device->name());
  device->fillZero(memory.data, bytes);
}

Tensor::Tensor(Tensor &&other) noexcept
    : device(std::move(other.device)), memory(std::exchange(other.memory, TensorRef())) {}

Tensor &Tensor::operator=(Tensor &&other) noexcept {
  std::swap(device, other.device);
  std::swap(memory, other.memory);
  return *this;
}

Tensor::~Tensor() {
  if (!device)
    return;
  try {
    device->release(memory.data);
  } catch (const std::exception &error) { // a destructor can only report it
    say(std::string("kiln: warning: ") + error.what() + "\n");
  }
}

static void expectSize(const char *what, int64_t want, int64_t got, const char *unit) {
  if (want != got)
    throw Error(fmt::format("expected {} of {} {}, but got {}", what, want, unit, got));
}

static void expectSet(const std::shared_ptr<Device> &device) {
  if (!device)
    throw Error("expected a tensor on a device, but got one that is unset or was moved from");
}

void Tensor::upload(const void *host, int64_t size) {
  expectSet(device);
  expectSize("an upload", bytes(), size, "bytes");
  if (size)
    device->upload(memory.data, host, size);
}

void Tensor::download(void *host, int64_t size) const {
  expectSet(device);
  expectSize("a download", bytes(), size, "bytes");
  if (size)
    device->download(host, memory.data, size);
}

void Tensor::uploadFloats(const std::vector<float> &values) {
  expectSet(device);
  expectSize("an upload", count(), static_cast<int64_t>(values.size()), "elements");
  if (type() == Type::f32)
    return upload(values.data(), bytes());
  std::vector<char> host(bytes());
  std::vector<double> doubles;
  for (int64_t i = 0; i < count(); i += chunk) {
    doubles.assign(values.begin() + i, values.begin() + std::min(i + chunk, count()));
    fromDoubles(doubles, type(), host.data() + i * bytesOf(type()));
  }
  upload(host.data(), bytes());
}

std::vector<float> Tensor::downloadFloats() const {
  expectSet(device);
  std::vector<float> values(count());
  if (type() == Type::f32) {
    download(values.data(), bytes());
    return values;
  }
  std::vector<char> host(bytes());
  download(host.data(), bytes());
  for (int64_t i = 0; i < count(); i += chunk) {
    const std::vector<double> doubles =
        toDoubles(host.data() + i * bytesOf(type()), type(), std::min(chunk, count() - i));
    std::copy(doubles.begin(), doubles.end(), values.begin() + i);
  }
  return values;
}

void Tensor::fillZero() {
  expectSet(device);
  device->fillZero(memory.data, bytes());
}

// --- Conversion -----------------------------------------------------------------------------------------------------

/// The bf16 nearest to a double. The double is first rounded to odd in f32 (the lowest bit records lost bits), so that
/// the second rounding resolves ties correctly.
static uint16_t toBf16(double value) {
  if (std::isnan(value))
    return 0x7fc0;
  float cut = static_cast<float>(value);
  if (std::isinf(value))
    return std::bit_cast<uint32_t>(cut) >> 16;
  if (std::isinf(cut) || std::fabs(static_cast<double>(cut)) > std::fabs(value))
    cut = std::nextafter(cut, 0.0f);
  uint32_t bits = std::bit_cast<uint32_t>(cut);
  if (static_cast<double>(cut) != value)
    bits |= 1;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

namespace {
/// An 8-bit float: mantissa bits, bias, and the largest number; encodings above it are NaN or infinity.
struct ByteFormat {
  int mantissa, bias;
  uint8_t largest;
};
} // namespace
static constexpr ByteFormat e4m3 = {3, 7, 0x7e}, e5m2 = {2, 15, 0x7b};

static double fromByte(uint8_t element, const ByteFormat &format) {
  const int size = element & 0x7f, exponent = size >> format.mantissa, fraction = size & ((1 << format.mantissa) - 1);
  const double sign = element & 0x80 ? -1 : 1;
  if (size > format.largest)
    return format.largest == 0x7b && size == 0x7c ? sign * INFINITY : std::nan("");
  const int whole = exponent == 0 ? fraction : fraction | 1 << format.mantissa;
  return sign * std::ldexp(whole, std::max(exponent, 1) - format.bias - format.mantissa);
}

/// The nearest number, ties to even; numbers beyond the largest saturate.
static uint8_t toByte(double value, const ByteFormat &format) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return sign | 0x7f;
  const double size = std::fabs(value);
  if (size >= fromByte(format.largest, format))
    return sign | format.largest;
  // In units of the last place; a carry increments the exponent.
  const int exponent = size == 0 ? 1 - format.bias : std::max(std::ilogb(size), 1 - format.bias);
  const int units = static_cast<int>(std::nearbyint(std::ldexp(size, format.mantissa - exponent)));
  return static_cast<uint8_t>(sign | (units + ((exponent + format.bias - 1) << format.mantissa)));
}

static double fromScale(uint8_t element) { return element == 0xff ? std::nan("") : std::ldexp(1.0, element - 127); }

/// The nearest power of two, the larger one of two. NaN for a negative number.
static uint8_t toScale(double value) {
  if (std::isnan(value) || value < 0)
    return 0xff;
  int exponent = -128;
  if (value > 0)
    exponent = std::isinf(value) ? 128 : std::ilogb(value) + (std::ldexp(value, -std::ilogb(value)) >= 1.5 ? 1 : 0);
  return static_cast<uint8_t>(std::clamp(exponent + 127, 0, 254));
}

template <class Integer> static Integer toInteger(double value) {
  if (std::isnan(value))
    return 0;
  const double rounded = std::nearbyint(value);
  if (rounded <= static_cast<double>(std::numeric_limits<Integer>::min()))
    return std::numeric_limits<Integer>::min();
  if (rounded >= static_cast<double>(std::numeric_limits<Integer>::max()))
    return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(rounded);
}

/// Calls visit(element, toDouble, fromDouble) with an element of the C++ type that stores this type, and its
/// conversions.
template <class Visit> static void withElement(Type type, Visit visit) {
  const auto plain = [](auto element) { return static_cast<double>(element); };
  switch (type) {
  case Type::boolean:
    return visit(int8_t(), [](int8_t element) { return element ? 1.0 : 0.0; }, [](double value) { return value != 0; });
  case Type::i8:
    return visit(int8_t(), plain, toInteger<int8_t>);
  case Type::u8:
    return visit(uint8_t(), plain, toInteger<uint8_t>);
  case Type::i16:
    return visit(int16_t(), plain, toInteger<int16_t>);
  case Type::u16:
    return visit(uint16_t(), plain, toInteger<uint16_t>);
  case Type::i32:
    return visit(int32_t(), plain, toInteger<int32_t>);
  case Type::u32:
    return visit(uint32_t(), plain, toInteger<uint32_t>);
  case Type::i64:
    return visit(int64_t(), plain, toInteger<int64_t>);
  case Type::u64:
    return visit(uint64_t(), plain, toInteger<uint64_t>);
  case Type::f8e4m3:
    return visit(
        uint8_t(), [](uint8_t element) { return fromByte(element, e4m3); },
        [](double value) { return toByte(value, e4m3); });
  case Type::f8e5m2:
    return visit(
        uint8_t(), [](uint8_t element) { return fromByte(element, e5m2); },
        [](double value) { return toByte(value, e5m2); });
  case Type::f4e2m1x2:
    throw Error("expected elements that are single numbers, but got f4e2m1x2");
  case Type::f8e8m0:
    return visit(uint8_t(), fromScale, toScale);
  case Type::bf16:
    return visit(uint16_t(), [](uint16_t element) { return std::bit_cast<float>(uint32_t(element) << 16); }, toBf16);
  case Type::f16:
    return visit(_Float16(), plain, [](double value) { return static_cast<_Float16>(value); });
  case Type::f32:
    return visit(float(), plain, [](double value) { return static_cast<float>(value); });
  case Type::f64:
    return visit(double(), plain, plain);
  }
  throw Error("no such element type", Fault::internal);
}

std::vector<double> toDoubles(const void *data, Type type, int64_t count) {
  std::vector<double> values(count);
  withElement(type, [&]<class Element>(Element element, auto toDouble, auto) {
    const char *next = static_cast<const char *>(data);
    for (double &value : values) {
      std::memcpy(&element, next, sizeof element);
      value = toDouble(element);
      next += sizeof element;
    }
  });
  return values;
}

void fromDoubles(const std::vector<double> &values, Type type, void *data) {
  withElement(type, [&]<class Element>(Element element, auto, auto fromDouble) {
    char *next = static_cast<char *>(data);
    for (const double value : values) {
      element = fromDouble(value);
      std::memcpy(next, &element, sizeof element);
      next += sizeof element;
    }
  });
}

} // namespace kiln
