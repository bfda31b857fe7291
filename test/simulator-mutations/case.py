"""A case of a corpus, run by `kiln-sim --args`: a folder with kernel.ptx, its arrays as .npy files, and case.json:

    {"kernel": "add", "grid": [4, 1, 1], "block": [128, 1, 1], "shared": 0, "args": [ARGUMENT, ...]}

An argument's `kind` is `buffer` (a `file` of the folder: what it holds before the launch; with `want`, `atol` and `rtol` what
it must hold afterwards; `bits` names a format that NumPy lacks: bf16, e4m3, e5m2), `scratch` (`bytes`), `i32`, `i64`, `f32`
(a `value`) or `null`.

`case.py KILN_SIM FOLDER [FLAG...]` prints what the simulator reports, and the arrays that do not hold what they must; exit
status 1 when there is either.
"""

import ast
import json
import math
import os
import struct
import subprocess
import sys
import tempfile

CODES = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}
SMALL = {"bf16": (8, 7), "e4m3": (4, 3), "e5m2": (5, 2)}  # bits of exponent and mantissa


def real(code, bits):
    """The number that a small float's bits mean."""
    width, digits = SMALL[bits]
    exponent, mantissa, most = code >> digits & (1 << width) - 1, code & (1 << digits) - 1, (1 << width) - 1
    sign, bias = -1 if code >> width + digits else 1, (1 << width - 1) - 1
    if exponent == most and (bits != "e4m3" or mantissa == (1 << digits) - 1):
        return math.nan if mantissa else sign * math.inf
    return sign * math.ldexp(mantissa + (1 << digits if exponent else 0), max(exponent, 1) - bias - digits)


def numbers(path, bits=None):
    """The elements of a .npy file, in the order of its bytes."""
    with open(path, "rb") as stream:
        data = stream.read()
    end = 10 + struct.unpack("<H", data[8:10])[0]
    kind = ast.literal_eval(data[10:end].decode())["descr"][1:]
    values = struct.unpack(f"<{(len(data) - end) // struct.calcsize(CODES[kind])}{CODES[kind]}", data[end:])
    return [real(value, bits) for value in values] if bits and kind[0] == "u" else values


def spelt(argument, folder, after):
    """As --args has it; what an array holds after the launch goes to the file `after`."""
    kind = argument["kind"]
    if kind == "buffer":
        return os.path.join(folder, argument["file"]) + (f"->{after}" if "want" in argument else "")
    return f"u8[{argument['bytes']}]" if kind == "scratch" else "0" if kind == "null" else f"{kind}({argument['value']})"


def run(sim, folder, flags=(), text=None):
    """The exit status of the case, and what is said; `text` names another PTX file than the folder's."""
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as stream:
        case = json.load(stream)
    with tempfile.TemporaryDirectory() as place:
        after = [os.path.join(place, f"{i}.npy") for i in range(len(case["args"]))]
        words = [sim, text or os.path.join(folder, "kernel.ptx"), "--kernel", case["kernel"], "--shared", str(case["shared"]), *flags,
                 "--args", ", ".join(spelt(each, folder, path) for each, path in zip(case["args"], after))]
        words += [word for name in ("grid", "block") for word in (f"--{name}", ",".join(map(str, case[name])))]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        status, said = done.returncode, done.stdout
        for argument, path in zip(case["args"], after):
            if "want" not in argument or not os.path.exists(path):
                continue
            got, want = numbers(path, argument.get("bits")), numbers(os.path.join(folder, argument["want"]), argument.get("bits"))
            near = lambda a, b: a == b or a != a and b != b or abs(a - b) <= argument["atol"] + argument["rtol"] * abs(b)
            wrong = [i for i, pair in enumerate(zip(got, want, strict=True)) if not near(*pair)]
            if wrong:
                said += f"{argument['file']}: {len(wrong)} of {len(got)} elements are wrong: element {wrong[0]} is " \
                        f"{got[wrong[0]]:g}, want {want[wrong[0]]:g}\n"
                status = status or 1
        return status, said


if __name__ == "__main__":
    code, output = run(sys.argv[1], sys.argv[2], sys.argv[3:])
    print(output, end="")
    sys.exit(code)
