"""Writes and shows .npy files without NumPy, for tests.

`npy.py write FILE DESCR SHAPE NUMBER...` writes an array, DESCR such as <f4, SHAPE such as 2x3; `npy.py show FILE` prints
the file's dictionary and its numbers.
"""

import ast
import struct
import sys

CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "V2": "H"}
CODES |= {"f2": "e", "f4": "f", "f8": "d"}


def write(path, descr, shape, *numbers):
    code = CODES[descr[1:]]
    extents = tuple(int(extent) for extent in shape.split("x"))
    header = repr({"descr": descr, "fortran_order": False, "shape": extents}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    values = [float(number) if code in "efd" else int(number) for number in numbers]
    with open(path, "wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        stream.write(struct.pack(f"<{len(values)}{code}", *values))


def show(path):
    with open(path, "rb") as stream:
        data = stream.read()
    begin = 10
    end = begin + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[begin:end].decode())
    code = CODES[header["descr"][1:]]
    numbers = struct.unpack(f"<{(len(data) - end) // struct.calcsize(code)}{code}", data[end:])
    print(header["descr"], header["shape"], *numbers)


if __name__ == "__main__":
    {"write": write, "show": show}[sys.argv[1]](*sys.argv[2:])
