"""Nanoseconds of a call from Python, and of a row of many: cembra beside NumPy and plain Python, and Numba where it is installed.

    python benches/python/calls.py
"""

import statistics
import time

import numpy as np

import cembra

FORMULA = "a * b + c"


def nanoseconds(call, count, rounds=7):
    """The least time of a call in some rounds, and the median."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        times.append((time.perf_counter_ns() - start) / count)
    return min(times), statistics.median(times)


def report(name, call, count, rows=1):
    least, median = nanoseconds(call, count)
    print(f"{name:<40} {least / rows:12.3f} {median / rows:12.3f}")


def calls():
    model = cembra.compile(FORMULA, types=dict.fromkeys("abc", "f64"))
    untyped = cembra.compile(FORMULA)
    untyped(1.0, 2.0, 3.0)
    function = eval(f"lambda a, b, c: {FORMULA}")
    print(f"{'one call, ns':<40} {'min':>12} {'median':>12}")
    report("plain Python", lambda: function(1.0, 2.0, 3.0), 200_000)
    report("cembra, by position", lambda: model(1.0, 2.0, 3.0), 200_000)
    report("cembra, by name", lambda: model(a=1.0, b=2.0, c=3.0), 200_000)
    report("cembra, types of the call", lambda: untyped(1.0, 2.0, 3.0), 200_000)
    compiled = numba(function)
    if compiled:
        report("numba", lambda: compiled(1.0, 2.0, 3.0), 200_000)
    few = [np.arange(16.0) for _ in "abc"]
    report("cembra, NumPy, 16 rows", lambda: model(*few), 50_000)
    report("NumPy, 16 rows", lambda: function(*few), 50_000)


def rows():
    count = 10_000_000
    columns = [np.random.default_rng(at).random(count) for at in range(3)]
    function = eval(f"lambda a, b, c: {FORMULA}")
    model = cembra.compile(FORMULA)
    print(f"\n{'10,000,000 rows, ns a row':<40} {'min':>12} {'median':>12}")
    report("cembra, NumPy", lambda: model(*columns), 1, count)
    named = dict(zip("abc", columns))
    report("cembra, NumPy, two threads", lambda: model.run(named, threads=2), 1, count)
    report("NumPy", lambda: function(*columns), 1, count)
    compiled = numba(function)
    if compiled:
        report("numba", lambda: compiled(*columns), 1, count)


def numba(function):
    """The function compiled by Numba, if that is here."""
    try:
        import numba
    except ImportError:
        return None
    return numba.njit(function)


if __name__ == "__main__":
    calls()
    rows()
