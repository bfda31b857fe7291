// Sizes, counts and the learning-rate schedule.

#include "models/data/json.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace kiln;

namespace {

TEST(Gpt2Config, HeadsMustDivideTheWidth) {
  expectError([] { verify(Gpt2Config{2, 5, 64, 8, 256}); },
              {"expected the number of heads to divide the width, but got 5 heads and width 64"});
}

TEST(Gpt2Config, SizesMustBePositive) {
  expectError([] { verify(Gpt2Config{0, 4, 64, 8, 256}); }, {"expected 'layers' to be at least 1, but got 0"});
}

// The error for a former name has the new one.
TEST(Gpt2Config, AnUnknownNameListsTheKnownOnes) {
  expectError([] { gpt2Named("seed001"); }, {"unknown model 'seed001'; did you mean 'annotated'?"});
  expectError([] { gpt2Named("seed004_small"); }, {"unknown model 'seed004_small'; did you mean 'mlp-first-small'?"});
  expectError([] { gpt2Named("gpt2"); }, {"unknown model 'gpt2'; did you mean 'd12'?"});
  expectError([] { gpt2Named("d13"); }, {"unknown model 'd13'; did you mean 'd12'? (known: nano, d2"});
}

// OpenAI's small model, with its vocabulary, has 124 439 808 parameters.
TEST(Gpt2Config, CountsTheParametersOfGpt2) {
  Gpt2Config config = gpt2Named("d12").config;
  config.vocab = 50257;
  EXPECT_EQ(parameterCount(config), 124439808);
}

// The count by formula is that of the tensors, and all named models are well formed.
TEST(Gpt2Config, FormulaAndTensorsAgree) {
  for (const char *name : {"nano", "d2", "d4", "annotated-small", "mlp-first-small"}) {
    const Network network(gpt2Named(name).config);
    int64_t count = 0;
    for (const Parameter &p : network.parameters().all())
      count += p.count();
    EXPECT_EQ(count, parameterCount(network.config())) << name;
  }
  for (const std::string &name : gpt2Names())
    EXPECT_NO_THROW(verify(gpt2Named(name).config)) << name;
}

// A packed sequence of documents of 3 and 5 tokens. GEMMs with 3660 weights take 6 · 8 · 3660 operations for 8 tokens.
// Attention takes 6 · 2 · 12 for each pair of positions in the two squares, 9 + 25 of 64. One document of full length
// costs as much as a sequence of a stream; padding sees nothing.
TEST(Gpt2Config, CountsOperationsOfPackedDocuments) {
  const Network network(Gpt2Config{2, 2, 12, 8, 17});
  const auto operations = [&](const std::vector<int32_t> &lengths) {
    std::vector<int32_t> ranges;
    int32_t begin = 0;
    for (const int32_t length : lengths) {
      for (int32_t i = 0; i < length; ++i)
        ranges.insert(ranges.end(), {begin, begin + i + 1});
      begin += length;
    }
    ranges.resize(16, begin);
    return network.countFlops({{"ranges", ranges}}, {1, 8});
  };
  EXPECT_EQ(operations({3, 5}), 6 * 8 * 3660 + 144 * (9 + 25));
  EXPECT_EQ(operations({3}), 6 * 8 * 3660 + 144 * 9);
  EXPECT_EQ(operations({8}), network.flops({1, 8}));
  EXPECT_EQ(network.countFlops({}, {1, 8}), 6 * 8 * 3660 + 144 * 64);
}

// Matrices come first in the flat buffers and all others after them; no two overlap.
TEST(ParameterList, DecayedTensorsComeFirst) {
  const Network network(Gpt2Config{2, 2, 12, 8, 17});
  const ParameterList &list = network.parameters();
  int64_t end = 0;
  std::vector<Parameter> byOffset = list.all();
  std::sort(byOffset.begin(), byOffset.end(),
            [](const Parameter &a, const Parameter &b) { return a.offset < b.offset; });
  for (const Parameter &p : byOffset) {
    EXPECT_GE(p.offset, end) << p.name;
    EXPECT_EQ(p.offset % 64, 0) << p.name;
    EXPECT_EQ(p.offset < list.decayedCount(), p.shape.size() == 2) << p.name;
    end = p.offset + p.count();
  }
  EXPECT_LE(end, list.count());
}

TEST(Gpt2Config, TextNeedsBytes) {
  EXPECT_NO_THROW(verifyBytes(gpt2Named("nano").config));
  for (const int64_t vocab : {255, 257, 50257})
    expectError([&] { verifyBytes({4, 4, 64, 8, vocab}); },
                {"expected a vocabulary of 256 for text as bytes, but got " + std::to_string(vocab)});
}

// Every preset is nearest to itself. A size between two presets is nearest to the one with the smaller ratio of
// parameters.
TEST(Gpt2Config, FindsTheNearestName) {
  for (const char *name : {"nano", "d2", "d4", "d6", "d8", "d12", "d24", "d36", "d48"})
    EXPECT_EQ(nearestGpt2(gpt2Named(name).config), name);
  EXPECT_EQ(nearestGpt2({12, 12, 700, 1024}), "d12");
  EXPECT_EQ(nearestGpt2({1, 1, 4, 8}), "d2");
}

// A typing error is reported before it allocates all memory.
TEST(Gpt2Config, SizesBeyondReasonAreAnError) {
  expectError([] { verify(Gpt2Config{1001, 4, 64, 8, 256}); }, {"expected 'layers' to be at most 1000, but got 1001"});
  expectError([] { verify(Gpt2Config{2, 4, int64_t{1} << 62, 8, 256}); },
              {"expected 'width' to be at most 1048576, but got 4611686018427387904"});
  expectError([] { verify(TrainSettings{.batch = 1048577}); },
              {"expected '--batch' to be at most 1048576, but got 1048577"});
}

TrainSettings tenSteps() {
  TrainSettings s;
  s.steps = 10;
  s.warmup = 4;
  s.rate = 1;
  s.finalRate = 0.1;
  return s;
}

TEST(LearningRate, RisesLinearly) {
  for (int step = 0; step < 4; ++step)
    EXPECT_DOUBLE_EQ(learningRate(tenSteps(), step), (step + 1) / 4.0);
}

// After the warm-up it begins at the top, never rises, and ends at its share.
TEST(LearningRate, FallsToItsShare) {
  EXPECT_DOUBLE_EQ(learningRate(tenSteps(), 4), 1);
  for (int step = 5; step < 10; ++step)
    EXPECT_LT(learningRate(tenSteps(), step), learningRate(tenSteps(), step - 1));
  EXPECT_NEAR(learningRate(tenSteps(), 9), 0.1, 1e-15);
}

// The formulas of the other schedules, halfway and at both ends: 6 steps after the warm-up they reach the final share.
TEST(LearningRate, FallsAsTheScheduleSays) {
  TrainSettings s = tenSteps();
  s.schedule = Schedule::cosine;
  EXPECT_DOUBLE_EQ(learningRate(s, 4), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 7), 0.55);
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::linear;
  EXPECT_DOUBLE_EQ(learningRate(s, 5), 1 - 0.9 / 6);
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::wsd; // the last two of ten steps
  EXPECT_DOUBLE_EQ(learningRate(s, 7), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 8), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 9), 0.1 + 0.9 * (1 - std::sqrt(0.5)));
  s.schedule = Schedule::exponential;
  EXPECT_DOUBLE_EQ(learningRate(s, 4), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 7), std::sqrt(0.1));
  EXPECT_DOUBLE_EQ(learningRate(s, 10), 0.1);
  s.schedule = Schedule::constant;
  EXPECT_DOUBLE_EQ(learningRate(s, 9), 1);
  EXPECT_DOUBLE_EQ(learningRate(s, 1), 0.5);
}

