"""Runs what pages show, in their order: a C++ block that begins with its file's name is compiled, and Python is run where
PyTorch is installed. `python_page.py PAGE...`."""

import importlib.util
import re
import sys

import kiln

blocks = [block for page in sys.argv[1:]
          for block in re.findall(r"^```(\w+)\n(.*?)^```", open(page, encoding="utf-8").read(), re.M | re.S)]
for kind, text in blocks:
    name = re.match(r"// (\w+\.cc)\n", text)
    if kind == "cpp" and name:
        with open(name.group(1), "w", encoding="utf-8") as file:
            file.write(text)
assert [kernel.name for kernel in kiln.load("axpy.cc")] == ["axpy"]
if importlib.util.find_spec("torch"):
    names = {}
    for kind, text in blocks:
        if kind == "py":
            exec(text, names)  # later blocks use what earlier ones have defined
    print("the pages' Python ran")
else:
    print("skipped: torch is not installed")
