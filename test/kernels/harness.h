// Shared by the numeric tests of kernels: devices and storage types as parameters, tensors with the values that
// they hold on the host as doubles, and comparisons that name the first bad elements.

#pragma once

#include "kernels/matmul.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace kiln {

/// A test's device, the storage type of activations and parameters, and the precision of products of f32.
struct Machine {
  std::string device;
  Type type;
  Precision precision = Precision::ieee;
};
/// The devices of a suite with f32, bf16 and f16. The quick tier (test/devices.h) has f32 alone on the oracle, f32 and
/// one narrow type on the CPU, and one type on the GPU, which change in each turn.
std::vector<Machine> machines(std::string_view suite);
/// For kernels with products: every other processor with bf16, and GPUs with f32 whose products are rounded.
std::vector<Machine> productMachines(std::string_view suite);
/// `machines` if only narrow types matter, and only f32.
std::vector<Machine> narrowMachines(std::string_view suite);
std::vector<Machine> floatMachines(std::string_view suite);
/// `cpu:generic bf16`, in GoogleTest's messages; `simulator:sm_80 tf32` where products of f32 are rounded.
void PrintTo(const Machine &machine, std::ostream *out);
/// `cpu_generic_bf16`: how GoogleTest names an instance.
std::string machineName(const testing::TestParamInfo<Machine> &info);

// Cases of tests in which each case compiles its own kernel.

/// Whether the machine runs every case. Types and processors differ in the compiled code, not in the results: one type
/// on one device of each pipeline runs all cases, and the others run a few.
inline bool takesAll(const Machine &machine) {
  const auto &[device, type, precision] = machine;
  return type == f32 && precision == Precision::ieee && !device.starts_with("cuda");
}

/// The cases that the machine runs: all, or the first `few`.
template <class Case> std::vector<Case> taken(const Machine &machine, std::vector<Case> all, size_t few) {
  if (!takesAll(machine))
    all.erase(all.begin() + static_cast<ptrdiff_t>(few), all.end());
  return all;
}

/// Unit roundoff: the largest relative error of rounding to `type`. 2⁻²⁴ for f32, 2⁻⁸ for bf16.
double unit(Type type);
/// The largest error of rounding a number too small for that: half of the smallest number of `type`.
double tiny(Type type);
/// Unit roundoff of the arithmetic inside all kernels.
inline constexpr double roundoff = 0x1p-24;
/// Error of a `dot` of n products on this machine, relative to the sum of their sizes: dialect/NUMERICS.md derives it.
double productError(int64_t n, const Machine &machine);

/// Relative error that the tests permit for exp, log and similar functions: 4 units in the last place of f32.
inline constexpr double transcendental = 8 * roundoff;

/// A reference value, and how far a right answer may be from it before it is rounded to its storage type.
struct Want {
  double value = 0;
  double slack = 0;
};

/// gelu in its tanh form, and its derivative.
double geluOf(double x);
double geluSlopeOf(double x);

/// The extents of a matrix product, and those of its operands in a layout.
struct ProductSize {
  int64_t M, N, K;
};
inline Shape shapeA(Layout layout, ProductSize s) { return layout == Layout::tn ? Shape{s.K, s.M} : Shape{s.M, s.K}; }
inline Shape shapeB(Layout layout, ProductSize s) { return layout == Layout::nt ? Shape{s.N, s.K} : Shape{s.K, s.N}; }

/// A tensor on the device and the values it was made with, as rounded to its type.
struct Array {
  Tensor tensor;
  std::vector<double> values;

  operator const TensorRef &() const { return tensor.ref(); }
  const TensorRef &ref() const { return tensor.ref(); }
  double operator[](int64_t i) const { return values[i]; }
  /// The present values on the device.
  std::vector<double> read() const;
  /// The tensor as raw bytes, for exact comparisons.
  std::vector<char> bytes() const;
  /// Puts the first values back.
  void reset();
};

class KernelTest : public testing::TestWithParam<Machine> {
protected:
  void SetUp() override;

  Type type() const { return GetParam().type; }
  /// The device's, with the precision of the machine.
  const Target &target() const { return machine; }
  Precision precision() const { return GetParam().precision; }
  /// productError on this machine.
  double productError(int64_t n) const { return kiln::productError(n, GetParam()); }

  /// op(A) · op(B) in double precision, with the error that a `dot` may have; and alone.
  std::vector<Want> product(Layout layout, const Array &a, const Array &b, ProductSize s) const;
  std::vector<double> exactProduct(Layout layout, const Array &a, const Array &b, ProductSize s) const;

  /// `values`, rounded to `type`.
  Array array(Shape extents, Type type, std::vector<double> values);
  /// Random numbers, uniform in [−scale, scale).
  Array uniform(Shape extents, Type type, double scale = 1);
  /// Random integers from −range to range: sums of products of them are exact, so that a slip of layout is an
  /// inequality.
  Array integers(Shape extents, Type type, int range);
  /// NaN everywhere: an element that a kernel forgets to write shows.
  Array unwritten(Shape extents, Type type);

  /// Runs a plan with a workspace full of NaN.
  void run(const Plan &plan);
  /// Runs a plan on one thread and on three, with every array of `all` restored in between, and expects the same bits
  /// in all of them.
  void expectSameBits(const Plan &plan, const std::vector<Array *> &all);

  std::shared_ptr<Device> device;
  Target machine;
  std::mt19937 random{7};
};

#define KILN_ON_THESE_MACHINES(suite, machines)                                                                        \
  INSTANTIATE_TEST_SUITE_P(Machines, suite, testing::ValuesIn(machines), kiln::machineName)
#define KILN_ON_MACHINES(suite) KILN_ON_THESE_MACHINES(suite, kiln::machines(#suite))
#define KILN_ON_PRODUCT_MACHINES(suite) KILN_ON_THESE_MACHINES(suite, kiln::productMachines(#suite))

/// Expects every element within its slack and the rounding to `type`; prints index, got and want of the first others.
void expectClose(const char *what, const std::vector<double> &got, const std::vector<Want> &want, Type type);
void expectClose(const char *what, const Array &got, const std::vector<Want> &want);
/// Every element equal.
void expectEqual(const char *what, const std::vector<double> &got, const std::vector<double> &want);

} // namespace kiln
