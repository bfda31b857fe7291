// The standard streams of a program. A message may be lost, but never ends the program that says it; a result that
// could not be written is an error; and the exit status says whose fault an error was.
//
//     int main() {
//       openStandardStreams();
//       try {
//         writeResult(compute());
//         return 0;
//       } catch (const std::exception &error) {
//         return report("program", error);
//       }
//     }

#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace kiln {

/// The first call of a program. Streams that are closed are opened on /dev/null, so that no file takes their number;
/// writing a result there is an error still. From now on a write to a pipe without a reader, or to a file at its
/// largest size, fails as any other does and raises no signal; and what LLVM could not write leaves the exit status as
/// it is.
void openStandardStreams() noexcept;

/// Writes a message to standard error, in one piece where the system can. It throws nothing and raises no signal, in a
/// program that did not call openStandardStreams() too; where standard error is closed or full the message is lost.
void say(std::string_view message) noexcept;

/// Writes to standard output, in order with what the program itself prints there through stdio, and buffered with it.
/// Like say(): nothing thrown, no signal.
void show(std::string_view text) noexcept;

/// Writes `text`, and what stdio still holds, to standard output. Throws Error (device) when not all could be written.
void writeResult(std::string_view text);

/// What a user is told about `error`: its text, and in plain words what the standard library says in its own.
std::string messageOf(const std::exception &error);
/// The exit status of a program that `error` ends: 2 for a mistake of the caller's, 3 for the machine's or the file
/// system's, memory included, 4 for one of Kiln's own.
int exitStatus(const std::exception &error) noexcept;
/// Says `program: error: …`, or the error alone where it begins with a place in a file, as a compiler does. Returns its
/// exitStatus.
int report(std::string_view program, const std::exception &error) noexcept;

} // namespace kiln
