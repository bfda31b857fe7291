// Compiles a kernel for each target, renames the objects' symbols, and archives them with the launcher.

#include "tools/kilnc/Archive.h"

#include "lowering/Driver.h"
#include "runtime/Compilation.h"
#include "runtime/CompiledSignature.h"
#include "runtime/Files.h"
#include "runtime/KernelImage.h"
#include "tools/files/Files.h"
#include "tools/kilnc/Trace.h"
#include "tools/kilnc/UserFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/ELFObjectFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fs = std::filesystem;

namespace kiln::tools {

// --- Targets ---------------------------------------------------------------------------------------------------------

static TargetCode compileFor(const Kernel &kernel, const ArchiveOptions &options, const std::string &target) {
  const auto backend = lowering::openBackend(target);
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  const TracedForList traced = traceKernel(*context, kernel, options.args, options.config, backend->facts());
  TargetCode code{target, target.starts_with("sm_"), signatureOf(kernel, traced.facts, traced.traced), {}, {}, {}};
  code.key = codeKey(*traced.traced.module, *backend);
  lowering::Explanation explanation;
  code.code = lowering::compile(*traced.traced.module, *backend, {}, &explanation);
  sayWarnings(explanation, kernel.configText(options.config));
  if (!code.isGpu)
    code.features = cpuFeatures(target);
  return code;
}

/// The code for each target, in the order that a launch tries them: the newest first.
static std::vector<TargetCode> compileAll(const Kernel &kernel, const ArchiveOptions &options) {
  llvm::SmallVector<llvm::StringRef> targets;
  llvm::StringRef(options.targets).split(targets, ',');
  std::vector<TargetCode> codes;
  for (const llvm::StringRef each : targets) {
    const std::string target = each.trim().str();
    if (llvm::any_of(codes, [&](const TargetCode &code) { return code.target == target; }))
      throw Error(fmt::format("expected each target of --target once, but got '{}' twice", target));
    codes.push_back(compileFor(kernel, options, target));
  }
  const auto age = [](const TargetCode &code) { // sm_100a is newer than sm_90a
    int architecture = 0;
    if (code.isGpu)
      llvm::StringRef(code.target).drop_front(3).consumeInteger(10, architecture);
    return std::tuple(code.isGpu, -static_cast<int>(code.features.size()) - architecture, code.target);
  };
  llvm::sort(codes, [&](const TargetCode &a, const TargetCode &b) { return age(a) < age(b); });
  return codes;
}

// --- Objects ---------------------------------------------------------------------------------------------------------

/// Throws Error (internal) if LLVM fails on its own object.
static void expect(llvm::Error error) {
  if (error)
    throw Error("an object of the archive cannot be changed: " + llvm::toString(std::move(error)), Fault::internal);
}
template <class T> static T expect(llvm::Expected<T> value) {
  expect(value.takeError());
  return std::move(*value);
}

/// The object of a CPU target, with symbols prefixed by the archive's name. Nothing else changes.
static std::string renamed(const ArchivedKernel &kernel, const TargetCode &code) {
  const auto object = expect(llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(code.code.data(), code.code.size()), code.target)));
  const std::string symbol = kernel.symbolOf(code), &name = kernel.kernel.name;
  std::vector<std::string> names; // must outlive the map of references
  names.reserve(2 * std::distance(object->symbol_begin(), object->symbol_end()));
  llvm::objcopy::ConfigManager config;
  for (const llvm::object::SymbolRef each : object->symbols()) {
    const uint32_t flags = expect(each.getFlags());
    const llvm::StringRef old = expect(each.getName());
    const bool undefined = flags & llvm::object::SymbolRef::SF_Undefined;
    if (!(flags & llvm::object::SymbolRef::SF_Global) || old.empty() || old == "_GLOBAL_OFFSET_TABLE_")
      continue;
    names.push_back(old == abi::checkFailed            ? kernel.checkFailed()
                    : old == abi::printTile            ? kernel.print()
                    : old == abi::waits                ? kernel.waits()
                    : undefined                        ? old.str()
                    : old == name                      ? symbol
                    : old == name + abi::scratchSuffix ? symbol + abi::scratchSuffix
                                                       : symbol + "_" + old.str());
    config.Common.SymbolsToRename[old] = names.back();
  }
  std::string result;
  llvm::raw_string_ostream out(result);
  expect(llvm::objcopy::executeObjcopyOnBinary(config, *object, out));
  return result;
}

static std::string compiledLauncher(const ArchivedKernel &kernel) {
  const TemporaryFolder folder("kilnc");
  const std::string source = folder / (kernel.name + ".c"), object = folder / "launcher.o";
  writeOutput(source, launcherOf(kernel));
  compileC(source, object);
  return readInput(object, INT64_MAX);
}

void writeArchive(const Kernel &kernel, const ArchiveOptions &options, const std::string &folder) {
  if (!llvm::all_of(options.name, [](char c) { return llvm::isAlnum(c) || c == '_'; }) || options.name.empty() ||
      llvm::isDigit(options.name[0]))
    throw Error(fmt::format("expected --name to be a name of C, but got '{}'", options.name));
  const ArchivedKernel archived{options.name, kernel, kernel.configText(options.config), compileAll(kernel, options)};
  std::vector<std::pair<std::string, std::string>> files = {
      {archived.name + "_launcher.o", compiledLauncher(archived)}};
  for (const TargetCode &code : archived.codes)
    if (!code.isGpu)
      files.emplace_back(archived.symbolOf(code) + ".o", renamed(archived, code));
  std::vector<llvm::NewArchiveMember> members;
  for (const auto &[name, bytes] : files)
    members.emplace_back(llvm::MemoryBufferRef(bytes, name));
  const auto archive = expect(llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                                         llvm::object::Archive::K_GNU, /*Deterministic=*/true,
                                                         /*Thin=*/false));
  std::error_code failure;
  fs::create_directories(folder, failure); // errors are reported when the files are written
  writeOutput((fs::path(folder) / (archived.name + ".h")).string(), headerOf(archived));
  writeOutput((fs::path(folder) / ("lib" + archived.name + ".a")).string(), archive->getBuffer().str());
}

// --- Images ----------------------------------------------------------------------------------------------------------

void writeImage(const Kernel &registered, const Kernel &kernel, const ArchiveOptions &options,
                const std::string &file) {
  std::vector<KernelImage::Setting> config;
  const std::string text = kernel.configText(options.config);
  for (const llvm::StringRef field : llvm::split(text, ',')) {
    const auto [name, value] = field.split('=');
    if (!name.empty())
      config.push_back({name.str(), value.str(), kernel.fields[config.size()].about});
  }
  std::vector<KernelImage> images;
  for (TargetCode &code : compileAll(kernel, options))
    images.push_back({code.key, kernel.name, code.target, code.features, config, registered.parameters, kernel.counts,
                      std::move(code.signature), std::move(code.code)});
  writeOutput(file, formatImages(images));
}

} // namespace kiln::tools
