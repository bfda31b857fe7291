// Language models of all options on a tape: the forward pass alone.

#pragma once

#include "models/nn/decoder.h"
#include "test/models/reference/tape.h"

#include <map>

namespace kiln::test {

/// Names as the tests give them to a decoder: tokens, places, 0.norm1.weight, …, last.weight, head.bias; to an encoder
/// behind `front`.
DecoderNames plainNames(const std::string &front = "");

/// The inputs of a decoder, and its dropout masks.
struct DecoderBatch {
  int64_t sequences, time;
  std::vector<int32_t> tokens, targets, positions; // the last where the options say that it gives them
  /// What the numbers (rows, columns) of site number `site`, in the order of their making, are multiplied by.
  std::function<std::vector<double>(int64_t site, int64_t rows, int64_t columns)> mask = {};
  std::vector<int32_t> ranges = {}; // (sequences, time, 2): the places that each one sees, where the options say so
};

/// The mean loss over the targets that are there.
Value decoderLoss(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                  const DecoderBatch &batch);

/// The same of sequences that are made from sources, of which lengths[b] places of sequence b are there. The encoder's
/// names begin with `source `, its table of tokens is the decoder's where it has none. Its sites of dropout are
/// numbered from 0 in `source.mask`.
Value encoderDecoderLoss(Tape &tape, const DecoderOptions &encoder, const DecoderOptions &decoder,
                         std::map<std::string, Value> &parameters, const DecoderBatch &source,
                         const std::vector<int32_t> &lengths, const DecoderBatch &batch);

} // namespace kiln::test
