// Language models of all options on a tape: the forward pass alone.

#pragma once

#include "models/nn/decoder.h"
#include "test/models/reference/tape.h"

#include <map>

namespace kiln::test {

/// Names as in the tests of a decoder: tokens, positions, 0.norm1.weight, …, last.weight, head.bias; for an encoder,
/// after `front`.
DecoderNames plainNames(const std::string &front = "");

/// The inputs of a decoder, and its dropout masks.
struct DecoderBatch {
  int64_t sequences, time;
  std::vector<int32_t> tokens, targets, positions; // the last where the options say that it gives them
  /// The factors for the numbers (rows, columns) of site number `site`, in the order of the sites.
  std::function<std::vector<double>(int64_t site, int64_t rows, int64_t columns)> mask = {};
  std::vector<int32_t> ranges = {}; // (sequences, time, 2): the positions that each one sees, if an option has ranges
};

/// Logits (sequences · time, vocab), and the mean loss over the targets that are present.
Value decoderLogits(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                    const DecoderBatch &batch);
Value decoderLoss(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                  const DecoderBatch &batch);

/// The loss of sequences with sources; sequence b's source has lengths[b] positions. The encoder's names begin with
/// `source `. Its token table is the decoder's if it has none. Its dropout sites are numbered from 0 in `source.mask`.
Value encoderDecoderLoss(Tape &tape, const DecoderOptions &encoder, const DecoderOptions &decoder,
                         std::map<std::string, Value> &parameters, const DecoderBatch &source,
                         const std::vector<int32_t> &lengths, const DecoderBatch &batch);

} // namespace kiln::test
