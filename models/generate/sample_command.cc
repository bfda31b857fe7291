// The flags of text generation, and the sampling loop.

#include "models/generate/sample_command.h"
#include "models/data/random.h"
#include "models/data/text.h"
#include "models/train/flags.h"
#include "runtime/Streams.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fmt/format.h>

namespace kiln {

//===-- Options -------------------------------------------------------------------------------------------------===//

void addGenerationFlags(CLI::App *app, GenerationOptions &o, const std::string &unit, const std::string &without) {
  app->add_option("--prompt", o.prompt, "text to continue (" + without + ")");
  app->add_option("--prompt-file", o.promptFile, "file with the text to continue; '-' is standard input");
  addNumber<int64_t>(app, "--" + unit + "s", o.tokens, unit + "s to write, at most")->capture_default_str();
  addNumber<int64_t>(app, "--num", o.texts, "texts to generate, as one batch")->capture_default_str();
  addNumber<double>(app, "--temperature", o.sampling.temperature, "0: always the likeliest " + unit)
      ->capture_default_str();
  addNumber<int64_t>(app, "--top-k", o.sampling.topK, "choose among the k most likely (0: all)")->capture_default_str();
  addNumber<double>(app, "--top-p", o.sampling.topP, "choose among the most likely, whose probabilities add up to this")
      ->capture_default_str();
  addNumber<double>(app, "--min-p", o.sampling.minP,
                    "choose among those with at least this share of the highest probability")
      ->capture_default_str();
  addNumber<double>(app, "--repetition-penalty", o.sampling.repetitionPenalty,
                    "divides the logits of tokens that the text has already (1: none)")
      ->capture_default_str();
  app->add_option("--stop", o.stops, "end before this text, which is not printed; may be given several times")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  addNumber<uint64_t>(app, "--seed", o.seed, "seed of the draws")->capture_default_str();
  app->add_flag("--speed", o.speed, "print the speed on standard error");
}

void verify(const GenerationOptions &o) {
  if (o.tokens < 1)
    throw Error(fmt::format("expected '--tokens' to be at least 1, but got {}", o.tokens));
  if (o.texts < 1)
    throw Error(fmt::format("expected '--num' to be at least 1, but got {}", o.texts));
  if (o.prompt && o.promptFile)
    throw Error("--prompt and --prompt-file exclude each other");
  if (std::any_of(o.stops.begin(), o.stops.end(), [](const std::string &stop) { return stop.empty(); }))
    throw Error("expected '--stop' to be a text of at least one byte, but got an empty one");
  verify(o.sampling);
}

//===-- Streamed text -------------------------------------------------------------------------------------------===//

/// Length of the UTF-8 character that begins with this byte; 0 if none does.
static size_t utf8Length(unsigned char first) {
  return first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
}

/// Bytes of an incomplete character at the end of a text.
static size_t unfinished(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) != 0x80) // not a continuation byte
      return utf8Length(byte) > back ? back : 0;
  }
  return 0;
}

size_t TextStream::held() const {
  size_t most = unfinished(waiting);
  for (const std::string &stop : stops)
    for (size_t n = std::min(stop.size() - 1, waiting.size()); n > most; --n)
      if (waiting.ends_with(std::string_view(stop).substr(0, n)))
        most = n;
  return most;
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped)
    return {};
  waiting += bytes;
  size_t end = std::string::npos;
  for (const std::string &stop : stops)
    end = std::min(end, waiting.find(stop));
  if (end != std::string::npos) {
    stopped = true;
    waiting.resize(end);
    return finish();
  }
  const size_t shown = waiting.size() - held();
  const std::string text = waiting.substr(0, shown);
  waiting.erase(0, shown);
  return text;
}

std::string TextStream::finish() {
  std::string rest;
  rest.swap(waiting);
  return rest;
}

//===-- The command ---------------------------------------------------------------------------------------------===//

static std::string readPrompt(const GenerationOptions &o) {
  if (!o.promptFile)
    return o.prompt.value_or("");
  const std::vector<uint8_t> bytes = readWholeText(*o.promptFile == "-" ? "/dev/stdin" : *o.promptFile);
  return {bytes.begin(), bytes.end()};
}

namespace {
/// A text in progress.
struct GrowingText {
  TextStream stream;
  std::vector<int32_t> tokens;
  std::string shown; // the text, unless it is streamed
  bool isFinished = false;
};
} // namespace

void write(const std::string &program, const std::function<Generator(Generator::Options)> &make, const TextForm &form,
           const GenerationOptions &o) {
  verify(o);
  const std::string prompt = readPrompt(o);
  const std::vector<int32_t> begin = form.encode(prompt);
  // In vocabularies whose words' last token includes the following space, the continuation begins after a space.
  const bool lacksSpace =
      !prompt.empty() && !std::isspace(static_cast<unsigned char>(prompt.back())) && form.decode(begin).ends_with(' ');
  if (begin.empty() && !form.beginsAlone)
    throw Error("expected a prompt of at least one byte, but got an empty one");
  int64_t restarts = 0;
  Generator generator = make({.sequences = o.texts, .restarts = [&] { ++restarts; }});
  std::vector<GrowingText> texts(o.texts, {TextStream(o.stops), begin, {}});
  const auto put = [&](GrowingText &text, const std::string &part) {
    if (o.texts == 1)
      writeResult(part);
    else
      text.shown += part;
  };
  for (int64_t s = 0; s < o.texts; ++s) {
    generator.append(s, begin);
    put(texts[s], lacksSpace ? prompt + " " : prompt);
  }
  const Random random(o.seed, Stream::sampling);
  int64_t written = 0;
  std::chrono::duration<double> reading{}, writing{};
  for (int64_t i = 0; i < o.tokens; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const std::vector<std::vector<float>> logits = generator.next();
    (i == 0 ? reading : writing) += std::chrono::steady_clock::now() - start;
    for (int64_t s = 0; s < o.texts; ++s) {
      GrowingText &text = texts[s];
      if (text.isFinished)
        continue;
      const std::span<const float> known = std::span(logits[s]).first(form.size);
      const double uniform = random.uniform(static_cast<uint64_t>(i) + (static_cast<uint64_t>(s) << 32));
      const auto token = static_cast<int32_t>(sampleToken(known, text.tokens, o.sampling, uniform));
      text.isFinished = std::find(form.ends.begin(), form.ends.end(), token) != form.ends.end();
      if (!text.isFinished) {
        ++written;
        text.tokens.push_back(token);
        put(text, text.stream.push(form.decode({&token, 1})));
        text.isFinished = text.stream.isStopped();
      }
      if (!text.isFinished)
        generator.append(s, {&token, 1});
    }
    if (std::all_of(texts.begin(), texts.end(), [](const GrowingText &text) { return text.isFinished; }))
      break;
  }
  for (GrowingText &text : texts) {
    put(text, text.stream.finish() + "\n");
    if (o.texts > 1)
      writeResult(text.shown + "---------------\n");
  }
  if (restarts > 0)
    say(program + ": a text became longer than the model's context; it continued from the last half of it\n");
  if (o.speed)
    say(fmt::format(
        "{}: {} tokens read and the first logits in {:.3f} s, {} tokens written, {:.2f} ms per decoding step\n",
        program, std::ssize(begin) * o.texts, reading.count(), written,
        1e3 * writing.count() / std::max<double>(1, static_cast<double>(written / o.texts - 1))));
}

} // namespace kiln
