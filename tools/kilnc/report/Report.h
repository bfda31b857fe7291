// The flag --report: one HTML page about a kernel and a config, for a browser without a network.
//
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=sm_80 --report axpy.html
//     kilnc --kernel=softmax --run --grid=2 --args='f32[8x100], f32[8x100]' --device=simulator:sm_80 --report
//     softmax.html
//
// The page (page.html) draws the JSON object that is embedded in it. Report collects that object:
//
//     files        the sources that locations name: path, lines
//     stages       the stages of the compilation: name, lines, and for each line its source [file, line]
//     explanation  the output of --explain, with layouts as text
//     layouts      the cells of each layout, by its text
//     launch       after --run on a simulator: counts by instruction, findings, occupancy, the pipe model's prediction

#pragma once

#include "dialect/dsl/Plan.h"
#include "lowering/Driver.h"
#include "runtime/simulator/SimulatorDevice.h"

#include <nlohmann/json.hpp>

namespace kiln::tools {

/// The template of the page: page.html, with `{{DATA}}` in place of the data.
extern const char *const pageText;

class Report {
public:
  /// The page's head; empty fields are left out. `isBuiltIn`: sources are read from the source folder of kilnc's build.
  struct Head {
    std::string kernel, target, config, arguments, grid;
    bool isBuiltIn = false;
  };
  explicit Report(const Head &head);

  void add(const lowering::CompilationRecord &record);
  /// Adds a launch that a simulator counted; `gpu` is the simulated GPU.
  void add(const Launch &launch, const Signature &signature, const LaunchRecord &record, const GpuFacts &gpu);
  /// The time of the launch, or its error.
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
