"""Measures functions that call kernels, like triton.testing."""

import math
import statistics
import sys
import time


def _uses_cuda():
    torch = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized()


def _measure(function, times):
    """Milliseconds of a call: the mean of `times` calls in a row. On a GPU, in PyTorch's current stream."""
    if _uses_cuda():
        torch = sys.modules["torch"]
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / times
    begin = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - begin) * 1e3 / times


def _quantile(values, part):
    """The value of a sorted list below which this part of it lies, interpolated."""
    at = part * (len(values) - 1)
    low = math.floor(at)
    return values[low] + (at - low) * (values[math.ceil(at)] - values[low])


def _rounds(functions, warmup, rep):
    """Sorted milliseconds of each function: measured in turn, each round beginning with another one."""
    least = 0.5  # milliseconds of one measurement, so that the clock's overhead matters little
    times, rounds = [], math.inf
    for function in functions:
        function()  # compiles
        begin, calls = time.perf_counter(), 0
        while calls == 0 or (time.perf_counter() - begin) * 1e3 < warmup:
            one = _measure(function, 1)
            calls += 1
        times.append(max(1, math.ceil(least / max(one, 1e-4))))
        rounds = min(rounds, max(3, math.ceil(rep / max(one * times[-1], 1e-4))))
    values = [[] for _ in functions]
    for first in range(rounds):
        for number in range(len(functions)):
            at = (first + number) % len(functions)
            values[at].append(_measure(functions[at], times[at]))
    return [sorted(each) for each in values]


def do_bench(function, warmup=25, rep=100, quantiles=None, return_mode="median"):
    """Milliseconds of a call, from measurements of about `rep` milliseconds after a warm-up. The median, or what
    `return_mode` says: min, max, mean, median or all. With `quantiles`, such as [0.5, 0.2, 0.8], a list of these."""
    values, = _rounds([function], warmup, rep)
    if quantiles is not None:
        return [_quantile(values, part) for part in quantiles]
    modes = {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median, "all": list}
    if return_mode not in modes:
        raise ValueError(f"expected a return_mode out of {', '.join(modes)}, but got '{return_mode}'")
    return modes[return_mode](values)


def compare(functions, warmup=25, rep=100):
    """A table of the times of several functions, a dictionary from name to function. They are measured in turn, so that a
    change of the machine's speed affects all. `speed` is the first one's median divided by the line's own."""
    values = _rounds(list(functions.values()), warmup, rep)
    width = max(map(len, functions))
    first = statistics.median(values[0])
    lines = [f"{'':{width}}  {'us':>10}  {'20 %':>10}  {'80 %':>10}  speed"]
    for name, each in zip(functions, values):
        median, low, high = (1e3 * _quantile(each, part) for part in (0.5, 0.2, 0.8))
        lines.append(f"{name:{width}}  {median:10.2f}  {low:10.2f}  {high:10.2f}  {1e3 * first / median:5.2f}")
    return "\n".join(lines) + "\n"
