// The configs that `kilnc --tune` found fastest, in a text file with one line for each kernel, device and arguments:
//
//     softmax | cpu znver5 cores=16 | f32[512x768], f32[512x768] | rows=8 | 41.2 us, default 55.1 us | 2026-11-22
//
// A program looks up a config with tuned(); nothing is measured while it runs. An extent in the file is a number or a
// bucket. `~1024/16` is the multiples of 16 from 513 to 1024; `~1024` is the other numbers from 513 to 1024. Other
// extents have no finding. The strides of an argument that is not dense follow it: `f32[64x64] by 1x64`. Arguments of a
// kernel with optional views or lists have names: `x=f32[64x64], bias=f32[64]`. `#` begins a comment.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kiln {

class Device;

/// One line.
struct Finding {
  std::string kernel, device, arguments; // of the launches that it is for
  std::string config;
  double measured = 0, byDefault = 0; // of the config, and of the default one
  std::string unit;                   // of both: `us`, or `cycles` on a simulator
  std::string date;                   // 2026-11-22

  std::string text() const;
};

/// The lines of a file, with its comments.
class FindingsFile {
public:
  /// Reads the text of a file. Throws Error with `name:line` for a damaged line, and for a second line for the same
  /// kernel, device and arguments.
  static FindingsFile parse(const std::string &text, const std::string &name);
  /// Reads a file.
  static FindingsFile load(const std::string &path);

  /// Puts a finding in the place of the one for its kernel, device and arguments, or at the end.
  void add(const Finding &finding);
  std::string text() const;
  /// The config for a kernel on a device (deviceKey()) with these arguments. Of several lines it is the one with the
  /// most exact extents. Throws Error with the line unless it is a config of the kernel. Nothing if there is none.
  std::optional<std::string> find(const std::string &device, const Kernel &kernel, const std::vector<Arg> &args) const;
  /// Throws Error with the line for a kernel that is none of these, with the most similar name, and for a config that
  /// its kernel does not have.
  void check(const std::vector<const Kernel *> &kernels) const;

private:
  struct Line {
    int number = 0; // in the file, from 1; 0 for one that was added
    std::string comment;
    std::optional<Finding> finding; // else it is the comment
  };
  Error wrong(const Line &line, const std::string &text) const;
  void checkConfig(const Line &line, const Kernel &kernel) const;

  std::string name;
  std::vector<Line> lines;
};

/// A device in a line: its name, its processor, and on a CPU the threads that run programs.
std::string deviceKey(const Device &device);
/// Arguments in a line, for a kernel that is not variadic, or is expanded. `buckets` has the extents, (argument,
/// dimension), that stand for their bucket.
std::string argumentsKey(const Kernel &kernel, const std::vector<Arg> &args,
                         const std::set<std::pair<int, int>> &buckets = {});

/// The config for a kernel and arguments in the file `path`, by default the file that KILN_FINDINGS names. It is "" if
/// there is no finding or no file. A process reads a file once. Throws Error for a damaged file.
std::string tuned(const Device &device, const Kernel &kernel, const std::vector<Arg> &args, std::string path = "");
/// Lets tuned() read the file again.
void forgetFindings();

} // namespace kiln
