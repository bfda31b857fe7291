"""Writes cases for kiln-sim that are not as they should be, and texts with many variables, into the new folder argv[1]."""

import json
import os
import shutil
import sys

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = ".visible .entry k(.param .u64 p){\n ret;\n}\n"


def case(folder, shape, data):
    """A case of one array of f32, column by column."""
    os.makedirs(folder)
    with open(os.path.join(folder, "kernel.ptx"), "w", encoding="utf-8") as stream:
        stream.write(HEAD + KERNEL)
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as stream:
        argument = {"kind": "buffer", "file": "in0.npy"}
        json.dump({"kernel": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "shared": 0, "args": [argument]}, stream)
    header = f"{{'descr': '<f4', 'fortran_order': True, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(os.path.join(folder, "in0.npy"), "wb") as stream:
        stream.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data)


def main():
    root = sys.argv[1]
    shutil.rmtree(root, ignore_errors=True)
    case(os.path.join(root, "zero"), (0, 2), bytes(8))
    case(os.path.join(root, "short"), (1000, 1000), bytes(16))
    case(os.path.join(root, "brackets"), (2, 2), bytes(16))
    with open(os.path.join(root, "brackets", "case.json"), "w", encoding="utf-8") as stream:
        stream.write("[" * (2 << 20))
    with open(os.path.join(root, "many.ptx"), "w", encoding="utf-8") as stream:
        stream.write(HEAD + "".join(f".global .b8 v{i};\n" for i in range(200000)) + ".visible .entry k(){ret;}\n")
    with open(os.path.join(root, "chain.ptx"), "w", encoding="utf-8") as stream:
        links = "".join(f".global .b64 v{i} = v{i - 1};\n" for i in range(1, 60000))
        stream.write(f"{HEAD}.global .b64 v0;\n{links}.visible .entry k(){{ .reg .b64 %rd<2>; mov.u64 %rd1, v59999; ret;}}\n")


main()
