"""A table of 100 short texts: the type and the value of each by the three rules of numbers, and what an older command makes of it.

By `numbers f32` a text is what it was in the older command, but for the operators that have another meaning now; each such text says why.

    PYTHON tests/outside/number_table.py target/debug/cembra [OLDER-COMMAND]
"""

import json
import re
import sys

from cases import RIGHT, WRONG, Bench, again

HEADS = ("", "numbers f64\n", "numbers f32\n")
INPUTS = {
    "i": ("i32", "16777217"),
    "n": ("i64", "1999999999"),
    "o": ("i64?", "missing"),
    "x": ("f32", "0.1"),
    "y": ("f64", "0.1"),
    "a": ("date", "2025-03-01"),
    "b": ("date", "2026-02-27"),
    "l": ("[i64]", "[1, 2, 4, 8]"),
    "m": ("[f32]", "[0.5, 2.5]"),
}
POWER, QUOTIENT, MEDIAN, DAYS = "a power of written integers", "a quotient rounded down", "a median between elements", "days of 64 bits"
TEXTS = """
1 / 3
1 / 4
n / 100
i / 1
o / 2
1.0 / 3
1.0 / 3.0
x / 3
x / 3.0
y / 3
i / x
n / y
n * 0.01
n * 1.5
i + 0.5
i + x
i * x
n + 1
i * 2
x + 1
x + 0.1
x * 2
x * 2.0
y * 0.1
0.1 + 0.2
0.1 + 1
(0.1 + 0.2) * x
(1 / 3) * x
x * (if n > 1 then 0.1 else 0.2)
3 ** 17
2 ** 10
-2 ** 2
2 ** -1
7 ** 20
7i64 ** 20
2.0 ** 10
n ** 2
i ** 2
x ** 2
x ** 2.0
2 ** x
10 ** 2 * 0.5
1.0 // 0.1
6 // 0.2
7 // 2
n // 0.3
x // 0.03
i // 3
1.0 % 0.1
6 % 0.2
n % 7
n % 0.7
x % 0.03
sqrt(2)
sqrt(2.0)
sqrt(n)
sqrt(x)
exp(1)
sin(1)
floor(n / 7)
round(i * 0.1)
abs(i)
min(i, 0.5)
max(i, x)
clamp(i, 0.5, 1e9)
i == 16777216.0
i == x * 167772160.0
x == 0.1
x == 1 / 10
x < 1
o ?? 0.5
o ?? 1
if n > 1 then n else 0.5
if n > 1 then i else n
where(x > 1, 1, x)
if x > 1 then x else 0.5
[1, 0.5]
[i, x]
[1, 2]
sum([1, 0.5])
mean(l)
mean(m)
mean([1, 2, 4])
median(l)
median([1, 2])
quantile(l, 0.75)
l * 0.1
l / 3
m * 2
m * 2.0
std(l)
b - a
(b - a) / 365
100 * ((b - a) / 365)
(b - a) * 0.5
date.years_between(a, b) / 3
3 in [1, 3.0]
i in [16777216.0, 2]
x in [0.1, 1]
16777217 + 0.0
""".strip().splitlines()
REASONS = {
    POWER: ("3 ** 17", "2 ** 10", "-2 ** 2", "7 ** 20", "7i64 ** 20", "10 ** 2 * 0.5"),
    QUOTIENT: ("1.0 // 0.1", "6 // 0.2", "n // 0.3", "x // 0.03", "1.0 % 0.1", "6 % 0.2", "n % 0.7", "x % 0.03"),
    MEDIAN: ("median(l)", "median([1, 2])", "quantile(l, 0.75)"),
    DAYS: ("b - a", "(b - a) / 365", "100 * ((b - a) / 365)", "(b - a) * 0.5", "date.years_between(a, b) / 3"),
}


def made(bench, text, head):
    """The type and the value of a text, or its error."""
    names = [name for name in INPUTS if re.search(rf"(?<![\w.]){name}(?![\w(])", text)]
    bench.file("m.cem", head + "".join(f"input {name}: {INPUTS[name][0]}\n" for name in names) + f"output r = {text}\n")
    values = [word for name in names for word in ("-s", f"{name}={INPUTS[name][1]}")]
    done = bench.run("eval", "m.cem", *values, "--format", "jsonl", "--quiet")
    if done.status != 0:
        return re.sub(r"\[(.*?)\]", r" \1", done.err.splitlines()[0]).replace("error ", "error: ", 1).split(": `")[0]
    types = re.findall(r"^output r: (\S+)", bench.run("check", "m.cem").out, re.M)
    value = json.dumps(json.loads(done.out)["r"])
    return f"{types[0]} {value}"


def main():
    now = Bench(sys.argv[1], "texts by the three rules")
    before = Bench(sys.argv[2], "before") if len(sys.argv) > 2 else None
    reasons = {text: reason for reason, texts in REASONS.items() for text in texts}
    print(f"{len(TEXTS)} texts, of " + ", ".join(f"{name}: {kind} = {value}" for name, (kind, value) in INPUTS.items()))
    print("\n| text | " + ("before | " if before else "") + "now | `numbers f64` | `numbers f32` |")
    print("|---" * (5 if before else 4) + "|")
    for text in TEXTS:
        found = [made(now, text, head) for head in HEADS]
        cells = found
        if before:
            old = made(before, text, "")
            cells = [old, *found]
            is_same = old == found[2]
            verdict = RIGHT if is_same or text in reasons else WRONG
            kind = reasons.get(text, "as before") if not is_same else "as before"
            now.tally(f"`numbers f32`: {kind}", verdict, f"{text} is {found[2]}, was {old}", again("eval", "-e", f"numbers f32\n{text}"))
        print(f"| `{text}` | " + " | ".join("as now" if before and at > 1 and one == cells[1] else one for at, one in enumerate(cells)) + " |")
    now.counts or now.tally("texts", RIGHT)
    sys.exit(now.end())


main()
