"""Floor division and remainder of floats, `//` and `%`: each result against exact fractions, and against NumPy where it is exact too.

The quotient is the floor of the exact one, rounded to nearest; the remainder is the exact one, rounded once. Both backends, rows, arrays and tensors.

    PYTHON tests/outside/division.py target/debug/cembra
"""

import json
import math
import random
import struct
from fractions import Fraction

import numpy

from cases import RIGHT, WRONG, again, cells, main, table

RNG = random.Random(69)
TYPES = {"f64": (53, -1074, numpy.float64, "<d", "<Q"), "f32": (24, -149, numpy.float32, "<f", "<I")}
SPECIAL = [0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 6.0, 7.5, 1e17, math.inf, math.nan]
# Floors of huge quotients that are halfway between two floats, where the exact quotient is not.
HALFWAY = [("0x1.0000000000001p+54", 3), ("0x1.fffffffffffffp+55", 3), ("0x1.4000000000001p+60", 5), ("0x1.8p+57", 7), ("0x1.0000000000003p+106", 9)]


def rounded(value, kind, sign):
    """The fraction as the nearest float of the type, ties to even; a zero has the sign."""
    digits, least, *_ = TYPES[kind]
    if value == 0:
        return math.copysign(0.0, sign)
    size = abs(value)
    power = size.numerator.bit_length() - size.denominator.bit_length()
    power -= size < Fraction(2) ** power
    unit = Fraction(2) ** max(power - digits + 1, least)
    size = round(size / unit) * unit
    largest = (2 - Fraction(2) ** (1 - digits)) * Fraction(2) ** (1023 if kind == "f64" else 127)
    return (-1 if value < 0 else 1) * (math.inf if size > largest else float(size))


