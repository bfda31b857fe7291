// Builds a user's C++ file into a shared object and finds its kernels.

#include "tools/kilnc/UserFile.h"

#include "runtime/Cache.h"
#include "tools/kilnc/Identity.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <spawn.h>
#include <sstream>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln::tools {

/// The function of the shared object that hands out its kernels: their number, and their addresses.
static constexpr const char *entryPoint = "kilnc_kernels";

static std::string readText(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) // to insert nothing would count as a failure
    text << file.rdbuf();
  if (!file.is_open() || file.bad())
    throw Error(fmt::format("expected to read '{}', but could not: {}", path.string(), std::strerror(errno)),
                Fault::device);
  return text.str();
}

// --- Registration lines ----------------------------------------------------------------------------------------------

/// The text with comments blanked out.
static std::string withoutComments(std::string text) {
  static const std::regex part(R"(//[^\n]*|/\*[^]*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')");
  std::string result;
  auto from = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), part), end; it != end; ++it) {
    result.append(from, (*it)[0].first);
    const std::string match = it->str();
    result += match[0] == '/' ? std::string(" ") : match;
    from = (*it)[0].second;
  }
  return result.append(from, text.cend());
}

std::vector<Registration> findRegistrations(const std::string &source) {
  // What decides which namespace a line is in, and the lines themselves; strings are passed over whole.
  static const std::regex part(
      R"re(\bnamespace\s+((?:\w+(?:::\w+)*)?)\s*\{|[{}]|)re"
      R"re(\bconst\s+(?:kiln\s*::\s*)?Kernel\s+(\w+)\s*=\s*(?:kiln\s*::\s*)?kernel\s*\(\s*"([^"]*)"|)re"
      R"re("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')re");
  const std::string text = withoutComments(source);
  std::vector<Registration> found;
  std::vector<std::string> scopes; // of every open brace: the name with `::` of a namespace, else nothing
  for (std::sregex_iterator it(text.begin(), text.end(), part), end; it != end; ++it) {
    const std::smatch &match = *it;
    const char first = *match[0].first;
    if (match[2].matched) {
      std::string scope;
      for (const std::string &name : scopes)
        scope += name;
      found.push_back({.kernel = match[3].str(), .variable = scope + match[2].str()});
    } else if (first == 'n') {
      scopes.push_back(match[1].length() ? match[1].str() + "::" : "");
    } else if (first == '{') {
      scopes.emplace_back();
    } else if (first == '}' && !scopes.empty()) {
      scopes.pop_back();
    }
  }
  return found;
}

// --- Headers ---------------------------------------------------------------------------------------------------------

/// The folder of the language's headers: above this program's own place, else where it was built.
static std::string headerFolder() {
  std::error_code failure;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", failure).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    for (const fs::path &candidate : {folder, folder / "include"})
      if (fs::exists(candidate / languageHeaders[0], failure))
        return candidate.string();
    if (folder == folder.root_path())
      break;
  }
  if (fs::exists(fs::path(sourceFolder) / languageHeaders[0], failure))
    return sourceFolder;
  throw Error(fmt::format("expected '{}' in a folder above kilnc or in '{}', but found neither; name its folder with "
                          "--include",
                          languageHeaders[0], sourceFolder),
              Fault::device);
}

/// Throws unless the headers are those that this program was built with: a kernel traced through others would not fit.
static void checkHeaders(const std::string &folder) {
  std::string hashes;
  for (const char *header : languageHeaders)
    hashes += sha256(readText(fs::path(folder) / header)) + "\n";
  if (sha256(hashes) != languageIdentity)
    throw Error(
        fmt::format("expected the headers in '{}' to be those that kilnc was built with, but they differ; build "
                    "kilnc again",
                    folder),
        Fault::device);
}

// --- Compiling -------------------------------------------------------------------------------------------------------

namespace {
/// A folder that goes with its content.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "kilnc-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw Error(fmt::format("expected to make a folder '{}', but could not: {}", pattern, std::strerror(errno)),
                  Fault::device);
    path = pattern;
  }
  ~TemporaryFolder() {
    std::error_code failure;
    fs::remove_all(path, failure);
  }
  fs::path path;
};
} // namespace

