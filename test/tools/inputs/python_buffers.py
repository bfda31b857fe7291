"""The Python package on buffers alone: launches, operators, and the texts of errors. `python_buffers.py KERNELS`."""

import array
import os
import sys
import tempfile

import kiln

sys.dont_write_bytecode = True
from expect import fails  # noqa: E402

N = 3000
x, y = array.array("f", range(N)), array.array("f", [1] * N)
axpy = kiln.load(sys.argv[1]).axpy
assert axpy.arguments == ["x", "y", "alpha"] and axpy.config == {"block": 1024}, (axpy.arguments, axpy.config)
axpy[lambda config: kiln.cdiv(N, config["block"])](x, y, alpha=0.5)
assert y[N - 1] == 1 + 0.5 * (N - 1), y[N - 1]
assert [kiln.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
with kiln.open("simulator:sm_80"):
    axpy[6](x, alpha=0.5, y=y, block=512)
assert y[N - 1] == N, y[N - 1]

assert [name for name in dir(kiln.load(sys.argv[1])) if not name.startswith("_")] == ["axpy", "path"]

# A finding of a file is the config of a launch; without a file there is no finding.
assert axpy.tuned(x, y, alpha=0.5) == {}
with tempfile.NamedTemporaryFile("w", suffix=".txt") as findings, kiln.open("simulator:sm_80"):
    findings.write("axpy | simulator:sm_80 sm_80 | f32[3000], f32[3000], f32 | block=512 | 1 cycles, default 2 cycles | 2026-11-22\n")
    findings.flush()
    os.environ["KILN_FINDINGS"] = findings.name
    assert axpy.tuned(x, y, alpha=0.5) == {"block": 512}
    assert axpy.tuned(y, alpha=0.5, y=memoryview(x)[::2]) == {}
    del os.environ["KILN_FINDINGS"]

# A view with strides, and one of rank 2.
matrix = memoryview(x).cast("B").cast("f", (1000, 3))
rows = kiln.ops.softmax(matrix)
assert rows.shape == (1000, 3) and abs(sum(rows[7, i] for i in range(3)) - 1) < 1e-6
assert kiln.ops.add(memoryview(x)[::2], memoryview(y)[::2])[5] == x[10] + y[10]
product = kiln.ops.matmul(matrix, memoryview(array.array("f", [1, 0, 0, 1, 1, 1])).cast("B").cast("f", (3, 2)))
assert [product[2, 0], product[2, 1]] == [6 + 8, 7 + 8], product.tolist()[2]

parameters, m, v = (array.array("f", [1.0, 2.0]) for _ in range(3))
kiln.ops.adamw(parameters, array.array("f", [0.5, -0.5]), m, v, step=1, lr=0.1)
assert parameters[0] < 1 and parameters[1] > 1.9, parameters

fails(lambda: axpy[3](x, y), "got none for alpha")
fails(lambda: axpy[3](x, y, 0.5, 3), "expected 3 arguments, but got 4")
fails(lambda: axpy[3](x, memoryview(bytes(y)).cast("f"), 0.5), "may be written for 'y', but got a read-only tensor")
fails(lambda: axpy[3](x, y, 0.5, blok=3), "'axpy' has no config field 'blok'; did you mean 'block'? (config fields: block)\nhint: its arguments are x, y, alpha")
fails(lambda: axpy[3](x, y, 0.5, device="cpu"), 'hint: arrays choose the device, or for arrays on the host `with kiln.open("simulator:sm_80"):`')
fails(lambda: axpy[3](x, y, 0.5, num_warps=4), "'num_warps'; without a field 'warps' the compiler chooses")
fails(lambda: kiln.load().matmul[3](num_warps=4), "'num_warps'; did you mean 'warps'?")
fails(lambda: axpy[3](array.array("d", x), y, 0.5), "\nhint: x is float64; pass f32")
fails(lambda: axpy[3](x, y, 0.5, alpha=0.5), "one value for 'alpha'")
fails(lambda: axpy[3](x, "y", 0.5), "argument 'y': expected an array or a number, but got str")
fails(lambda: axpy(x, y, 0.5), "kernel 'axpy': a launch requires a grid; write kernel[grid]", TypeError)
fails(lambda: axpy[1, 1, 1, 1](x, y, 0.5), "a grid of 1 to 3 extents, but got 4")
fails(lambda: axpy[-1](x, y, 0.5), "grid")
fails(lambda: axpy[2.5](x, y, 0.5), "kernel 'axpy': expected whole numbers in the grid, but got 2.5; use kiln.cdiv")
fails(lambda: axpy[lambda config: (1, N / config["block"])](x, y, 0.5), "in the grid, but got 1, 2.9296875; use kiln.cdiv")
fails(lambda: axpy["3"](x, y, 0.5), "expected whole numbers in the grid, but got '3'; use kiln.cdiv")
fails(lambda: axpy[lambda config: config.block](x, y, 0.5), "expected config[\"block\"], as of a dictionary, but got config.block", AttributeError)
fails(lambda: kiln.jit, "module 'kiln' has no attribute 'jit'; a kernel is a C++ function", AttributeError)
fails(lambda: axpy[lambda config: config["blok"]](x, y, 0.5), "kernel 'axpy' has no config field 'blok'; did you mean 'block'?")
fails(lambda: axpy[3]([1.0, 2.0], y, 0.5), "kernel 'axpy': expected 'x' to be a tensor, but got a list of 2")
fails(lambda: axpy[3]({}, y, 0.5), "kernel 'axpy': argument 'x': expected an array or a number, but got dict")
fails(lambda: axpy[3](matrix, y, 0.5), "for a view of rank 2, but got 1\nhint: 'x' is f32[1000x3], but the kernel declares it as (N)")
fails(lambda: axpy[3](x, array.array("i", range(N)), 0.5), "the view's type i32, but got f32[1024]; use cast(), or launch with 'y' of type f32")
before = list(y)
axpy[5, 0](x, y, alpha=0.5)  # no programs
assert list(y) == before
fails(lambda: axpy[3](x, y, 2**64), "64 bits")
fails(lambda: kiln.open("gpu"), "unknown device 'gpu'")
fails(lambda: kiln.load("no.so"), "No such file or directory: 'no.so'", FileNotFoundError)
fails(lambda: kiln.load(sys.argv[1])["axpi"], "unknown kernel 'axpi' (known: axpy)")
head = memoryview(array.array("f", range(16))).cast("B").cast("f", (1, 1, 4, 4))
lower = memoryview(bytes(row >= column for row in range(4) for column in range(4))).cast("?", (4, 4))
causal, masked = kiln.ops.attention(head, head, head, is_causal=True), kiln.ops.attention(head, head, head, attn_mask=lower)
assert causal.tolist() == masked.tolist() != kiln.ops.attention(head, head, head).tolist(), causal.tolist()
two, longer = (memoryview(array.array("f", range(32))).cast("B").cast("f", shape) for shape in ((1, 2, 4, 4), (1, 1, 8, 4)))
fails(lambda: kiln.ops.attention(head, longer, longer, is_causal=True), "as many queries as keys, but got 4 and 8")
fails(lambda: kiln.ops.attention(two, head, head), "'enable_gqa' for 2 heads of queries and 1 of keys")
fails(lambda: kiln.ops.attention(head, head, head, dropout_p=0.1), "'dropout_p' of 0, but got 0.1")
fails(lambda: kiln.ops.attention(head, head, head, attn_mask=head), "'attn_mask' of bool or int8, but got float32")
fails(lambda: kiln.ops.softmax(array.array("i", [1, 2])), "softmax")
equal, labels = memoryview(array.array("f", [0] * 8)).cast("B").cast("f", (4, 2)), array.array("q", [0, 1, -100, 1])
assert abs(kiln.ops.cross_entropy(equal, labels) - 0.6931472) < 1e-6 and kiln.ops.cross_entropy(equal, labels, reduction="none")[2] == 0
assert kiln.ops.embedding(labels[1:2], matrix).tolist() == [[3, 4, 5]]
for index in (2**32 + 1, 1 - 2**32):  # not row 1
    fails(lambda: kiln.ops.embedding(array.array("q", [index]), matrix), "expected a token of the vocabulary")
    fails(lambda: kiln.ops.cross_entropy(equal[:1], array.array("q", [index])), "expected")
fails(lambda: kiln.ops.embedding(x, matrix), "embedding: expected 'input' of int32 or int64, but got float32")
with kiln.open("simulator:sm_80"):  # products of f32 are exact without `precision`
    third = memoryview(array.array("f", [1 / 3] * 256)).cast("B").cast("f", (16, 16))
    for product, exact in ((kiln.ops.matmul(third, third), 16 / 9), (kiln.ops.linear(third, third), 16 / 9),
                           (kiln.ops.attention(*[third.cast("B").cast("f", (1, 1, 16, 16))] * 3), 1 / 3)):
        assert abs(memoryview(product.tobytes()).cast("f")[5] - exact) < 1e-6, exact
    assert abs(kiln.ops.matmul(third, third, precision="tf32")[0, 5] - 16 / 9) > 1e-5
fails(lambda: kiln.ops.matmul(matrix, matrix), "matmul")
fails(lambda: kiln.ops.linear(third, third, array.array("f", [0] * 4)), "linear: expected 'bias' of shape (16,), but got (4,)")
spaced = memoryview(array.array("f", range(8)))[::2]
fails(lambda: kiln.ops.adamw(spaced, array.array("f", [1] * 4), *(array.array("f", [0] * 4) for _ in range(2)), step=1),
      "'parameters' to be row-major without gaps")
assert "matmul: a, b -> out; accumulate=0, precision=default" in kiln.ops.operators().splitlines()