def expected(x, y, kind):
    """The quotient and the remainder."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x):
        return math.nan, math.nan
    if math.isinf(y):
        below = x != 0 and (x < 0) != (y < 0)
        return (-1.0, y) if below else (math.copysign(0.0, math.copysign(1, x) * math.copysign(1, y)), math.copysign(x, y))
    floor = math.floor(Fraction(x) / Fraction(y))
    rest = Fraction(x) - floor * Fraction(y)
    return rounded(Fraction(floor), kind, math.copysign(1, x) * math.copysign(1, y)), rounded(rest, kind, y)


def operands(kind):
    """Pairs of operands of all sizes, with quotients that are whole, nearly whole, halfway and huge."""
    digits, _, of, number, bits = TYPES[kind]

    def any_float():
        while True:
            value = struct.unpack(number, struct.pack(bits, RNG.getrandbits(32 if kind == "f32" else 64)))[0]
            if value == value:
                return value

    pairs = [(x * s, y * t) for x in SPECIAL for y in SPECIAL for s in (1, -1) for t in (1, -1)]
    pairs += [(float.fromhex(x) * s, y * t) for x, y in HALFWAY for s in (1, -1) for t in (1, -1)]
    for _ in range(700):
        y = RNG.choice([any_float(), RNG.uniform(-10, 10), RNG.randrange(1, 1000) / 100, RNG.randrange(1, 1 << digits)])
        near = float(of(y)) * RNG.choice([RNG.randrange(-100, 100), RNG.randrange(-(1 << digits), 1 << digits)])
        steps = RNG.choice([-2, -1, 0, 1, 2])
        pairs.append((near + steps * math.ulp(near) if math.isfinite(near) else near, y))
        pairs.append((RNG.choice([any_float(), RNG.uniform(-1000, 1000), RNG.randrange(-1000, 1000) / 10]), y))
        # A quotient near a float with one digit more, which is a tie when it is rounded.
        power = RNG.randrange(0, 54 if kind == "f64" else 24)
        y = float(RNG.randrange(1 << (digits - 1), 1 << digits))
        tie = (RNG.randrange(1 << (digits - 1), 1 << digits) * 2 + 1) << power
        x = rounded(Fraction(tie) * Fraction(y) + RNG.choice([-1, 0, 1]), kind, 1)
        pairs.append((x * RNG.choice([1, -1]), y * RNG.choice([1, -1])))
    with numpy.errstate(over="ignore"):
        pairs = [(float(of(x)), float(of(y))) for x, y in pairs]
    return [(x, y) for x, y in pairs if y != 0]


def same(found, wanted):
    found, wanted = float(found), float(wanted)
    return (found != found and wanted != wanted) or (found == wanted and math.copysign(1, found) == math.copysign(1, wanted))


def judge(bench, kind, pairs, found, command):
    if len(found) != len(pairs):
        bench.tally(kind, WRONG, f"{len(found)} results of {len(pairs)} pairs", command)
        return
    # Results are printed with the fewest digits that name a float of their type, so they are read as floats of that type.
    of = TYPES[kind[:3]][2]
    for (x, y), (q, r), wanted in zip(pairs, found, [expected(x, y, kind[:3]) for x, y in pairs]):
        for sign, made, right in (("//", of(q), wanted[0]), ("%", of(r), wanted[1])):
            verdict = RIGHT if same(made, right) else WRONG
            bench.tally(f"{kind}, {sign}", verdict, f"{x!r} {sign} {y!r} is {made}, not {right!r}", command)


def rows(bench):
    for kind in TYPES:
        pairs = operands(kind)
        bench.file("pairs.csv", table(["x", "y"], [[repr(x), repr(y)] for x, y in pairs]))
        for backend in ("native", "interp"):
            arguments = ("eval", "-e", f"input x, y: {kind}; output q = x // y; output r = x % y", "pairs.csv", "--format", "csv", "--backend", backend)
            done = bench.run(*arguments)
            judge(bench, f"{kind} by rows, {backend}", pairs, cells(done.out), again(*arguments) + done.err[:500])


def arrays(bench):
    for kind in TYPES:
        pairs = [(x, y) for x, y in operands(kind) if math.isfinite(x) and math.isfinite(y)]
        bench.file("arrays.jsonl", json.dumps({"x": [x for x, _ in pairs], "y": [y for _, y in pairs]}) + "\n")
        arguments = ("eval", "-e", f"input x, y: [{kind}]; output q = x // y; output r = x % y", "arrays.jsonl", "--format", "jsonl")
        done = bench.run(*arguments)
        made = json.loads(done.out) if done.status == 0 else {"q": [], "r": []}
        judge(bench, f"{kind} of arrays", pairs, list(zip(made["q"], made["r"])), again(*arguments) + done.err[:500])


def tensors(bench):
    for kind, (_, _, of, *_) in TYPES.items():
        pairs = operands(kind)
        numpy.savez(bench.folder / "pairs.npz", x=numpy.array([x for x, _ in pairs], of), y=numpy.array([y for _, y in pairs], of))
        bench.file("pairs.cem", f"input x, y: tensor[{kind}, 1]; output q = x // y; output r = x % y")
        arguments = ("eval", "pairs.cem", "pairs.npz", "-o", "made.npz")
        done = bench.run(*arguments)
        found = []
        if done.status == 0:
            made = numpy.load(bench.folder / "made.npz")
            found = list(zip(made["q"].tolist(), made["r"].tolist()))
        judge(bench, f"{kind} of tensors", pairs, found, again(*arguments) + done.err[:500])


def beside_numpy(bench):
    """The expected values themselves, where NumPy's are exact: remainders, and quotients of less than 2^50."""
    for kind, (digits, _, of, *_) in TYPES.items():
        for x, y in operands(kind):
            q, r = expected(x, y, kind)
            with numpy.errstate(all="ignore"):
                pairs = [("%", r, numpy.remainder(of(x), of(y)))]
                if not abs(q) >= 2.0 ** (digits - 3):
                    pairs.append(("//", q, numpy.floor_divide(of(x), of(y))))
            for sign, own, numpys in pairs:
                bench.tally(f"{kind}, {sign} beside NumPy", RIGHT if same(own, numpys) else WRONG, f"{x!r} {sign} {y!r}: {own}, {numpys}")


if __name__ == "__main__":
    main("floor division", rows, arrays, tensors, beside_numpy)
