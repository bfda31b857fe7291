"""Runs tools/seed_tables/seed003.py on one small function, with an interpreter that has no peers."""

import os
import sys
import types

root, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(root, "tools", "seed_tables"))

import seed003  # noqa: E402

os.makedirs(folder, exist_ok=True)
seed003.FUNCTIONS = [("dot", 100, [10000], 2)]
seed003.PEERS = ["torch loop"]
alone = os.path.join(folder, "alone")
with open(alone, "w", encoding="utf-8") as script:
    script.write("#!/bin/sh\necho absent\n")
os.chmod(alone, 0o755)
print(seed003.run(types.SimpleNamespace(device="cpu", quick=True, python=alone), folder))
