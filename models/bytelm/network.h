// A model of bytes as layers: each byte is predicted from those before it in its sequence, the first from none. A
// sequence's bytes stand one place on, behind a vector of zeros; there is no norm behind the last block, relu in the
// feed-forward layers, and a head of its own with a bias.

#pragma once

#include "models/bytelm/config.h"
#include "models/nn/decoder.h"

namespace kiln {

class ByteNetwork : public Model {
public:
  explicit ByteNetwork(const ByteConfig &config);

  const ByteConfig &config() const { return sizes; }
  const ParameterList &parameters() const override { return list; }
  Type type() const override { return sizes.type; }
  BatchShape shape(int64_t sequences) const override { return {sequences, sizes.context}; }
  std::vector<Input> inputs(const BatchShape &shape) const override { return decoder.inputs(shape); }
  void derive(HostBatch &batch, const BatchShape &) const override { decoder.derive(batch); }
  void gradient(Build &build, const MicroBatch &batch) const override { decoder.gradient(build, batch); }
  void losses(Build &build, const MicroBatch &batch) const override { decoder.losses(build, batch); }
  double flops(const BatchShape &shape) const override { return flopsOfStep(sizes, shape.sequences, shape.target); }
  std::string text() const override { return textOf(sizes); }
  nlohmann::ordered_json configJson(Type saved) const override;
  const Decoder &layers() const { return decoder; }

private:
  ByteConfig sizes;
  ParameterList list;
  Decoder decoder;
};

} // namespace kiln
