"""What new users found: formats, patterns, keys of tables, labels, masks, lists, tests, benches, nanoseconds, time limits, and messages.

Values are those that Python's `%`, dictionaries and lists, and NumPy's broadcasting have. What is refused says what to write. Single findings stand
at the end, each with the words that its message must have.

    PYTHON tests/outside/findings.py target/debug/cembra
"""

import json
import random
import re
import shlex
import time

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet

from cases import REFUSED, RIGHT, WRONG, again, brief, cells, main, moment, table
from public_cases import either, holds, refused, rows

RNG = random.Random(69)
HEADS = ("", "numbers f64\n", "numbers f32\n")
BACKENDS = ("native", "interp")
WORDS = ["", "a", "ü", "é", "北京", "北京市", "naïve", "ΟΔΟΣ", "e\u0301", "👍", "Straße", "ab\ncd", "100%", "x" * 12]


def text_of(word):
    """The word as a literal of a text."""
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def formats(bench):
    """Widths and precisions of `printf` count characters, as Python's do."""
    asked = []
    for _ in range(120):
        field = "%" + RNG.choice(["", "-"]) + RNG.choice(["", *map(str, range(1, 9))]) + RNG.choice(["", "", ".0", ".1", ".2", ".5"]) + "s"
        asked.append(RNG.choice(["[{}]", "é{}", "{}北|"]).format(field))
    lines = [[word, RNG.randrange(-99999, 99999), RNG.uniform(-1000, 1000)] for word in WORDS]
    bench.file("words.jsonl", "".join(json.dumps(dict(zip("snx", line))) + "\n" for line in lines))
    model = "input s: text, n: i64, x: f64\n" + "".join(f"output o{at} = strings.printf({text_of(form)}, s)\n" for at, form in enumerate(asked))
    numbers = ["%5d", "%-7d|", "%+d", "%08d", "%.3f", "%9.2f", "%-9.1f|", "%e", "%+.1e", "%g", "%3d%%"]
    model += "".join(f"output p{at} = strings.printf({text_of(form)}, {'n' if 'd' in form else 'x'})\n" for at, form in enumerate(numbers))
    model += 'output q = strings.printf("%-*s|%.*s", 6, s, 2, s)\n'
    bench.file("m.cem", model)
    for backend in BACKENDS:
        arguments = ("eval", "m.cem", "words.jsonl", "--format", "jsonl", "--backend", backend)
        done = bench.run(*arguments)
        found = [list(json.loads(line).values()) for line in done.out.splitlines()]
        for (word, n, x), fields in zip(lines, found or [[]] * len(lines)):
            wanted = [form % word for form in asked] + [form % (n if "d" in form else x) for form in numbers] + ["%-*s|%.*s" % (6, word, 2, word)]
            for form, own, field in zip([*asked, *numbers, "*"], wanted, fields or [brief(done.err)] * len(wanted)):
                bench.value("widths count characters", field, own, f"{form!r} of {word!r}; " + again(*arguments))
    # The same of the elements of an array.
    bench.file("a.jsonl", json.dumps({"s": WORDS}) + "\n")
    for form in ("%-4s|", "%6.2s|", "%.1s"):
        done = bench.run("eval", "-e", f"input s: [text]; output y = strings.printf({text_of(form)}, s)", "a.jsonl", "--format", "jsonl")
        bench.value("widths count characters", done.status == 0 and json.loads(done.out)["y"], [form % word for word in WORDS], form)


