"""Measures functions that take known times."""

from kiln import testing


class Clock:
    now = 0.0

    def perf_counter(self):
        return self.now

    def function(self, *milliseconds):
        """A function that takes these times in turn, then the last one always."""
        left = list(milliseconds)

        def run():
            self.now += 1e-3 * (left.pop(0) if len(left) > 1 else left[0])
        return run


testing.time = clock = Clock()


def is_close(a, b):
    return abs(a - b) < 1e-6


# The first call, which compiles, and the warm-up do not count.
assert is_close(testing.do_bench(clock.function(500, 40, 2)), 2)
# Short calls are measured several at a time.
assert is_close(testing.do_bench(clock.function(0.125)), 0.125)
# Quantiles and other results. The warm-up is one call, and three rounds are the fewest.
assert all(map(is_close, testing.do_bench(clock.function(9, 50, 30, 10, 20), quantiles=[0, 0.5, 1]), [10, 20, 30]))
assert is_close(testing.do_bench(clock.function(9, 50, 30, 10, 20), return_mode="min"), 10)
assert is_close(testing.do_bench(clock.function(9, 50, 30, 10, 21), return_mode="mean"), (30 + 10 + 21) / 3)
try:
    testing.do_bench(clock.function(1), return_mode="best")
except ValueError as error:
    assert str(error) == "expected a return_mode out of min, max, mean, median, all, but got 'best'", error
else:
    raise AssertionError("expected an unknown return_mode to be an error")
print(testing.compare({"one": clock.function(2), "three": clock.function(6)}), end="")
