"""Makes a project of the program that the READMEs show.

`program.py ROOT FOLDER README...`: each README has one C++ block with a `main` and one CMake block that finds Kiln, and
these must be the same everywhere, the program of at most 25 lines. They become FOLDER/axpy.cc and FOLDER/CMakeLists.txt.
"""

import os
import re
import sys

MOST_LINES = 25


def only(readme, text, language, sign):
    """The one block of a language that holds `sign`."""
    found = [block for block in re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M) if sign in block]
    if len(found) != 1:
        sys.exit(f"{readme}: expected one {language} block with '{sign}', but got {len(found)}")
    return found[0]


def main():
    root, folder, *readmes = sys.argv[1:]
    programs, projects = set(), set()
    for readme in readmes:
        with open(os.path.join(root, readme), encoding="utf-8") as stream:
            text = stream.read()
        programs.add(only(readme, text, "cpp", "int main"))
        projects.add(only(readme, text, "cmake", "find_package(Kiln"))
    if len(programs) != 1 or len(projects) != 1:
        sys.exit(f"expected the same program in {' and '.join(readmes)}, but they differ")
    program, project = programs.pop(), projects.pop()
    if program.count("\n") > MOST_LINES:
        sys.exit(f"expected a program of at most {MOST_LINES} lines, but got {program.count(chr(10))}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "axpy.cc"), "w", encoding="utf-8") as stream:
        stream.write(program)
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as stream:
        stream.write("cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\n" + project)


if __name__ == "__main__":
    main()
