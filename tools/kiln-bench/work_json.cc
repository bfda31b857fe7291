// Each struct has one list of its fields, which both directions use.

#include "tools/kiln-bench/work_json.h"

#include <nlohmann/json.hpp>

namespace kiln::bench {

namespace {
struct Writer {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  void operator()(const char *name, const auto &value) { json[name] = value; }
};
struct Reader {
  const nlohmann::json &json;
  void operator()(const char *name, auto &value) const { json.at(name).get_to(value); }
};
} // namespace

static void visit(auto &&visitor, auto &work) {
  for (size_t i = 0; i < classCount; ++i)
    visitor(classNames[i], work.counts.of[i]);
  visitor("mma_operations", work.mmaOperations);
  visitor("group_operations", work.groupOperations);
  visitor("drained_operations", work.drainedOperations);
  visitor("drains", work.drains);
  visitor("mma_type", work.mmaType);
  visitor("wavefronts", work.wavefronts);
  visitor("bytes", work.bytes);
}

static void visitLaunch(auto &&visitor, auto &launch) {
  visitor("l2_bytes", launch.l2Bytes);
  visitor("iteration_l2_bytes", launch.roundL2Bytes);
  visitor("iterations", launch.rounds);
  visitor("iterations_ahead", launch.roundsAhead);
  visitor("loads", launch.loads);
  visitor("late_bytes", launch.lateBytes);
  visitor("warps", launch.warps);
  visitor("programs", launch.programs);
  visitor("residents", launch.residents);
  visitor("memory_bytes", launch.memoryBytes);
}

static nlohmann::ordered_json jsonOf(const Work &work) {
  Writer writer;
  visit(writer, work);
  return writer.json;
}

nlohmann::ordered_json jsonOf(const LaunchWork &launch) {
  Writer writer;
  writer("program", jsonOf(launch.program));
  writer("iteration", jsonOf(launch.round));
  visitLaunch(writer, launch);
  return writer.json;
}

LaunchWork launchWorkOf(const nlohmann::json &json) {
  LaunchWork launch;
  visit(Reader{json.at("program")}, launch.program);
  visit(Reader{json.at("iteration")}, launch.round);
  visitLaunch(Reader{json}, launch);
  return launch;
}

} // namespace kiln::bench
