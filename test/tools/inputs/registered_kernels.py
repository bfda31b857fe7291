"""Traces every kernel of `kilnc --list`; ends with the first error or warning."""

import re
import subprocess
import sys


def argument(kind, text):
    """An argument of --args: f32 unless the text names a type, with extents of 64."""
    named = re.match(r"(?:\([^)]*\) ?)?(i8|i32|i64|bf16|f32)\b", text)
    element = named[1] if named else "f32"
    if kind == "scalar":
        return element
    return f"{element}[{'x'.join('64' for _ in re.match(r'[(]([^)]*)', text)[1].split(','))}]"


kernels = {}
for line in subprocess.run(["kilnc", "--list"], check=True, capture_output=True, text=True).stdout.splitlines():
    if not line.startswith(" "):
        arguments = kernels[line] = []
    elif (words := line.split(None, 2))[1] != "field":
        arguments.append(argument(words[1], words[2]))
if len(kernels) < 30:
    sys.exit(f"expected at least 30 kernels, but got {len(kernels)}")
for name, arguments in kernels.items():
    traced = subprocess.run(["kilnc", f"--kernel={name}", f"--args={', '.join(arguments)}", "--emit=tile"], check=False,
                            capture_output=True, text=True)
    if traced.returncode or traced.stderr:
        sys.exit(f"{name} with {', '.join(arguments)}: {traced.stderr}")
