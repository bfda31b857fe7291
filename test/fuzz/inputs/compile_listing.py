"""Compiles a kernel that kiln-fuzz printed, with the arguments that its comment names: `compile_listing.py FILE`."""

import re
import subprocess
import sys

with open(sys.argv[1], encoding="utf-8") as listing:
    arguments = re.search(r"kilnc FILE --args='(.*)'", listing.read()).group(1)
sys.exit(subprocess.run(["kilnc", sys.argv[1], f"--args={arguments}", "--emit=tile"], check=False).returncode)
