"""The Python package launches a kernel of an image, with the default and another config: `python_image.py AXPY.kiln`."""

import array
import sys

import kiln

sys.dont_write_bytecode = True
from expect import fails  # noqa: E402

N = 3000


def vector(value):
    """N numbers, aligned to 64 bytes, as code for GPUs expects them."""
    memory = array.array("f", [value] * (N + 16))
    begin = -memory.buffer_info()[0] % 64 // 4
    return memoryview(memory)[begin:begin + N]


def programs(config):
    return kiln.cdiv(N, config["block"])


axpy = kiln.load(sys.argv[1]).axpy
assert axpy.arguments == ["x", "y", "alpha"] and axpy.config == {"block": 1024}, (axpy.arguments, axpy.config)
x, y = vector(2), vector(1)
axpy[programs](x, y, alpha=0.5)
axpy[programs](x, y, alpha=0.5, block=512)
assert y.tolist() == [3] * N, y.tolist()
assert axpy.tune(x, vector(1), 0.5, grid=programs, budget=5) in ({"block": 1024}, {"block": 512})
with kiln.open("simulator:sm_80"):
    axpy[programs](x, y, alpha=0.5)
    axpy[programs](x, y, alpha=0.5, block=512)
    fails(lambda: axpy[programs](x[1:], y[1:], alpha=0.5), "expected 'x' to be aligned to 64 bytes, as it was compiled for")
assert y.tolist() == [5] * N, y.tolist()
fails(lambda: axpy[3](x, y, 0.5, block=256), f"expected a config that '{sys.argv[1]}' has for device 'cpu', 'block=1024' or 'block=512'")
fails(lambda: axpy[3](x, memoryview(bytes(y)).cast("f"), 0.5), "may be written for 'y', but got a read-only tensor")
fails(lambda: axpy[3](x, x, 0.5), "'x' and 'y' overlap, but it was compiled for arguments that do not overlap")
