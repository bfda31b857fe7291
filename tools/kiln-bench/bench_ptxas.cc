// Whether NVIDIA's assembler takes what the compiler makes. Every kernel of a training step of GPT-2, at the shapes of
// 124M and of a tiny model, in every type and precision, becomes PTX for the device's architecture; ptxas says how many
// registers it takes and what it puts aside in memory. A spill, a warning, or an operation whose rounding PTX leaves
// open (it may be fused with its neighbour) is an error, told when all has been seen.

#include "kernels/adamw.h"
#include "kernels/sum.h"
#include "lowering/Backend.h"
#include "models/gpt2/network.h"
#include "models/train/memory.h"
#include "tools/files/TemporaryFolder.h"
#include "tools/kiln-bench/bench.h"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <regex>
#include <thread>

using namespace kiln;

namespace {

/// A type of activations and parameters, and the precision of its products.
struct Variant {
  Type type;
  Precision precision;
};

/// One kernel as ptxas sees it.
struct Assembly {
  std::string name, config, ptx;
  std::string output; // what ptxas says
};

} // namespace

static constexpr Variant variants[] = {
    {Type::f32, Precision::ieee}, {Type::f32, Precision::tf32}, {Type::bf16, {}}, {Type::f16, {}}};

/// Memory that is never read, for plans whose kernels are only compiled. Regions are 2⁴⁰ bytes apart.
static TensorRef imagined(int region, Type type, Shape extents) {
  return TensorRef::dense(reinterpret_cast<void *>(static_cast<uintptr_t>(region) << 40), type, std::move(extents));
}

static void *const imaginedWorkspace = imagined(1, Type::i8, {}).data;

/// What a trainer with these settings launches: the gradient, replaced and added to; the losses; the update.
static Plan stepPlan(const Target &target, const Model &model, const TrainSettings &settings) {
  const MemoryPlan memory = planMemory(target, model, settings.batch, settings);
  const BufferTypes types = bufferTypes(model, settings);
  const Shape count = {model.parameters().count()};
  const ParameterBuffers buffers = {imagined(2, types.weights, count), imagined(3, types.gradients, count)};
  const TensorRef record = imagined(4, f32, {stepFields});
  const auto field = [&](StepField name) { return record.slice(0, static_cast<int64_t>(name), 1); };
  MicroBatch batch = {{settings.batch}, {}, imagined(5, f32, {model.targets({settings.batch})})};
  for (const Input &input : model.inputs(batch.shape))
    batch.inputs.emplace(input.name, imagined(10 + static_cast<int>(batch.inputs.size()), input.type, input.extents));
  Plan plan;
  for (const bool accumulate : {false, true}) {
    if (accumulate && settings.accumulate == 1)
      continue;
    Arena arena(memory.training, imagined(6, i8, {}).data);
    Build build{target, arena, model.parameters(), buffers, model.type(), accumulate};
    build.lossWeight = field(StepField::weight);
    model.gradient(build, batch);
    plan += build.plan;
    plan += planTotal(target, batch.losses, field(StepField::loss), 1, /*accumulate=*/true);
  }
  Arena arena(memory.evaluation, imagined(6, i8, {}).data);
  Build build{target, arena, model.parameters(), buffers, model.type()};
  model.losses(build, batch);
  plan += build.plan;
  plan += planTotal(target, batch.losses, field(StepField::loss));
  plan += planGradNorm(target, buffers.gradients, record);
  const TensorRef kept = types.hasMasters() ? imagined(7, types.kept, count) : buffers.values;
  plan += planAdamW(target, kept, buffers.gradients, imagined(8, f32, count), imagined(9, f32, count), record,
                    {.decayed = model.parameters().decayedCount(), .rounding = settings.rounding},
                    types.hasMasters() ? std::optional(buffers.values) : std::nullopt);
  return plan;
}

/// The ways to train on so many sequences in the model's type: with one micro-batch and with several, and without
/// masters where there can be some.
static Plan stepPlans(const Target &target, const Model &model, int64_t sequences) {
  Plan plan = stepPlan(target, model, {.batch = sequences});
  plan += stepPlan(target, model, {.batch = sequences, .accumulate = 2});
  if (model.type() != f32)
    plan += stepPlan(target, model, {.batch = sequences, .master = false, .rounding = Rounding::stochastic});
  return plan;
}

/// Each kernel of the plan that differs from those before.
static std::vector<Assembly> assembliesOf(Device &device, const Plan &plan) {
  std::map<std::string, bool> known;
  std::map<std::string, int> numbers;
  std::vector<Assembly> all;
  for (const Launch &launch : plan.launches) {
    const std::vector<char> code = codeOf(device, launch, imaginedWorkspace);
    std::string ptx(code.begin(), code.end());
    if (std::exchange(known[ptx], true))
      continue;
    const int number = ++numbers[launch.kernel->name];
    const std::string name = number == 1 ? launch.kernel->name : fmt::format("{} #{}", launch.kernel->name, number);
    all.push_back({name, launch.config, std::move(ptx), {}});
  }
  return all;
}

