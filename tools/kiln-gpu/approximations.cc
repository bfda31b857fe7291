// Measures errors of approximate instructions: one launch per chunk of inputs, compared with double precision on the
// host.

#include "tools/kiln-gpu/parts.h"

#include "runtime/Streams.h"
#include "runtime/Tensor.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <cmath>
#include <thread>

namespace kiln::gpu {

namespace {
/// An instruction and the function that it approximates.
struct Approximation {
  const char *instruction;
  double (*truth)(double);
};

/// The largest errors so far.
struct Errors {
  double ulp = 0, relative = 0;
  uint32_t at = 0;
  int64_t odd = 0;

  void add(const Errors &other) {
    if (other.ulp > ulp)
      ulp = other.ulp, at = other.at;
    relative = std::max(relative, other.relative);
    odd += other.odd;
  }
};
} // namespace

static constexpr Approximation approximations[] = {
    {"ex2.approx.f32", [](double x) { return std::exp2(x); }},
    {"lg2.approx.f32", [](double x) { return std::log2(x); }},
    {"rcp.approx.f32", [](double x) { return 1 / x; }},
    {"rsqrt.approx.f32", [](double x) { return 1 / std::sqrt(x); }},
    {"sqrt.approx.f32", [](double x) { return std::sqrt(x); }},
    {"tanh.approx.f32", [](double x) { return std::tanh(x); }},
};

/// Inputs of a launch.
static constexpr int64_t threads = 256, chunk = int64_t{1} << 22;

/// A kernel that writes to p3 the results of the words p4, p4 + p5, ….
static std::string ptxText(const char *instruction) {
  return fmt::format(".version 7.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry approximate(.param .b64 p0, .param .b64 p1, .param .b64 p2, .param .b64 p3, "
                     ".param .b64 p4, .param .b64 p5)\n.reqntid {}\n{{\n"
                     ".reg .b64 %d<3>;\n.reg .b32 %r<6>;\n.reg .f32 %f<2>;\n"
                     "ld.param.b64 %d0, [p3];\nld.param.b32 %r0, [p4];\nld.param.b32 %r1, [p5];\n"
                     "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r2, {}, %r3;\n"
                     "mad.lo.u32 %r5, %r4, %r1, %r0;\nmov.b32 %f0, %r5;\n{} %f1, %f0;\n"
                     "mad.wide.u32 %d1, %r4, 4, %d0;\nst.global.f32 [%d1], %f1;\nret;\n}}\n",
                     threads, threads, instruction);
}

/// Compares the results of the words first, first + every, ….
static Errors errorsOf(const Approximation &approximation, const float *results, int64_t count, uint32_t first,
                       uint32_t every) {
  Errors errors;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t word = first + static_cast<uint32_t>(i) * every;
    const double want = approximation.truth(std::bit_cast<float>(word)), got = results[i];
    const auto nearest = static_cast<float>(want);
    if (!std::isfinite(nearest) || !std::isfinite(got)) {
      errors.odd += std::isnan(nearest) != std::isnan(got) || std::isinf(nearest) != std::isinf(got);
      continue;
    }
    const double difference = std::abs(got - want);
    const int exponent = want == 0 ? -149 : std::max(std::ilogb(want) - 23, -149);
    errors.add({std::ldexp(difference, -exponent), want == 0 ? 0 : difference / std::abs(want), word, 0});
  }
  return errors;
}

/// As above, divided among the host's threads.
static Errors errorsTogether(const Approximation &approximation, const std::vector<float> &results, uint32_t first,
                             uint32_t every) {
  const int64_t parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<Errors> found(parts);
  {
    std::vector<std::jthread> team;
    for (int64_t part = 0; part < parts; ++part)
      team.emplace_back([&, part] {
        const int64_t begin = std::ssize(results) * part / parts, end = std::ssize(results) * (part + 1) / parts;
        found[part] = errorsOf(approximation, results.data() + begin, end - begin,
                               first + static_cast<uint32_t>(begin) * every, every);
      });
  }
  Errors all;
  for (const Errors &each : found)
    all.add(each);
  return all;
}

static void measure(const std::shared_ptr<Device> &device, const Approximation &approximation, uint32_t every) {
  const std::string text = ptxText(approximation.instruction);
  Signature signature;
  signature.parameters = {{.name = "results", .extents = {chunk}, .strides = {1}},
                          {.name = "first", .isView = false, .type = Type::i64},
                          {.name = "every", .isView = false, .type = Type::i64}};
  signature.slots = {{abi::Slot::pointer, 0}, {abi::Slot::scalar, 1}, {abi::Slot::scalar, 2}};
  const auto executable = device->load("approximate", signature, {text.begin(), text.end()});
  Tensor results(device, Type::f32, {chunk});
  const int64_t inputs = (int64_t{1} << 32) / every;
  Errors errors;
  for (int64_t done = 0; done < inputs; done += chunk) {
    const auto first = static_cast<uint32_t>(done * every);
    device->launch(*executable, chunk / threads, {results, int64_t{first}, int64_t{every}});
    errors.add(errorsTogether(approximation, results.downloadFloats(), first, every));
  }
  device->synchronize();
  writeResult(fmt::format("{{\"instruction\": \"{}\", \"inputs\": {}, \"max_ulp\": {:.4f}, \"max_relative\": {:.3e}, "
                          "\"at\": \"{:#010x}\", \"odd\": {}}}\n",
                          approximation.instruction, std::max(inputs, chunk), errors.ulp, errors.relative, errors.at,
                          errors.odd));
}

static int run(int argc, const char *const *argv) {
  std::string device = "cuda:0";
  uint32_t every = 1;
  CLI::App app("largest errors of approximate instructions", "kiln-gpu approximations");
  app.add_option("--device", device, "the device that runs them")->capture_default_str();
  app.add_option("--every", every, "every how many of the 2^32 words is an input")->check(CLI::Range(1u, 1u << 20));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const Approximation &approximation : approximations)
    measure(Device::open(device), approximation, every);
  return 0;
}

int approximationsMain(int argc, char **argv) {
  return runProgram("kiln-gpu", [=] { return run(argc, argv); });
}

} // namespace kiln::gpu
