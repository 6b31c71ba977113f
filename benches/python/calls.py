"""Nanoseconds of a call from Python, and of a row of many: cembra beside NumPy and plain Python, and Numba and Arolla where they are installed. Then
what the package and its models take: seconds to import, bytes of a model.

    python benches/python/calls.py
"""

import resource
import statistics
import subprocess
import sys
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
    report("a lambda that does nothing", lambda: None, 200_000)
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
    traced = cembra.function(function)
    report("cembra, a traced function", lambda: traced(1.0, 2.0, 3.0), 100_000)
    tensor = cembra.compile('input x: tensor[f64, 1]; y("i") = x("i") * 2.0')
    session, eight = tensor.session(), np.arange(8.0)
    report("cembra, a session, tensor of 8", lambda: session(eight), 50_000)
    report("NumPy, array of 8", lambda: eight * 2.0, 50_000)
    arolla()


def rows():
    count = 10_000_000
    columns = [np.random.default_rng(at).random(count) for at in range(3)]
    function = eval(f"lambda a, b, c: {FORMULA}")
    model = cembra.compile(FORMULA)
    print(f"\n{'10,000,000 rows, ns a row':<40} {'min':>12} {'median':>12}")
    report("cembra, NumPy", lambda: model(*columns), 1, count)
    named = dict(zip("abc", columns))
    out = np.empty(count)
    report("cembra, NumPy, out=", lambda: model.run(named, out={"result": out}), 1, count)
    report("cembra, NumPy, two threads", lambda: model.run(named, threads=2), 1, count)
    report("NumPy", lambda: function(*columns), 1, count)
    compiled = numba(function)
    if compiled:
        report("numba", lambda: compiled(*columns), 1, count)


def arolla():
    """A small expression of Arolla by both, if that is here."""
    try:
        from arolla import arolla as package

        import cembra.arolla as bridge
    except ImportError:
        return
    expr = package.L.x * 2.0 + 1.0
    report("arolla.eval", lambda: package.eval(expr, x=1.0), 5_000)
    report("cembra.arolla.eval", lambda: bridge.eval(expr, x=1.0), 5_000)


def sizes():
    """Seconds to import the package after NumPy, and bytes of memory of a model that was called once."""
    script = "import numpy, time; start = time.perf_counter(); import cembra; print(time.perf_counter() - start)"
    runs = [float(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout) for _ in range(5)]
    print(f"\n{'import after NumPy, s':<40} {min(runs):12.3f}")

    def resident():
        with open("/proc/self/statm") as pages:
            return int(pages.read().split()[1]) * resource.getpagesize()

    before = resident()
    models = [cembra.compile(f"input x, y: f64; where(x > {at}.5, x * y + {at}.0, y - x)") for at in range(10_000)]
    for model in models:
        model(1.0, 2.0)
    print(f"{'a model of 10,000, bytes':<40} {(resident() - before) / len(models):12.0f}")


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
    sizes()
