"""The command `kilnc` of an installed wheel, also `python3 -m kiln`: the C++ program, which is a part of its libkiln.so."""

import ctypes
import os
import signal
import sys

from . import _c


def main():
    if not hasattr(_c.library, "kiln_command"):
        sys.exit(f"kilnc: expected the libkiln.so of a wheel, which has kilnc in it, but got '{_c.library._name}'")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would wait for the program's end
    words = [os.fsencode(word) for word in ["kilnc", *sys.argv[1:]]]
    sys.exit(_c.library.kiln_command(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))


if __name__ == "__main__":
    main()
