// The flag --report: one HTML page about a kernel and a config, for a browser without a network.
//
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=sm_80 --report axpy.html
//     kilnc --kernel=softmax --run --grid=2 --args='f32[8x100], f32[8x100]' --device=simulator:sm_80 --report
//     softmax.html
//
// The page (page.html) draws what it finds in a JSON object that is embedded in it. Report collects that object:
//
//     files        the sources that locations name: path, lines
//     stages       each stage of the compilation: name, lines, and of each line the [file, line] that it comes from
//     explanation  that of --explain, with layouts by their texts; layouts: their cells
//     launch       after --run on a simulator: counts by instruction, findings, occupancy, the pipe model's prediction

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Driver.h"
#include "runtime/simulator/SimulatorDevice.h"

#include <nlohmann/json.hpp>

namespace kiln::tools {

class Report {
public:
  /// What the page's head shows; empty parts are left out. `isBuiltIn`: sources are looked for where kilnc was built.
  struct Head {
    std::string kernel, target, config, arguments, grid;
    bool isBuiltIn = false;
  };
  explicit Report(const Head &head);

  void add(const lowering::CompilationRecord &record);
  /// A launch that a simulator counted; `gpu` is what it simulates.
  void add(const Launch &launch, const LaunchRecord &record, const GpuFacts &gpu);
  /// How long the launch took, or how it failed.
  void setTime(const std::string &text) { data["time"] = text; }
  void setError(const std::string &text) { data["error"] = text; }

  std::string page() const;

private:
  nlohmann::ordered_json placeOf(const std::string &file, int64_t line);
  nlohmann::ordered_json placeOf(const std::string &source);
  void addLayout(const std::string &text);

  nlohmann::ordered_json data;
  const bool isBuiltIn;
};

} // namespace kiln::tools
