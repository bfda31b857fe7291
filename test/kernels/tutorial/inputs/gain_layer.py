"""Makes the changes that chapter 12 describes to a copy of the sources, and compiles the changed files without code.

`gain_layer.py ROOT FOLDER` takes the sources' root and a new folder for the changed files, which come before ROOT's.
"""

import os
import re
import subprocess
import sys


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def write(folder, path, text):
    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
    with open(os.path.join(folder, path), "w", encoding="utf-8") as stream:
        stream.write(text)


def patched(text, diff):
    """The text with a diff whose parts, between lines `…`, each begin with lines of the text."""
    lines, place = text.splitlines(), 0
    for part in diff.split("…\n"):
        for line in part.splitlines():
            if line[0] == "+":
                lines.insert(place, line[1:])
                place += 1
            elif line[1:] not in lines[place:]:
                sys.exit(f"decoder.cc: expected this line of the page after line {place}: {line[1:]}")
            else:
                place = lines.index(line[1:], place)
                if line[0] == "-":
                    del lines[place]
                else:
                    place += 1
    return "\n".join(lines) + "\n"


def main():
    root, folder = sys.argv[1:]
    page, chapter = read(f"{root}/kernels/tutorial/12_gpt2.md"), read(f"{root}/kernels/tutorial/12_gpt2.cc")
    layer, diff = (re.search(rf"^```{language}\n(.*?)^```", page, re.M | re.S)[1] for language in ("cc", "diff"))
    plans = re.findall(r"^Plan .*?\)(?= \{)", chapter, re.M | re.S)
    kernels = re.findall(r"^const Kernel (\w+)", chapter, re.M)
    if not plans or not kernels:
        sys.exit("12_gpt2.cc: expected plans and kernels")
    declarations = f"namespace kiln {{\nextern const Kernel {', '.join(kernels)};\n{'; '.join(plans)};\n}}\n"
    write(folder, "kernels/gain.h", f'#pragma once\n#include "dialect/dsl/Plan.h"\n{declarations}')
    write(folder, "kernels/gain.cc", f'#include "kernels/gain.h"\nnamespace kiln {{\n'
          + re.sub(r"#include .*|using namespace .*", "", chapter) + "}\n")
    write(folder, "models/nn/gain.h", f'#pragma once\n#include "kernels/gain.h"\n#include "models/nn/build.h"\n'
          f"namespace kiln {{\n{layer}}}\n")
    header = read(f"{root}/models/nn/decoder.h")
    member = "  Embedding embedding;\n"
    if member not in header:
        sys.exit("decoder.h: expected the member 'embedding'")
    write(folder, "models/nn/decoder.h", header.replace(member, member + "  Gain gain;\n").replace(
        "#include", '#include "models/nn/gain.h"\n#include', 1))
    write(folder, "models/nn/decoder.cc", patched(read(f"{root}/models/nn/decoder.cc"), diff))
    for path in ("kernels/gain.cc", "models/nn/decoder.cc"):
        compiler = os.environ.get("CXX", "c++")
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Werror", f"-I{folder}", f"-I{root}",
                               f"{folder}/{path}"], check=False)
        if done.returncode != 0:
            sys.exit(f"{path}: expected to compile with the changes of 12_gpt2.md")


if __name__ == "__main__":
    main()
