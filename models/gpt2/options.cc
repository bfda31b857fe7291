// The flags of gpt2, for CLI11.

#include "models/gpt2/commands.h"
#include "models/gpt2/config.h"
#include "models/train/flags.h"
#include "models/train/settings.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln {

static constexpr const char *defaultModel = "nano";

static void addModel(CLI::App *app, ModelOptions &o) {
  const auto add = [&] {
    app->add_option("--model", o.model, fmt::format("size by name: {}", fmt::join(gpt2Names(), ", ")))
        ->default_str(defaultModel);
    addSizeFlags(app, o, "transformer blocks", "hidden channels of the MLP (4 times the width)", "positions");
    addNumber<int64_t>(app, "--vocab", o.vocab, "tokens (bytes need 256)");
    app->add_flag_callback(
        "--untied", [&o] { o.tied = false; }, "the output head has its own weight, not the token table");
  };
  addBelow(app, "Model", add);
}

static CLI::App *addTrain(CLI::App &app, TrainOptions &o) {
  CLI::App *train = app.add_subcommand("train", "train on a text");
  train
      ->add_option("--data", o.data,
                   "text file, or pattern of token files ('DATA/train_*.bin'); the last tenth is the validation set")
      ->required();
  train->add_option("--validation", o.validation, "token files of the validation set");
  train->add_option("--tokens", o.tokens,
                    "bytes, or a tokenizer: a folder, a tokenizer.json, or llm.c's .bin (that of --init or of the run, "
                    "otherwise bytes)");
  train->add_option("--init", o.init,
                    "initial weights: a run's folder, a checkpoint, a Hugging Face folder, or a safetensors file (then "
                    "flags give the sizes)");
  addModel(train, o.model);
  addSettingFlags(train, o, defaultModel, gpt2Named(defaultModel).settings);
  addRunFlags(train, o);
  return train;
}

static CLI::App *addSample(CLI::App &app, SampleOptions &o) {
  CLI::App *sample = app.add_subcommand("sample", "generate text with a trained model");
  sample->add_option("--out,--model-dir", o.folder, "a run's folder, a checkpoint, or a Hugging Face folder")
      ->required();
  addGenerationFlags(sample, o.writing, "token", "without: a new line");
  sample->add_option("--dtype", o.dtype, "type of weights and activations: fp32, bf16, fp16 (fp32)");
  addMachineFlags(sample, o.machine);
  return sample;
}

static CLI::App *addEval(CLI::App &app, EvalOptions &o) {
  CLI::App *eval = app.add_subcommand("eval", "loss and accuracy of a trained model on a text, and HellaSwag");
  eval->add_option("--out,--model-dir", o.folder, "a run's folder, a checkpoint, or a Hugging Face folder")->required();
  eval->add_option("--data", o.data, "text file, or token files; the last tenth is evaluated");
  eval->add_option("--validation", o.validation, "token files to evaluate instead");
  addSettingFlags(eval, o.batching, {"batching", "pack", "positions"});
  eval->add_option("--hellaswag", o.hellaSwag,
                   "tasks: six lines each, or JSON lines (.jsonl); also compressed (.gz, .bz2)");
  addNumber<int64_t>(eval, "--tasks", o.tasks, "number of tasks, from the first on (0: all)")->capture_default_str();
  eval->add_option("--scores", o.scores, "file for the losses of each task's endings, in JSON lines");
  addNumber<int64_t>(eval, "--batch", o.batch, "sequences in a micro-batch; a task has four")->capture_default_str();
  eval->add_option("--dtype", o.dtype, "type of weights and activations: fp32, bf16, fp16 (fp32)");
  addMachineFlags(eval, o.machine);
  return eval;
}

static CLI::App *addTest(CLI::App &app, TestOptions &o) {
  CLI::App *test =
      app.add_subcommand("test", "compare a device with another, or with llm.c: logits, loss and every gradient");
  addModel(test, o.model);
  test->add_option("--against", o.against,
                   "device to compare with; or differences: each gradient is compared with differences of the loss, "
                   "which finds a wrong formula")
      ->capture_default_str();
  test->add_option("--dtype", o.dtype, "type of weights and activations: fp32, bf16, fp16");
  addNumber<int64_t>(test, "--batch", o.batch, "sequences")->capture_default_str();
  addNumber<uint64_t>(test, "--seed", o.seed, "seed of random weights and tokens")->capture_default_str();
  CLI::Option *const model = test->add_option("--llmc", o.llmc, "compare with llm.c on its model (gpt2_124M.bin)");
  CLI::Option *const state =
      test->add_option("--debug-state", o.debugState,
                       "llm.c's debug state of it, with which it is compared (gpt2_124M_debug_state.bin)");
  model->needs(state);
  state->needs(model);
  addMachineFlags(test, o.machine);
  return test;
}

