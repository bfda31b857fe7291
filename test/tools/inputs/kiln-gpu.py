#!/usr/bin/env python3
"""A stand-in for kiln-gpu: the commands that run-gpu calls, on a GPU that fails at one test."""

import json
import sys
import time

OUTCOMES = {"A.Equal": "equal", "A.Faults": "fault", "B.Varies": "varies", "B.Refused": "refused"}

if sys.argv[1] == "approximations":
    print('{"instruction": "ex2", "max_ulp": 2}')
    sys.exit(3)
if sys.argv[1:3] == ["bench", "probe"]:
    begin = time.time()
    time.sleep(0.5)
    row = {"bench": "probe", "part": "loop", "name": "nn", "us": 2, "begin": begin, "end": time.time()}
    with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
        json.dump([row], file)
    sys.exit(0)
if "--gtest_list_tests" in sys.argv:
    print("A.\n  Equal\n  Faults\nB.\n  Varies\n  Refused")
    sys.exit(0)
asked = next(flag for flag in sys.argv if flag.startswith("--gtest_filter=")).partition("=")[2]
for name in asked.split(":"):
    print(f"[ RUN      ] {name}")
    with open(sys.argv[2], "a") as file:
        file.write(json.dumps({"test": name, "kernel": "k", "target": "sm_80", "outcome": OUTCOMES[name], "detail": OUTCOMES[name]}) + "\n")
    if OUTCOMES[name] == "fault":
        sys.exit(75)
