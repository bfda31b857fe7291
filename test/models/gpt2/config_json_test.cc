// config.json: the fields that these models write, and the fields of other models that are used, ignored or refused.

#include "models/data/json.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "test/expect_error.h"
#include "test/temporary_folder.h"

using namespace kiln;

namespace {

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
