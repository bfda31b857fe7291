"""Makes a project of the program that a page shows.

`program.py ROOT FOLDER PAGE`: the page has one C++ block with a `main`, of at most 25 lines, and one CMake block that finds
Kiln. They become FOLDER/axpy.cc and FOLDER/CMakeLists.txt.
"""

import os
import re
import sys

MOST_LINES = 25


def only(page, text, language, sign):
    """The one block of a language that holds `sign`."""
    found = [block for block in re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M) if sign in block]
    if len(found) != 1:
        sys.exit(f"{page}: expected one {language} block with '{sign}', but got {len(found)}")
    return found[0]


def main():
    root, folder, page = sys.argv[1:]
    with open(os.path.join(root, page), encoding="utf-8") as stream:
        text = stream.read()
    program, project = only(page, text, "cpp", "int main"), only(page, text, "cmake", "find_package(Kiln")
    if program.count("\n") > MOST_LINES:
        sys.exit(f"expected a program of at most {MOST_LINES} lines, but got {program.count(chr(10))}")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "axpy.cc"), "w", encoding="utf-8") as stream:
        stream.write(program)
    with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as stream:
        stream.write("cmake_minimum_required(VERSION 3.25)\nproject(outside LANGUAGES CXX)\n" + project)


if __name__ == "__main__":
    main()