def literals(bench):
    """Literal patterns and formats are checked with the model, in branches and for values that are missing too."""
    patterns = ["(a", "a)", "[z-a]", "a**", "*a", "[a", "\\\\", "(?P<n>a", "a{3,1}", "x{2,1}"]
    calls = ["contains_regex(s, {})", "strings.extract_regex(s, {})", 'strings.replace_all_regex(s, {}, "x")']
    for pattern in patterns:
        for call in calls:
            text = call.format('"' + pattern + '"')
            for model in (f"input s: text?; output y = {text}", f"input s: [text]; output y = {text}"):
                done = bench.run("check", "-e", model)
                bench.refusal("patterns that are none", done, ("error[arguments]", "the pattern"), again("check", "-e", model))
    for pattern in ("a+", "(a|b)*", "[a-z]{2,3}", "^x$", "\\\\d+", "(?i)abc", "\\\\pL"):
        model = f'input s: text?; output y = contains_regex(s, "{pattern}")'
        done = bench.run("check", "-e", model)
        bench.tally("patterns", RIGHT if done.status == 0 else WRONG, brief(done.err), again("check", "-e", model))
    arguments = {"i": "i64", "j": "i32", "x": "f64", "s": "text"}
    kinds = {"d": "ij", "x": "ij", "f": "xij", "e": "xij", "g": "xij", "s": "s", "v": "ijxs"}
    for kind, fitting in kinds.items():
        for name in arguments:
            model = f'input {name}: {arguments[name]}?; output y = strings.printf("[%{kind}]", {name})'
            done = bench.run("check", "-e", model)
            if name in fitting:
                bench.tally("formats that fit", RIGHT if done.status == 0 else WRONG, brief(done.err), again("check", "-e", model))
            else:
                bench.refusal("formats of another kind", done, ("error[arguments]", "the format"), again("check", "-e", model))
    for call in (
        'strings.printf("%q", x)',
        'strings.printf("%d %d", i)',
        'strings.printf("%", i)',
        'strings.printf("%2$d", i)',
        'strings.format("{a} {b}", a=x)',
        'strings.format("{", a=x)',
        'strings.format("{a:.2q}", a=x)',
        'strings.format_date(d, "%Q")',
        'strings.format_timestamp(t, "%Y-%K")',
        'strings.parse_date(s, "%d.%m")',
        'strings.parse_date(s, "%Y-%H-%d")',
        'strings.parse_timestamp(s, "%Y-%K")',
    ):
        for model in (call, f"if b then {call} else missing"):
            model = f"input x: f64?, i: i64?, s: text?, d: date?, t: timestamp?, b: bool; output y = {model}"
            done = bench.run("check", "-e", model)
            bench.refusal("formats that are none", done, ("error[arguments]", "format"), again("check", "-e", model))


def keys(bench):
    """`(a, b) in table`, by each rule of numbers, beside a dictionary of Python."""
    entries = {(RNG.choice("abcdef") * RNG.randrange(1, 3), RNG.randrange(2020, 2030)): RNG.choice(["", 1.5, 2]) for _ in range(25)}
    bench.file("t.csv", table(["r", "y", "v"], [[r, y, v] for (r, y), v in entries.items()]))
    bands = {"a": [(0, 10), (10, 20)], "b": [(-5, 5)], "c": [(3, 3.5)]}
    bench.file("b.csv", table(["r", "from", "to", "v"], [[r, low, high, 1] for r, parts in bands.items() for low, high in parts]))
    lines = [
        [RNG.choice(["", *[r for r, _ in entries], "zz"]), RNG.randrange(2019, 2031), RNG.choice("abcd"), RNG.randrange(-60, 220) / 10]
        for _ in range(80)
    ]
    bench.file("k.csv", table(["r", "y", "p", "x"], lines))
    for head in HEADS:
        for of in ("i64", "i32"):
            model = (
                f'{head}table t: (text, i64) -> f64 = "t.csv"\ntable b: (text, ranges of f64) -> f64 = "b.csv"\n'
                f"input r: text?, y: {of}, p: text, x: f64\n"
                "output known = (r, y) in t\noutput lacks = (r, y) not in t\noutput next = (r, y + 1) in t\n"
                "output within = (p, x) in b\noutput whole = (p, y - 2020) in b\n"
                "output v = lookup((r, y), t, 9.5)\noutput chosen = if (r, y) in t then 1 else 0\n"
            )
            bench.file("m.cem", model)
            for backend in BACKENDS:
                arguments = ("eval", "m.cem", "k.csv", "--format", "csv", "--backend", backend)
                done = bench.run(*arguments)
                found = cells(done.out)
                if len(found) != len(lines):
                    bench.tally("keys of two parts", WRONG, brief(done.err), again(*arguments, m_cem=model))
                for (r, y, p, x), fields in zip(lines, found):
                    mask = lambda holds: "true" if holds else ""
                    in_bands = lambda key, at: any(low <= at < high for low, high in bands.get(key, []))
                    value = "" if r == "" else str(entries.get((r, y), "")) or "9.5"
                    wanted = [
                        mask((r, y) in entries),
                        mask((r, y) not in entries),
                        mask((r, y + 1) in entries),
                        mask(in_bands(p, x)),
                        mask(in_bands(p, y - 2020)),
                        value,
                        "1" if (r, y) in entries else "0",
                    ]
                    bench.value("keys of two parts", fields, wanted, f"{head!r} {r, y, p, x}: " + again(*arguments, m_cem=model))


