"""`floats.py write FILE NUMBER…` writes f32 numbers as a .npy file; `floats.py read FILE` prints those of one."""

import struct
import sys

verb, path, *numbers = sys.argv[1:]
if verb == "write":
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        stream.write(struct.pack(f"<{len(numbers)}f", *map(float, numbers)))
else:
    with open(path, "rb") as stream:
        data = stream.read()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    print(*struct.unpack(f"<{(len(data) - begin) // 4}f", data[begin:]))