static CLI::App *addInfo(CLI::App &app, InfoOptions &o) {
  CLI::App *info = app.add_subcommand("info", "parameters, memory plan and FLOPs of a step");
  addModel(info, o.model);
  addMemoryFlags(info, o.settings, defaultModel, gpt2Named(defaultModel).settings);
  addBudgetFlag(info, o.memory);
  info->add_flag("--buffers", o.buffers, "list every buffer of the memory plan");
  info->add_flag("--launches", o.launches,
                 "list every launch of a micro-batch's gradient, with its operations and bytes");
  addNumber<int64_t>(info, "--ranks", o.ranks,
                     "ranks of a data-parallel run: prints the memory and the traffic of one rank")
      ->capture_default_str();
  info->add_option_function<std::string>(
          "--bandwidth", [&](const std::string &text) { o.bandwidth = budgetNamed("--bandwidth", text); },
          "bandwidth of a rank in bytes per second, such as 10GB (auto: an assumed network)")
      ->type_name("SIZE");
  addMachineFlags(info, o.machine);
  return info;
}

static CLI::App *addProfile(CLI::App &app, ProfileOptions &o) {
  CLI::App *profile = app.add_subcommand("profile", "profile a step: time by kernel and by part of the model");
  addModel(profile, o.model);
  addMemoryFlags(profile, o.settings, defaultModel, gpt2Named(defaultModel).settings);
  addNumber<int64_t>(profile, "--steps", o.steps, "steps to profile, after one that compiles")->capture_default_str();
  profile->add_option("--trace", o.trace, "file for the trace, for Perfetto");
  addMachineFlags(profile, o.machine);
  return profile;
}

static CLI::App *addImport(CLI::App &app, ImportOptions &o) {
  CLI::App *import = app.add_subcommand("import", "make a run from a model in llm.c's format");
  import->add_option("--llmc", o.model, "the model (gpt2_124M.bin, model_00018865.bin)")->required();
  import->add_option("--state", o.state, "its optimizer state (state_00018865_00000.bin)");
  import->add_option("--tokens", o.tokens, "bytes, or a tokenizer: a folder, a tokenizer.json, or llm.c's .bin");
  import->add_option("--out", o.out, "the run's folder")->required();
  return import;
}

static CLI::App *addExport(CLI::App &app, ExportOptions &o) {
  CLI::App *to = app.add_subcommand(
      "export", "write a model and its optimizer state in llm.c's format (checkpoints are Hugging Face folders)");
  to->add_option("--out,--model-dir", o.folder, "a run's folder, a checkpoint, or a Hugging Face folder")->required();
  to->add_option("--llmc", o.model, "file to write, llm.c's .bin of the model")->required();
  to->add_option("--state", o.state, "file to write, llm.c's .bin of the moments, master weights and step count");
  to->add_option("--dtype", o.dtype,
                 "type of the weights: fp32, bf16 (the run's if it is one of these, otherwise fp32)");
  return to;
}

std::optional<Command> parseCommand(int argc, const char *const *argv, const std::string &version) {
  return parseCommands<TrainOptions, SampleOptions, EvalOptions, TestOptions, InfoOptions, PlotOptions, ImportOptions,
                       ExportOptions, ProfileOptions>(
      "gpt2", "GPT-2, trained by kernels written in Kiln's tile language", version, argc, argv, addTrain, addSample,
      addEval, addTest, addInfo, addPlot, addImport, addExport, addProfile);
}

std::string nameOf(const ModelOptions &options) { return options.model.value_or(defaultModel); }

Gpt2Config chooseModel(const ModelOptions &options, const std::optional<Gpt2Config> &base) {
  const Gpt2Config named = gpt2Named(nameOf(options)).config;
  Gpt2Config config = base.value_or(named);
  if (options.model)
    takeSizes(config, named);
  replaceSizes(config, options);
  config.vocab = options.vocab.value_or(config.vocab);
  config.tied = options.tied.value_or(config.tied);
  if (options.inner && *options.inner == 4 * config.width)
    config.inner = 0; // 0 means 4 · width
  verify(config);
  return config;
}

TrainSettings chooseSettings(const TrainOptions &o, const std::optional<TrainSettings> &base) {
  expectNoBatchTokens(o);
  if (base)
    return applied(o, *base);
  TrainSettings named = gpt2Named(nameOf(o.model)).settings;
  const int64_t steps = replaced(o, named).steps; // warm-up: a tenth, or the preset's share
  named.warmup = std::min(named.warmup, std::max(steps / 10, steps * named.warmup / named.steps));
  return applied(o, named);
}

} // namespace kiln