def labels(bench):
    """Numbers and tensors of fewer labels broadcast beside labels, as NumPy's do."""
    of = numpy.random.default_rng(69)
    e, f, v = of.normal(size=4), of.normal(size=4), of.normal(size=(4, 4))
    numpy.savez(bench.folder / "t.npz", e=e, f=f, v=v, s=numpy.float64(1.5))
    i, j = numpy.s_[:, None], numpy.s_[None, :]
    asked = {
        'y("i") = e("i") + 1.0': e + 1,
        'y("i") = 1.0 - e("i")': 1 - e,
        'y("i") = s + e("i")': 1.5 + e,
        'y("i") = 1.0 / (1.0 + exp(-e("i")))': 1 / (1 + numpy.exp(-e)),
        'y("i") = 2 * e("i") + 1': 2 * e + 1,
        'y("i,j") = e("i") + e("j")': e[i] + e[j],
        'y("i,j") = e("i") - f("j")': e[i] - f[j],
        'y("i,j") = v("i,j") / (e("i") + e("j") + 9.0)': v / (e[i] + e[j] + 9),
        'y("i,j") = v("i,j") + e("j")': v + e[j],
        'y("i,j") = v("j,i") + e("i")': v.T + e[i],
        'y("i,j") = (v("i,j") + 1.0) * s': (v + 1) * 1.5,
        'y("i,j") = max(e("i"), e("j"))': numpy.maximum(e[i], e[j]),
        'y("i,j,a,b") = e("i") + e("j") - f("a") - f("b")': e[:, None, None, None] + e[:, None, None] - f[:, None] - f,
        'y("i") = v("i,j") * e("j") + 1.0': v @ e + 1,
        'y("i") = s * (v("i,j") * e("j")) - f("i")': 1.5 * (v @ e) - f,
        'y("i,j") = if e("i") > f("j") then v("i,j") else 0.0': numpy.where(e[i] > f[j], v, 0),
        'y("") = (e("i") + 1.0) * f("i")': (e + 1) @ f,
        'y("i") = e("i") ** 2 - 0.5': e**2 - 0.5,
        'y("i") = min(e("i"), 0.25)': numpy.minimum(e, 0.25),
        'y("i") = clamp(e("i"), -0.5, s)': numpy.clip(e, -0.5, 1.5),
    }
    given = "input e: tensor[f64, 1], f: tensor[f64, 1], v: tensor[f64, 2], s: f64\n"
    for text, wanted in asked.items():
        for model in (f"{given}output {text}\n", f"{given}{text}\n"):
            bench.file("l.cem", model)
            for backend in BACKENDS:
                (bench.folder / "made.npz").unlink(missing_ok=True)
                done = bench.run("eval", "l.cem", "t.npz", "-o", "made.npz", "--backend", backend)
                made = numpy.load(bench.folder / "made.npz")["y"] if done.status == 0 else None
                is_right = made is not None and made.shape == numpy.shape(wanted) and numpy.allclose(made, wanted, rtol=1e-13, atol=1e-15)
                bench.tally(
                    "labels",
                    RIGHT if is_right else WRONG,
                    f"{text}: {made} {brief(done.err)}, not {wanted}",
                    again("eval", "l.cem", "t.npz", l_cem=model),
                )
    for text in ('output y("i,j") = e("i")', 'output y("i") = 1.0'):
        done = bench.run("check", "-e", given + text)
        bench.refusal("labels that are lacking", done, ("error[labels]", "of the target"), again("check", "-e", given + text))


