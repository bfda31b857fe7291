// Lines of --bench that are expressions of Python, such as `torch.softmax(x, -1)`. A child evaluates one on arrays of
// the kernel's arguments (peer.py). Its results must be the kernel's, within a tolerance.

#pragma once

#include "runtime/Tensor.h"
#include "tools/files/Files.h"

#include "llvm/Support/JSON.h"

#include <optional>

namespace kiln::tools {

/// The options of peers.
struct PeerOptions {
  std::vector<std::string> expressions;
  std::string python = "python3";
  std::optional<double> tolerance; // relative to a tensor's largest element; by default that of its type
};

/// The text of the child's program.
extern const char *const peerText;

class PythonPeer {
public:
  /// Starts the child. Throws Error if it cannot run, or for an expression that is none.
  PythonPeer(const std::string &expression, const PeerOptions &options, const Device &device);
  ~PythonPeer();
  PythonPeer(const PythonPeer &) = delete;
  PythonPeer &operator=(const PythonPeer &) = delete;

  /// Gives it the arguments of a size, of which none may be launched on before, and evaluates it once.
  void start(Device &device, const Kernel &kernel, const std::vector<Arg> &args);
  /// Throws Error unless its results are those of the kernel, which has been launched: the arguments that it writes.
  void expectResults(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                     const std::vector<size_t> &written) const;
  /// Microseconds of an evaluation, as the mean of `times` in a row.
  double measure(int times);

  const std::string expression;

private:
  struct Result {
    Shape shape;
    std::vector<double> values;
  };
  llvm::json::Object ask(llvm::json::Object request);
  Error fault(const std::string &text) const;
  void close();

  const PeerOptions &options;
  const TemporaryFolder folder;
  int socket = -1, child = 0;
  std::vector<Result> results;
};

} // namespace kiln::tools