// The sequences of a step are the product of two sizes: it fits into 64 bits.
TEST(TrainSettings, MicroBatchesBeyondReasonAreAnError) {
  TrainSettings s = gpt2Named("nano").settings;
  s.accumulate = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(errorOf([&] { verify(s); }), "expected '--accumulate' to be at most 1048576, but got 9223372036854775807");
}

TEST(TrainSettings, OutOfRangeIsAnError) {
  TrainSettings s = tenSteps();
  s.batch = 0;
  expectError([&] { verify(s); }, {"expected '--batch' to be at least 1, but got 0"});
  s.batch = 1;
  s.beta2 = 1;
  expectError([&] { verify(s); }, {"'--beta2'", "but got 1"});
}

// --- config.json: the fields that these models write, and the fields of other models that are used, ignored or refused

using Json = nlohmann::json;

class ConfigJsonTest : public testing::Test {
protected:
  /// config.json with the sizes of a small model; `fields` may replace sizes.
  void write(const Json &fields) {
    Json json = {{"n_layer", 3}, {"n_head", 2}, {"n_embd", 8}, {"n_positions", 16}, {"vocab_size", 256}};
    json.update(fields);
    writeText(folder / "config.json", json.dump());
  }
  Gpt2Config read(const Json &fields) {
    write(fields);
    return readConfig(folder.path);
  }
  void refuse(const Json &fields, std::initializer_list<std::string> parts) {
    write(fields);
    expectError([&] { readConfig(folder.path); }, parts);
    expectError([&] { readConfig(folder.path); }, {folder / "config.json"});
  }

