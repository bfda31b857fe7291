"""Runs what a page shows: writes the blocks that begin with the name of a file, and runs the commands of the first sh
block and then the program. `page.py PAGE`."""

import pathlib
import re
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page.read(), re.M | re.S)
for _, text in blocks:
    if name := re.match(r"(?://|/\*) (\w+\.\w+)", text):
        path = pathlib.Path(name.group(1))
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else kilnc has compiled it before
            path.write_text(text, encoding="utf-8")
for command in next(text for kind, text in blocks if kind == "sh").splitlines():
    subprocess.run(command, shell=True, check=True)
subprocess.run(["./main"], check=True)
