"""Takes the examples out of the op definitions: every ```mlir block of the .td files named on the command line.

Prints them one after the other, split as kiln-opt's --split-input-file wants it, each below a comment with its place.
Exits with a message when an operation has no example that uses it.
"""

import re
import sys

missing = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    # A definition ends before the next `def` or `class` at the beginning of a line.
    for definition in re.split(r"^(?=def |class )", text, flags=re.M):
        blocks = re.findall(r"```mlir\n(.*?)```", definition, re.S)
        operation = re.match(r'def (Tile|Simt)_\w+Op : \1_\w*Op<"(\w+)"', definition)
        name = operation and f"{operation[1].lower()}.{operation[2]}"
        if operation and not any(re.search(rf"\b{name}\s", block) for block in blocks):
            missing.append(f"{path}: expected an example that uses {name}")
        for block in blocks:
            print(f"// {path}\n{block}\n// -----")
if missing:
    sys.exit("\n".join(missing))
