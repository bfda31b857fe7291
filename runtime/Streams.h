// The standard streams of a program. A lost message never ends the program. A result that could not be written is an
// error. The exit status says whose fault an error is.
//
//     int main() {
//       return runProgram("program", [] {
//         writeResult(compute());
//         return 0;
//       });
//     }

#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace kiln {

/// Must be the first call of a program.
/// - Closed streams are opened on /dev/null, so that no file gets their numbers. Writing a result there is still an
/// error.
/// - A write to a pipe without a reader, or beyond the maximum file size, fails like any other and raises no signal.
/// - Failed writes of LLVM do not change the exit status.
void openStandardStreams() noexcept;

/// Writes a message to standard error, in one piece if the system can. It throws nothing and raises no signal, also
/// without openStandardStreams(). If standard error is closed or full, the message is lost.
void say(std::string_view message) noexcept;

/// Writes to standard output through stdio's buffer, in order with other output of the program. Throws nothing and
/// raises no signal.
void show(std::string_view text) noexcept;

/// Flushes stdio and writes `text` to standard output. Throws Error (device) if not everything could be written.
void writeResult(std::string_view text);

/// The message of `error` for the user. Exceptions of the standard library get plain words.
std::string messageOf(const std::exception &error);
/// The exit status of a program that ends with `error`. 2: a mistake of the caller. 3: the machine or the file system,
/// also if memory is exhausted. 4: a bug in Kiln.
int exitStatus(const std::exception &error) noexcept;
/// Prints `program: error: …`, or only the error if it begins with a place in a file, as compilers do. Returns its
/// exitStatus().
int report(std::string_view program, const std::exception &error) noexcept;

/// The whole of a program's main(): openStandardStreams(), then `work`, whose result is the exit status. An exception
/// is passed to report().
int runProgram(std::string_view program, const std::function<int()> &work) noexcept;

} // namespace kiln
