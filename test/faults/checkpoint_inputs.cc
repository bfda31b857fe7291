// Checkpoints and JSON with damage.

#include "models/data/json.h"
#include "models/gpt2/config.h"
#include "models/gpt2/network.h"
#include "models/gpt2/pretrained.h"
#include "models/train/checkpoint.h"
#include "test/faults/inputs.h"
#include "test/temporary_folder.h"

namespace kiln::faults {

namespace {

class CheckpointInputs : public Inputs {
public:
  explicit CheckpointInputs(const std::string &folder) : network({1, 2, 16, 8}) {
    const ParameterList &list = network.parameters();
    buffers.values.resize(list.count() * sizeof(float));
    buffers.first.resize(list.count());
    buffers.second.resize(list.count());
    for (int64_t i = 0; i < list.count(); ++i) {
      reinterpret_cast<float *>(buffers.values.data())[i] = static_cast<float>(i % 1000);
      buffers.first[i] = static_cast<float>(i);
      buffers.second[i] = static_cast<float>(i) / 2;
    }
    checkpoint = saveCheckpoint(folder, state(), network, readFrom(buffers));
    for (const char *name : {"training.json", "config.json", "model.safetensors", "optimizer.safetensors"})
      files.push_back(readText(checkpoint + "/" + name));
  }

  std::string run(Chance &chance) override {
    static const std::vector<std::string> names = {"training.json", "config.json", "model.safetensors",
                                                   "optimizer.safetensors"};
    const size_t which = chance.below(names.size());
    const std::string path = checkpoint + "/" + names[which], text = damagedFile(which, chance);
    show(names[which] + ": " + text);
    writeText(path, text);
    std::string complaint = complaintOf([&] { goOn(which, text); });
    if (complaint.empty())
      complaint = complaintOf([&] { readForSampling(); });
    writeText(path, files[which]);
    return complaint.empty() ? "" : names[which] + ": " + complaint;
  }

private:
  static RunState state() {
    RunState state;
    state.settings = gpt2Named("nano").settings;
    state.step = 7;
    state.data = {"a text", 1000, 99};
    return state;
  }

  /// The header of tensors is damaged as often as the data after it, although it is shorter.
  std::string damagedFile(size_t which, Chance &chance) {
    const std::string &text = files[which];
    const size_t header = text.find("  ");
    if (which < 2 || chance.below(2) == 0 || header == std::string::npos)
      return damaged(text, files, chance);
    return damaged(text.substr(0, header), files, chance) + text.substr(header);
  }

  /// Reads it like a resumed run. The tensors read must equal the saved ones.
  void goOn(size_t which, const std::string &text) const {
    readRunState(checkpoint);
    readConfig(checkpoint);
    const HostBuffers got = readBuffers(checkpoint, network);
    if (which >= 2 && text != files[which] &&
        (got.values != buffers.values || got.first != buffers.first || got.second != buffers.second))
      throw std::runtime_error("damaged tensors were taken for whole");
  }

  /// Reads it like `gpt2 sample`.
  void readForSampling() const {
    readConfig(checkpoint);
    readWeights(checkpoint + "/model.safetensors", network.parameters(), f32);
  }

  const Network network;
  HostBuffers buffers;
  std::string checkpoint;
  std::vector<std::string> files;
};

class JsonInputs : public Inputs {
public:
  std::string run(Chance &chance) override {
    static const std::vector<std::string> texts = {
        R"({"a": 1, "b": [1, 2, 3], "c": {"d": "text", "e": -1.5e3}, "f": null, "g": true, "h": "\u00e9\n"})",
        R"({"__metadata__": {"format": "pt"}, "wte.weight": {"dtype": "F32", "shape": [256, 16], "data_offsets": [0, 16384]}})",
        R"({"n_layer": 1, "n_head": 2, "n_embd": 16, "n_positions": 8, "vocab_size": 256, "layer_norm_epsilon": 1e-5})"};
    const std::string text = damaged(chance.oneOf(texts), texts, chance);
    show(text);
    return complaintOf([&] {
      const JsonObject object("file.json", text);
      for (const std::string &name : object.names())
        ask(object, name);
    });
  }

private:
  /// Reads a field as each kind.
  static void ask(const JsonObject &object, const std::string &name) {
    for (const std::string &complaint :
         {complaintOf([&] { object.integer(name); }), complaintOf([&] { object.natural(name); }),
          complaintOf([&] { object.number(name); }), complaintOf([&] { object.text(name); }),
          complaintOf([&] { object.naturals(name); }), complaintOf([&] { object.texts(name); }),
          complaintOf([&] { object.object(name); })})
      if (!complaint.empty())
        throw std::runtime_error(complaint);
  }
};

} // namespace

std::unique_ptr<Inputs> checkpointInputs(const std::string &folder) {
  return std::make_unique<CheckpointInputs>(folder);
}

std::unique_ptr<Inputs> jsonInputs() { return std::make_unique<JsonInputs>(); }

} // namespace kiln::faults
