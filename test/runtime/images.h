// Images of kernels (runtime/KernelImage.h) out of the code that the runtime compiles, for tests.

#pragma once

#include "runtime/Compile.h"
#include "runtime/KernelImage.h"
#include "runtime/Record.h"

namespace kiln::test {

/// The image of a kernel with at most one config field.
inline KernelImage makeImage(Device &device, const Kernel &kernel, const std::vector<Arg> &args,
                             const std::string &config = "", const std::string &target = "cpu") {
  KernelImage image;
  image.key = digestOf(kernel.name);
  image.kernel = kernel.name;
  image.target = target;
  image.features = image.isGpu() ? std::vector<std::string>() : cpuFeatures(target);
  for (const Field &field : kernel.fields)
    image.config.push_back({field.name, kernel.configText(config).substr(field.name.size() + 1), field.about});
  image.parameters = kernel.parameters;
  image.counts = expanded(kernel, args).kernel->counts;
  image.signature = compile(device, kernel, args, config)->signature();
  image.code = codeOf(device, {.kernel = &kernel, .config = config, .grid = {}, .args = args});
  return image;
}

/// The content of the one record of a file, and the file with another content, whose hash is right.
inline std::string takeContent(const std::string &file) { return file.substr(Record::headerBytes); }
inline std::string withContent(const std::string &file, const std::string &content) {
  return makeRecord(file.substr(8, 64), content);
}

} // namespace kiln::test
