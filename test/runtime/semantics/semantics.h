// Shared by the tests of the semantic suite: the devices, tensors as raw words, and element types on the host.
//
// Every test states one rule of dialect/SEMANTICS.md and runs on each device. An element is a raw word, its bits in the
// low part of a uint64_t, so that signs of zero, denormals and NaN can be given and compared.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"
#include "test/devices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace kiln::test {

using Raw = std::vector<uint64_t>;

inline const Type floatTypes[] = {bf16, f16, f32, f64};
inline const Type byteFloats[] = {f8e4m3, f8e5m2};                      // which saturate
inline const Type everyFloat[] = {f8e4m3, f8e5m2, bf16, f16, f32, f64}; // with arithmetic
inline const Type castFloats[] = {f8e4m3, f8e5m2, f8e8m0, bf16, f16, f32, f64};
inline const Type computedTypes[] = {boolean, i8,     u8,     i16,  u16, i32, u32, i64,
                                     u64,     f8e4m3, f8e5m2, bf16, f16, f32, f64};
inline const Type castTypes[] = {boolean, i8,     u8,     i16,    u16,  i32, u32, i64,
                                 u64,     f8e4m3, f8e5m2, f8e8m0, bf16, f16, f32, f64};
inline const Type integerTypes[] = {i8, u8, i16, u16, i32, u32, i64, u64};
inline const int64_t extents[] = {1, 3, 17, 64, 768};
inline const int64_t scalarAndExtents[] = {0, 1, 3, 17, 64, 768}; // 0 stands for a scalar

/// The number that a raw float means.
double toDouble(Type type, uint64_t raw);
/// The number that a raw integer or bool means; u64 from 2^63 on is 2^64 more.
int64_t integerOf(Type type, uint64_t raw);
/// As above without an end: u64 from 2^63 on, unchanged.
__int128 wideOf(Type type, uint64_t raw);
/// The result of an arithmetic operation whose value is `raw`: an infinity of an 8-bit float becomes the largest
/// number.
uint64_t computed(Type type, uint64_t raw);
/// The float nearest to `value`, ties to even, spelt out bit by bit; floats of 8 bits saturate. A scale (f8e8m0) is the
/// nearest power of two, the larger one of two, and NaN for a negative number.
uint64_t rawOfReal(Type type, double value);
/// The low bits of `value`; for bool whether it is not 0.
uint64_t rawOfInteger(Type type, int64_t value);
/// A small whole number as an element of any type.
inline uint64_t wordOf(Type type, int64_t number) {
  return isFloat(type) ? rawOfReal(type, static_cast<double>(number)) : rawOfInteger(type, number);
}
/// The bytes of elements in memory, and back.
std::vector<char> packed(Type type, const Raw &raw);
Raw unpacked(Type type, const std::vector<char> &bytes);

/// Special words: zeros, ones, limits, denormals, infinities, NaN for floats; limits and small numbers for integers.
Raw specialWords(Type type);
/// `count` words: every pair of special words occurs in two lists, made with `step` 1 and specialWords().size(), at
/// equal positions; random words follow.
Raw words(Type type, int64_t count, int64_t step, int seed);

/// Atomics, and a whole number in an element after each.
struct Atomic {
  Tile (*apply)(View, Offsets, At, Order, AtomicOptions, Loc);
  int64_t (*after)(int64_t was, int64_t value);
};
inline const Atomic atomics[] = {{atomic_add, [](int64_t was, int64_t value) { return was + value; }},
                                 {atomic_min, [](int64_t was, int64_t value) { return std::min(was, value); }},
                                 {atomic_max, [](int64_t was, int64_t value) { return std::max(was, value); }},
                                 {atomic_and, [](int64_t was, int64_t value) { return was & value; }},
                                 {atomic_or, [](int64_t was, int64_t value) { return was | value; }},
                                 {atomic_xor, [](int64_t was, int64_t value) { return was ^ value; }},
                                 {atomic_exchange, [](int64_t, int64_t value) { return value; }}};

/// Functions of tests on a device.
class SemanticsOn {
protected:
  explicit SemanticsOn(const std::string &name) : device(Device::open(name)) {}

  std::shared_ptr<Device> device;

  Tensor tensor(Type type, Shape extents, const Raw &raw);
  /// Elements first, first + 1, … as numbers of the type.
  Tensor counting(Type type, Shape extents, int64_t first = 0);
  Raw read(const Tensor &tensor) const;
  void launch(const Kernel &kernel, const std::vector<Arg> &args, const std::string &config = "",
              int64_t programs = 1) {
    kiln::launch(*device, kernel, {programs, 1, 1}, args, config);
  }
  template <class Config>
    requires(!std::is_convertible_v<Config, std::string>)
  void launch(const Kernel &kernel, const std::vector<Arg> &args, const Config &config, int64_t programs = 1) {
    launch(kernel, args, textOf(kernel.fields, config), programs);
  }
};

/// A test that runs on each device; its parameter is the device's name.
class Semantics : public SemanticsOn, public testing::TestWithParam<std::string> {
protected:
  Semantics() : SemanticsOn(GetParam()) {}
};

/// Whether two floats are equal words, with all NaN equal; with `signOfZero` false, ±0 are equal, too.
bool same(Type type, uint64_t got, uint64_t want, bool signOfZero = true);

struct ExtentConfig {
  int extent = 1;
};
inline std::vector<Field> extentField() { return {field("extent", &ExtentConfig::extent)}; }
/// The shape of a tile of that extent; 0 stands for a scalar.
inline Shape lineOf(int64_t extent) { return extent == 0 ? Shape{} : Shape{extent}; }
inline std::string extentText(int64_t extent) { return "extent=" + std::to_string(extent); }

} // namespace kiln::test
