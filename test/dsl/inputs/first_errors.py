"""Compares the errors of a C++ compiler with a source file: `first_errors.py SOURCE MESSAGES`.

A line below `// error: TEXT` must have an error, whose first message contains TEXT; no other line may have one. Prints a
line for each difference, and the number of lines that agree.
"""

import re
import sys

source, messages = (open(path, encoding="utf-8").read().splitlines() for path in sys.argv[1:])
wanted = {number + 2: line.split("// error: ")[1] for number, line in enumerate(source) if line.lstrip().startswith("// error: ")}
first, elsewhere = {}, []
for message in messages:
    found = re.match(r"(.*?):(\d+):\d+: (?:fatal )?error: (.*)", message)
    if found and found[1] == sys.argv[1]:
        first.setdefault(int(found[2]), found[3])
    elif found:
        elsewhere.append(message)
for number in sorted(wanted.keys() | first.keys()):
    if number not in wanted or wanted[number] not in first.get(number, ""):
        print(f"{number}: expected '{wanted.get(number, 'no error')}', but got '{first.get(number, 'no error')}'")
for message in elsewhere:
    print(message)
print(f"agree: {sum(wanted[number] in first.get(number, '') for number in wanted)}")
