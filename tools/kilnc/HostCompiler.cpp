// Runs the system's C++ compiler, and caches its objects.
//
// An entry of the compile cache is keyed by the command. It has the files that the compiler read, its messages, and the
// object. It is valid while those files have the same sizes and times.

#include "tools/kilnc/UserFile.h"

#include "dialect/dsl/Types.h"
#include "runtime/Cache.h"
#include "runtime/Streams.h"
#include "tools/files/Files.h"

#include "llvm/Support/Program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <spawn.h>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln::tools {

static std::string readText(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// --- The command -----------------------------------------------------------------------------------------------------

/// The compiler named by an environment variable, possibly with flags, or else `otherwise`.
static std::vector<std::string> compilerCommand(const char *variable, const char *otherwise) {
  std::istringstream words(variable && *variable ? variable : otherwise);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

/// The path as an argument that is not mistaken for a flag.
static std::string asArgument(const std::string &path) { return path.starts_with("-") ? "./" + path : path; }

static std::vector<std::string> commandFor(const std::string &path, const std::vector<std::string> &includes,
                                           const std::vector<std::string> &more) {
  std::vector<std::string> words = compilerCommand(std::getenv("CXX"), "c++");
  // The object's definitions take precedence over this program's, because the file may be a changed copy of a built-in
  // kernel. The assertions stop an access to a view that is not there.
  for (const char *flag : {"-std=c++20", "-O0", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-D_GLIBCXX_ASSERTIONS", "-I."})
    words.emplace_back(flag);
  if (::isatty(STDERR_FILENO)) // because the compiler's messages go through a file
    words.emplace_back("-fdiagnostics-color=always");
  for (const std::string &include : includes)
    words.push_back("-I" + include);
  for (const std::string &word :
       {std::string("-x"), std::string("c++"), asArgument(path), std::string("-x"), std::string("none")})
    words.push_back(word);
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Runs a program with stderr redirected to the file `messages`; returns its exit status.
static int runProgram(const std::vector<std::string> &words, const std::string &messages) {
  std::vector<char *> argv;
  for (const std::string &word : words)
    argv.push_back(const_cast<char *>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int failure = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure)
    throw Error(fmt::format("a source file requires a compiler, but '{}' cannot be run: {}; set CXX or CC", words[0],
                            std::strerror(failure)),
                Fault::device);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

// --- Files that the compiler read ------------------------------------------------------------------------------------

/// The size of a file, and the times of its last changes of content and status in nanoseconds; none without a file.
static std::optional<std::string> fileState(const std::string &path) {
  struct stat file;
  if (::stat(path.c_str(), &file) != 0)
    return std::nullopt;
  return fmt::format("{} {}.{:09} {}.{:09}", file.st_size, file.st_mtim.tv_sec, file.st_mtim.tv_nsec,
                     file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
}

/// Whether the file has not been changed since `time`.
static bool isOlder(const std::string &path, const timespec &time) {
  struct stat file;
  return ::stat(path.c_str(), &file) == 0 &&
         std::pair(file.st_ctim.tv_sec, file.st_ctim.tv_nsec) < std::pair(time.tv_sec, time.tv_nsec);
}

/// The prerequisites of a make rule written by a compiler.
static std::vector<std::string> filesOfRule(const std::string &rule) {
  std::vector<std::string> files;
  std::string file;
  const auto end = [&] {
    if (!file.empty())
      files.push_back(std::exchange(file, {}));
  };
  for (size_t i = std::min(rule.find(':'), rule.size() - 1) + 1; i < rule.size(); ++i) {
    const std::string_view two = std::string_view(rule).substr(i, 2);
    if (two == "\\\n") {
      end();
      ++i;
    } else if (two == "\\ " || two == "\\#" || two == "$$") {
      file += two[1];
      ++i;
    } else if (std::isspace(static_cast<unsigned char>(rule[i]))) {
      end();
    } else {
      file += rule[i];
    }
  }
  end();
  return files;
}

// --- Entries ---------------------------------------------------------------------------------------------------------

namespace {
struct Entry {
  std::vector<std::pair<std::string, std::string>> files; // state and path of each file
  std::string messages, object;
};
} // namespace

static std::string keyOf(const std::vector<std::string> &words) {
  std::error_code failure;
  const llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName(words[0]);
  std::string text = fmt::format("a user's file\n{}\n{}\n{}\n", languageIdentity, fs::current_path(failure).string(),
                                 fileState(program ? *program : "").value_or(""));
  for (const char *name : {"CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"})
    if (const char *value = std::getenv(name))
      text += fmt::format("{}={}\n", name, value);
  return digestOf(text + fmt::format("{}", fmt::join(words, "\n")));
}

/// `FILES MESSAGES`, two numbers, a line `STATE\tPATH` for each file, then the messages and the object.
static std::vector<char> contentOf(const Entry &entry) {
  std::string text = fmt::format("{} {}\n", entry.files.size(), entry.messages.size());
  for (const auto &[state, path] : entry.files)
    text += fmt::format("{}\t{}\n", state, path);
  text += entry.messages;
  text += entry.object;
  return {text.begin(), text.end()};
}

static std::optional<Entry> entryOf(const std::vector<char> &content) {
  std::istringstream stream(std::string(content.begin(), content.end()));
  size_t files = 0, messages = 0;
  std::string line;
  if (!(stream >> files >> messages) || !std::getline(stream, line))
    return std::nullopt;
  Entry entry;
  for (size_t i = 0; i < files && std::getline(stream, line); ++i) {
    const size_t tab = std::min(line.find('\t'), line.size() - 1);
    entry.files.emplace_back(line.substr(0, tab), line.substr(tab + 1));
  }
  const std::string rest(std::istreambuf_iterator<char>(stream), {});
  if (entry.files.size() != files || rest.size() < messages)
    return std::nullopt;
  entry.messages = rest.substr(0, messages);
  entry.object = rest.substr(messages);
  return entry;
}

static std::optional<Entry> load(DiskCache &cache, const std::string &key) {
  const std::optional<std::vector<char>> content = cache.load(key);
  std::optional<Entry> entry = content ? entryOf(*content) : std::nullopt;
  if (entry)
    for (const auto &[state, path] : entry->files)
      if (fileState(path) != state)
        return std::nullopt;
  return entry;
}

/// Stores the object, unless a file that the compiler read was changed after `begin`, its start.
static void store(DiskCache &cache, const std::string &key, const timespec &begin, Entry entry,
                  const std::vector<std::string> &files) {
  for (const std::string &file : files) {
    const std::optional<std::string> state = fileState(file);
    if (!state || !isOlder(file, begin))
      return;
    entry.files.emplace_back(*state, file);
  }
  if (!files.empty() && !entry.object.empty())
    cache.store(key, contentOf(entry));
}

// --- Compiling -------------------------------------------------------------------------------------------------------

void compileShared(const std::string &path, const std::vector<std::string> &includes, const std::string &object,
                   const std::vector<std::string> &more) {
  std::vector<std::string> words = commandFor(path, includes, more);
  DiskCache cache = DiskCache::fromEnvironment();
  const std::string key = keyOf(words);
  if (const std::optional<Entry> kept = load(cache, key)) {
    say(kept->messages);
    if (std::ofstream stream(object, std::ios::binary); !(stream << kept->object).flush())
      throw Error(fmt::format("expected to write '{}', but could not: {}", object, std::strerror(errno)),
                  Fault::device);
    return;
  }
  timespec begin;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &begin); // the clock of file times
  const TemporaryFolder folder("kilnc");
  const std::string messages = folder / "messages", rule = folder / "files";
  for (const std::string &word : {std::string("-o"), object, std::string("-MD"), std::string("-MF"), rule})
    words.push_back(word);
  const int status = runProgram(words, messages);
  const std::string said = readText(messages);
  say(said);
  if (status != 0)
    throw Error(fmt::format("'{}' does not compile: the messages of '{}' are above", path, words[0]));
  store(cache, key, begin, {{}, said, readText(object)}, filesOfRule(readText(rule)));
}

void compileC(const std::string &path, const std::string &object) {
  std::vector<std::string> words = compilerCommand(std::getenv("CC"), "cc");
  for (const std::string &word : {std::string("-std=c99"), std::string("-O2"), std::string("-fPIC"), std::string("-c"),
                                  std::string("-o"), object, path})
    words.push_back(word);
  const TemporaryFolder folder("kilnc");
  const std::string messages = folder / "messages";
  const int status = runProgram(words, messages);
  say(readText(messages));
  if (status != 0)
    throw Error(fmt::format("the launcher of the kernel does not compile: the messages of '{}' are above", words[0]),
                Fault::device);
}

} // namespace kiln::tools