  const TemporaryFolder folder;
  const Gpt2Config small = {3, 2, 8, 16, 256};
};

// A checkpoint's config is read back, including the scalings.
TEST_F(ConfigJsonTest, ReadsWhatIsWritten) {
  const Gpt2Config config = {3, 2, 8, 16, 300, f32, 0x1p-30, false, true};
  writeText(folder / "config.json", configJson(config).dump());
  EXPECT_EQ(readConfig(folder.path), config);
}

// With plain dropout, evaluation multiplies by the keep probabilities. A checkpoint records that, with a model type
// that Hugging Face's library does not read, because it would not. With inverted dropout, the model does not depend on
// dropout.
TEST_F(ConfigJsonTest, SaysPlainDropout) {
  Gpt2Config config = small;
  config.dropout = {0.25, 0.5, 0.125, 0.0625, DropoutKind::plain};
  writeText(folder / "config.json", configJson(config).dump());
  EXPECT_EQ(readConfig(folder.path), config);
  EXPECT_EQ(dropoutIn(folder.path), config.dropout);
  EXPECT_EQ(Json::parse(configJson(config).dump()).at("model_type"), "kiln-gpt2");
  config.dropout.kind = DropoutKind::inverted;
  writeText(folder / "config.json", configJson(config).dump());
  EXPECT_EQ(readConfig(folder.path), small);
  EXPECT_EQ(Json::parse(configJson(config).dump()).at("model_type"), "gpt2");
  config.dropout = {.kind = DropoutKind::plain};
  EXPECT_EQ(Json::parse(configJson(config).dump()).at("model_type"), "gpt2");
}

/// GPT-2 with a layer of its own, as in chapter 12 of the tutorial.
class LongerNetwork : public Network {
public:
  explicit LongerNetwork(const Gpt2Config &config) : Network(config) {
    for (const Parameter &p : Network::parameters().all())
      list.add(p.name, p.shape, p.init, p.role);
    list.add("gain", {config.width}, {Init::Kind::ones}, Role::gain);
  }
  const ParameterList &parameters() const override { return list; }

private:
  ParameterList list;
};

