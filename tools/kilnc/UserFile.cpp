// Compiles a user's C++ file to a shared object, loads it, and receives the kernels that it registers.

#include "tools/kilnc/UserFile.h"

#include "dialect/dsl/Registrations.h"
#include "runtime/KernelImage.h"
#include "tools/files/Files.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <regex>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln::tools {

// --- Headers ---------------------------------------------------------------------------------------------------------

/// The shared library that contains this code; empty if it is in a program.
static fs::path ownLibrary() {
  Dl_info info;
  std::error_code failure;
  const bool isLibrary = ::dladdr(reinterpret_cast<const void *>(&languageIdentity), &info) && info.dli_fname &&
                         fs::path(info.dli_fname).extension() == ".so";
  return isLibrary ? fs::canonical(info.dli_fname, failure) : fs::path();
}

static fs::path ownFolder() {
  std::error_code failure;
  const fs::path library = ownLibrary();
  return (library.empty() ? fs::read_symlink("/proc/self/exe", failure) : library).parent_path();
}

/// The folder of the language's headers. The first of these folders that has them: each of `includes`, and `kiln` in
/// it; a folder above this program's, as in an installed copy or a build; the source folder of the build.
static std::string headerFolder(const std::vector<std::string> &includes) {
  std::error_code failure;
  for (const std::string &include : includes)
    for (const fs::path &candidate : {fs::path(include), fs::path(include) / "kiln"})
      if (fs::exists(candidate / languageHeaders[0], failure))
        return candidate.string();
  for (fs::path folder = ownFolder(); !folder.empty(); folder = folder.parent_path()) {
    for (const fs::path &candidate : {folder, folder / "include/kiln"})
      if (fs::exists(candidate / languageHeaders[0], failure))
        return candidate.string();
    if (folder == folder.root_path())
      break;
  }
  if (fs::exists(fs::path(builtHeaders) / languageHeaders[0], failure))
    return builtHeaders;
  throw Error(
      fmt::format("expected '{}' in a folder above this program or in '{}', but found neither; name its folder with "
                  "--include",
                  languageHeaders[0], builtHeaders),
      Fault::device);
}

/// The text of a header as in the source tree. An installed one includes others by <kiln/…>, the only difference.
static std::string asInTree(const std::string &text) {
  static const std::regex installed(R"((#include )<kiln/([^>]+)>)");
  return std::regex_replace(text, installed, "$1\"$2\"");
}

/// As tools/cmake/HashSources.cmake does.
static std::string sha256(std::string_view text) {
  const auto digest = llvm::SHA256::hash(llvm::ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

/// Throws unless the headers are those that this program was built with, because others would not match its ABI.
static void checkHeaders(const std::string &folder) {
  std::string hashes;
  for (const char *header : languageHeaders)
    hashes += sha256(asInTree(readInput((fs::path(folder) / header).string()))) + "\n";
  if (sha256(hashes) != languageIdentity)
    throw Error(
        fmt::format("expected the headers in '{}' to be those that this program was built with, but they differ; build "
                    "it again",
                    folder),
        Fault::device);
}

/// A shared object requires a symbol of the program that loads it: this prefix followed by the hash.
static const std::string languageSymbol = "kiln_language_";

// --- Loading ---------------------------------------------------------------------------------------------------------

/// Loads the shared object compiled from `path`, which runs its static initialisers.
static void *load(const std::string &path, const std::string &object) {
  void *library = nullptr;
  // dlopen is declared noexcept, but passes exceptions of initialisers. Called by its name, the compiler would drop the
  // handlers.
  void *(*const volatile open)(const char *, int) = ::dlopen;
  try {
    library = open(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception &exception) {
    const std::string text = exception.what();
    if (text.find(": error: ") != std::string::npos) // a registration error with its line
      throw Error(text);
    throw Error(fmt::format("'{}' does not load: {}", path, text));
  } catch (...) {
    throw Error(fmt::format("'{}' does not load: it threw something that is no std::exception", path));
  }
  if (library)
    return library;
  const std::string text = ::dlerror();
  if (text.find(languageSymbol) != std::string::npos)
    throw Error(fmt::format("'{}' was compiled with the headers of another version of Kiln; make it again with kilnc "
                            "--emit=library",
                            path));
  throw Error(fmt::format("'{}' does not load: {}", path, text));
}

/// The line that would register `kernel`.
static std::string exampleLine(const std::string &kernel) {
  std::string config = kernel + "Config";
  config[0] = static_cast<char>(std::toupper(config[0]));
  return fmt::format(R"(const Kernel {0}Kernel = kernel("{0}", {0}, {{"x", "out"}}, {{field("block", &{1}::block)}});)",
                     kernel, config);
}

/// Throws unless the file exists.
static void checkReadable(const std::string &path) {
  std::error_code failure;
  const int error = fs::is_directory(path, failure) ? EISDIR : ::access(path.c_str(), R_OK) != 0 ? errno : 0;
  if (error)
    throw Error(fmt::format("expected to read '{}', but could not: {}", path, std::strerror(error)), Fault::device);
  expectInput(path);
}

/// Compiles the file with the language's headers. The object is linked with `library`, unless that is empty.
static void build(const std::string &path, const std::vector<std::string> &includes, const std::string &object,
                  const fs::path &library) {
  const fs::path headers = headerFolder(includes);
  checkHeaders(headers);
  std::vector<std::string> folders = includes, more;
  folders.push_back(headers);       // "dialect/dsl/Kernel.h"
  if (headers.filename() == "kiln") // <kiln/dialect/dsl/Kernel.h>
    folders.push_back(headers.parent_path());
  if (!library.empty())
    more = {"-DKILN_LANGUAGE=" + languageSymbol + languageIdentity, "-Wl,--no-as-needed", library.string()};
  compileShared(path, folders, object, more);
}

UserFile::UserFile(const std::string &path, const std::vector<std::string> &includes, const std::string &wanted) {
  if (path.ends_with(".kiln")) {
    registered = loadKernels(path); // which checks the file, and takes larger ones than sources are
    return;
  }
  checkReadable(path);
  Registrations registrations;
  if (path.ends_with(".so")) {
    library.reset(load(path, fs::absolute(path).string()));
  } else {
    const TemporaryFolder folder("kilnc");
    const std::string object = folder / "unit.so";
    build(path, includes, object, ownLibrary());
    library.reset(load(path, object));
  }
  registered = std::move(registrations.kernels);
  if (registered.empty())
    throw Error(fmt::format("expected a line that registers a kernel in '{}', such as\n    {}\nbut found none", path,
                            exampleLine(wanted.empty() ? "add" : wanted)));
}

/// libkiln next to this program, in a build or an installed copy.
static fs::path findLibrary() {
  std::error_code failure;
  for (const char *folder : {"lib", KILN_LIBDIR})
    if (const fs::path library = ownFolder().parent_path() / folder / "libkiln.so"; fs::exists(library, failure))
      return library;
  throw Error(fmt::format("expected libkiln.so in '{}', but it is not there",
                          (ownFolder().parent_path() / KILN_LIBDIR).string()),
              Fault::device);
}

void buildLibrary(const std::string &path, const std::vector<std::string> &includes, const std::string &output) {
  checkReadable(path);
  build(path, includes, output, findLibrary());
}

std::vector<const Kernel *> UserFile::kernels() const {
  std::vector<const Kernel *> kernels;
  for (const Kernel &kernel : registered)
    kernels.push_back(&kernel);
  return kernels;
}

void UserFile::Unload::operator()(void *library) const { ::dlclose(library); }

} // namespace kiln::tools