/// ptxas on the path, or where its toolkit goes.
static std::string findPtxas() {
  const std::string place = "/usr/local/cuda/bin/ptxas";
  if (std::system("ptxas --version >/dev/null 2>&1") == 0)
    return "ptxas";
  if (std::filesystem::exists(place))
    return place;
  throw Error("expected ptxas, NVIDIA's assembler, on the path or as " + place + ", but found none", Fault::device);
}

/// Everything that a command prints.
static std::string outputOf(const std::string &command) {
  std::string text;
  FILE *const pipe = popen((command + " 2>&1").c_str(), "r");
  if (!pipe)
    throw Error(fmt::format("expected to run '{}', but could not", command), Fault::device);
  for (char part[4096]; const size_t got = std::fread(part, 1, sizeof part, pipe);)
    text.append(part, got);
  if (pclose(pipe) != 0)
    text += "\nptxas: error: it refused the text";
  return text;
}

/// Has ptxas look at all of them, `threads` at a time.
static void assemble(std::vector<Assembly> &all, const std::string &ptxas, const std::string &architecture,
                     int threads) {
  const tools::TemporaryFolder folder("kiln-bench");
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < all.size(); i = next++) {
      const std::string file = folder.path + fmt::format("/{}.ptx", i);
      std::ofstream(file) << all[i].ptx;
      all[i].output = outputOf(fmt::format("{0} -v -arch={1} {2} -o {2}.cubin", ptxas, architecture, file));
    }
  };
  std::vector<std::jthread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back(work);
}

/// The largest number that `pattern` finds.
static double numberIn(const std::string &text, const char *pattern) {
  double most = 0;
  const std::regex expression(pattern);
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at)
    most = std::max(most, std::stod((*at)[1]));
  return most;
}

/// What is wrong with a kernel, or nothing.
static std::string complaintOf(const Assembly &kernel) {
  static const std::regex told("warning|error"), open(R"((add|sub|mul)(\.ftz)?\.(f32|f64|f16|bf16)\S*\s)");
  if (std::regex_search(kernel.output, told))
    return kernel.output;
  if (const double bytes = numberIn(kernel.output, R"((\d+) bytes spill)"))
    return fmt::format("{} bytes of spills", bytes);
  std::smatch found;
  if (std::regex_search(kernel.ptx, found, open))
    return fmt::format("'{}' without its rounding", found.str());
  return "";
}

/// All kernels of one model; appends to `complaints`.
static void assembleModel(bench::Setting &setting, const std::string &ptxas, const std::string &title,
                          const Model &model, int64_t sequences, Precision precision, std::string &complaints) {
  Target target = setting.device->target();
  target.precision = precision;
  std::vector<Assembly> all = assembliesOf(*setting.device, stepPlans(target, model, sequences));
  setting.report.section(title);
  assemble(all, ptxas, setting.device->backend().name(), setting.threads);
  for (const Assembly &kernel : all) {
    setting.report.add({.bench = "ptxas",
                        .shape = kernel.name,
                        .metric = "registers",
                        .value = numberIn(kernel.output, R"(Used (\d+) registers)"),
                        .dtype = nameOf(model.type())});
    if (const std::string complaint = complaintOf(kernel); !complaint.empty())
      complaints += fmt::format("\n  {}: {} ({}): {}", title, kernel.name, kernel.config, complaint);
  }
}

void bench::benchPtxas(Setting &setting) {
  setting.device->target().visit(
      [](const CpuFacts &) { throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU"); },
      [](const GpuFacts &) {});
  const std::string ptxas = findPtxas();
  std::string complaints;
  for (const Variant &variant : variants)
    for (const bool tiny : {true, false}) {
      if (setting.quick && !tiny)
        continue;
      Gpt2Config config = {.layers = 1, .heads = 12, .width = 768, .context = 1024, .vocab = 50257};
      if (tiny)
        config = {.layers = 1, .heads = 2, .width = 64, .context = 32};
      config.type = variant.type;
      const std::string title =
          fmt::format("{} GPT-2 in {}", tiny ? "tiny" : "124M",
                      variant.type == f32 ? precisionNames[static_cast<size_t>(variant.precision)] + " f32"
                                          : std::string(nameOf(variant.type)));
      assembleModel(setting, ptxas, title, Network(config), tiny ? 2 : 4, variant.precision, complaints);
    }
  if (!complaints.empty())
    throw Error("expected kernels without spills, warnings and open roundings, but got" + complaints);
}
