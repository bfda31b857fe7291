// The command line: valid options, and the errors for invalid ones.

#include "models/data/json.h"
#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/train/setting_table.h"
#include "models/train/settings.h"
#include "test/expect_error.h"

#include <fmt/format.h>
#include <set>

using namespace kiln;

namespace {

std::optional<Command> parse(std::vector<const char *> words) {
  words.insert(words.begin(), "gpt2");
  return parseCommand(static_cast<int>(words.size()), words.data());
}

TEST(Options, TrainTakesItsFlags) {
  const auto command =
      parse({"train", "--data", "d", "--out", "o", "--model", "d2", "--lr", "0.5", "--steps", "7", "--resume"});
  const TrainOptions &o = std::get<TrainOptions>(command.value());
  EXPECT_EQ(o.data, "d");
  EXPECT_TRUE(o.resume);
  const TrainSettings s = chooseSettings(o);
  EXPECT_EQ(s.steps, 7);
  EXPECT_EQ(s.rate, 0.5);
  EXPECT_EQ(chooseModel(o.model).layers, 2);
}

TEST(Options, NumbersReplaceTheNamedSizes) {
  const auto command = parse({"info", "--model", "d12", "--vocab", "50257", "--layers", "3"});
  const Gpt2Config config = chooseModel(std::get<InfoOptions>(command.value()).model);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.vocab, 50257);
  EXPECT_EQ(config.width, 768);
}

TEST(Options, TrainTakesWeightsToBeginWith) {
  const auto command = parse({"train", "--data", "d", "--out", "o", "--init", "w"});
  EXPECT_EQ(std::get<TrainOptions>(command.value()).init, "w");
}

// A preset's name replaces the sizes of another model, and no other setting.
TEST(Options, ANameReplacesSizesAlone) {
  const Gpt2Config base = {3, 2, 64, 16, 256, f32, 0.5, false, true};
  const auto command = parse({"info", "--model", "d12"});
  const Gpt2Config config = chooseModel(std::get<InfoOptions>(command.value()).model, base);
  EXPECT_EQ(config, (Gpt2Config{12, 12, 768, 1024, 256, f32, 0.5, false, true}));
}

// A precision is one of the language's; without the flag there is none.
TEST(Options, TrainTakesAPrecision) {
  const auto settings = [](std::vector<const char *> words) {
    words.insert(words.begin(), {"train", "--data", "d", "--out", "o"});
    return chooseSettings(std::get<TrainOptions>(parse(words).value()));
  };
  EXPECT_EQ(settings({}).precision, std::nullopt);
  EXPECT_EQ(settings({"--precision", "ieee"}).precision, Precision::ieee);
  EXPECT_EQ(errorOf([&] { settings({"--precision", "fp32"}); }),
            "expected '--precision' to be one of ieee, tf32, tf32x3, bf16x3, but got 'fp32'");
}

/// The settings of `gpt2 train` with these flags, over those of a checkpoint if there is one.
TrainSettings chooseSettings(std::vector<const char *> words, const std::optional<TrainSettings> &base = {}) {
  words.insert(words.begin(), {"train", "--data", "d", "--out", "o"});
  return chooseSettings(std::get<TrainOptions>(parse(words).value()), base);
}

// The type of weights and activations, the type that updates change, and their rounding.
TEST(Options, TrainTakesTypes) {
  const TrainSettings usual = chooseSettings({}), half = chooseSettings({"--dtype", "fp16", "--loss-scale", "1024"});
  EXPECT_EQ(usual.type, f32);
  EXPECT_TRUE(usual.master);
  EXPECT_EQ(half.type, f16);
  EXPECT_EQ(half.lossScale, 1024);
  const TrainSettings alone =
      chooseSettings({"--dtype", "bf16", "--master", "0", "--rounding", "stochastic", "--save-dtype", "bf16"});
  EXPECT_EQ(alone.type, bf16);
  EXPECT_FALSE(alone.master);
  EXPECT_EQ(alone.rounding, WeightRounding::stochastic);
  EXPECT_EQ(alone.saveType, bf16);
}

