// The pipe model compared with times measured on a GPU. The file has the work of each launch, as
// `kiln-bench static --json` writes it, so that no compiler and no GPU is needed.

#include "test/paths.h"
#include "tools/kiln-bench/static_rows.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::bench::test {

using kiln::test::sourcePath;

static nlohmann::json readMeasured() {
  std::ifstream stream(sourcePath("test/tools/inputs/measured_h100.json"));
  return nlohmann::json::parse(stream);
}

static const MachineRates &machineNamed(const std::string &name) {
  for (const MachineRates &machine : machines())
    if (machine.name == name)
      return machine;
  throw std::runtime_error("expected a machine of the pipe model, but got '" + name + "'");
}

// The predicted time is within 15 % of the measured one, except for kernels that the file explains.
TEST(MeasuredTest, PredictionsAreWithinFifteenPercent) {
  constexpr double tolerance = 0.15;
  const nlohmann::json file = readMeasured();
  const MachineRates &machine = machineNamed(file.at("machine"));
  ASSERT_GE(file.at("kernels").size(), 15u);
  size_t near = 0;
  for (const nlohmann::json &kernel : file.at("kernels")) {
    const double predicted = predict(machine, launchWorkOf(kernel.at("launch"))).seconds * 1e6;
    const double ratio = predicted / kernel.at("measured_us").get<double>();
    const bool isNear = std::abs(ratio - 1) <= tolerance;
    EXPECT_EQ(isNear, !kernel.contains("off_because"))
        << kernel.at("kernel") << ": predicted " << predicted << " µs, " << ratio << " of the measured time";
    near += isNear;
  }
  EXPECT_GE(near, file.at("kernels").size() - 2);
}

// Writing and reading give equal work.
TEST(MeasuredTest, TheWorkOfALaunchIsWrittenWhole) {
  for (const nlohmann::json &kernel : readMeasured().at("kernels"))
    EXPECT_EQ(nlohmann::json(jsonOf(launchWorkOf(kernel.at("launch")))), kernel.at("launch")) << kernel.at("kernel");
}

} // namespace kiln::bench::test