// Hugging Face's library ignores tensors that its model does not have, so it must not take a model with more of them
// for GPT-2. Kiln reads the sizes all the same.
TEST_F(ConfigJsonTest, AModelWithMoreParametersIsNotHuggingFaces) {
  for (const Gpt2Config &config : {small, Gpt2Config{3, 2, 8, 16, 300, f32, 0x1p-30, false, true}}) {
    EXPECT_EQ(Network(config).configJson(f32).at("model_type"), "gpt2");
    const nlohmann::ordered_json json = LongerNetwork(config).configJson(f32);
    EXPECT_EQ(json.at("model_type"), "kiln-gpt2");
    EXPECT_FALSE(json.contains("architectures"));
    writeText(folder / "config.json", json.dump());
    EXPECT_EQ(readConfig(folder.path), config);
  }
}

// Byte models have no special tokens and no dropout. The file states both, because the library's defaults are token
// 50256 and 0.1.
TEST_F(ConfigJsonTest, SaysWhatWasTrained) {
  const Json json = Json::parse(configJson(small).dump());
  for (const char *name : {"bos_token_id", "eos_token_id"})
    EXPECT_TRUE(json.at(name).is_null()) << name;
  for (const char *name : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
    EXPECT_EQ(json.at(name), 0) << name;
  EXPECT_EQ(json.at("model_type"), "gpt2");
  EXPECT_EQ(json.at("architectures"), Json({"GPT2LMHeadModel"}));
}

// Fields that the library omits or writes as null have their defaults, and the model is Kiln's.
TEST_F(ConfigJsonTest, FieldsThatAreMissingOrNullAreTheDefaults) {
  EXPECT_EQ(read(Json::object()), small);
  EXPECT_EQ(read({{"n_inner", nullptr}, {"activation_function", nullptr}, {"unheard_of", nullptr}}), small);
}

TEST_F(ConfigJsonTest, HonoursTheScalings) {
  EXPECT_EQ(read({{"layer_norm_epsilon", 0.25}}).epsilon, 0.25);
  EXPECT_FALSE(read({{"scale_attn_weights", false}}).scalesScores);
  EXPECT_TRUE(read({{"scale_attn_by_inverse_layer_idx", true}}).scalesByLayer);
}

// Head width 4: 1/2 unless scores are not scaled, and a third of that in the third block.
TEST_F(ConfigJsonTest, ScalingsMultiply) {
  EXPECT_EQ(read(Json::object()).attentionScale(2), 0.5);
  EXPECT_EQ(read({{"scale_attn_by_inverse_layer_idx", true}}).attentionScale(2), 0.5 / 3);
  EXPECT_EQ(read({{"scale_attn_by_inverse_layer_idx", true}, {"scale_attn_weights", false}}).attentionScale(2),
            1.0 / 3);
}

// Equivalent spellings of the network's properties, and fields that do not affect it.
TEST_F(ConfigJsonTest, TakesWhatChangesNothing) {
  for (const char *fields :
       {R"({"activation_function": "gelu_pytorch_tanh"})", R"({"n_inner": 32})", R"({"n_ctx": 16})",
        R"({"dtype": "bfloat16"})", R"({"torch_dtype": "float16"})", R"({"architectures": ["GPT2Model"]})",
        R"({"reorder_and_upcast_attn": true})", R"({"attn_pdrop": 0.1})", R"({"eos_token_id": 50256})",
        R"({"_name_or_path": "gpt2"})", R"({"task_specific_params": {"text-generation": {"do_sample": true}}})"})
    EXPECT_EQ(read(Json::parse(fields)), small) << fields;
}

// Unsupported values are errors that name the field and the supported values.
TEST_F(ConfigJsonTest, RefusesWhatIsNotDone) {
  refuse({{"activation_function", "relu"}},
         {"expected field 'activation_function'", "to be gelu_new or gelu_pytorch_tanh, but got \"relu\""});
  refuse({{"model_type", "llama"}}, {"expected field 'model_type'", "to be gpt2 or kiln-gpt2, but got \"llama\""});
  refuse({{"architectures", {"GPT2LMHeadModel", "GPT2ForSequenceClassification"}}},
         {"expected field 'architectures'", "to be GPT2LMHeadModel or GPT2Model"});
  refuse({{"add_cross_attention", true}}, {"expected field 'add_cross_attention'", "to be false, but got true"});
  refuse({{"is_encoder_decoder", true}}, {"'is_encoder_decoder'", "to be false"});
  refuse({{"n_inner", 0}}, {"expected field 'n_inner'", "to be between 1 and 1048576, but got 0"});
  refuse({{"n_ctx", 8}}, {"expected field 'n_ctx'", "to be 'n_positions' of 16, but got 8"});
  refuse({{"dtype", "float8_e4m3fn"}}, {"expected field 'dtype'", "float32 or float16 or bfloat16"});
  refuse({{"torch_dtype", "int8"}}, {"expected field 'torch_dtype'"});
}

// Hugging Face has inner widths and untied heads. Other forms have a type that its library does not know, with fields
// that its models must not have.
TEST_F(ConfigJsonTest, ReadsOtherFormsThatAreWritten) {
  Gpt2Config config = small;
  config.inner = 24;
  config.tied = false;
  writeText(folder / "config.json", configJson(config).dump());
  EXPECT_EQ(readConfig(folder.path), config);
  EXPECT_EQ(configJson(config).at("model_type"), "gpt2");
  config.epsilon = 0;
  config.form = {.ddof = 1, .scalesTokens = true, .projectionBias = false, .headBias = true};
  writeText(folder / "config.json", configJson(config).dump());
  EXPECT_EQ(readConfig(folder.path), config);
  EXPECT_EQ(configJson(config).at("model_type"), "kiln-gpt2");
  refuse({{"head_bias", true}}, {"unknown field 'head_bias'"});
  Json json = Json::parse(configJson(config).dump());
  json["layer_norm_ddof"] = 2;
  writeText(folder / "config.json", json.dump());
  expectError([&] { readConfig(folder.path); }, {"expected field 'layer_norm_ddof'", "to be 0 or 1, but got 2"});
}

// An unknown field could change the model, so it is refused.
TEST_F(ConfigJsonTest, RefusesWhatIsNotKnown) {
  refuse({{"quantization_config", {{"bits", 4}}}}, {"unknown field 'quantization_config'"});
  refuse({{"hidden_size", 8}}, {"unknown field 'hidden_size'", "remove it if the model does not depend on it"});
}

// The error for another kind of model names its kind, not the first missing size.
TEST_F(ConfigJsonTest, AnotherModelIsToldByItsType) {
  writeText(folder / "config.json", R"({"model_type": "opt", "hidden_size": 8, "ffn_dim": 32})");
  expectError([&] { readConfig(folder.path); }, {"to be gpt2 or kiln-gpt2, but got \"opt\""});
}

TEST_F(ConfigJsonTest, AnotherKindOfValueIsAnError) {
  refuse({{"n_layer", "3"}}, {"expected field 'n_layer'", "to be an integer"});
  refuse({{"scale_attn_weights", 1}}, {"expected field 'scale_attn_weights'", "to be true or false, but got 1"});
  refuse({{"architectures", "GPT2Model"}}, {"expected field 'architectures'", "to be a list of texts"});
}

TEST_F(ConfigJsonTest, AnEpsilonOutOfRangeIsAnError) {
  for (const double epsilon : {0.0, -1.0, 2.0}) {
    write({{"layer_norm_epsilon", epsilon}});
    expectError([&] { readConfig(folder.path); }, {"expected LayerNorm's epsilon to be above 0 and at most 1"});
  }
}

TEST_F(ConfigJsonTest, ReadsTheDropoutThatIsAskedFor) {
  write({{"attn_pdrop", 0.25}, {"resid_pdrop", 0.5}});
  EXPECT_EQ(dropoutIn(folder.path).attention, 0.25);
  EXPECT_EQ(dropoutIn(folder.path).residual, 0.5);
  EXPECT_EQ(dropoutIn(folder.path).embedding, 0);
  write({{"embd_pdrop", 1}});
  expectError([&] { dropoutIn(folder.path); },
              {"expected field 'embd_pdrop'", "to be at least 0 and below 1, but got 1"});
}

} // namespace