def masks(bench):
    """`x[mask]` has the elements where the mask is present, as a comprehension of Python."""
    lines = []
    for _ in range(60):
        size = RNG.randrange(7)
        lines.append({"x": [RNG.choice([None, RNG.randrange(-4, 5), 0.5]) for _ in range(size)], "s": [RNG.choice("abc") for _ in range(size)]})
        lines[-1]["n"] = [RNG.randrange(-3, 4) for _ in range(size)]
        lines[-1]["r"] = [{"v": RNG.randrange(5), "w": RNG.choice([None, "a", "b"])} for _ in range(size)]
    bench.file("x.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    asked = {
        "x[x > 0]": lambda x, s, n, r: [a for a in x if a is not None and a > 0],
        "s[x > 0]": lambda x, s, n, r: [b for a, b in zip(x, s) if a is not None and a > 0],
        "x[n == 0]": lambda x, s, n, r: [a for a, b in zip(x, n) if b == 0],
        'n[s in ["a", "b"]]': lambda x, s, n, r: [b for b, c in zip(n, s) if c in "ab"],
        "x[has(x)]": lambda x, s, n, r: [a for a in x if a is not None],
        "x[not has(x)]": lambda x, s, n, r: [a for a in x if a is None],
        "n[n > -2 and n < 2]": lambda x, s, n, r: [b for b in n if -2 < b < 2],
        "(n * 2)[n > 0]": lambda x, s, n, r: [b * 2 for b in n if b > 0],
        "sum(n[n > 0])": lambda x, s, n, r: sum(b for b in n if b > 0),
        "array.size(s[n > 0])": lambda x, s, n, r: sum(b > 0 for b in n),
        "r[r.v > 2].w": lambda x, s, n, r: [a["w"] for a in r if a["v"] > 2],
        "n[r.v > 2]": lambda x, s, n, r: [b for a, b in zip(r, n) if a["v"] > 2],
        "n[n > 9]": lambda x, s, n, r: [],
    }
    model = "input x: [f64?], s: [text], n: [i64], r: [{v: i64, w: text?}]\n" + "".join(f"output o{at} = {text}\n" for at, text in enumerate(asked))
    bench.file("m.cem", model)
    for backend in BACKENDS:
        done = bench.run("eval", "m.cem", "x.jsonl", "--format", "jsonl", "--backend", backend)
        made = [json.loads(line) for line in done.out.splitlines()]
        if len(made) != len(lines):
            bench.tally("masks", WRONG, f"{len(made)} rows: {brief(done.err)}", again("eval", "m.cem", "x.jsonl", m_cem=model))
        for line, found in zip(lines, made):
            for at, (text, of) in enumerate(asked.items()):
                bench.value("masks", found[f"o{at}"], of(**line), f"{text} of {line}")
    for text, words in (
        ("input x: [f64], m: [bool]; x[m]", ("b == true",)),
        ("input x: [f64], b: bool; x[b]", ("help",)),
        ("input x: [f64]; x[0.5]", ("help", "write an integer")),
    ):
        bench.refusal("masks that are none", bench.run("check", "-e", text), words, again("check", "-e", text))


