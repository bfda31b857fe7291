// The shared part of the kernels' numeric tests.

#include "test/kernels/harness.h"

#include "test/devices.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace kiln {

static bool isGpu(const std::string &device) { return !device.starts_with("cpu"); }

/// The types of `forms` for a device of a suite: all of them. In the quick tier the oracle has the first, a CPU the
/// first and another, and a GPU one.
static std::vector<Machine> formsOn(std::string_view suite, const std::string &device,
                                    const std::vector<Machine> &forms) {
  const test::Tier tier = test::Tier::asked();
  std::vector<Machine> taken = forms;
  if (!tier.all && !std::getenv("KILN_TEST_DEVICE")) {
    constexpr uint64_t gpus = 2; // of which the quick tier takes one
    const uint64_t at = tier.at(suite);
    if (device == test::oracleDevice)
      taken = {forms[0]};
    else if (isGpu(device))
      taken = {forms[at / gpus % forms.size()]}; // each form on each GPU within gpus · forms turns
    else if (forms.size() > 1)
      taken = {forms[0], forms[1 + at % (forms.size() - 1)]};
  }
  for (Machine &machine : taken)
    machine.device = device;
  return taken;
}

static std::vector<Machine> withForms(std::string_view suite, const std::vector<Machine> &forms,
                                      const std::vector<Machine> &gpuForms) {
  std::vector<Machine> all;
  for (const std::string &device : test::testDevices(suite))
    for (const Machine &machine : formsOn(suite, device, isGpu(device) ? gpuForms : forms))
      all.push_back(machine);
  return all;
}

static const std::vector<Machine> types = {{"", f32}, {"", bf16}, {"", f16}};

std::vector<Machine> machines(std::string_view suite) { return withForms(suite, types, types); }

std::vector<Machine> floatMachines(std::string_view suite) { return withForms(suite, {{"", f32}}, {{"", f32}}); }

std::vector<Machine> narrowMachines(std::string_view suite) {
  const std::vector<Machine> narrow(types.begin() + 1, types.end());
  return withForms(suite, narrow, narrow);
}

std::vector<Machine> productMachines(std::string_view suite) {
  std::vector<Machine> gpuForms = types;
  for (const Precision precision : {Precision::tf32, Precision::tf32x3, Precision::bf16x3})
    gpuForms.push_back({"", f32, precision});
  std::vector<Machine> all = withForms(suite, types, gpuForms);
  const std::vector<std::string> devices = test::testDevices(suite);
  for (const std::string &device : test::testDevices(suite, test::Reach::processors))
    if (!isGpu(device) && std::find(devices.begin(), devices.end(), device) == devices.end()) {
      all.push_back({device, bf16});
      if (device == "cpu:amx") // which multiplies parts of f32
        all.push_back({device, f32, Precision::bf16x3});
    }
  return all;
}

/// `f32`, or the precision that its products have.
static std::string typeName(const Machine &machine) {
  return machine.precision == Precision::ieee ? nameOf(machine.type)
                                              : precisionNames[static_cast<size_t>(machine.precision)];
}

void PrintTo(const Machine &machine, std::ostream *out) { *out << machine.device << " " << typeName(machine); }

std::string machineName(const testing::TestParamInfo<Machine> &info) {
  return test::deviceLabel(info.param.device + "_" + typeName(info.param));
}

double productError(int64_t n, const Machine &machine) {
  const double plain = static_cast<double>(n + 1) * roundoff;
  if (machine.precision == Precision::ieee && (!isGpu(machine.device) || machine.type == f32))
    return plain;
  switch (machine.precision) {
  case Precision::ieee:
    return 3 * plain;
  case Precision::tf32:
    return 3 * plain + 1.3 * 0x1p-10 + 0x1p-21;
  case Precision::tf32x3:
    return 9 * plain + 5.1 * 0x1p-22;
  case Precision::bf16x3:
    return 9 * plain + 3 * 0x1p-16 + 0x1p-22;
  }
  return 0;
}

double unit(Type type) { return type == f32 ? 0x1p-24 : type == bf16 ? 0x1p-8 : type == f16 ? 0x1p-11 : 0; }

double tiny(Type type) { return type == f32 ? 0x1p-150 : type == bf16 ? 0x1p-134 : type == f16 ? 0x1p-25 : 0; }

std::vector<char> Array::bytes() const {
  std::vector<char> host(tensor.bytes());
  tensor.download(host.data(), tensor.bytes());
  return host;
}

std::vector<double> Array::read() const { return toDoubles(bytes().data(), tensor.type(), tensor.count()); }