/// Runs a program with `input` as its standard input; its exit status.
static int runProgram(const std::vector<std::string> &words, const fs::path &input) {
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure)
    throw Error(
        fmt::format("expected to run the C++ compiler '{}', but could not: {}", words[0], std::strerror(failure)),
        Fault::device);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

/// The compiler's command: $CXX, which may name flags too, or c++.
static std::vector<std::string> compilerCommand() {
  const char *variable = std::getenv("CXX");
  std::istringstream words(variable && *variable ? variable : "c++");
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

/// The user's file, and a function that hands out its kernels. It is compiled from standard input so that the file's
/// name is spelt in locations as the user spelt it.
static void writeUnit(const fs::path &unit, const std::string &path, const std::vector<Registration> &registrations) {
  std::ofstream out(unit);
  out << "#include \"" << path << "\"\n"
      << "extern \"C\" int " << entryPoint << "(const kiln::Kernel **kernels) {\n"
      << "  using namespace kiln;\n"
      << "  const Kernel *const all[] = {";
  for (const Registration &registration : registrations)
    out << "&::" << registration.variable << ", ";
  out << "};\n"
      << "  for (int i = 0; kernels && i < " << registrations.size() << "; ++i)\n"
      << "    kernels[i] = all[i];\n"
      << "  return " << registrations.size() << ";\n}\n";
}

/// Loads the shared object made of `path`, which runs its static initialisers.
static void *load(const std::string &path, const fs::path &object) {
  void *library = nullptr;
  // dlopen is declared to throw nothing, but lets the exceptions of initialisers pass; called by its name, the compiler
  // would drop the handlers.
  void *(*const volatile open)(const char *, int) = ::dlopen;
  try {
    library = open(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  } catch (const std::exception &exception) {
    throw Error(fmt::format("'{}' does not load: {}", path, exception.what()));
  } catch (...) {
    throw Error(fmt::format("'{}' does not load: it threw something that is no std::exception", path));
  }
  if (!library)
    throw Error(fmt::format("'{}' does not load: {}", path, ::dlerror()));
  return library;
}

static void *compileAndLoad(const std::string &path, const std::vector<std::string> &includes,
                            const std::vector<Registration> &registrations) {
  const TemporaryFolder folder;
  const fs::path unit = folder.path / "unit.cc", object = folder.path / "unit.so";
  writeUnit(unit, path, registrations);
  std::vector<std::string> words = compilerCommand();
  // The object's own definitions come before this program's: the file may be a changed copy of a built-in kernel's.
  for (const char *flag : {"-std=c++20", "-O0", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-I."})
    words.emplace_back(flag);
  for (const std::string &include : includes)
    words.push_back("-I" + include);
  for (const std::string &word :
       {std::string("-o"), object.string(), std::string("-x"), std::string("c++"), std::string("-")})
    words.push_back(word);
  const int status = runProgram(words, unit);
  if (status != 0)
    throw Error(fmt::format("'{}' does not compile: the messages of '{}' are above", path, words[0]));
  return load(path, object);
}

/// The line that would register `kernel`.
static std::string exampleLine(const std::string &kernel) {
  std::string config = kernel + "Config";
  config[0] = static_cast<char>(std::toupper(config[0]));
  return fmt::format(R"(const Kernel {0}Kernel = kernel("{0}", {0}, {{field("block", &{1}::block)}});)", kernel,
                     config);
}

UserFile::UserFile(const std::string &path, const std::vector<std::string> &includes, const std::string &wanted) {
  const std::vector<Registration> registrations = findRegistrations(readText(path));
  if (registrations.empty())
    throw Error(fmt::format("expected a line that registers a kernel in '{}', such as\n    {}\nbut found none", path,
                            exampleLine(wanted.empty() ? "add" : wanted)));
  std::vector<std::string> folders = includes;
  if (folders.empty())
    folders.push_back(headerFolder());
  checkHeaders(folders[0]);
  library = compileAndLoad(path, folders, registrations);
  const auto entry = reinterpret_cast<int (*)(const Kernel **)>(::dlsym(library, entryPoint));
  found.resize(entry(nullptr));
  entry(found.data());
}

UserFile::~UserFile() {
  if (library)
    ::dlclose(library);
}

} // namespace kiln::tools
