// Runs a peer in a child, with which it talks over a socket in lines of JSON.

#include "tools/kilnc/Peer.h"

#include "runtime/Files.h"

#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kiln::tools {

Error PythonPeer::fault(const std::string &text) const { return Error(fmt::format("peer '{}': {}", expression, text)); }

// --- The child -------------------------------------------------------------------------------------------------------

PythonPeer::PythonPeer(const std::string &expression, const PeerOptions &options, const Device &device)
    : expression(expression), options(options) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw Error(fmt::format("expected a socket for the peer, but got: {}", std::strerror(errno)), Fault::device);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
    posix_spawn_file_actions_adddup2(&actions, ends[1], stream);
  const char *const argv[] = {options.python.c_str(), "-c", peerText, nullptr};
  const int failure = ::posix_spawnp(&child, argv[0], &actions, nullptr, const_cast<char *const *>(argv), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  socket = ends[0];
  if (failure) {
    ::close(socket);
    throw Error(fmt::format("--peer requires Python, but '{}' cannot be run: {}; set --python", options.python,
                            std::strerror(failure)),
                Fault::device);
  }
  try {
    ask(llvm::json::Object{{"expression", expression}, {"device", device.name()}, {"threads", device.threads()}});
  } catch (...) {
    close();
    throw;
  }
}

PythonPeer::~PythonPeer() { close(); }

void PythonPeer::close() {
  ::close(socket); // which ends the child
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR)
    ;
}

llvm::json::Object PythonPeer::ask(llvm::json::Object request) {
  std::string line;
  llvm::raw_string_ostream out(line);
  out << llvm::json::Value(std::move(request)) << "\n";
  out.flush();
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count <= 0 && errno != EINTR)
      throw fault("Python ended without an answer");
    sent += std::max<ssize_t>(count, 0);
  }
  std::string reply;
  while (!reply.ends_with('\n')) {
    char buffer[4096];
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    if (count == 0 || (count < 0 && errno != EINTR))
      throw fault("Python ended without an answer");
    reply.append(buffer, std::max<ssize_t>(count, 0));
  }
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(reply);
  if (!value || !value->getAsObject()) {
    llvm::consumeError(value.takeError());
    throw fault(fmt::format("expected an answer in JSON, but got '{}'", reply));
  }
  if (const auto error = value->getAsObject()->getString("error"))
    throw fault(error->str());
  return std::move(*value->getAsObject());
}

double PythonPeer::measure(int times) { return ask(llvm::json::Object{{"times", times}}).getNumber("us").value_or(0); }

// --- Arguments -------------------------------------------------------------------------------------------------------

static std::vector<char> contentOf(Device &device, const TensorRef &tensor) {
  std::vector<char> data(tensor.bytes());
  if (!data.empty())
    device.download(data.data(), tensor.data, std::ssize(data));
  return data;
}

void PythonPeer::start(Device &device, const Kernel &kernel, const std::vector<Arg> &args) {
  llvm::json::Array arguments;
  for (size_t i = 0; i < args.size(); ++i) {
    llvm::json::Object one{{"name", kernel.parameters[i].name}};
    if (args[i].kind == Arg::Kind::tensor) {
      const TensorRef &tensor = args[i].ref;
      if (tensor.strides != TensorRef::dense(nullptr, tensor.type, tensor.extents).strides)
        throw fault(fmt::format("expected {} to be dense, but got {}", kernel.called(i), textOf(args[i])));
      const std::vector<char> data = contentOf(device, tensor);
      const std::string path = folder / fmt::format("argument{}", i);
      writeOutput(path, std::string(data.begin(), data.end()));
      one.insert({"file", path});
      one.insert({"type", nameOf(tensor.type)});
      one.insert({"shape", llvm::json::Array(tensor.extents)});
    } else {
      one.insert({"value",
                  isFloat(args[i].scalarType) ? llvm::json::Value(args[i].real) : llvm::json::Value(args[i].integer)});
    }
    arguments.push_back(std::move(one));
  }
  const llvm::json::Object reply =
      ask(llvm::json::Object{{"arguments", std::move(arguments)}, {"folder", folder.path}});
  results.clear();
  for (const llvm::json::Value &each : *reply.getArray("results")) {
    Result result;
    for (const llvm::json::Value &extent : *each.getAsObject()->getArray("shape"))
      result.shape.push_back(*extent.getAsInteger());
    const std::string data = readInput(each.getAsObject()->getString("file")->str(), int64_t{1} << 40);
    result.values.resize(data.size() / sizeof(double));
    std::memcpy(result.values.data(), data.data(), data.size());
    results.push_back(std::move(result));
  }
}

// --- Results ---------------------------------------------------------------------------------------------------------

/// The difference that another order of sums and another rounding may make, relative to the largest element.
static double toleranceOf(Type type) { return !isFloat(type) ? 0 : type == f64 ? 1e-10 : type == f32 ? 1e-4 : 2e-2; }

void PythonPeer::expectResults(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                               const std::vector<size_t> &written) const {
  if (results.size() != written.size()) {
    std::vector<std::string> names;
    for (const size_t i : written)
      names.push_back(kernel.called(i));
    throw fault(fmt::format("expected a result for each tensor that the kernel writes, {}, but got {}",
                            fmt::join(names, " and "), results.size()));
  }
  for (size_t number = 0; number < written.size(); ++number) {
    const size_t i = written[number];
    const TensorRef &tensor = args[i].ref;
    const Result &got = results[number];
    if (got.shape != tensor.extents)
      throw fault(fmt::format("expected {} of shape {}, but got {}", kernel.called(i), textOf(tensor.extents),
                              textOf(got.shape)));
    const Type type = tensor.type == f4e2m1x2 ? u8 : tensor.type;
    const std::vector<double> want = toDoubles(contentOf(device, tensor).data(), type, tensor.count());
    double largest = 0;
    for (const double value : want)
      largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    const double tolerance = options.tolerance.value_or(toleranceOf(type));
    for (size_t at = 0; at < want.size(); ++at) {
      const double one = got.values[at];
      if (one == want[at] || (std::isnan(one) && std::isnan(want[at])) ||
          std::abs(one - want[at]) <= tolerance * largest)
        continue;
      std::vector<int64_t> place(tensor.extents.size());
      for (size_t d = place.size(), rest = at; d-- > 0; rest /= tensor.extents[d])
        place[d] = static_cast<int64_t>(rest) % tensor.extents[d];
      throw fault(fmt::format("expected the kernel's {} at ({}) of {}, but got {}; --peer-tolerance is {:g} of the "
                              "largest element",
                              want[at], fmt::join(place, ", "), kernel.called(i), one, tolerance));
    }
  }
}

} // namespace kiln::tools