def lists(bench):
    """A list that is null or left out is what its default says, `[]`, and without one a refusal."""
    kinds = {
        "f64": [1.5, 2.0],
        "i64": [1, 2, 3],
        "text": ["a", "b"],
        "bool": [True],
        "{v: f64, w: text?}": [{"v": 1.5, "w": None}, {"v": 2.0, "w": "a"}],
    }
    arrow = {"f64": pyarrow.float64(), "i64": pyarrow.int64(), "text": pyarrow.string(), "bool": pyarrow.bool_()}
    arrow["{v: f64, w: text?}"] = pyarrow.struct([("v", pyarrow.float64()), ("w", pyarrow.string())])
    for kind, own in kinds.items():
        size = "array.size(a.v)" if kind.startswith("{") else "array.size(a)"
        wanted = [0, len(own), 0, 0]
        values = [None, own, [], None]
        bench.file("l.jsonl", "".join(json.dumps({"id": at} | ({"a": a} if at < 3 else {})) + "\n" for at, a in enumerate(values)))
        bench.file("l.json", json.dumps([{"id": at, "a": a} for at, a in enumerate(values)]))
        held = pyarrow.table({"id": range(4), "a": pyarrow.array(values, pyarrow.list_(arrow[kind]))})
        pyarrow.parquet.write_table(held, bench.folder / "l.parquet")
        pyarrow.feather.write_feather(held, bench.folder / "l.arrow", compression="uncompressed")
        pyarrow.parquet.write_table(held.select(["id"]), bench.folder / "none.parquet")
        for name in ("l.jsonl", "l.json", "l.parquet", "l.arrow", "none.parquet"):
            for backend in BACKENDS:
                model = f"input a: [{kind}] = []; output n = {size}"
                done = bench.run("eval", "-e", model, name, "--format", "csv", "--backend", backend)
                own_wanted = [0] * 4 if name == "none.parquet" else wanted
                bench.value(
                    "lists with a default",
                    [row[0] for row in cells(done.out)],
                    list(map(str, own_wanted)),
                    again("eval", "-e", model, name) + brief(done.err),
                )
            model = f"input a: [{kind}]; output n = {size}"
            done = bench.run("eval", "-e", model, name)
            # A null without a default is refused with the default to write; so is a column that is not there.
            words = ("`a`",) if name == "none.parquet" else ("`a`", "= []")
            bench.refusal("lists without a default", done, words, again("eval", "-e", model, name))
        done = bench.run("eval", "-e", f"input a: [{kind}] = []; output n = {size}", "--format", "csv")
        bench.value("lists with a default", done.out, "n\n0\n", f"by no data: {brief(done.err)}")
        done = bench.run("eval", "-e", f"input a: [{kind}]; output n = {size}", "l.jsonl", "--on-error", "missing", "--format", "csv")
        bench.value("lists without a default", [row[0] for row in cells(done.out)], ["", str(len(own)), "0", ""], "by --on-error missing")
    for text in ("input a: [f64] = [1.0]; sum(a)", "input a: [f64] = missing; sum(a)", "input a: [f64]?; sum(a)"):
        done = bench.run("check", "-e", text)
        bench.refusal("defaults that are none", done, ("help: write",), again("check", "-e", text))


def left_out(bench):
    """Optional fields and structs that a test leaves out are missing; others are named."""
    good = [
        ("input c: {x: f64}?\noutput y = c.x ?? 1.0", "", "y = 1"),
        ("input c: {x: f64}?\noutput y = c.x ?? 1.0", "c = missing", "y = 1"),
        ("input c: {x: f64}?\noutput y = c.x ?? 1.0", "c = {x: 3}", "y = 3"),
        ('input c: {x: f64, b: text?}\noutput y = c.b ?? "none"', "c = {x: 3}", 'y = "none"'),
        ("input c: {x: f64, n: {z: i64?, w: text?}?}\noutput y = c.n.z ?? 7", "c = {x: 1}", "y = 7"),
        ("input c: {x: f64, n: {z: i64?, w: text?}?}\noutput y = c.n.z ?? 7", "c = {x: 1, n: {z: 2}}", "y = 2"),
        ("input c: {x: f64, n: {z: i64, w: text?}}\noutput y = c.n.z", "c = {x: 1, n: {z: 2}}", "y = 2"),
        ("input c: [{a: f64, b: bool?}]\noutput y = sum(c.a)", "c = [{a: 1}, {a: 2, b: true}]", "y = 3"),
        ("input c: [{a: f64, b: bool?}]\noutput y = array.size(c.b)", "c = [{a: 1}]", "y = 1"),
        ("input c: [{a: f64}] = []\noutput y = sum(c.a)", "", "y = 0"),
        ("input a: [f64] = []\ninput x: f64?\noutput y = sum(a) + (x ?? 2.0)", "", "y = 2"),
        ("input x: f64? = 4\noutput y = x", "", "y = 4"),
        ("input a, b: f64?\noutput y = a ?? b", "b = 2", "y = 2"),
    ]
    bad = [
        ("input c: [{a: f64, b: bool?}]\noutput y = sum(c.a)", "c = [{a: 1}, {b: true}]", "y = 1", ("element 1 lacks `a`",)),
        ("input c: {x: f64, n: text?}\noutput y = c.x", 'c = {n: "q"}', "y = 1", ("lacks `x`",)),
        ("input c: {x: f64, n: {z: i64}}\noutput y = c.x", "c = {x: 1, n: {}}", "y = 1", ("`z`",)),
        ("input c: {x: f64}\noutput y = c.x", "", "y = 1", ("`c`", "no value")),
        ("input a: [f64]\noutput y = sum(a)", "", "y = 1", ("`a`", "no value")),
        ("input c: {x: f64}?\noutput y = c.x", "c = {x: 1, q: 2}", "y = 1", ("`q`",)),
    ]
    for text, given, then in good:
        bench.file("t.cem", f'{text}\ntest "t" {{ {given} }} => {{ {then} }}\n')
        done = bench.run("test", "t.cem")
        bench.tally(
            "left out of tests",
            RIGHT if done.status == 0 and "1 case passed" in done.out + done.err else WRONG,
            brief(done.out + done.err),
            f"{text}; {given} => {then}",
        )
    for text, given, then, words in bad:
        bench.file("t.cem", f'{text}\ntest "t" {{ {given} }} => {{ {then} }}\n')
        done = bench.run("test", "t.cem")
        done.err += done.out
        bench.refusal("lacking in tests", done, words, f"{text}; {given} => {then}")


