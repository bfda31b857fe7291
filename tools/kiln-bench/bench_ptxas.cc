// Whether NVIDIA's assembler takes what the compiler makes. Every kernel of a training step of GPT-2, at the shapes of
// 124M and of a tiny model, and attention in other forms than a step's, in every type and precision (or in f32 and the
// precision that is asked for), becomes PTX for the device's architecture; ptxas says how many registers it takes and
// what it puts aside in memory. A spill, a warning, or an operation whose rounding PTX leaves open (it may be fused
// with its neighbour) is an error, told when all has been seen. Then comes each kernel at its default config, which no
// plan launches: what is wrong there is told, and is no error.

#include "lowering/Backend.h"
#include "runtime/Streams.h"
#include "tools/kiln-bench/assembly.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/problems.h"
#include "tools/kiln-bench/step_plans.h"

#include <fmt/format.h>
#include <map>
#include <utility>

using namespace kiln;
using bench::Assembly;

namespace {

/// A type of activations and parameters, and the precision of its products.
struct Variant {
  Type type;
  Precision precision;
};

} // namespace

static constexpr Variant variants[] = {{Type::f32, Precision::ieee},
                                       {Type::f32, Precision::tf32},
                                       {Type::f32, Precision::tf32x3},
                                       {Type::f32, Precision::bf16x3},
                                       {Type::bf16, {}},
                                       {Type::f16, {}}};

/// Each kernel of the plan that differs from those before.
static std::vector<Assembly> assembliesOf(Device &device, const Plan &plan) {
  std::map<std::string, bool> known;
  std::map<std::string, int> numbers;
  std::vector<Assembly> all;
  for (const Launch &launch : plan.launches) {
    std::string ptx = bench::ptxOf(codeOf(device, launch, bench::imaginedRegion(bench::workspaceRegion, 0)));
    if (std::exchange(known[ptx], true))
      continue;
    const int number = ++numbers[launch.kernel->name];
    const std::string name = number == 1 ? launch.kernel->name : fmt::format("{} #{}", launch.kernel->name, number);
    all.push_back({name, launch.config, std::move(ptx), {}, {}});
  }
  return all;
}

/// All kernels of a plan. What is wrong with them, a line each.
static std::string assemblePlan(bench::Setting &setting, const std::string &ptxas, const std::string &title,
                                const Plan &plan, Type type) {
  std::string complaints;
  std::vector<Assembly> all = assembliesOf(*setting.device, plan);
  setting.report.section(title);
  assemble(all, ptxas, bench::architectureOf(setting.device->backend().name()), setting.threads);
  for (const Assembly &kernel : all) {
    setting.report.add({.bench = "ptxas",
                        .shape = kernel.name,
                        .metric = "registers",
                        .value = static_cast<double>(registersOf(kernel)),
                        .dtype = nameOf(type)});
    if (const std::string complaint = complaintOf(kernel); !complaint.empty())
      complaints += fmt::format("\n  {}: {} ({}): {}", title, kernel.name, kernel.config, complaint);
  }
  return complaints;
}

/// Attention in the forms that a step has not, on memory that is never read.
static Plan formPlan(const Target &target, Type type) {
  bench::Operands make(bench::Space::imagined());
  Plan plan;
  for (const bench::Problem &problem : bench::formProblems(target, type, make))
    plan.launches.push_back(problem.launch);
  return plan;
}

/// A token more of one text, and of several.
static Plan tokenPlans(const Target &target, const Gpt2Config &config) {
  bench::Operands make(bench::Space::imagined());
  Plan plan;
  for (const int64_t texts : {1, 4, 8})
    plan += bench::tokenPlan(target, config, texts, make);
  return plan;
}

/// Each kernel at its default config, on memory that is never read.
static Plan defaultPlan(const Target &target, Type type) {
  bench::Operands make(bench::Space::imagined());
  Plan plan;
  for (const bench::Problem &problem : bench::defaultProblems(target, type, make))
    plan.launches.push_back(problem.launch);
  return plan;
}

/// Takes out the launches that no program of the device can make, and says why.
static std::string dropUnfit(Device &device, Plan &plan) {
  std::string complaints;
  std::erase_if(plan.launches, [&](const Launch &launch) {
    try {
      codeOf(device, launch, bench::imaginedRegion(bench::workspaceRegion, 0));
      return false;
    } catch (const Error &error) {
      complaints += fmt::format("\n  {} ({}): {}", launch.kernel->name, launch.config, error.what());
      return true;
    }
  });
  return complaints;
}

static std::string precisionText(const Variant &variant) {
  return variant.type == f32 ? precisionNames[static_cast<size_t>(variant.precision)] + " f32" : nameOf(variant.type);
}

void bench::benchPtxas(Setting &setting) {
  setting.device->target().visit(
      [](const CpuFacts &) { throw Error("expected a GPU, such as --device simulator:sm_80, but got a CPU"); },
      [](const GpuFacts &) {});
  const std::string ptxas = expectPtxas();
  std::string complaints, ofDefaults;
  for (const Variant &variant : variants) {
    if (setting.precision && (variant.type != f32 || variant.precision != *setting.precision))
      continue;
    Target target = setting.device->target();
    target.precision = variant.precision;
    for (const bool tiny : {true, false}) {
      if (setting.quick && !tiny)
        continue;
      Gpt2Config config = config124M(variant.type, 1);
      if (tiny)
        config = {.layers = 1, .heads = 2, .width = 64, .context = 32, .type = variant.type};
      complaints +=
          assemblePlan(setting, ptxas, fmt::format("{} GPT-2 in {}", tiny ? "tiny" : "124M", precisionText(variant)),
                       stepPlans(target, Network(config), tiny ? 2 : 4), variant.type);
      if (!setting.quick)
        complaints += assemblePlan(
            setting, ptxas, fmt::format("a token of {} GPT-2 in {}", tiny ? "tiny" : "124M", precisionText(variant)),
            tokenPlans(target, config), variant.type);
    }
    if (!setting.quick) {
      complaints += assemblePlan(setting, ptxas, "forms of attention in " + precisionText(variant),
                                 formPlan(target, variant.type), variant.type);
      Plan plan = defaultPlan(target, variant.type);
      ofDefaults += dropUnfit(*setting.device, plan);
      ofDefaults += assemblePlan(setting, ptxas, "default configs in " + precisionText(variant), plan, variant.type);
    }
  }
  if (!ofDefaults.empty())
    writeResult("\nat default configs, which no plan launches:" + ofDefaults + "\n");
  if (!complaints.empty())
    throw Error("expected kernels without spills, warnings and open roundings, but got" + complaints);
}
