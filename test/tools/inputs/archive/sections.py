"""Compares the code, the data and the relocations of two ELF objects, except for names: `sections.py A B`."""

import struct
import sys

RELA, NOBITS = 4, 8
ALLOC, CODE = 2, 4


def sections(path):
    """The flags and the bytes of each section of the program, and what its relocations are except for symbols."""
    with open(path, "rb") as file:
        data = file.read()
    begin, size, count = (*struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58))
    found = []
    for i in range(count):
        _, kind, flags, _, offset, length = struct.unpack_from("<IIQQQQ", data, begin + i * size)
        part = b"" if kind == NOBITS else data[offset:offset + length]
        if flags & ALLOC:
            found.append((flags, part))
        elif kind == RELA:
            found.append((0, b"".join(part[at:at + 12] + part[at + 16:at + 24] for at in range(0, length, 24))))
    return sorted(found)


first, second = (sections(path) for path in sys.argv[1:])
assert any(flags & CODE and part for flags, part in first), "no code"
assert first == second, f"sections of {sys.argv[1]} and {sys.argv[2]} differ"