// Unknown types, and flags without an effect.
TEST(Options, TypesThatDoNotFitAreAnError) {
  const std::pair<std::vector<const char *>, const char *> cases[] = {
      {{"--dtype", "f32"}, "expected '--dtype' to be fp32, bf16 or fp16, but got 'f32'; did you mean 'fp32'?"},
      {{"--dtype", "bfloat16"},
       "expected '--dtype' to be fp32, bf16 or fp16, but got 'bfloat16'; did you mean 'bf16'?"},
      {{"--save-dtype", "half"},
       "expected '--save-dtype' to be fp32, bf16 or fp16, but got 'half'; did you mean 'fp16'?"},
      {{"--master", "2"}, "expected '--master' to be 0 or 1, but got 2"},
      {{"--rounding", "up"}, "expected '--rounding' to be one of nearest, stochastic, but got 'up'"},
      {{"--dtype", "bf16", "--rounding", "stochastic"},
       "--rounding requires --master 0 and --dtype bf16 or fp16, but got --master 1 and --dtype bf16"},
      {{"--dtype", "bf16", "--loss-scale", "2"}, "--loss-scale requires --dtype fp16, but got --dtype bf16"},
      {{"--dtype", "fp16", "--loss-scale", "3"},
       "expected '--loss-scale' to be a power of two from 1 to 16777216, but got 3"},
      {{"--dtype", "fp16", "--loss-scale", "0.5"},
       "expected '--loss-scale' to be a power of two from 1 to 16777216, but got 0.5"},
      {{"--loss-chunks", "0"}, "expected '--loss-chunks' to be between 1 and 4096, but got 0"},
      {{"--recompute", "mlp:0"},
       "expected '--recompute' to have a number of blocks of at least 1 after ':', but got '0'"},
      {{"--batching", "rows"}, "expected '--batching' to be one of stream, padded, packed, but got 'rows'"},
      {{"--dtype", "fp16", "--scale-window", "-1"},
       "expected '--scale-window' to be between 0 and 1048576, but got -1"}};
  for (const auto &[words, message] : cases)
    EXPECT_EQ(errorOf([&] { chooseSettings(words); }), message);
}

// Flags of batches that have no effect in the given mode are refused by their names.
TEST(Options, FlagsOfBatchesWithoutEffectAreAnError) {
  const std::pair<std::vector<const char *>, const char *> cases[] = {
      {{"--pack", "0.5"}, "--pack requires --batching packed, but got --batching stream"},
      {{"--batching", "padded", "--positions", "run-on"},
       "--positions requires --batching packed, but got --batching padded"},
      {{"--batching", "packed", "--order", "llmc"}, "--order requires --batching stream, but got --batching packed"},
      {{"--batch-tokens", "100"},
       "--batch-tokens requires pairs of lines as data (translate); --batch sets the size of a micro-batch"}};
  for (const auto &[words, message] : cases)
    EXPECT_EQ(errorOf([&] { chooseSettings(words); }), message);
  EXPECT_NO_THROW(chooseSettings({"--batching", "packed", "--pack", "0.5", "--positions", "run-on"}));
  EXPECT_NO_THROW(chooseSettings({"--order", "llmc"}));
}

// A checkpoint restores all of them; one from before types existed is all f32.
TEST(Options, TypesComeBackFromACheckpoint) {
  const TrainSettings s = chooseSettings({"--dtype", "fp16", "--master", "0", "--rounding", "stochastic",
                                          "--loss-scale", "16", "--scale-window", "7", "--save-dtype", "fp16"});
  nlohmann::json json = settingsJson(s);
  const TrainSettings got = settingsFrom(JsonObject("settings", json.dump()));
  EXPECT_EQ(settingsJson(got), settingsJson(s));
  EXPECT_EQ(got.type, f16);
  json.erase("dtype");
  EXPECT_EQ(settingsFrom(JsonObject("settings", json.dump())).type, f32);
}

