"""Runs what tools/python/README.md shows, in the order of the page: its C++ file is compiled, and its Python is run where
PyTorch is installed. `python_page.py PAGE`."""

import importlib.util
import re
import sys

import kiln

blocks = re.findall(r"^```(\w+)\n(.*?)^```", open(sys.argv[1], encoding="utf-8").read(), re.M | re.S)
for kind, text in blocks:
    if kind == "cpp":
        with open(re.match(r"// (\S+)\n", text).group(1), "w", encoding="utf-8") as file:
            file.write(text)
assert [kernel.name for kernel in kiln.load("axpy.cc")] == ["axpy"]
if importlib.util.find_spec("torch"):
    names = {}
    for kind, text in blocks:
        if kind == "py":
            exec(text, names)  # later blocks use what earlier ones have defined
    print("the page's Python ran")
else:
    print("skipped: torch is not installed")
