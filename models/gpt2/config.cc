// Checks of a config, its counts of parameters and FLOPs, and config.json.

#include "models/gpt2/config.h"
#include "models/data/json.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <sstream>

namespace kiln {

/// A larger depth is taken as a typing error.
static constexpr int64_t mostLayers = 1000;

double Gpt2Config::attentionScale(int64_t layer) const {
  return (scalesScores ? 1 / std::sqrt(static_cast<double>(headWidth())) : 1) /
         static_cast<double>(scalesByLayer ? layer + 1 : 1);
}

void verify(const Gpt2Config &config) {
  verifySizes(config, config.inner == 0 ? 1 : config.inner, mostLayers);
  expectBetween("vocab", config.vocab, largestSize);
  if (!((config.epsilon > 0 || (config.epsilon == 0 && config.form != Gpt2Form())) && config.epsilon <= 1))
    throw Error(fmt::format("expected LayerNorm's epsilon to be above 0 and at most 1, but got {}", config.epsilon));
}

void verifyBytes(const Gpt2Config &config) {
  if (config.vocab != 256)
    throw Error(fmt::format("expected a vocabulary of 256 for text as bytes, but got {}; --tokens names a tokenizer",
                            config.vocab));
}

std::string textOf(const Gpt2Config &c) {
  std::string text = fmt::format("{} layers, {} heads, width {}, context {}, vocabulary {}", c.layers, c.heads, c.width,
                                 c.context, c.vocab);
  if (c.inner != 0)
    text += fmt::format(", inner {}", c.inner);
  if (!c.tied)
    text += ", a head of its own";
  if (c.form.headBias)
    text += ", a bias of the head";
  if (!c.form.projectionBias)
    text += ", attention without biases";
  if (c.form.scalesTokens)
    text += ", tokens times the root of the width";
  if (c.form.mlpFirst)
    text += ", feed-forward layers first";
  if (c.form.ddof != 0)
    text += fmt::format(", variances over the width less {}", c.form.ddof);
  return text;
}

/// Weights of a block's GEMMs.
static int64_t blockWeights(const Gpt2Config &c) { return 4 * c.width * c.width + 2 * c.width * c.innerWidth(); }

int64_t parameterCount(const Gpt2Config &c) {
  const int64_t biases = (c.form.projectionBias ? 4 : 0) * c.width + c.innerWidth() + c.width, norms = 4 * c.width;
  const int64_t head = (c.tied ? 0 : c.vocab * c.width) + (c.form.headBias ? c.vocab : 0);
  return (c.vocab + c.context) * c.width + c.layers * (blockWeights(c) + biases + norms) + 2 * c.width + head;
}

double flopsOfStep(const Gpt2Config &c, int64_t sequences, int64_t length, double attentionShare) {
  const double tokens = static_cast<double>(sequences) * length;
  const double products = static_cast<double>(c.layers) * blockWeights(c) + static_cast<double>(c.vocab) * c.width;
  const double attention = static_cast<double>(c.layers) * c.width * length; // q·kᵀ and p·v, half of each (causal)
  return 6 * tokens * (products + attention * attentionShare);
}

//===-- config.json ---------------------------------------------------------------------------------------------===//
// The fields of config.json, named as in Hugging Face's GPT2Config: those that define the model, those that must have
// the one value that is supported, and those that do not affect the model.

using Names = std::vector<std::string>;

/// The model_type of variants that Hugging Face's library does not have, and their fields.
static const std::string ownType = "kiln-gpt2";
static const Names formFields = {"layer_norm_ddof", "scale_embeddings", "attention_bias", "head_bias",
                                 "mlp_first",       "lecun_init",       "dropout_kind",   "mlp_pdrop"};

/// Whether the model was trained with plain dropout (no scaling in training), so that evaluation multiplies by the keep
/// rate. Hugging Face's models do not.
static bool scalesInEvaluation(const DropoutOptions &d) {
  return d.kind == DropoutKind::plain && (d.embedding > 0 || d.residual > 0 || d.activation > 0 || d.attention > 0);
}

nlohmann::ordered_json configJson(const Gpt2Config &c, Type saved, bool hasMore) {
  const bool isHuggingFaces = c.form == Gpt2Form() && !scalesInEvaluation(c.dropout) && !hasMore;
  nlohmann::ordered_json json = {{"model_type", isHuggingFaces ? "gpt2" : ownType},
                                 {"activation_function", "gelu_new"},
                                 {"layer_norm_epsilon", c.epsilon},
                                 {"scale_attn_weights", c.scalesScores},
                                 {"scale_attn_by_inverse_layer_idx", c.scalesByLayer},
                                 {"n_layer", c.layers},
                                 {"n_head", c.heads},
                                 {"n_embd", c.width},
                                 {"n_inner", c.inner == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(c.inner)},
                                 {"n_positions", c.context},
                                 {"n_ctx", c.context},
                                 {"vocab_size", c.vocab},
                                 {"tie_word_embeddings", c.tied},
                                 {"attn_pdrop", c.dropout.attention},
                                 {"embd_pdrop", c.dropout.embedding},
                                 {"resid_pdrop", c.dropout.residual},
                                 {"bos_token_id", nullptr},
                                 {"eos_token_id", nullptr},
                                 {"torch_dtype", saved == bf16  ? "bfloat16"
                                                 : saved == f16 ? "float16"
                                                                : "float32"}};
  if (isHuggingFaces)
    json["architectures"] = {"GPT2LMHeadModel"};
  else
    json.update({{"layer_norm_ddof", c.form.ddof},
                 {"scale_embeddings", c.form.scalesTokens},
                 {"attention_bias", c.form.projectionBias},
                 {"head_bias", c.form.headBias},
                 {"mlp_first", c.form.mlpFirst},
                 {"lecun_init", c.form.lecunInit}});
  if (scalesInEvaluation(c.dropout))
    json.update({{"dropout_kind", "plain"}, {"mlp_pdrop", c.dropout.activation}});
  return json;
}

// --- Reading --------------------------------------------------------------------------------------------------------

static Names splitWords(const std::string &text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

/// Fields that define the model.
static const Names made =
    splitWords(R"(n_layer n_head n_embd n_positions vocab_size layer_norm_epsilon scale_attn_weights
  scale_attn_by_inverse_layer_idx n_inner n_ctx tie_word_embeddings)");

static const Names dropouts = {"attn_pdrop", "embd_pdrop", "resid_pdrop"};

/// Fields that may be missing; otherwise they must have one of these texts. Weights of each type are read, and the type
/// of computations does not depend on them.
static const std::vector<std::pair<const char *, Names>> texts = {
    {"model_type", {"gpt2", ownType}},
    {"activation_function", {"gelu_new", "gelu_pytorch_tanh"}},
    {"dtype", {"auto", "float32", "float16", "bfloat16", "float64"}},
    {"torch_dtype", {"auto", "float32", "float16", "bfloat16", "float64"}},
};

/// Fields that may be missing; otherwise they must have this value.
static const std::vector<std::pair<const char *, bool>> truths = {{"add_cross_attention", false},
                                                                  {"is_encoder_decoder", false}};

static const Names architectures = {"GPT2LMHeadModel", "GPT2Model"};

/// Ignored fields: about the library, the tokenizer, other heads, the initialisation, and text generation, for which
/// `gpt2 sample` has flags. Scores are f32 with and without reorder_and_upcast_attn.
static const Names silent = splitWords(R"(
  architectures transformers_version use_cache gradient_checkpointing reorder_and_upcast_attn return_dict
  output_attentions output_hidden_states output_past torchscript use_bfloat16 tf_legacy_loss chunk_size_feed_forward
  is_decoder tie_encoder_decoder
  bos_token_id eos_token_id pad_token_id sep_token_id decoder_start_token_id tokenizer_class prefix
  id2label label2id num_labels problem_type finetuning_task task_specific_params predict_special_tokens n_special
  summary_activation summary_first_dropout summary_proj_to_labels summary_type summary_use_proj
  initializer_range
  max_length min_length do_sample early_stopping num_beams num_beam_groups diversity_penalty temperature top_k top_p
  typical_p repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids
  num_return_sequences output_scores return_dict_in_generate forced_bos_token_id forced_eos_token_id
  remove_invalid_values exponential_decay_length_penalty suppress_tokens begin_suppress_tokens)");

static bool contains(const Names &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether `name` is in none of the lists above.
static bool isUnknown(const std::string &name, bool isOwn) {
  const auto named = [&](const auto &entry) { return entry.first == name; };
  return name.front() != '_' && !(isOwn && contains(formFields, name)) && !contains(made, name) &&
         !contains(dropouts, name) && !contains(silent, name) && std::none_of(texts.begin(), texts.end(), named) &&
         std::none_of(truths.begin(), truths.end(), named);
}

static void verifyTexts(const JsonObject &json) {
  for (const auto &[name, values] : texts)
    if (json.has(name) && !contains(values, json.text(name)))
      json.reject(name, fmt::format("{}", fmt::join(values, " or ")));
  if (json.has("architectures"))
    for (const std::string &name : json.textList("architectures"))
      if (!contains(architectures, name))
        json.reject("architectures", fmt::format("{}", fmt::join(architectures, " or ")));
}

static void verifyTruths(const JsonObject &json) {
  for (const auto &[name, value] : truths)
    if (json.has(name) && json.truth(name) != value)
      json.reject(name, fmt::format("{}", value));
}

/// Sizes that depend on other sizes.
static void verifySizes(const JsonObject &json) {
  if (json.has("n_ctx") && json.integer("n_ctx") != json.integer("n_positions"))
    json.reject("n_ctx", fmt::format("'n_positions' of {}", json.integer("n_positions")));
}

static void verifyNames(const JsonObject &json, const std::string &path, bool isOwn) {
  for (const std::string &name : json.names())
    if (json.has(name) && isUnknown(name, isOwn))
      throw Error(
          fmt::format("'{}' has the unknown field '{}'; remove it if the model does not depend on it", path, name));
}

static Gpt2Form formIn(const JsonObject &json) {
  Gpt2Form form;
  if (const int64_t ddof = json.integer("layer_norm_ddof"); ddof == 0 || ddof == 1)
    form.ddof = static_cast<int>(ddof);
  else
    json.reject("layer_norm_ddof", "0 or 1");
  form.scalesTokens = json.truth("scale_embeddings");
  form.projectionBias = json.truth("attention_bias");
  form.headBias = json.truth("head_bias");
  form.mlpFirst = json.has("mlp_first") && json.truth("mlp_first");
  form.lecunInit = json.has("lecun_init") && json.truth("lecun_init");
  return form;
}

static DropoutOptions readDropout(const JsonObject &json) {
  const auto chance = [&](const std::string &name) {
    const double p = json.has(name) ? json.number(name) : 0;
    if (!(p >= 0 && p < 1))
      json.reject(name, "at least 0 and below 1");
    return p;
  };
  DropoutOptions dropout = {.embedding = chance("embd_pdrop"),
                            .residual = chance("resid_pdrop"),
                            .activation = chance("mlp_pdrop"),
                            .attention = chance("attn_pdrop")};
  if (json.has("dropout_kind"))
    dropout.kind = dropoutKindNamed(json.text("dropout_kind"));
  return dropout;
}

Gpt2Config readConfig(const std::string &folder) {
  const std::string path = folder + "/config.json";
  const JsonObject json = readJsonObject(path);
  verifyTexts(json); // first, because another kind of model has other unknown fields, too
  verifyTruths(json);
  const bool isOwn = json.has("model_type") && json.text("model_type") == ownType;
  verifyNames(json, path, isOwn);
  Gpt2Config config;
  if (isOwn)
    config.form = formIn(json);
  if (const DropoutOptions dropout = readDropout(json); scalesInEvaluation(dropout))
    config.dropout = dropout;
  config.layers = json.integer("n_layer");
  config.heads = json.integer("n_head");
  config.width = json.integer("n_embd");
  config.context = json.integer("n_positions");
  config.vocab = json.integer("vocab_size");
  if (json.has("layer_norm_epsilon"))
    config.epsilon = json.number("layer_norm_epsilon");
  if (json.has("scale_attn_weights"))
    config.scalesScores = json.truth("scale_attn_weights");
  if (json.has("scale_attn_by_inverse_layer_idx"))
    config.scalesByLayer = json.truth("scale_attn_by_inverse_layer_idx");
  if (json.has("tie_word_embeddings"))
    config.tied = json.truth("tie_word_embeddings");
  if (json.has("n_inner") && json.integer("n_inner") != 4 * config.width) {
    config.inner = json.integer("n_inner");
    if (config.inner < 1 || config.inner > largestSize)
      json.reject("n_inner", fmt::format("between 1 and {}", largestSize));
  }
  verify(config);
  verifySizes(json);
  return config;
}

DropoutOptions dropoutIn(const std::string &folder) { return readDropout(readJsonObject(folder + "/config.json")); }

} // namespace kiln
