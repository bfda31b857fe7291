// The positions of this model's tensors in llm.c's files.

#include "models/gpt2/llmc.h"
#include "models/gpt2/network.h"
#include "test/expect_error.h"

#include <gtest/gtest.h>

using namespace kiln;
using namespace kiln::llmc;

namespace {

// Pieces are contiguous, each tensor once, a kind for all blocks before the next kind. Tables have the rows that the
// file states. Only the matrices of blocks are transposed.
TEST(LlmcLayout, HasEachTensorOnceKindByKind) {
  const Network network({.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 30});
  const ParameterList &list = network.parameters();
  const FileLayout layout = fileLayout(list, 2, 128, 8);
  int64_t end = 0, numbers = 0;
  for (const Parameter &p : list.all())
    numbers += p.count();
  std::vector<std::string> names;
  for (const Piece &piece : layout.pieces) {
    EXPECT_EQ(piece.begin, end) << piece.parameter->name;
    end += piece.count;
    names.push_back(piece.parameter->name);
    const bool isMatrixOfABlock = piece.parameter->shape.size() == 2 && piece.parameter->name.starts_with("h.");
    EXPECT_EQ(piece.isTransposed, isMatrixOfABlock) << piece.parameter->name;
  }
  EXPECT_EQ(layout.count, end);
  EXPECT_EQ(end, numbers + (128 - 30) * 16);
  ASSERT_EQ(names.size(), list.all().size());
  EXPECT_EQ(
      (std::vector<std::string>(names.begin(), names.begin() + 5)),
      (std::vector<std::string>{"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.1.ln_1.weight", "h.0.ln_1.bias"}));
  EXPECT_EQ(names.back(), "ln_f.bias");
}

// A tensor that llm.c's model lacks would be lost in its files.
TEST(LlmcLayout, RefusesAnotherTensor) {
  const Network network({.layers = 2, .heads = 2, .width = 16, .context = 8, .vocab = 30});
  ParameterList list = network.parameters();
  list.add("gain", {16}, {Init::Kind::ones}, Role::gain);
  expectError([&] { fileLayout(list, 2, 128, 8); },
              {"expected a model of llm.c's tensors, but got 'gain', which its files do not have"});
}

// Transposing twice gives the original matrix, and once swaps rows and columns.
TEST(LlmcLayout, TransposesMatrices) {
  const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
  std::vector<float> turned(6), back(6);
  transpose(matrix.data(), 2, 3, turned.data());
  EXPECT_EQ(turned, (std::vector<float>{1, 4, 2, 5, 3, 6}));
  transpose(turned.data(), 3, 2, back.data());
  EXPECT_EQ(back, matrix);
}

} // namespace