def benches(bench):
    """`bench` of arrays, lists and dictionaries, with values of `-s`, and `--limit`."""
    bench.file("x.jsonl", '{"x": [1, 2]}\n{"x": [3]}\n{"x": []}\n')
    bench.file("r.csv", "a,b\n1,2\n3,4\n5,6\n")
    asked = [
        (["-e", "input x: [f64]; sum(x)"], "1024 random"),
        (["-e", "input c: [{a: f64, b: text?}]; sum(c.a)"], "1024 random"),
        (["-e", "input x: [f64]; sum(x)", "x.jsonl", "--limit", "2"], "2 of x.jsonl"),
        (["-e", "input a, b, k: f64; a * b + k", "r.csv", "-s", "k=2"], "3 of r.csv"),
        (["-e", "input r: dict[text, f64], k: text; lookup(k, r, 1.0)", "-s", 'r=dict{"a": 2.0}', "-s", "k=a"], "rows"),
    ]
    for arguments, words in asked:
        done = bench.run("bench", *arguments)
        is_right = done.status == 0 and words in done.out and "native" in done.out and "interpreter" in done.out
        bench.tally("benches", RIGHT if is_right else WRONG, brief(done.out + done.err), shlex.join(["cembra", "bench", *arguments]))


def nanoseconds(bench):
    """Nanoseconds are rounded down, before 1970 too, at each door of data."""
    asked = [-1, -999, -1000, -1001, 0, 1, 999, 1001, 123_456_789, -86_400_000_000_001, *(RNG.randrange(-(10**18), 10**18) for _ in range(40))]
    moments = [moment(at // 1000) for at in asked]
    texts = [f"{moment(at // 10**9 * 10**6)[:-1]}.{at % 10**9:09}Z" for at in asked]
    of = pyarrow.timestamp("ns", tz="UTC")
    held = pyarrow.table({"t": pyarrow.array(asked, of), "d": pyarrow.array(asked, pyarrow.duration("ns"))})
    pyarrow.parquet.write_table(held, bench.folder / "n.parquet", version="2.6")
    pyarrow.feather.write_feather(held, bench.folder / "n.arrow", compression="uncompressed")
    bench.file("n.csv", table(["t"], [[text] for text in texts]))
    bench.file("n.jsonl", "".join(json.dumps({"t": text}) + "\n" for text in texts))
    bench.file("i.csv", table(["t"], [[at] for at in asked]))
    model = "input t: timestamp; output y = t"
    for name, more in (("n.parquet", []), ("n.arrow", []), ("n.csv", []), ("n.jsonl", []), ("i.csv", ["--timestamp-unit", "ns"])):
        done = bench.run("eval", "-e", model, name, "--format", "csv", *more)
        for found, wanted in zip([row[0] for row in cells(done.out)] or [brief(done.err)] * len(asked), moments):
            bench.value("finding S9, nanoseconds", found, wanted, again("eval", "-e", model, name, *more))
    done = bench.run("eval", "-e", "input d: duration; output y = d // 1us", "n.arrow", "--format", "csv")
    for found, at in zip([row[0] for row in cells(done.out)] or [brief(done.err)] * len(asked), asked):
        bench.value("finding S9, nanoseconds", found, str(at // 1000), "durations of Arrow")
    held = pyarrow.table({"l": pyarrow.array([asked], pyarrow.list_(of))})
    pyarrow.feather.write_feather(held, bench.folder / "l.arrow", compression="uncompressed")
    done = bench.run("eval", "-e", "input l: [timestamp]; output y = l", "l.arrow", "--format", "jsonl")
    bench.value("finding S9, nanoseconds", json.loads(done.out)["y"] if done.status == 0 else brief(done.err), moments, "a list of Arrow")


def deadlines(bench):
    """A time limit holds inside of operators on a long text."""
    bench.file("big.jsonl", json.dumps({"s": "aé" * 8_000_000}) + "\n")
    for text in (
        "strings.upper(s)",
        "strings.lower(s)",
        'strings.replace(s, "a", "bb")',
        'strings.find(s, "zz")',
        'strings.count(s, "a")',
        'contains_regex(s, "z+$")',
        'strings.replace_all_regex(s, "a", "b")',
        "s + s",
        'strings.printf("%s", s)',
        "strings.length(s)",
    ):
        begun = time.monotonic()
        done = bench.run("eval", "-e", f"input s: text; output y = {text}", "big.jsonl", "--time-limit", "0.05", "-o", "y.csv")
        taken = time.monotonic() - begun
        verdict = REFUSED if done.refuses("time-limit", "help") and taken < 1.5 else WRONG
        bench.tally("finding S16, deadlines", verdict, f"{text}: {taken:.2f} s, {brief(done.err)}", text)


def single(bench):
    """Findings by their numbers, each command with what it must say."""
    numpy.save(bench.folder / "h.npy", numpy.eye(20))
    bench.file("n.cem", 'tile i, j = 10\ninput h: tiled[f64, "i,j"]\ninput n: f64?\noutput y("i,j") = 2.0 * h("i,j")\noutput z = n ?? 3.0\n')
    bench.file("k.cem", 'tile i, j = 10\ninput h: tiled[f64, "i,j"]\noutput y = tensor.take(h, [1, 2])\n')
    outside = bench.folder / "out"
    inside = bench.folder / "in"
    for folder in (outside, inside):
        folder.mkdir()
    (outside / "lib.cem").write_text("fn half(x) = x / 2\n")
    (outside / "t.csv").write_text("k,v\na,1\n")
    (inside / "lib.cem").symlink_to(outside / "lib.cem")
    (inside / "t.csv").symlink_to(outside / "t.csv")
    (inside / "folder").symlink_to(outside)
    (inside / "own").symlink_to(inside)
    (inside / "f.cem").write_text('use "folder/lib.cem"\noutput y = half(3)\n')
    (inside / "g.cem").write_text('table t: text -> f64 = "folder/t.csv"\noutput y = lookup("a", t)\n')
    (inside / "h.cem").write_text('use "own/third.cem"\noutput y = third(3)\n')
    (inside / "third.cem").write_text("fn third(x) = x / 3\n")
    (inside / "m.cem").write_text('use "lib.cem"\noutput y = half(3)\n')
    (inside / "t.cem").write_text('table t: text -> f64 = "t.csv"\noutput y = lookup("a", t)\n')
    fee = "input a, b: date; input price: f64; output fee = (b - a) * 1234.567; output part = price * ((b - a) / 365)"
    long_line = (
        'input aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: f64; input bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb: f64; output x = 1 + "a"'
    )
    asked = [
        ("1", ["eval", "-e", fee, "-s", "a=2025-03-01", "-s", "b=2026-02-27", "-s", "price=123456.78"], rows("448147.821,122780.30449315069")),
        (
            "1",
            ["eval", "-e", "numbers f64\n" + fee, "-s", "a=2025-03-01", "-s", "b=2026-02-27", "-s", "price=123456.78"],
            rows("448147.821,122780.30449315069"),
        ),
        ("8", ["eval", "n.cem", "--input", "h=h.npy", "--only", "z"], holds(lambda text: text == "z: f64 = 3\n")),
        ("8", ["eval", "k.cem", "--input", "h=h.npy", "-o", "y.json"], either(refused("k.cem:3", "help"), holds(lambda text: True))),
        ("8", ["explain", "n.cem", "--input", "h=h.npy"], holds(lambda text: "2   4" in text)),
        ("9", ["check", "-e", 'input x: tensor[f64, 1]; output y("i") = x("i") + 1.0'], holds(lambda text: "output y: tensor[f64, 1]" in text)),
        ("10", ["eval", "-e", "sum([2147483647, 1])"], refused("does not fit into i32")),
        ("10", ["eval", "-e", "math.sum([2147483647, 1])"], rows("-2147483648")),
        ("10", ["eval", "-e", "input d: date, n: i64; d + n", "-s", "d=2026-01-01", "-s", "n=4294967296"], refused("date")),
        ("10", ["eval", "-e", "input d: date, n: i64; d + n", "-s", "d=2026-01-01", "-s", "n=30"], rows("2026-01-31")),
        ("11", ["eval", "-e", "input d: date, n: i64; date.add_months(d, n)", "-s", "d=2026-01-31", "-s", "n=1"], rows("2026-02-28")),
        ("11", ["eval", "-e", "input d: date, n: i64; date.add_years(d, n)", "-s", "d=2024-02-29", "-s", "n=1"], rows("2025-02-28")),
        ("11", ["eval", "-e", "input y, m: i64; date.make(y, m, 1)", "-s", "y=2026", "-s", "m=3"], rows("2026-03-01")),
        ("28", ["check", "-e", "input d: date; d >= 2026-01-01"], refused('`date"2026-01-31"`')),
        ("28", ["check", "-e", 'input d: date; date.format(d, "%Y")'], refused("strings.format_date(d")),
        ("28", ["check", "-e", 'date.diff(date"2000-01-01", date"2026-01-31")'], refused("date.years_between")),
        ("28", ["check", "-e", "input n: i64; to_timestamp(n)"], refused('timestamp.from_unix(n, "s")')),
        ("28", ["eval", "-e", 'input n: i64; timestamp.from_unix(n, "s")', "-s", "n=0"], rows("1970-01-01T00:00:00Z")),
        ("28", ["check", "-e", "input a: tensor[f64, 2]; c(i,j) = a(i,k) * a(k,j)"], refused('`p("i,j") = a("i,k") * b("k,j")`')),
        ("28", ["check", "-e", "input t: timestamp; t // 15min"], refused("// 15min`")),
        ("28", ["check", "-e", "output text"], refused('`output "text" = ..`')),
        ("28", ["check", "-e", "input x: [f64]; quantile(x)"], refused("quantile", "q")),
        ("28", ["check", "-e", "percentile([1.0], 0.5)"], refused("`quantile(a, 0.5)`")),
        (
            "29",
            ["check", "-e", long_line],
            lambda done, text: REFUSED if re.search(r"\|\n1 \| ….*\n +\| +\^", done.err) and re.search(r"\n +\|\n +=", done.err) else None,
        ),
        ("S20", ["check", "-e", "input s: text; output y: f64 = s"], refused("declare the type `text`")),
        ("S20", ["check", "-e", "input n: i64; output y: f32 = n / 2"], refused("declare the type `f64`")),
        ("S20", ["check", "-e", "input n: i64; output y: i64 = n / 2"], refused("declare the type `f64`")),
        ("S21", ["eval", "in/m.cem"], refused("link", "leads out of the folder")),
        ("S21", ["eval", "in/t.cem"], refused("link", "leads out of the folder")),
        ("S21", ["eval", "in/f.cem"], refused("link", "leads out of the folder")),
        ("S21", ["eval", "in/g.cem"], refused("link", "leads out of the folder")),
        ("S21", ["eval", "in/h.cem"], rows("1")),
    ]
    for number, arguments, judge in asked:
        done = bench.run(*arguments)
        verdict = None if done.broke() else judge(done, done.out)
        bench.tally(f"finding {number}", verdict or WRONG, f"status {done.status}: {brief(done.out + done.err)}", shlex.join(["cembra", *arguments]))


main("findings of new users", formats, literals, keys, labels, masks, lists, left_out, benches, nanoseconds, deadlines, single)
