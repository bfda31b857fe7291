// Runs a program on devices and compares their memory afterwards.

#pragma once

#include "runtime/Tensor.h"
#include "test/fuzz/program.h"

namespace kiln::fuzz {

/// The bytes of every buffer after a run, or the reason for its failure.
struct Outcome {
  std::vector<std::vector<char>> buffers;
  std::string error;
  std::string failure; // of a check, after which the program went on
};

Outcome run(const std::shared_ptr<Device> &device, const Program &program);
/// Runs `launches` on the tensors that `memory` makes.
Outcome outcomeOf(const std::shared_ptr<Device> &device, const std::function<std::vector<Tensor>()> &memory,
                  const std::function<void(const std::vector<Tensor> &)> &launches);

/// The elements of a buffer, or of an example's copy of it, at the program's start: raw words. The margins around views
/// have other numbers.
std::vector<uint64_t> contents(const Program &program, int buffer, int64_t copy = 0);
/// Whether the element `got` of a buffer is permitted where the oracle has `want`; and an element as text.
uint64_t wordAt(const std::vector<char> &bytes, Type type, size_t index);
bool agree(const Buffer &buffer, uint64_t got, uint64_t want);
std::string wordText(Type type, uint64_t word);

/// The first few elements where `got` differs from `want`, the oracle's, by more than permitted, one a line; empty if
/// there are none. Elements outside of all views must be unchanged.
std::string difference(const Program &program, const Outcome &want, const Outcome &got);

/// Runs the program on `device` and on the oracle; returns the differences, or nothing.
std::string compare(const Program &program, const std::shared_ptr<Device> &oracle,
                    const std::shared_ptr<Device> &device);

/// vmap of the program's kernel, possibly nested, for a batch of examples: the first few elements that one launch of it
/// computes differently from a launch for each example on the same device, one a line; empty if there are none. The
/// comparison is exact on a CPU, and by the language's bounds elsewhere. A program has no batch if a view has no
/// dimension left. The number of examples, their dimensions and the shared arguments are drawn; they follow from the
/// program's seed and number.
std::optional<std::string> compareBatch(const Program &program, const std::shared_ptr<Device> &device);

/// A smaller program for which `fails` still holds: operations are left out and values replaced by zeros.
Program shrink(Program program, const std::function<bool(const Program &)> &fails);

} // namespace kiln::fuzz