TEST(Options, FormerNamesInFilesAreRead) {
  nlohmann::ordered_json json = settingsJson({});
  json.erase("gradient_norms");
  json["group_norms"] = 7;
  json["decay_on"] = "seed001";
  const TrainSettings got = settingsFrom(JsonObject("settings", json.dump()));
  EXPECT_EQ(got.gradientNorms, 7);
  EXPECT_EQ(got.decayOn, DecayOn::nonzero);
}

/// A text that a setting accepts and that is none of its usual values.
std::string unusual(const Setting &setting, const TrainSettings &usual) {
  for (const char *text : {"2", "0", "1", "0.5", "tf32", "bf16", "stochastic", "padded", "plain", "linear", "all",
                           "run-on", "llmc", "norms"}) {
    TrainSettings s = usual;
    const bool taken = [&] {
      try {
        setting.take(s, text);
        verify(s);
        return true;
      } catch (const Error &) {
        return false;
      }
    }();
    if (taken && setting.json(s) != setting.json(usual))
      return text;
  }
  ADD_FAILURE() << "no text for '" << setting.flag << "'";
  return "";
}

// For each setting of the table: its flag changes it alone, a checkpoint restores it, no two share a name, and the
// error for an invalid text has the flag's name.
TEST(Options, EverySettingIsTakenAndKept) {
  TrainSettings usual = gpt2Named("nano").settings;
  usual.warmup = 0; // which may be no more than the steps
  std::set<std::string> names;
  for (const Setting &setting : settingTable()) {
    EXPECT_TRUE(names.insert(setting.flag).second) << setting.flag;
    EXPECT_FALSE(setting.help.empty()) << setting.flag;
    TrainSettings s = usual;
    setting.take(s, unusual(setting, usual));
    const nlohmann::ordered_json was = settingsJson(usual), is = settingsJson(s);
    ASSERT_EQ(was.size(), settingTable().size());
    for (const auto &[field, value] : is.items())
      EXPECT_EQ(value != was.at(field), field == setting.field) << setting.flag << " " << field;
    EXPECT_EQ(settingsJson(settingsFrom(JsonObject("settings", is.dump()))), is) << setting.flag;
    const std::string text = errorOf([&] { setting.take(s, "a text"); });
    EXPECT_NE(text.find(setting.flag), std::string::npos) << text;
  }
}

// A norm that may be any is not clipped.
TEST(Options, AClipOfNothingIsTaken) {
  EXPECT_EQ(chooseSettings({"--clip", "0"}).clip, 0);
  EXPECT_EQ(errorOf([] { chooseSettings({"--clip", "-1"}); }), "expected '--clip' to be at least 0, but got -1");
}

// Settings without a flag are unchanged in a resumed run.
TEST(Options, ResumingKeepsWhatIsNotGiven) {
  const auto command = parse({"train", "--data", "d", "--out", "o", "--steps", "20", "--resume"});
  TrainSettings before = gpt2Named("d2").settings;
  before.rate = 0.125;
  before.steps = 10;
  before.warmup = 7;
  const TrainSettings s = chooseSettings(std::get<TrainOptions>(command.value()), before);
  EXPECT_EQ(s.rate, 0.125);
  EXPECT_EQ(s.steps, 20);
  EXPECT_EQ(s.warmup, 7);
}

/// A command line of `gpt2 train` with its two required flags.
std::vector<const char *> training(std::vector<const char *> more) {
  more.insert(more.begin(), {"train", "--data", "d", "--out", "o"});
  return more;
}

