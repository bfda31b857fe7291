// Finds the image that runs a launch.

#include "runtime/KernelImage.h"

#include "lowering/Backend.h"
#include "lowering/cpu/CpuBackend.h"
#include "lowering/cpu/CpuTarget.h"
#include "runtime/Arguments.h"
#include "runtime/Files.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

namespace kiln {

using namespace std::string_view_literals;

// --- Targets ---------------------------------------------------------------------------------------------------------

/// The features of CPUs that code generation uses.
static constexpr const char *knownFeatures[] = {
    "avx2",       "fma",        "bmi",        "bmi2",       "lzcnt",        "movbe",       "f16c",
    "avx512f",    "avx512bw",   "avx512dq",   "avx512vl",   "avx512cd",     "avx512ifma",  "avx512vbmi",
    "gfni",       "vaes",       "vpclmulqdq", "avx512vnni", "avx512bitalg", "avx512vbmi2", "avx512vpopcntdq",
    "avx512bf16", "avx512fp16", "avxvnni",    "amx-tile",   "amx-bf16",     "amx-int8",    "fma4",
    "xop",        "tbm",        "avx10.2",    "apxf"};

std::vector<std::string> cpuFeatures(const std::string &target) {
  llvm::StringRef processor = target;
  if (!processor.consume_back(":generic"))
    processor.consume_back(":amx");
  if (!processor.consume_front("cpu:") && processor == "cpu")
    processor = "native";
  const lowering::cpu::CpuTarget cpu = lowering::cpu::cpuNamed(processor.str());
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      lowering::cpu::x86Backend().createMCSubtargetInfo(lowering::cpu::cpuTriple(), cpu.cpu, cpu.features));
  std::vector<std::string> features;
  for (const char *feature : knownFeatures)
    if (info->checkFeatures(feature == "apxf"sv ? "+egpr" : std::string("+") + feature)) // LLVM splits APX
      features.emplace_back(feature);
  return features;
}

/// The number of a GPU's architecture: 90 of sm_90a:cubin.
static int readArchitecture(const KernelImage &image) {
  int number = 0;
  if (image.isGpu())
    std::from_chars(image.target.data() + 3, image.target.data() + image.target.size(), number);
  return number;
}

/// Newer targets first.
static bool isNewer(const KernelImage &a, const KernelImage &b) {
  return std::pair(a.features.size(), readArchitecture(a)) > std::pair(b.features.size(), readArchitecture(b));
}

namespace {
/// The code that a device runs.
class Machine {
public:
  explicit Machine(const Device &device)
      : gpu(std::get_if<GpuFacts>(&device.target().facts)), name(gpu ? "" : device.backend().name()),
        features(gpu ? std::vector<std::string>() : cpuFeatures(name)) {}

  /// A GPU runs code for an equal or an older architecture; if its name ends with a letter, for an equal one. The
  /// reference backend's device runs only its own code, with which all other code is compared.
  bool runs(const KernelImage &image) const {
    const int architecture = readArchitecture(image);
    if (gpu)
      return image.isGpu() &&
             (image.target.starts_with(fmt::format("sm_{}a", architecture)) ? architecture == gpu->architecture
                                                                            : architecture <= gpu->architecture);
    return !image.isGpu() && (!name.ends_with(":generic") || image.target.ends_with(":generic")) && !lackFor(image);
  }

  /// The image's target, with a feature that this CPU lacks.
  std::string describe(const KernelImage &image) const {
    const std::string *const lack = gpu ? nullptr : lackFor(image);
    return image.target + (lack ? fmt::format(" (which requires {})", *lack) : "");
  }

private:
  /// A feature that the image requires and the CPU lacks, or null.
  const std::string *lackFor(const KernelImage &image) const {
    const auto lack = std::find_if(image.features.begin(), image.features.end(), [&](const std::string &feature) {
      return std::find(features.begin(), features.end(), feature) == features.end();
    });
    return lack == image.features.end() ? nullptr : &*lack;
  }

  const GpuFacts *const gpu; // null: a CPU
  const std::string name;    // of its backend
  const std::vector<std::string> features;
};

/// Different texts in the order in which they were added.
struct Texts {
  std::vector<std::string> all;
  void add(std::string text) {
    if (std::find(all.begin(), all.end(), text) == all.end())
      all.push_back(std::move(text));
  }
};
} // namespace

// --- Kernels of a file -----------------------------------------------------------------------------------------------

std::string KernelImage::configText() const {
  std::string text;
  for (const Setting &setting : config)
    text += (text.empty() ? "" : ",") + setting.name + "=" + setting.value;
  return text;
}

