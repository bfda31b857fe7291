"""Ends kiln-fuzz by a signal when its first program is done, and prints what it said: `interrupt.py INT 130`, where 130 is
the status that it must have."""

import signal
import subprocess
import sys

name, expected = sys.argv[1:]
command = ["kiln-fuzz", "--programs", "1000000", "--every", "1", "--devices", "cpu"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fuzz:
    print(fuzz.stdout.readline(), end="")
    fuzz.send_signal(getattr(signal, "SIG" + name))
    print(fuzz.stdout.read(), end="")
    status = fuzz.wait()
sys.exit(0 if status == int(expected) else f"expected status {expected}, but got {status}")
