// The fields of config.json, by the names of Hugging Face's GPT2Config.

#include "models/gpt2/config_json.h"
#include "models/data/json.h"

namespace kiln {

nlohmann::ordered_json configJson(const Gpt2Config &c) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"n_layer", c.layers},
          {"n_head", c.heads},
          {"n_embd", c.width},
          {"n_positions", c.context},
          {"n_ctx", c.context},
          {"vocab_size", c.vocab},
          {"tie_word_embeddings", true},
          {"torch_dtype", c.type == Type::bf16  ? "bfloat16"
                          : c.type == Type::f16 ? "float16"
                                                : "float32"}};
}

Gpt2Config readConfig(const std::string &folder) {
  const JsonObject j = readJsonObject(folder + "/config.json");
  Gpt2Config config;
  config.layers = j.integer("n_layer");
  config.heads = j.integer("n_head");
  config.width = j.integer("n_embd");
  config.context = j.integer("n_positions");
  config.vocab = j.integer("vocab_size");
  verify(config);
  return config;
}

} // namespace kiln