std::string KernelImage::argumentText() const {
  std::vector<std::string> texts;
  for (const Signature::Parameter &parameter : signature.parameters)
    texts.push_back(parameter.name + (parameter.name.empty() ? "" : " ") + textOf(parameter));
  return fmt::format("({})", fmt::join(texts, ", "));
}

namespace {
/// A file of images, and the executables that were loaded from it.
class ImageFile {
public:
  explicit ImageFile(const std::string &path);

  FoundImage find(Device &device, const Kernel &kernel, const std::string &config, const std::vector<Arg> &args,
                  void *workspace);

  std::vector<const KernelImage *> findImages(const std::string &kernel) const {
    std::vector<const KernelImage *> found;
    for (const KernelImage &image : images)
      if (image.kernel == kernel)
        found.push_back(&image);
    return found;
  }

  const std::string path;
  const std::vector<KernelImage> images;

private:
  std::vector<const KernelImage *> candidates(const Device &device, const Kernel &kernel,
                                              const std::string &config) const;
  const KernelImage &choose(const std::vector<const KernelImage *> &candidates, const Device &device,
                            const Kernel &kernel, const std::vector<Arg> &args, void *workspace) const;

  std::mutex mutex;
  std::map<std::pair<std::string, const KernelImage *>, std::shared_ptr<const Executable>> loaded; // by device
};

/// Stands in the place of the function of a kernel that was loaded.
struct LoadedCall {
  std::shared_ptr<ImageFile> file;
  std::string kernel;
  void operator()(const std::vector<View> &, const std::vector<Tile> &, const std::vector<size_t> &,
                  const std::string &) const {
    throw Error(fmt::format("kernel '{}': expected its source, because it has to be compiled, but '{}' has only "
                            "compiled kernels",
                            kernel, file->path));
  }
};
} // namespace

static std::string readFile(const std::string &path) {
  constexpr int64_t largest = int64_t{1} << 30;
  const InputFile file(path);
  if (file.size() > largest)
    throw Error(fmt::format("expected '{}' to have at most {} bytes, but it has {}", path, largest, file.size()));
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  file.read(0, bytes.data(), file.size());
  return bytes;
}

ImageFile::ImageFile(const std::string &path) : path(path), images(readImages(readFile(path), path)) {}

/// The images of a kernel that the device runs and that have this config, the newest targets first. Throws Error if
/// there is none.
std::vector<const KernelImage *> ImageFile::candidates(const Device &device, const Kernel &kernel,
                                                       const std::string &config) const {
  const Machine machine(device);
  std::vector<const KernelImage *> found;
  Texts targets, configs;
  for (const KernelImage *const image : findImages(kernel.name)) {
    targets.add(machine.describe(*image));
    if (machine.runs(*image))
      found.push_back(image);
  }
  if (found.empty())
    throw Error(fmt::format("kernel '{}': expected code that device '{}' runs, but '{}' has code for {}", kernel.name,
                            device.name(), path, fmt::join(targets.all, ", ")));
  const std::string wanted = kernel.configText(config);
  std::erase_if(found, [&](const KernelImage *image) {
    configs.add(image->configText());
    return image->configText() != wanted;
  });
  if (found.empty())
    throw Error(fmt::format("kernel '{}': expected a config that '{}' has for device '{}', '{}', but got '{}'",
                            kernel.name, path, device.name(), fmt::join(configs.all, "' or '"), wanted));
  std::stable_sort(found.begin(), found.end(),
                   [](const KernelImage *a, const KernelImage *b) { return isNewer(*a, *b); });
  return found;
}

/// The first candidate that is for these arguments. Throws Error if there is none.
const KernelImage &ImageFile::choose(const std::vector<const KernelImage *> &candidates, const Device &device,
                                     const Kernel &kernel, const std::vector<Arg> &args, void *workspace) const {
  std::string reason;
  Texts lists;
  for (const KernelImage *const image : candidates) {
    try {
      if (image->counts == kernel.counts) {
        pack(Executable(device.name(), kernel.name, image->signature), Grid(), args, workspace);
        return *image;
      }
    } catch (const Error &error) {
      reason = reason.empty() ? error.what() : reason;
    }
    lists.add(image->argumentText());
  }
  if (reason.empty())
    reason = fmt::format("kernel '{}': expected views in the numbers that it was compiled for, but got {} arguments",
                         kernel.name, args.size());
  throw Error(fmt::format("{}\nnote: '{}' has it for {}", reason, path, fmt::join(lists.all, " and ")));
}