void Array::reset() {
  std::vector<char> host(tensor.bytes());
  fromDoubles(values, tensor.type(), host.data());
  tensor.upload(host.data(), tensor.bytes());
}

void KernelTest::SetUp() {
  device = Device::open(GetParam().device);
  machine = device->target();
  machine.precision = precision();
}

Array KernelTest::array(Shape extents, Type type, std::vector<double> values) {
  Array made{Tensor(device, type, std::move(extents)), std::move(values)};
  made.reset();
  made.values = made.read();
  return made;
}

Array KernelTest::uniform(Shape extents, Type type, double scale) {
  std::uniform_real_distribution<double> number(-scale, scale);
  std::vector<double> values(TensorRef::dense(nullptr, type, extents).count());
  for (double &value : values)
    value = number(random);
  return array(std::move(extents), type, std::move(values));
}

Array KernelTest::integers(Shape extents, Type type, int range) {
  std::uniform_int_distribution<int> number(-range, range);
  std::vector<double> values(TensorRef::dense(nullptr, type, extents).count());
  for (double &value : values)
    value = number(random);
  return array(std::move(extents), type, std::move(values));
}

Array KernelTest::unwritten(Shape extents, Type type) {
  const int64_t count = TensorRef::dense(nullptr, type, extents).count();
  return array(std::move(extents), type, std::vector<double>(count, NAN));
}

void KernelTest::run(const Plan &plan) {
  Array workspace;
  if (plan.workspaceBytes > 0)
    workspace = unwritten({cdiv(plan.workspaceBytes, bytesOf(f32))}, f32);
  kiln::run(*device, plan, workspace.ref());
  device->synchronize();
}

void KernelTest::expectSameBits(const Plan &plan, const std::vector<Array *> &all) {
  const int threads = device->threads();
  std::vector<std::vector<char>> first;
  for (const int count : {1, 3}) {
    device->setThreads(count);
    for (Array *array : all)
      array->reset();
    run(plan);
    for (size_t i = 0; i < all.size(); ++i)
      if (count == 1)
        first.push_back(all[i]->bytes());
      else
        EXPECT_TRUE(first[i] == all[i]->bytes()) << "array " << i << " differs between 1 and 3 threads";
  }
  device->setThreads(threads);
}

void expectClose(const char *what, const std::vector<double> &got, const std::vector<Want> &want, Type type) {
  ASSERT_EQ(got.size(), want.size()) << what;
  int bad = 0;
  std::ostringstream first;
  for (size_t i = 0; i < got.size(); ++i) {
    // The slack is that of the value before rounding; rounding then adds its unit. The last term is for denormals in
    // between, which not all functions keep.
    const double bound = want[i].slack * (1 + unit(type)) + unit(type) * std::abs(want[i].value) + tiny(type) + 1e-37;
    if (std::isinf(want[i].value) ? got[i] == want[i].value : std::abs(got[i] - want[i].value) <= bound)
      continue;
    if (++bad <= 5)
      first << "\n  [" << i << "] got " << got[i] << ", want " << want[i].value << " within " << bound;
  }
  EXPECT_EQ(bad, 0) << what << ": " << bad << " of " << got.size() << " elements differ" << first.str();
}

void expectClose(const char *what, const Array &got, const std::vector<Want> &want) {
  expectClose(what, got.read(), want, got.tensor.type());
}

void expectEqual(const char *what, const std::vector<double> &got, const std::vector<double> &want) {
  std::vector<Want> exact;
  for (const double value : want)
    exact.push_back({value, 0});
  expectClose(what, got, exact, i32);
}

static double tanhOfGelu(double x) { return std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)); }
double geluOf(double x) { return x / 2 * (1 + tanhOfGelu(x)); }
double geluSlopeOf(double x) {
  const double t = tanhOfGelu(x);
  return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}

std::vector<Want> KernelTest::product(Layout layout, const Array &a, const Array &b, ProductSize s) const {
  std::vector<Want> c(s.M * s.N);
  for (int64_t m = 0; m < s.M; ++m)
    for (int64_t n = 0; n < s.N; ++n)
      for (int64_t k = 0; k < s.K; ++k) {
        const double term = (layout == Layout::tn ? a[k * s.M + m] : a[m * s.K + k]) *
                            (layout == Layout::nt ? b[n * s.K + k] : b[k * s.N + n]);
        c[m * s.N + n].value += term;
        c[m * s.N + n].slack += std::abs(term) * productError(s.K);
      }
  return c;
}

std::vector<double> KernelTest::exactProduct(Layout layout, const Array &a, const Array &b, ProductSize s) const {
  std::vector<double> values;
  for (const Want &want : product(layout, a, b, s))
    values.push_back(want.value);
  return values;
}

} // namespace kiln
