// Finds and looks up the fastest configs of kernels.

#include "tools/kilnc/Tune.h"

#include "runtime/Findings.h"
#include "tools/libkiln/handles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace kiln;
using namespace kiln::c;

/// As the Python package spells them.
static const tools::SettingNames names = {.grid = "let grid= depend on it",
                                          .config = "the call",
                                          .variesResults = "vary_results=True",
                                          .budget = "budget",
                                          .bucket = "bucket=",
                                          .exhaustive = ""};

kiln_status kiln_tuned(kiln_device *device, const kiln_kernel *kernel, const kiln_argument *arguments, size_t count,
                       const char *findings, const char **config) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(kernel, "a kernel");
    expectGiven(config, "a place for the config");
    static thread_local std::string found;
    std::vector<Arg> args;
    setArgs(args, *device, arguments, count);
    found = tuned(*device->device, *kernel->kernel, args, findings ? findings : "");
    *config = found.c_str();
  });
}

kiln_status kiln_candidates(kiln_device *device, const kiln_kernel *kernel, const char *fixed, int vary_results,
                            const char **configs) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(kernel, "a kernel");
    expectGiven(configs, "a place for the configs");
    static thread_local std::string lines;
    lines = fmt::format("{}", fmt::join(tools::candidatesOf(*kernel->kernel, fixed ? fixed : "",
                                                            device->device->target(), vary_results != 0, names)
                                            .configs,
                                        "\n"));
    *configs = lines.c_str();
  });
}

kiln_status kiln_tune(kiln_device *device, const kiln_kernel *kernel, const kiln_argument *arguments, size_t count,
                      const kiln_trial *trials, size_t trial_count, double seconds, int vary_results,
                      const char *bucket, const char *findings, const char **config, const char **report) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(kernel, "a kernel");
    expectGiven(trials, "configs to try");
    expectGiven(config, "a place for the config");
    std::vector<Arg> args;
    setArgs(args, *device, arguments, count);
    const Expanded form = expanded(*kernel->kernel, args);
    std::vector<tools::Trial> tried;
    for (size_t i = 0; i < trial_count; ++i)
      tried.push_back(
          {trials[i].config ? trials[i].config : "", Grid(trials[i].grid[0], trials[i].grid[1], trials[i].grid[2])});
    const tools::TuneOptions options = {.budget = seconds,
                                        .variesResults = vary_results != 0,
                                        .buckets = bucket ? bucket : "",
                                        .output = findings ? findings : "",
                                        .names = names,
                                        .expectAllowed = [&](const Signature &signature) {
                                          expectWritable(form.kernel->name, signature, arguments, count);
                                        }};
    static thread_local tools::TuneReport made;
    {
      const std::lock_guard lock(device->mutex);
      const Loan loan(*device, args);
      made = tools::tuneKernel(*device->device, *form.kernel, form.args, tried, options);
    }
    forgetFindings();
    *config = made.config.c_str();
    if (report)
      *report = made.table.c_str();
    if (!made.faults.empty())
      throw Error(made.faults.substr(0, made.faults.size() - 1));
  });
}
