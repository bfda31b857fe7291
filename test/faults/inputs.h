// Damaged inputs for the code that reads them, in this process. For any content, that code accepts or refuses them with
// a user error; it never crashes, hangs, or throws another exception.

#pragma once

#include "dialect/dsl/Types.h"
#include "test/faults/mutation.h"

#include <cstdio>
#include <memory>

namespace kiln::faults {

/// One kind of input.
class Inputs {
public:
  virtual ~Inputs() = default;
  /// Damages one input and reads it; returns a description of any fault, or nothing.
  virtual std::string run(Chance &chance) = 0;

  bool showing = false; // whether inputs are printed before they are read

protected:
  void show(const std::string &input) const {
    if (showing)
      std::fwrite((input + "\n").data(), 1, input.size() + 1, stderr);
  }
};

/// The four files of a checkpoint, written and read below `folder`.
std::unique_ptr<Inputs> checkpointInputs(const std::string &folder);
/// JSON texts.
std::unique_ptr<Inputs> jsonInputs();
/// Modules of the tile dialect out of the .mlir files below `sources`: parsed, verified, compiled.
std::unique_ptr<Inputs> moduleInputs(const std::string &sources);
/// Entries of the compile cache; the kernel's result must be right, and no damaged entry may be its code.
std::unique_ptr<Inputs> cacheInputs(const std::string &folder);
/// Files of images of kernels; what is read must be what was written, unless its hash is right.
std::unique_ptr<Inputs> imageInputs();
/// Files of NumPy's arrays, in memory and below `folder`.
std::unique_ptr<Inputs> arrayInputs(const std::string &folder);
/// PTX out of the .ptx files below `sources`: parsed, decoded, run by the simulator.
std::unique_ptr<Inputs> ptxInputs(const std::string &sources);
/// Command lines of gpt2.
std::unique_ptr<Inputs> commandInputs();

/// Calls `action`, which may refuse its input; returns a description of any other outcome, or nothing.
template <class Action> std::string complaintOf(Action action) {
  try {
    action();
    return "";
  } catch (const Error &error) {
    if (!error.what()[0])
      return "refused without a word";
    return error.fault == Fault::user ? "" : std::string("expected an error of the user's, but got: ") + error.what();
  } catch (const std::exception &error) {
    return std::string("expected an error of Kiln's, but got another exception: ") + error.what();
  }
}

} // namespace kiln::faults
