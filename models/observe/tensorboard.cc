// Encodes protocol buffers: a field is a key, number · 8 + wire type, followed by its value.

#include "models/observe/tensorboard.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {

//===-- TFRecord ------------------------------------------------------------------------------------------------===//

/// CRC-32C table by byte: polynomial 0x1edc6f41, bit-reversed.
static constexpr std::array<uint32_t, 256> crcTable = [] {
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    table[byte] = byte;
    for (int bit = 0; bit < 8; ++bit)
      table[byte] = table[byte] >> 1 ^ (table[byte] & 1 ? 0x82f63b78u : 0);
  }
  return table;
}();

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = crc >> 8 ^ crcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

uint32_t maskedCrc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

/// The bytes of a number in little-endian order.
template <class T> static std::string littleEndian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T)); // x86-64 is little-endian
  return bytes;
}
static_assert(std::endian::native == std::endian::little);

std::string tfRecord(std::string_view bytes) {
  const std::string length = littleEndian(static_cast<uint64_t>(bytes.size()));
  return length + littleEndian(maskedCrc(length)) + std::string(bytes) + littleEndian(maskedCrc(bytes));
}

//===-- Events --------------------------------------------------------------------------------------------------===//

static std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

enum Wire { varintWire = 0, fixed64Wire = 1, bytesWire = 2, fixed32Wire = 5 };
static std::string key(uint64_t number, Wire wire) { return varint(number << 3 | wire); }

static std::string numberField(uint64_t number, int64_t value) {
  return key(number, varintWire) + varint(static_cast<uint64_t>(value));
}
static std::string bytesField(uint64_t number, const std::string &bytes) {
  return key(number, bytesWire) + varint(bytes.size()) + bytes;
}

/// Fields of Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
static std::string event(double wall, int64_t step, const std::string &what) {
  return key(1, fixed64Wire) + littleEndian(wall) + (step ? numberField(2, step) : "") + what;
}

std::string versionEvent(double wall) { return event(wall, 0, bytesField(3, "brain.Event:2")); }

std::string beginEvent(double wall, int64_t step) {
  return event(wall, step, bytesField(7, numberField(1, 1))); // SessionLog.status: START
}

std::string tensorBoardTag(const std::string &name) {
  if (name.starts_with("val_"))
    return "validation/" + name.substr(4);
  return (name.starts_with("grad_norm_") ? "train_details/" : "train/") + name;
}

/// Fields of Value: tag 1, simple_value 2, tensor 8 (dtype 1, tensor_shape 2, string_val 8), metadata 9 (plugin_data 1
/// (plugin_name 1), data_class 4).
static std::string encodeValue(const std::string &tag, const Scalar &scalar) {
  const std::string name = bytesField(1, tag);
  if (const std::string *text = std::get_if<std::string>(&scalar)) {
    constexpr int64_t stringType = 7, tensorClass = 2;
    const std::string tensor =
        numberField(1, stringType) + bytesField(2, bytesField(2, numberField(1, 1))) + bytesField(8, *text);
    return name + bytesField(8, tensor) +
           bytesField(9, bytesField(1, bytesField(1, "text")) + numberField(4, tensorClass));
  }
  const bool *const truth = std::get_if<bool>(&scalar);
  const auto value = static_cast<float>(truth ? *truth : std::get<double>(scalar));
  return name + key(2, fixed32Wire) + littleEndian(value);
}

std::string rowEvent(double wall, const StepRow &row) {
  std::string summary;
  for (const auto &[name, scalar] : row.scalars)
    summary += bytesField(1, encodeValue(tensorBoardTag(name), scalar));
  return event(wall, row.step, bytesField(5, summary));
}

//===-- The file ------------------------------------------------------------------------------------------------===//

static double wallNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

TensorBoardLog::TensorBoardLog(const std::string &folder, int64_t step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(fmt::format("cannot write '{}': {}", folder, error.message()), Fault::device);
  std::array<char, 256> host = {};
  if (::gethostname(host.data(), host.size() - 1) != 0)
    host = {"localhost"};
  const double wall = wallNow();
  for (int number = 0; path.empty() || std::filesystem::exists(path); ++number) // of two files within a second
    path = fmt::format("{}/events.out.tfevents.{:010}.{}.{}.{}", folder, static_cast<int64_t>(wall), host.data(),
                       ::getpid(), number);
  written.emplace(path);
  put(versionEvent(wall));
  if (step > 0)
    put(beginEvent(wall, step + 1));
}

void TensorBoardLog::put(const std::string &event) { written->write(tfRecord(event)); }

void TensorBoardLog::write(const StepRow &row) { put(rowEvent(wallNow(), row)); }

} // namespace kiln
