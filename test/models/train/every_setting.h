// Every setting of a run (models/train/setting_table.h), kept and changed when a program's run is resumed.

#pragma once

#include "models/data/json.h"
#include "models/train/checkpoint.h"
#include "models/train/setting_table.h"
#include "models/train/settings.h"
#include "test/models/gpt2/program.h"

#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <set>

/// A setting as a run is given it, and another value for the resumed run.
struct OfSetting {
  std::string flag, own, other;
};

/// Runs of one program with some settings at once, and invalid flags.
struct SettingGroup {
  std::vector<OfSetting> settings;
  std::vector<std::string> more = {};
};

/// Settings of any run, in types and ways of batching that all programs have, except those of `without`.
inline SettingGroup commonSettings(const std::set<std::string> &without = {}) {
  SettingGroup group = {{{"steps", "6", "8"},
                         {"batch", "4", "2"},
                         {"batch-tokens", "100", "90"},
                         {"accumulate", "2", "1"},
                         {"recompute", "norms", "mlp"},
                         {"loss-chunks", "2", "1"},
                         {"warmup", "2", "1"},
                         {"lr", "0.01", "0.02"},
                         {"final-lr", "0.5", "0.2"},
                         {"schedule", "linear", "cosine"},
                         {"decay", "0.2", "0.3"},
                         {"decay-on", "all", "matrices"},
                         {"beta1", "0.8", "0.7"},
                         {"beta2", "0.97", "0.96"},
                         {"epsilon", "1e-07", "1e-06"},
                         {"clip", "0.9", "0.8"},
                         {"skip-loss-z", "3", "4"},
                         {"skip-norm-z", "3.5", "4.5"},
                         {"dropout", "0.1", "0.2"},
                         {"dropout-embedding", "0.05", "0.1"},
                         {"dropout-residual", "0.05", "-1"},
                         {"dropout-activation", "0.1", "0"},
                         {"dropout-attention", "0.1", "0.2"},
                         {"dropout-kind", "plain", "inverted"},
                         {"label-smoothing", "0.1", "0.2"},
                         {"attention", "plain", "flash"},
                         {"evaluate-every", "2", "3"},
                         {"seed", "5", "6"},
                         {"precision", "ieee", "tf32"},
                         {"evaluate-sequences", "1", "2"},
                         {"evaluate-all", "1", "0"},
                         {"samples", "1", "2"},
                         {"gradient-norms", "2", "1"},
                         {"save-dtype", "bf16", "fp16"},
                         {"save-every", "2", "4"},
                         {"keep", "3", "4"},
                         {"keep-every", "3", "2"}}};
  std::erase_if(group.settings, [&](const OfSetting &setting) { return without.count(setting.flag) > 0; });
  return group;
}

/// For runs in a narrow type, which has settings of its own.
inline SettingGroup scaledSettings(std::vector<OfSetting> more = {}) {
  SettingGroup group = {
      {{"dtype", "fp16", "fp16"}, {"steps", "6", "6"}, {"loss-scale", "1024", "512"}, {"scale-window", "2", "3"}}};
  group.settings.insert(group.settings.end(), more.begin(), more.end());
  return group;
}
inline SettingGroup narrowSettings(std::vector<OfSetting> more = {}) {
  SettingGroup group = {
      {{"dtype", "bf16", "fp16"}, {"steps", "6", "6"}, {"master", "0", "1"}, {"rounding", "stochastic", "nearest"}}};
  group.settings.insert(group.settings.end(), more.begin(), more.end());
  return group;
}

/// Trains in a folder with flags.
using TrainsIn = std::function<Result(const std::string &out, const std::vector<std::string> &flags)>;

/// The losses of a run's rows, followed by validation losses.
inline std::vector<double> lossesIn(const std::string &out) {
  std::vector<double> all;
  std::istringstream lines(readText(out + "/log.jsonl"));
  for (std::string line; std::getline(lines, line);)
    for (const nlohmann::json row = nlohmann::json::parse(line); const char *name : {"loss", "val_loss"})
      if (row.contains(name))
        all.push_back(row[name]);
  return all;
}

/// Three steps of a run and three more by its own command have the bits of six. A command with other values uses these,
/// and reports which settings differ.
inline void expectSettingsGoOn(const std::string &folder, const SettingGroup &group, const TrainsIn &train) {
  namespace fs = std::filesystem;
  const std::string whole = folder + "-whole", own = folder + "-own", other = folder + "-other";
  std::vector<std::string> flags = group.more, others = group.more;
  for (const OfSetting &setting : group.settings) {
    flags.insert(flags.end(), {"--" + setting.flag, setting.own});
    others.insert(others.end(), {"--" + setting.flag, setting.other});
  }
  const auto with = [](std::vector<std::string> words, const std::vector<std::string> &more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const auto succeeds = [&](const std::string &out, const std::vector<std::string> &words) {
    const Result result = train(out, words);
    EXPECT_EQ(result.status, 0) << result.output;
    return result.output;
  };
  succeeds(whole, flags);
  succeeds(own, with(flags, {"--stop-after", "3"}));
  fs::copy(own, other, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  succeeds(own, with(flags, {"--resume"}));
  for (const char *file : {"/config.json", "/model.safetensors", "/optimizer.safetensors", "/training.json"})
    EXPECT_TRUE(readText(kiln::checkpointPath(whole, 6) + file) == readText(kiln::checkpointPath(own, 6) + file))
        << file;
  EXPECT_EQ(lossesIn(own), lossesIn(whole));

  kiln::TrainSettings want = kiln::readRunState(kiln::checkpointPath(other, 3)).settings;
  const std::string said = succeeds(other, with(others, {"--resume", "--stop-after", "4"}));
  for (const OfSetting &setting : group.settings) {
    for (const kiln::Setting &each : kiln::settingTable())
      if (each.flag == setting.flag)
        each.take(want, setting.other);
    EXPECT_EQ(said.find("--" + setting.flag + " is " + setting.other + " from here on") != std::string::npos,
              setting.own != setting.other)
        << setting.flag << " in\n"
        << said;
  }
  const kiln::TrainSettings got = kiln::readRunState(kiln::checkpointPath(other, 4)).settings;
  EXPECT_EQ(kiln::settingsJson(got).dump(), kiln::settingsJson(want).dump());
}

/// As above for each group; together they have every setting except those named by `refused`. With a value of these, a
/// new run and a resumed one are an error with the given text.
inline void expectEverySettingGoesOn(const std::string &folder, const std::vector<SettingGroup> &groups,
                                     const std::vector<OfSetting> &refused, const TrainsIn &train) {
  std::set<std::string> all;
  for (const kiln::Setting &setting : kiln::settingTable())
    all.insert(setting.flag);
  for (size_t i = 0; i < groups.size(); ++i) {
    SCOPED_TRACE(i);
    expectSettingsGoOn(fmt::format("{}/group-{}", folder, i), groups[i], train);
    for (const OfSetting &setting : groups[i].settings)
      all.erase(setting.flag);
  }
  for (const auto &[flag, value, message] : refused) {
    all.erase(flag);
    for (const std::string &out : {folder + "/group-0-own", folder + "/none"}) {
      std::vector<std::string> words = {"--" + flag, value};
      if (out.ends_with("own"))
        words.emplace_back("--resume");
      const Result result = train(out, words);
      EXPECT_EQ(result.status, 2) << result.output;
      EXPECT_NE(result.output.find(message), std::string::npos) << result.output;
    }
  }
  EXPECT_EQ(all, std::set<std::string>()) << "these settings are in no group";
}
