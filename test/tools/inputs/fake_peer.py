"""Peers of kernels for tests, on Python's own arrays: x times 3, and what is wrong about a peer."""

import array
import os


def scaled(x, factor=3):
    return array.array("f", [factor * each for each in x])


def near(x):
    return scaled(x, 3 + 1e-3)


def short(x):
    return scaled(x[:2])


def ends(x):
    os._exit(1)


def prints(x):
    print("a peer prints")
    return scaled(x)


def positive(x):
    return memoryview(bytes(each > 0 for each in x)).cast("?")
