"""None for an optional view, and lists and tuples of arrays for a list of views: `python_variadic.py KERNELS`."""

import sys
from array import array

import kiln

library = kiln.load(sys.argv[1])
biased, total = library.biased, library.total
x, y = array("f", [1, 2, 3, 4]), array("f", [10, 20, 30, 40])


def result(launch):
    """What a launch writes."""
    out = array("f", [0] * 4)
    launch(out)
    return list(out)


def error(kernel, *arguments, **named):
    """The text of a launch's error."""
    try:
        kernel[1](*arguments, **named)
    except kiln.Error as caught:
        return str(caught)
    sys.exit(f"expected an error of {kernel} with {arguments}")


for device in ("cpu", "simulator:sm_80"):
    with kiln.open(device):
        assert result(lambda out: biased[1](x, None, out)) == [1, 2, 3, 4]
        assert result(lambda out: biased[1](x, y, out)) == [11, 22, 33, 44]
        assert result(lambda out: biased[1](x, out=out)) == [1, 2, 3, 4]
        assert result(lambda out: biased[1](out=out, x=x, bias=y, block=4)) == [11, 22, 33, 44]
        assert result(lambda out: total[1]([x, y], 0.5, out)) == [5.5, 11, 16.5, 22]
        assert result(lambda out: total[1]((x, y, y), 1.0, out)) == [21, 42, 63, 84]
        assert result(lambda out: total[1]([x], 1.0, out)) == [1, 2, 3, 4]
        assert result(lambda out: total[1]([], 1.0, out)) == [0] * 4
assert biased.tuned(x, None, y) == total.tuned([x, y], 0.5, y) == {}

texts = [
    (error(biased, x, 3, y), "kernel 'biased': expected 'bias' to be a tensor or nothing, but got i64 scalar"),
    (error(biased, x, [y], y), "kernel 'biased': expected 'bias' to be a tensor or nothing, but got a list of 1"),
    (error(biased, None, None, y), "kernel 'biased': expected 'x' to be a tensor, but got nothing"),
    (error(biased, x), "kernel 'biased': expected a value for each argument, but got none for out"),
    (error(total, x, 0.5, y), "kernel 'total': expected 'xs' to be a list of tensors, but got f32[4]"),
    (error(total, None, 0.5, y), "kernel 'total': expected 'xs' to be a list of tensors, but got nothing"),
    (error(total, [x, 1.0], 0.5, y), "kernel 'total': expected 'xs[1]' to be a tensor, but got f32 scalar"),
    (error(total, [x, [y]], 0.5, y), "argument 0[1]: expected a tensor, but got a list"),
    (error(total, [x, "y"], 0.5, y), "argument 'xs[1]': expected an array or a number, but got str"),
    (error(total, [x], 0.5, memoryview(y).toreadonly()), "kernel 'total': expected memory that may be written"),
]
for got, want in texts:
    assert want in got, (got, want)

# A hint calls a view of a list by its number.
doubles = array("d", [1, 2, 3, 4])
assert "hint: xs[1] is float64" in error(total, [x, doubles], 0.5, y)