FoundImage ImageFile::find(Device &device, const Kernel &kernel, const std::string &config,
                           const std::vector<Arg> &args, void *workspace) {
  const std::vector<const KernelImage *> possible = candidates(device, kernel, config);
  const KernelImage &image = choose(possible, device, kernel, args, workspace);
  FoundImage found;
  for (const KernelImage *const each : possible)
    for (const auto &equal : each->signature.equalExtents)
      found.uses.used.insert({equal.first, equal.second});
  for (const KernelImage *const each : possible)
    for (size_t i = 0; each->counts == kernel.counts && i < each->signature.parameters.size(); ++i) {
      const Signature::Parameter &parameter = each->signature.parameters[i];
      if (parameter.isView && (parameter.read || parameter.written))
        found.uses.used.insert(static_cast<int>(i));
      if (parameter.isView && parameter.written)
        found.uses.written.insert(static_cast<int>(i));
      for (size_t d = 0; d < parameter.extents.size() && d < args[i].ref.extents.size(); ++d)
        if (parameter.extents[d] != Signature::dynamic)
          found.uses.staticExtents.emplace(static_cast<int>(i), static_cast<int>(d));
    }
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Executable> &executable = loaded[{device.name(), &image}];
  if (!executable)
    executable = device.load(kernel.name, image.signature, image.code);
  found.executable = executable;
  return found;
}

/// The kernel of an image. Its config struct is a map. A tuner chooses among the configs that the file has.
static Kernel makeKernelFor(const std::shared_ptr<ImageFile> &file, const KernelImage &image) {
  using Config = std::map<std::string, std::string>;
  Kernel kernel;
  kernel.name = image.kernel;
  kernel.loc = {file->path.c_str(), 1};
  kernel.parameters = image.parameters;
  kernel.namedExtents = findNamedExtents(kernel.parameters);
  Config defaults;
  for (const KernelImage::Setting &setting : image.config) {
    defaults[setting.name] = setting.value;
    Field &field = kernel.fields.emplace_back();
    field.name = setting.name;
    field.about = setting.about;
    field.byDefault = setting.value;
    field.of = nullptr;
    for (const KernelImage *const each : file->findImages(image.kernel))
      for (const KernelImage::Setting &other : each->config)
        if (other.name == setting.name && std::ranges::count(field.candidates, other.value) == 0)
          field.candidates.push_back(other.value);
    if (field.candidates.size() == 1)
      field.candidates.clear(); // there is nothing to choose
    field.print = [name = setting.name](const void *config) { return static_cast<const Config *>(config)->at(name); };
    field.parse = [name = setting.name](void *config, const std::string &text) {
      (*static_cast<Config *>(config))[name] = text;
    };
  }
  kernel.call = LoadedCall{file, image.kernel};
  kernel.configText = [name = kernel.name, fields = kernel.fields, defaults](const std::string &overrides) {
    Config config = defaults;
    parseConfig(name, fields, overrides, &config);
    return textOf(fields, config);
  };
  kernel.allows = [file, name = kernel.name, text = kernel.configText](const std::string &overrides, const Target &) {
    return std::ranges::any_of(file->findImages(name), [wanted = text(overrides)](const KernelImage *each) {
      return each->configText() == wanted;
    });
  };
  return kernel;
}

std::vector<Kernel> loadKernels(const std::string &path) {
  const auto file = std::make_shared<ImageFile>(path);
  std::vector<Kernel> kernels;
  for (const KernelImage &image : file->images) {
    const auto same =
        std::find_if(kernels.begin(), kernels.end(), [&](const Kernel &kernel) { return kernel.name == image.kernel; });
    if (same == kernels.end()) {
      kernels.push_back(makeKernelFor(file, image));
      continue;
    }
    const auto hasName = [](const auto &a, const auto &b) { return a.name == b.name; };
    if (!std::ranges::equal(same->parameters, image.parameters, hasName) ||
        !std::ranges::equal(same->fields, image.config, hasName))
      throw Error(fmt::format("expected equal parameters and fields in all images of kernel '{}' in '{}', but they "
                              "differ",
                              image.kernel, path));
  }
  return kernels;
}

std::vector<const KernelImage *> findImages(const Kernel &kernel) {
  const auto *const call = kernel.call.target<LoadedCall>();
  return call ? call->file->findImages(kernel.name) : std::vector<const KernelImage *>();
}

bool isLoaded(const Kernel &kernel) { return kernel.call.target<LoadedCall>() != nullptr; }

FoundImage findImage(Device &device, const Kernel &kernel, const std::string &config, const std::vector<Arg> &args,
                     void *workspace) {
  return kernel.call.target<LoadedCall>()->file->find(device, kernel, config, args, workspace);
}

} // namespace kiln
