"""Checks the numbers of a .npy file of 64: summary.py FILE LOW HIGH LEAST, with the bounds LOW <= number < HIGH, and at
least LEAST different numbers."""

import ast
import struct
import sys

CODES = {"<f2": "e", "<f4": "f", "<i4": "i", "|i1": "b", "|u1": "B", "|b1": "?", "<i8": "q"}

with open(sys.argv[1], "rb") as stream:
    data = stream.read()
begin = 10
end = begin + struct.unpack("<H", data[8:10])[0]
numbers = struct.unpack(f"<64{CODES[ast.literal_eval(data[begin:end].decode())['descr']]}", data[end:])
low, high, least = (float(word) for word in sys.argv[2:5])
assert all(low <= number < high for number in numbers), numbers
assert len(set(numbers)) >= least, numbers
