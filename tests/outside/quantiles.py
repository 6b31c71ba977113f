"""Quantiles and medians: each against NumPy's linear ones, and against exact fractions.

Elements may be missing, infinite or NaN, integers of 32 and 64 bits and floats of 32 and 64; groups are asked too. A result may differ from the
exact one by the rounding of the steps of the interpolation, and from NumPy's of `f64` not at all.

    PYTHON tests/outside/quantiles.py target/debug/cembra
"""

import json
import math
import random
from fractions import Fraction

import numpy

from cases import REFUSED, RIGHT, WRONG, again, main

RNG = random.Random(69)
TYPES = ("f64", "f32", "i64", "i32")


def element(kind):
    if kind in ("i64", "i32"):
        return RNG.choice([RNG.randrange(-5, 6), RNG.randrange(-(2**31), 2**31), RNG.randrange(-(2**52), 2**52) if kind == "i64" else 0])
    value = RNG.choice([float(RNG.randrange(-4, 5)), RNG.uniform(-10, 10), RNG.uniform(-1, 1) * 10.0 ** RNG.randrange(-30, 30)])
    return float(numpy.float32(value)) if kind == "f32" else value


def elements(kind):
    return [None if RNG.random() < 0.1 else element(kind) for _ in range(RNG.choice([0, 1, 2, 2, 3, 4, 4, 5, 8, 17, 40, 200]))]


def shares():
    return RNG.choice([0.0, 1.0, 0.5, 0.25, 0.75, RNG.random(), RNG.randrange(11) / 10])


def exact(present, share):
    """The interpolated number of the elements, as a fraction."""
    ordered = sorted(map(Fraction, present))
    place = Fraction(share * (len(ordered) - 1))
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low), max(map(abs, (ordered[low], ordered[high])))


def judge(bench, name, kind, array, share, found, command):
    present = [one for one in array if one is not None]
    if not present:
        return bench.value(name, found, None, command)
    if found is None:
        return bench.tally(name, WRONG, f"quantile({array}, {share}) is missing", command)
    wanted, size = exact(present, share)
    digits = 23 if kind == "f32" else 52
    close = abs(Fraction(found) - wanted) <= size * Fraction(2) ** (1 - digits)
    bench.tally(name, RIGHT if close else WRONG, f"quantile({array}, {share}) is {found}, not {float(wanted)}", command)
    if kind == "f64":
        numpys = float(numpy.quantile(numpy.array(present), share))
        bench.tally(name + " beside NumPy", RIGHT if found == numpys else WRONG, f"quantile({array}, {share}) is {found}, of NumPy {numpys}", command)


def arrays(bench):
    for kind in TYPES:
        lines = [{"x": elements(kind), "q": shares()} for _ in range(300)]
        bench.file("arrays.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        for backend in ("native", "interp"):
            model = f"input x: [{kind}?]; input q: f64; output a = quantile(x, q); output b = median(x)"
            arguments = ("eval", "-e", model, "arrays.jsonl", "--format", "jsonl", "--backend", backend)
            done = bench.run(*arguments)
            made = [json.loads(line) for line in done.out.splitlines()]
            if len(made) != len(lines):
                bench.tally(f"quantiles of {kind}", WRONG, f"{len(made)} results: {done.err[:300]}", again(*arguments))
                continue
            for line, found in zip(lines, made):
                judge(bench, f"quantiles of {kind}", kind, line["x"], line["q"], found["a"], again(*arguments))
                judge(bench, f"medians of {kind}", kind, line["x"], 0.5, found["b"], again(*arguments))


def groups(bench):
    lines = []
    for _ in range(200):
        sizes = [RNG.randrange(6) for _ in range(RNG.randrange(1, 6))]
        lines.append({"x": [element("f64") for _ in range(sum(sizes))], "n": sizes, "q": shares()})
    bench.file("groups.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    model = "input x: [f64]; input n: [i64]; input q: f64; output a = quantile(x, q, into=edge.from_sizes(n))"
    arguments = ("eval", "-e", model, "groups.jsonl", "--format", "jsonl")
    done = bench.run(*arguments)
    for line, found in zip(lines, [json.loads(line)["a"] for line in done.out.splitlines()] or [None] * len(lines)):
        start = 0
        for at, size in enumerate(line["n"]):
            own = line["x"][start : start + size]
            start += size
            judge(bench, "quantiles of groups", "f64", own, line["q"], found and found[at], again(*arguments))


def edges(bench):
    """Infinite elements, NaN, and shares that are none."""
    inf, nan = math.inf, math.nan
    for text, wanted in (
        ("quantile([1.0, inf, 2.0], 0.75)", inf),
        ("quantile([-inf, 5.0], 0.25)", -inf),
        ("quantile([inf, inf], 0.25)", inf),
        ("quantile([1.0, nan], 0.0)", nan),
        ("median([-inf, inf])", nan),
        ("median([1, 2])", 1.5),
        ("quantile([9007199254740993i64], 1)", 9007199254740992.0),
    ):
        done = bench.run("eval", "-e", text, "--format", "csv")
        found = float(done.out.splitlines()[1]) if done.status == 0 else None
        same = found is not None and (found == wanted or (found != found and wanted != wanted))
        bench.tally("infinite elements and NaN", RIGHT if same else WRONG, f"{text} is {found}, not {wanted}: {done.err[:200]}", again("eval", "-e", text))
    for share in ("-0.1", "1.5", "nan", "inf", "2"):
        done = bench.run("eval", "-e", f"quantile([1.0, 2.0], {share})")
        verdict = REFUSED if done.refuses("`q` must be between 0 and 1") else WRONG
        bench.tally("shares that are none", verdict, f"{share}: {done.out} {done.err[:200]}")


main("quantiles", arrays, groups, edges)
