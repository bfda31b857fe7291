// Reads, compares and writes the ratchet's file.

#include "tools/kiln-bench/ratchet.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::bench {

std::vector<std::pair<std::string, int64_t>> heldOf(const StaticRow &row) {
  const auto all = [&](double Traffic::*field) { return std::llround(row.total(field)); };
  std::vector<std::pair<std::string, int64_t>> held = {{"wavefronts", all(&Traffic::wavefronts)},
                                                       {"load_sectors", all(&Traffic::loadSectors)},
                                                       {"store_sectors", all(&Traffic::storeSectors)},
                                                       {"barriers", all(&Traffic::barriers)},
                                                       {"waits", all(&Traffic::waits)}};
  if (row.registers) {
    held.emplace_back("idle_warps", row.occupancy.maxWarps - row.occupancy.warps);
    held.emplace_back("registers", *row.registers);
    held.emplace_back("spill_bytes", row.spillBytes);
  }
  return held;
}

static std::string keyOf(const StaticRow &row) {
  return fmt::format("{} {} {}", row.problem.set, row.problem.name, nameOf(row.problem.type));
}

static void compareRow(const StaticRow &row, const nlohmann::json &was, std::string &worse,
                       std::set<std::string> &missing) {
  const auto held = heldOf(row);
  const int idleWarps = row.occupancy.maxWarps - row.occupancy.warps;
  const bool asManyWarps = idleWarps <= was.value("idle_warps", 0);
  for (const auto &[measure, before] : was.items()) {
    const auto at = std::find_if(held.begin(), held.end(), [&](const auto &each) { return each.first == measure; });
    if (at == held.end())
      missing.insert(measure);
    else if (at->second > before.get<int64_t>() && !(measure == "registers" && asManyWarps))
      worse += fmt::format("\n  {} ({}): {} was {}, is {}", keyOf(row), row.problem.launch.config, measure,
                           before.get<int64_t>(), at->second);
  }
}

std::string compareWith(const std::string &file, const std::vector<StaticRow> &rows, std::string &skipped) {
  std::ifstream stream(file);
  const nlohmann::json all = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object())
    throw Error(fmt::format("expected '{}' to be a file that --accept wrote, but it is not", file));
  std::string worse;
  std::set<std::string> missing, known;
  for (const StaticRow &row : rows) {
    const std::string key = keyOf(row);
    known.insert(key);
    if (!row.error.empty())
      worse += fmt::format("\n  {}: {}", key, row.error);
    else if (!all.contains(key))
      worse += fmt::format("\n  {}: '{}' does not know it", key, file);
    else
      compareRow(row, all.at(key), worse, missing);
  }
  for (const auto &[key, held] : all.items())
    if (!known.contains(key))
      worse += fmt::format("\n  {}: '{}' has it, but it was not looked at", key, file);
  for (const std::string &measure : missing)
    skipped += (skipped.empty() ? "" : ", ") + measure;
  return worse;
}

void accept(const std::string &file, const std::vector<StaticRow> &rows) {
  std::string text;
  for (const StaticRow &row : rows) {
    if (!row.error.empty())
      throw Error(fmt::format("{}: {}", keyOf(row), row.error));
    nlohmann::ordered_json held = nlohmann::ordered_json::object();
    for (const auto &[measure, value] : heldOf(row))
      held[measure] = value;
    text += fmt::format("{}{}: {}", text.empty() ? "" : ",\n", nlohmann::json(keyOf(row)).dump(), held.dump());
  }
  std::ofstream stream(file);
  stream << "{\n" << text << "\n}\n";
  if (!stream.flush())
    throw Error(fmt::format("expected to write '{}', but could not", file), Fault::device);
}

} // namespace kiln::bench
