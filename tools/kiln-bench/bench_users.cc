// Users' kernels by what a GPU would have to do for them, beside Triton's kernels for the same problems: warp
// instructions of a round of the main loop, or of a program where there is no loop, for each element that it works on.

#include "runtime/Streams.h"
#include "tools/kiln-bench/bench.h"
#include "tools/kiln-bench/static_rows.h"
#include "tools/kiln-bench/users/users.h"

#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace kiln;
using namespace kiln::bench;

namespace kiln::bench {
/// tools/kiln-bench/triton_users.json, put here by the build.
extern const char *const tritonUsers;
} // namespace kiln::bench

namespace {
/// What one kernel asks for.
struct Asked {
  double instructions = 0; // of warps, for 1024 elements
  double barriers = 0;     // of a round or program
  int registers = 0, spillBytes = 0;
  std::string tiles; // of the other compiler
};
} // namespace

static constexpr double unit = 1024;

static Asked askedBy(const UserProblem &user, const StaticRow &row) {
  const double warps = static_cast<double>(cdiv(row.sample.threads, 32));
  Asked asked;
  asked.registers = row.registers.value_or(0);
  asked.spillBytes = row.spillBytes;
  asked.barriers = row.sample.rounds > 0 ? row.sample.ofRound.barriers : row.sample.ofProgram.barriers;
  if (row.sass)
    asked.instructions = instructionsOfRound(row) * warps * unit / user.elements;
  return asked;
}

/// The config of the other compiler's that asks for the fewest instructions.
static std::optional<Asked> leastOf(const nlohmann::json &all, const std::string &problem) {
  std::optional<Asked> best;
  for (const nlohmann::json &json : all.at("rows")) {
    if (json.at("problem") != problem)
      continue;
    const nlohmann::json &counts = json.contains("loop") ? json.at("loop") : json.at("whole");
    const double times = json.at("warps").get<double>() / json.at("unrolled").get<double>();
    const Asked asked{counts.at("total").get<double>() * times * unit / json.at("elements").get<double>(),
                      counts.value("bar", 0.0) / json.at("unrolled").get<double>(), json.at("registers"),
                      json.at("stack"), json.at("tiles")};
    if (!best || asked.instructions < best->instructions)
      best = asked;
  }
  return best;
}

static std::string headLine() {
  return fmt::format("\n{:<20} {:>9} {:>9} {:>6} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6}  {}\n", "kernel", "kiln", "triton",
                     "ratio", "bar", "triton", "regs", "triton", "spills", "triton", "triton's config");
}

static std::string lineOf(const std::string &name, const Asked &ours, const std::optional<Asked> &peer) {
  const auto number = [](double value) { return value > 0 ? fmt::format("{:.2f}", value) : ""; };
  const std::string text = fmt::format("{:<20} {:>9}", name, number(ours.instructions));
  if (!peer)
    return text + "\n";
  return text + fmt::format(" {:>9.2f} {:>6} {:>5.4g} {:>6.4g} {:>6} {:>6} {:>6} {:>6}  {}\n", peer->instructions,
                            number(ours.instructions / peer->instructions), ours.barriers, peer->barriers,
                            ours.registers, peer->registers, ours.spillBytes, peer->spillBytes, peer->tiles);
}

void bench::benchUsers(Setting &setting) {
  simulator::Memory memory;
  const Space space = Space::of(memory);
  Operands make(space);
  const Instruments instruments{setting.device, memory, findPtxas(), setting.nvdisasm};
  tellWhatIsMissing(instruments);
  const nlohmann::json peers = nlohmann::json::parse(tritonUsers);
  const std::vector<UserProblem> users = userProblems(make, space);
  std::vector<Problem> problems;
  for (const UserProblem &user : users)
    problems.push_back(user.problem);
  const std::vector<StaticRow> rows = examine(problems, instruments);
  writeResult(
      fmt::format("\nwarp instructions for {} elements: of a round of the main loop, of a program where there is "
                  "none\n{}",
                  unit, headLine()));
  double logarithms = 0;
  int compared = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string &name = rows[i].problem.name;
    if (!rows[i].error.empty()) {
      writeResult(fmt::format("{}: {}\n", name, rows[i].error));
      continue;
    }
    const Asked ours = askedBy(users[i], rows[i]);
    const std::optional<Asked> peer = leastOf(peers, rows[i].problem.peer);
    writeResult(lineOf(name, ours, peer));
    if (peer && ours.instructions > 0) {
      logarithms += std::log(ours.instructions / peer->instructions);
      ++compared;
    }
  }
  if (compared > 0)
    writeResult(
        fmt::format("geometric mean of the ratios of {} kernels: {:.3f}\n", compared, std::exp(logarithms / compared)));
}
