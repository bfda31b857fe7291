"""Runs what a page shows: writes the blocks that begin with the name of a file, and runs the commands of the first sh
block and then the program. `page.py PAGE`, in an empty folder."""

import re
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as page:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", page.read(), re.M | re.S)
for _, text in blocks:
    if name := re.match(r"(?://|/\*) (\w+\.\w+)", text):
        with open(name.group(1), "w", encoding="utf-8") as file:
            file.write(text)
for command in next(text for kind, text in blocks if kind == "sh").splitlines():
    subprocess.run(command, shell=True, check=True)
subprocess.run(["./main"], check=True)
