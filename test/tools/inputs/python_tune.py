"""Tunes kernels from Python, without another package: `python_tune.py tuned.cc FOLDER`."""

import array
import os
import sys

import kiln

sys.dont_write_bytecode = True
from expect import fails  # noqa: E402

kernels = kiln.load(sys.argv[1])
findings = os.path.join(sys.argv[2], "python.txt")
N = 3000
x, out = array.array("f", range(N)), array.array("f", [7] * N)


def programs(config):
    return kiln.cdiv(N, config["block"])


# The config of all candidates; the arrays keep their contents, and a launch takes the config. A process reads the file
# that KILN_FINDINGS names again after tuning.
os.environ["KILN_FINDINGS"] = findings
with open(findings, "w"):
    pass
with kiln.open("simulator:sm_80"):
    assert kernels.scale.tuned(x, out) == {}
    best = kernels.scale.tune(x, out, grid=programs, findings=findings, verbose=True)
    assert set(best) == {"block", "twice"} and best["twice"] == 0 and best["block"] in (64, 128, 512), best
    assert kernels.scale.tuned(x, out) == best
    assert list(out) == [7] * N
    kernels.scale[programs](x, out, **best)
assert list(out) == [3 * i for i in range(N)]

# A config that leaves out elements is wrong, also where the array has the right results before, and where it is read.
fixed, half = kiln.cdiv(N, 32), [{"block": 16}]
with kiln.open("simulator:sm_80"):
    missing = "config block=16: expected the result of the default config, 4512 at (1504) of 'out', but got "
    fails(lambda: kernels.scale.tune(x, out, grid=fixed, configs=half), missing + "nan")
    fails(lambda: kernels.scale.tune(x, x, grid=fixed, configs=half), missing + "1504")
assert list(out) == [3 * i for i in range(N)] and list(x) == list(range(N))

# A field that is given keeps its value; configs may be listed; the default is one of them.
with kiln.open("simulator:sm_80"):
    assert kernels.scale.tune(x, out, grid=programs, block=64) == {"block": 64, "twice": 0}
    listed = [{"block": 3000}, {"block": 64, "twice": True}]
    slow = kernels.scale.tune(x, out, grid=programs, configs=listed[1:])
    assert slow in ({"block": 32, "twice": 0}, {"block": 64, "twice": 1}), slow

# A file that is named takes the place of that of KILN_FINDINGS; a bucket is valid for its other extents.
bucket, halves = os.path.join(sys.argv[2], "bucket.txt"), (x[:1500], out[:1500])
with kiln.open("simulator:sm_80"):
    blocks = [{"block": 32 * i} for i in range(1, 13)]
    best = kernels.scale.tune(x, out, grid=programs, configs=blocks, bucket="x.0, out.0", findings=bucket, verbose=True)
    assert kernels.scale.tuned(x[:2500], out[:2500], findings=bucket) == best
    assert kernels.scale.tuned(x[:2500], out[:2500]) == kernels.scale.tuned(*halves, findings=bucket) == {}

# On a CPU times are measured; every other element of an array is tuned, and the ones between keep their values, too.
spaced = memoryview(array.array("f", range(2 * N)))
assert kernels.scale.tune(x, spaced[::2], grid=programs, budget=5, configs=listed)["block"] in (32, 64, 3000)
assert list(spaced) == list(range(2 * N))


small = x[:64], out[:1]
wrong = os.path.join(sys.argv[2], "wrong.txt")
fails(lambda: kernels.wrong.tune(*small, grid=1, budget=5, configs=[{"chunk": 8}], findings=wrong), "config chunk=8: expected the result of the default config")
fails(lambda: kernels.wrong.tune(*small, grid=1, budget=5, configs=[{"chunk": 8}]), "a field, let grid= depend on it; if a field changes results, mark it with .changing() and pass vary_results=True")
assert not os.path.exists(wrong)
fails(lambda: kernels.changing.tune(*small, grid=1), "all fields with candidates are `.changing()`: pass vary_results=True")
fails(lambda: kernels.plain.tune(*small, grid=1), "expected a field with candidates that")
fails(lambda: kernels.scale.tune(x, out, grid=programs, configs=[64]), "expected dictionaries in configs, such as {\"block\": 256}, but got 64")
fails(lambda: kernels.scale.tune(x, out, grid=programs, configs=[{"blok": 1}]), "kernel 'scale' has no config field 'blok'; did you mean 'block'?")
fails(lambda: kernels.scale.tune(x, memoryview(bytes(out)).cast("f"), grid=programs), "may be written for 'out', but got a read-only tensor")
fails(lambda: kernels.scale.tune(x, out, grid=(1, 1, 1, 1)), "a grid of 1 to 3 extents, but got 4")
assert kernels.changing.tune(*small, grid=1, budget=5, vary_results=True)["chunk"] in (4, 8)