// An unknown flag or command suggests the nearest one of its command, or nothing if none is near, also where the
// misspelt one is required. A missing flag or value, and a text that is no number of the flag's kind, are named.
TEST(Options, MistakesAreNamed) {
  const std::pair<std::vector<const char *>, std::string> cases[] = {
      {training({"--accumlate", "2"}), "unknown flag '--accumlate'; did you mean '--accumulate'?"},
      {{"train", "--dta", "d", "--out", "o"}, "unknown flag '--dta'; did you mean '--data'?"},
      {{"info", "--zzzzzzzzzz"}, "unknown flag '--zzzzzzzzzz'; see --help"},
      {training({"--drop-path"}), "unknown flag '--drop-path'; see --help"},
      {training({"--cat"}), "unknown flag '--cat'; see --help"},
      {training({"--use-ema"}), "unknown flag '--use-ema'; see --help"},
      {{"sample", "--out", "o", "--learning-rate", "1"}, "unknown flag '--learning-rate'; see --help"},
      {{"trian"}, "unknown command 'trian'; did you mean 'train'?"},
      {{}, "expected a command out of train, sample, eval, test, info, plot, import, export, profile; see --help"},
      {{"train", "--data", "d"}, "expected the flag '--out', but it is missing (folder for"},
      {training({"--steps"}), "expected a value after '--steps', but there is none"},
      {training({"--steps", "many"}), "expected '--steps' to be a whole number, but got 'many'"},
      {training({"--lr", "0.1x"}), "expected '--lr' to be a number, but got '0.1x'"},
      {{"sample", "--out", "o", "--tokens", "2.5"}, "expected '--tokens' to be a whole number, but got '2.5'"},
      {training({"--steps", "9223372036854775808"}),
       "expected '--steps' to be a whole number that fits into 64 bits, but got '9223372036854775808'"},
      {training({"--lr", "inf"}), "expected '--lr' to be a finite number, but got 'inf'"},
      {training({"--seed", "-1"}), "expected '--seed' to be a whole number from 0, but got '-1'"},
      {{"sample", "--out", "o", "--seed", "-1"}, "expected '--seed' to be a whole number from 0, but got '-1'"}};
  for (const auto &[words, message] : cases)
    expectError([&] { parse(words); }, {message});
}

// The flags of nanoGPT, llm.c and Hugging Face's trainer lead to ours, in either spelling.
TEST(Options, TheNamesOfOtherTrainersLeadToOurs) {
  const std::pair<const char *, const char *> names[] = {{"--batch-size", "--batch"},
                                                         {"--group-norms", "--gradient-norms"},
                                                         {"--batch_size=12", "--batch"},
                                                         {"--learning-rate", "--lr"},
                                                         {"--block-size", "--context"},
                                                         {"--seq-len", "--context"},
                                                         {"--eval-interval", "--evaluate-every"},
                                                         {"--max_iters", "--steps"},
                                                         {"--weight-decay", "--decay"},
                                                         {"--grad-clip", "--clip"},
                                                         {"--warmup-iters", "--warmup"},
                                                         {"--gradient-accumulation-steps", "--accumulate"},
                                                         {"--n_layer", "--layers"},
                                                         {"--n_head", "--heads"},
                                                         {"--n_embd", "--width"},
                                                         {"--epochs", "--steps"},
                                                         {"--out-dir", "--out"}};
  for (const auto &[theirs, ours] : names)
    expectError([&] { parse({"train", "--data", "d", "--out", "o", theirs, "12"}); },
                {fmt::format("; did you mean '{}'?", ours)});
}

TEST(Options, TheLargestSeedIsTaken) {
  const auto command = parse({"train", "--data", "d", "--out", "o", "--seed", "18446744073709551615"});
  EXPECT_EQ(chooseSettings(std::get<TrainOptions>(command.value())).seed, UINT64_MAX);
}

TEST(Options, TheLastOfAFlagCounts) {
  const auto command = parse({"train", "--data", "d", "--out", "o", "--steps", "3", "--steps", "4"});
  EXPECT_EQ(chooseSettings(std::get<TrainOptions>(command.value())).steps, 4);
}

TEST(Options, HeadsThatDoNotDivideTheWidthAreAnError) {
  const auto command = parse({"info", "--heads", "7"});
  expectError([&] { chooseModel(std::get<InfoOptions>(command.value()).model); },
              {"expected the number of heads to divide the width, but got 7"});
}

} // namespace
