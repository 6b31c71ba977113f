"""Public reports of users of other systems, and findings of new users: each is right, or refused with what to write, or wrong.

The cases are folders with a file `cmd.txt` of commands. Here is the right answer of each command, as rows of results or as words of a refusal. A
value that the pages document, and that its reporter did not expect, is told and not counted.

    PYTHON tests/outside/public_cases.py target/debug/cembra FOLDER-OF-CASES
"""

import csv
import json
import math
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import numpy
import pyarrow.parquet as pq

from cases import REFUSED, RIGHT, WRONG, Bench, brief

# Integers of 32 bits wrap around in products, as `docs/guide/data.md` says of columns of Parquet and Arrow.
DOCUMENTED = {"18"}


def rows(*lines):
    """Results with these rows of CSV."""
    wanted = [next(csv.reader([line])) if line else [""] for line in lines]
    return lambda done, text: RIGHT if done.status == 0 and list(csv.reader(text.splitlines()))[1:] == wanted else None


def near(*lines):
    """Results with rows of about these numbers."""
    wanted = [list(map(float, line.split(","))) for line in lines]

    def judge(done, text):
        try:
            found = [list(map(float, row)) for row in list(csv.reader(text.splitlines()))[1:]]
        except ValueError:
            return None
        same = len(found) == len(wanted) and all(
            len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-12) for x, y in zip(a, b)) for a, b in zip(found, wanted)
        )
        return RIGHT if done.status == 0 and same else None

    return judge


def objects(*wanted):
    """Results with these rows of JSON."""
    return lambda done, text: RIGHT if done.status == 0 and [json.loads(line) for line in text.splitlines()] == list(wanted) else None


def refused(*words):
    """An error whose message has these words."""
    return lambda done, text: REFUSED if done.refuses(*words) else None


def either(*judges):
    return lambda done, text: next((verdict for judge in judges if (verdict := judge(done, text))), None)


def holds(test):
    """Any other test of the results."""
    return lambda done, text: RIGHT if done.status == 0 and test(text) else None


def tensors(**wanted):
    """Results of tensors, as JSON, of about these numbers; `None` is any number."""

    def judge(text):
        found = json.loads(text)
        flat = lambda held: [one for part in held for one in flat(part)] if isinstance(held, list) else [float(held)]
        for name, numbers in wanted.items():
            held = flat(found[name])
            if len(held) != len(numbers) or not all(x is None or math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-12) for x, y in zip(numbers, held)):
                return False
        return True

    return holds(judge)


def column(wanted, name):
    """Rows of JSON that have these values under this name."""
    return holds(lambda text: [json.loads(line).get(name) for line in text.splitlines()] == wanted)


def first_of(folder):
    """The first line of nested rows whose object has a second member."""
    lines = (folder / "11-json-late-key" / "nested.jsonl").read_text().splitlines()
    return next(at for at, line in enumerate(lines, 1) if len(json.loads(line)["o"]) > 1)


def table_of(folder, wanted):
    """A Parquet file with these columns."""
    return lambda done, text: (
        RIGHT
        if done.status == 0
        and {name: column for name, column in pq.read_table(folder / "out.parquet").to_pydict().items() if name in wanted} == wanted
        else None
    )


def archive(folder):
    """An archive of arrays that are about those of `expected.npz`."""

    def judge(done, text):
        found, wanted = numpy.load(folder / "out.npz"), numpy.load(folder / "expected.npz")
        same = all(numpy.allclose(found[name], wanted[name], rtol=1e-7, atol=1e-7) for name in set(found.files) & set(wanted.files)) and set(
            found.files
        ) & set(wanted.files)
        return RIGHT if done.status == 0 and same else None

    return judge


def answers(folder):
    """The right answers of the commands of each case, in their order."""
    late = [json.loads(line).get("b") for line in (folder / "11-json-late-key" / "late.jsonl").read_text().splitlines()]

    return {
        "01": [rows("1", "1", "1"), rows("5", "", "", "", ""), rows("0,0", "0,0", "3,0", "4,-4")],
        "03": [either(rows("false", "true", "false"), refused("division by zero", "if")), rows("false", "true", "false")],
        "04": [
            rows(
                "true,true,false,true,",
                "false,true,false,true,",
                ",true,false,true,",
                "false,true,true,,true",
                "false,false,true,,true",
                "false,,true,,true",
                ",true,,,true",
                "false,,,,true",
                ",,,,true",
            ),
            either(rows("true,", ",true", ",true", ",true"), rows("true,", ",", ",", ","), refused("missing", "help")),
        ],
        "05": [rows('2,"x, y","p ""q"" r"', "3,\0,last")],
        "06": [rows("97100.7,35.86,2020-04-07", "-0.5,60.47,2019-12-31"), rows("194201.4,2020-04-07", "-1,2019-12-31")],
        "07": [
            rows("2333.25,2017-07-30T14:15:00Z", "2334.75,2017-07-30T14:30:00Z"),
            either(holds(lambda text: "2523,00" in text), refused("--decimal")),
        ],
        "08": [
            either(rows("1355.9", "5840.72", "12.5"), refused("strings.replace")),
            either(holds(lambda text: "1.355,90" in text), rows("1355.9", "5840.72", "12.5")),
            rows("1355.9", "5840.72", "12.5"),
            either(rows("2590", "7770.25"), refused("2,590", "strings.replace")),
        ],
        "09": [refused("ragged.csv:4", "fields"), holds(lambda text: "Ann" in text and "Dee" in text and "Bob" not in text)],
        "10": [
            refused("junk.csv:1401", "`9a`"),
            either(refused("fraction.csv:1401", "`2.5`"), holds(lambda text: "\n2.5\n" in text)),
            either(refused("code.csv:1401", "`01234`"), holds(lambda text: '"01234"' in text)),
            either(refused("code.csv:1401", "`01234`"), holds(lambda text: "\n01234\n" in text)),
        ],
        "11": [
            either(refused("`b`"), column(late, "y")),
            column(late, "y"),
            either(refused(f"nested.jsonl:{first_of(folder)}", "declare"), holds(lambda text: '"y":' in text.splitlines()[-1][6:])),
            either(refused("`b`"), column(late, "b")),
            either(refused("`b`"), column(late, "b")),
            refused("`a`"),
        ],
        "12": [
            objects(
                {"same": 6000000000000002181, "next": 6000000000000002182, "t": "5890840712243077"},
                {"same": 9007199254740993, "next": 9007199254740994, "t": "1"},
            ),
            either(holds(lambda text: "1234567890123456789012" in text), refused("id", "text")),
            either(objects({"x": 18446744073709551615}, {"x": 5}), refused("u64")),
            objects({"x": 18446744073709551615}, {"x": 5}),
            refused("`id`", "text"),
        ],
        "13": [either(rows("2"), refused("`a`", "twice")), either(rows("2"), refused("twice"))],
        "14": [rows("0"), either(rows("0"), refused("declare")), rows("0", "3.5", "4"), refused("items")],
        "15": [
            rows("149.63", "815.96", "-61.09", "34700.05", "3.77"),
            rows("2889.74,2889.75", "1572.3,1572.3"),
            # The quotient is 109.49999999999999: Excel rounds to 15 digits first, and has 110.
            rows("109"),
        ],
        "16": [rows("1.99,2", "2.34,2", "2.36,2", "-0.12,-0", "0.5,0", "1.5,2", "1e22,1e22")],
        "17": [
            holds(lambda text: text.splitlines()[1:7] == ["2,1,true", "-3,2,true", "-3,-2,true", "2,-1,true", "-1,5,true", "-1,2,true"]),
            rows("1,0.10000000000000009", "-1,1.9", "9,0.09999999999999995", "-1,1", "29,0.19999999999999968"),
        ],
        "18": [either(rows("2147483666"), refused("i32")), either(rows("5000000000"), refused("i32")), rows("8000000000,200"), rows("5000000000")],
        "19": [
            rows("152399025,12345,4115", "281475010265089,16777217,5592405.666666667", "9000000000000000000,3000000000,1000000000"),
            rows("152399025", "281475010265089", "9000000000000000000"),
            rows("129140163"),
        ],
        "20": [either(refused("NaN"), refused("nan"))],
        "21": [
            holds(
                lambda text: all((row[0] == "nan") == ("NaN" in row[1]) for row in list(csv.reader(text.splitlines()))[1:])
                and [row[2:] for row in list(csv.reader(text.splitlines()))[1:]] == [["2", "2"], ["0", "5"], ["0", "5"], ["", ""], ["", ""]]
            )
        ],
        # `math.inverse_cdf` has an element, as Arolla's does; `quantile`, which interpolates, is in `quantiles.py`.
        "22": [rows("25", "1.5", "5", ""), rows("30", "2", "5", "")],
        "23": [
            holds(
                lambda text: (lambda found: abs(found[0][0] - 5 / 12) < 1e-12 and 0 <= found[1][0] < 1e-20 and found[2] == [1, 1])(
                    [list(map(float, row)) for row in list(csv.reader(text.splitlines()))[1:]]
                )
            ),
            holds(lambda text: math.isclose(float(text.splitlines()[1]), 5.311e-6, rel_tol=1e-3)),
        ],
        "26": [
            holds(
                lambda text: re.findall(r"2022-\d\d-\d\d", text)
                == ["2022-01-31", "2022-02-28", "2022-03-31", "2022-04-30", "2022-05-31", "2022-06-30", "2022-07-31"]
            )
        ],
        "28": [
            rows("2019-W01", "2025-W01", "2020-W53", "2026-W53", "2009-W01", "2026-W01", "2026-W53"),
            either(rows("2019-W01", "2025-W01", "2020-W53", "2026-W53", "2009-W01", "2026-W01", "2026-W53"), refused("%G")),
        ],
        "29": [
            rows("2016-03-17T17:06:59.764Z", "2024-02-19T22:37:01Z", "2020-10-14T10:23:00Z", "2020-10-15T17:30:00Z"),
            rows("2020-10-14T10:23:00Z"),
            rows("2024-02-19T22:37:01Z"),
            rows("2026-01-01T00:00:00.123456Z"),
            rows("2026-01-01T00:00:00.123456Z"),
        ],
        "30": [rows("0.5", "0.2", "0.2", "0", "0"), rows("0", "1000", "1010", "1500", "1990", "2000", "3500")],
        "31": [rows("10", "10", "0", "0", "0", "0", "0")],
        "32": [rows(",,,true,,true", ",,true,,,true", "true,true,,,,true", ",,,,true,"), rows("1,2")],
        "33": [rows("-16,-2.5,-8,0.0625,-4,-144")],
        "34": [
            rows("12502500"),
            near(str(products(folder / "34-large-expressions" / "products.cem"))),
            rows("7"),
            either(rows("7"), refused("nesting")),
            rows("5998"),
        ],
        "35": [rows("STRASSE,straße,6,S", "İ,i̇,1,İ", "FL,ﬂ,1,ﬂ", "🇪🇸,🇪🇸,2,🇪", "ΟΔΟΣ,οδος,4,Ο", "Ǆ,ǆ,1,ǅ")],
        "36": [rows("ac,100$,-a-b-c-"), rows("$1")],
        "37": [tensors(ij=[0, 1, 2, 3, 12, 13, 14, 15], i=[6, 54], ji=[0, 12, 1, 13, 2, 14, 3, 15], d=[3])],
        "38": [refused("`k`"), refused("`i`"), refused("`b`")],
        "40": [tensors(g=[1, 1, 0.25], relu=[0, 1, 1], chosen=[0, 1, 1], guarded=[1, 1, 0.25])],
        "41": [
            tensors(probabilities=[0.25, 0, 0.25, 0.25, 0.25], gradient=[-0.0625, 0, 0.1875, -0.0625, -0.0625], large=[0.5, 0.5, 0]),
            tensors(g=[0, 0, 0]),
        ],
        "42": [archive, archive],
        "44": [rows("none,10", "a,20", "b,", "a,30", "none,10"), "dictionary"],
        "45": [
            either(rows("2805", "2803"), refused("wide")),
            either(near("10010", "7.000000000000001"), refused("money")),
            rows("2805.000000000000000000,100.10,2.04,1", "2803.000000000000000000,0.07,,1"),
        ],
        "46": [
            rows("9999-12-31T23:59:59.999999Z,9999", "1000-01-01T00:00:00Z,1000", "2024-06-01T12:00:00Z,2024"),
            *[rows("1969-12-31T23:59:59.999999Z", "2018-03-11T06:59:59.999999Z", "1970-01-01T00:00:00Z")] * 2,
            holds(lambda text: all(moment in text for moment in ("9999-12-31T23:59:59.999999", "1000-01-01T00:00:00", "2024-06-01T12:00:00"))),
        ],
        "47": [rows(",0", ",0", "50,50", "42,42", ",0", ","), rows("1", "2", "", "7")],
        "48": [
            rows("11,5,x,4"),
            refused("two columns", "`a`"),
            either(holds(lambda text: re.search(r"2\.5 *, *x *\n3,", text)), refused("` amount `")),
            rows("0,1,2,3", "1,3,4,7"),
            rows("0", "1"),
            rows("1,2,3,1"),
        ],
        "49": [rows("5", "0"), rows("1", "60", "28")],
        "50": [
            objects({"c": [10, 30, 60, None, 110]}, {"c": [None, None, 5, None, None, 6]}, {"c": []}),
            objects({"w": [10, 30, 60, 50, 80]}, {"w": [0, 0, 5, 5, 5, 1]}, {"w": []}),
            objects({"c": [10, 30, 60, None, 110]}, {"c": [None, None, 5, None, None, 6]}, {"c": []}),
        ],
        "51": [
            rows("24,25,P3652058D"),
            rows("2017-09-11T18:30:00Z,1", "1970-01-01T00:00:00Z,4", "1969-12-31T23:59:59Z,3"),
            refused("timestamp.from_unix"),
        ],
        "52": [rows("4498500", "8997000"), rows("1,3000000", "2,1")],
        "53": [
            rows("", "", "", "-2147483648", "2147483647", "", "0", ""),
            holds(lambda text: [row[0] for row in list(csv.reader(text.splitlines()))[1:]][2:5] == ["2147483648", "-2147483648", "2147483647"]),
        ],
        "54": [
            either(rows("1999-12-31,1999,26", "2026-01-01,2026,0"), refused("--date-format %Y%m%d")),
            rows("1999-12-31,1999", "2026-01-01,2026"),
            either(rows("1999", "2026"), refused("--date-format")),
            either(rows("2026"), refused("--date-format")),
            refused("late.csv:1102"),
            either(rows("2"), refused("rates.csv:2")),
        ],
        "55": [refused("middle.csv:3", "quote"), refused("text.csv:2", "quote")],
        "56": [refused("--null NA"), refused("--null NA"), rows("NA", "6", "NA"), either(rows("4", "8"), refused("--delimiter"))],
    }


def products(path):
    expression = re.search(r"output y = (.*)", path.read_text())[1].replace("f64", "")
    return eval(expression, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})


def commands(folder):
    return [line for line in (folder / "cmd.txt").read_text().splitlines() if line.startswith("cembra ")]


def results(bench, arguments, done):
    """The text of the results: of a file if they went into one."""
    if "-o" in arguments:
        name = arguments[arguments.index("-o") + 1]
        return bench.read(name) if not name.endswith((".npz", ".parquet", ".tiles")) else ""
    return done.out


def all_cases(bench, source, lines):
    right = answers(source)
    for folder in sorted(path for path in source.iterdir() if path.is_dir()):
        key = folder.name[:2]
        shutil.copytree(folder, bench.folder, dirs_exist_ok=True)
        if (folder / "make.py").exists():
            subprocess.run([sys.executable, "make.py"], cwd=bench.folder, check=True)
        for at, command in enumerate(commands(folder)):
            arguments = shlex.split(command)[1:]
            if key in ("37", "40", "41"):
                arguments += ["-o", "t.json"]
            (bench.folder / "out.csv").unlink(missing_ok=True)
            done = bench.run(*arguments)
            text = results(bench, arguments, done)
            judges = right.get(key, [])
            judge = judges[at] if at < len(judges) else None
            if judge is archive:
                judge = archive(bench.folder)
            if judge == "dictionary":
                judge = table_of(bench.folder, {"s": [None, "a", "b", "a", None], "n": [10, 20, None, 30, 10]})
            if key == "05":
                judge = holds(
                    lambda text: list(csv.reader(text.splitlines(keepends=True)))[1:]
                    in ([["2", "x, y", 'p "q" r'], ["3", f"multi{end}line", "last"]] for end in ("\n", "\r\n"))
                )
            record(bench, lines, folder.name, at + 1, judge, done, text, f"cd {folder.name}; {command}", key in DOCUMENTED)


def record(bench, lines, name, at, judge, done, text, shown, is_documented=False):
    verdict = WRONG
    if judge is not None and not done.broke():
        try:
            verdict = judge(done, text) or WRONG
        except Exception as error:
            print(f"{name} {at}: {type(error).__name__}: {error}")
    found = brief(text if done.status == 0 else done.err, 160).replace("|", "\\|")
    if verdict == WRONG and is_documented:
        lines.append((name, at, "as documented", found))
        return
    lines.append((name, at, {RIGHT: "right", REFUSED: "refused with help", WRONG: "WRONG"}[verdict], found))
    bench.tally("public cases" if not name.startswith("finding") else "findings", verdict, found, shown)


def findings(bench, lines):
    """The findings that belong to the edges of data, by their numbers."""
    file = bench.file
    numpy.save(bench.folder / "h.npy", numpy.eye(20))
    file("p.cem", 'tile i, j, k = 10\ninput h: tiled[f64, "i,j"]\np("i,j") = h("i,k") * h("k,j")\n')
    file("k.jsonl", '{"id":1,"x":1}\n{"id":2,"x":"a"}\n')
    file("k.csv", "id,x\n1,1\n2,a\n")
    file("q.csv", 'k,v\na,"x\nb,y\nc,z\n')
    file("q.cem", 'table t: text -> text = "q.csv"\ninput k: text\noutput v = lookup(k, t)\n')
    file("c.csv", "k,v\r\na,1\r\nb,x\r\n")
    file("c.cem", 'table t: text -> f64 = "c.csv"\ninput k: text\noutput v = lookup(k, t)\n')
    file("g.csv", "von;satz\n0;180,5\n")
    file("g.cem", 'table t: ranges of f64 -> f64 = "g.csv"\ninput k: f64\noutput v = lookup(k, t)\n')
    file("g2.csv", "r,from,v\nZH,0,1\nZH,10,2\nBE,5,3\n")
    file("g2.cem", 'table t: (text, ranges of f64) -> f64 = "g2.csv"\ninput r: text\ninput k: f64\noutput v = lookup((r, k), t)\n')
    file("t.jsonl", '{"t":"2026-11-20T10:15:00","x":"1,5"}\n')
    file("ns.jsonl", '{"t":"2026-11-20T10:15:00.123456789Z"}\n')
    file("x.csv", "x\n1\n")
    file("part1.csv", "x\n1\n")
    file("part2.csv", "x\n2\n")
    file("bad.jsonl", '{"x":1}\n{"x":\n{"x":3}\n')
    file("n.jsonl", '{"n": 12345678901234567890}\n')
    file("l.jsonl", '{"p":[[1,2],[3]]}\n{"p":[]}\n')
    file("m.jsonl", '{"p":1}\n{"p":"a"}\n')
    file("z.jsonl", '{"t":"2026-11-20T10:15:00Z","z":"europe/zurich"}\n')
    file("z.csv", "t\n2026-03-29 02:30:00\n")
    file("plus.csv", "p\n+41791234567\n+417\n")
    file("large.jsonl", '{"x": 1e400}\n')
    file("b.csv", "betrag\n1.5\n")
    import polars

    polars.DataFrame({"a": [1, 2, 3]}).write_ipc(bench.folder / "p.arrow")
    tensor = ["-e", "input h: tensor[f64, 2]; output y = tensor.sum(h, 0)", "--input", "h=h.npy"]
    cases = [
        ("3", ["eval", *tensor, "-o", "y.parquet"], refused("-o y.parquet", ".npz")),
        ("3", ["eval", *tensor, "-o", "y.csv"], refused("-o y.csv", ".npz")),
        ("3", ["eval", *tensor, "-o", "y.tiles"], refused("-o y.tiles", ".npz")),
        ("3", ["eval", "-e", "input x: f64; x * 2", "-s", "x=2", "-o", "y.npz"], refused("-o y.npz", ".csv")),
        ("3", ["eval", "-e", "input x: f64; x * 2", "-s", "x=2", "-o", "y.xlsx"], refused("-o y.xlsx", ".csv")),
        ("4", ["eval", "-e", "input x: i64; x", "k.jsonl", "--keep", "id", "--on-error", "missing", "--errors", "e.csv"], rows("1,1", "2,")),
        ("4", ["eval", "-e", "input x: i64; x", "k.csv", "--keep", "id", "--on-error", "missing", "--errors", "e.csv"], rows("1,1", "2,")),
        ("5", ["eval", "-e", "a * 2", "p.arrow"], rows("2", "4", "6")),
        ("7", ["check", "q.cem"], refused("q.csv:2", "quote")),
        ("14", ["check", "c.cem"], refused("c.csv:3", "`x`")),
        ("15", ["check", "g.cem"], refused("g.csv", "help")),
        ("15", ["eval", "g2.cem", "-s", "r=ZH", "-s", "k=12"], rows("2")),
        (
            "15",
            ["eval", "-e", "input betrag: f64; output y = betrag", "b.csv", "--output-decimal", ","],
            holds(lambda text: text == 'y\n"1,5"\n' or text == "y\n1,5\n"),
        ),
        ("16", ["eval", "-e", "output a = t", "t.jsonl", "--decimal", ","], refused("`--decimal`")),
        ("16", ["eval", "-e", "output a = x", "t.jsonl", "--time-zone", "Europe/Zurich"], refused("`--time-zone`")),
        ("16", ["eval", "-e", "output a = x", "t.jsonl", "--date-format", "%Y"], refused("`--date-format`")),
        ("16", ["eval", "-e", "x * 2", "x.csv", "--threshold", "1e-3"], refused("`--threshold`")),
        ("16", ["eval", "-e", "x * 2", "x.csv", "--ranks", "3"], refused("`--ranks`")),
        ("17", ["eval", "-e", "input t: timestamp; t", "t.jsonl"], refused("--time-zone")),
        ("17", ["eval", "-e", "input t: timestamp; t", "t.jsonl", "--time-zone", "UTC"], rows("2026-11-20T10:15:00Z")),
        ("17", ["eval", "-e", "input t: timestamp; t", "ns.jsonl"], rows("2026-11-20T10:15:00.123456Z")),
        ("17", ["eval", "-e", 'timestamp"2026-11-20T10:15:00+01:00"'], rows("2026-11-20T09:15:00Z")),
        ("17", ["eval", "-e", "input s: text; strings.parse_timestamp(s)", "-s", "s=2026-11-20T10:15:00+01:00"], rows("2026-11-20T09:15:00Z")),
        (
            "17",
            ["eval", "-e", 'input s: text; strings.parse_timestamp(s, "%Y-%m-%d %I:%M:%S.%f %p")', "-s", "s=2026-11-20 10:15:00.123456789 PM"],
            rows("2026-11-20T22:15:00.123456Z"),
        ),
        (
            "19",
            ["eval", "-e", "output y = 1", "n.jsonl", "--keep-all", "--format", "jsonl"],
            either(holds(lambda text: '"n":12345678901234567890' in text), refused("`n`", "u64"), refused("`n`", "text")),
        ),
        (
            "19",
            ["eval", "-e", "output y = 1", "l.jsonl", "--keep-all", "--format", "jsonl"],
            either(holds(lambda text: '"p":[[1,2],[3]]' in text), refused("`p", "`--types p=")),
        ),
        (
            "19",
            ["eval", "-e", "output y = 1", "m.jsonl", "--keep-all", "--format", "jsonl"],
            either(holds(lambda text: '"p":1,' in text and '"p":"a"' in text), refused("`p`", "`--types p=")),
        ),
        ("24", ["eval", "p.cem", "--input", "h=h.npy", "-o", "p.tiles"], lambda done, text: RIGHT if done.status == 0 else None),
        (
            "24",
            ["eval", "p.cem", "--input", "h=p.tiles", "-o", "w.npz"],
            either(refused("`p`", "p.tiles:p"), lambda done, text: RIGHT if done.status == 0 else None),
        ),
        ("24", ["eval", "p.cem", "--input", "h=p.tiles:p", "-o", "w.npz"], lambda done, text: RIGHT if done.status == 0 else None),
        ("26", ["eval", "-e", "x", "part1.csv", "part2.csv"], rows("1", "2")),
        ("26", ["eval", "-e", "x", "part*.csv"], rows("1", "2")),
        ("26", ["eval", "-e", "input x: i64; x", "bad.jsonl", "--on-error", "skip", "--format", "csv"], rows("1", "3")),
        ("27", ["eval", "-e", "input z: text; input t: timestamp; timestamp.local(t, z)", "z.jsonl"], refused("`europe/zurich`")),
        (
            "27",
            ["eval", "-e", "input t: timestamp; t", "z.csv", "--time-zone", "Europe/Zurich", "--on-error", "missing", "--errors", "e.csv"],
            lambda done, text: RIGHT if "skip" in bench.read("e.csv") else None,
        ),
        ("30", ["eval", "-e", "p", "plus.csv"], rows("+41791234567", "+417")),
        (
            "30",
            ["eval", "-e", "output y = 1", "plus.csv", "--keep", "p", "--format", "jsonl"],
            objects({"p": "+41791234567", "y": 1}, {"p": "+417", "y": 1}),
        ),
        ("30", ["eval", "-e", "output y = x", "large.jsonl"], refused("1e400")),
        ("30", ["eval", "-e", "input x: f64; output y = x", "large.jsonl"], either(refused("1e400"), rows("inf"))),
    ]
    at = {}
    for number, arguments, judge in cases:
        at[number] = at.get(number, 0) + 1
        done = bench.run(*arguments)
        record(bench, lines, f"finding {number}", at[number], judge, done, results(bench, arguments, done), shlex.join(["cembra", *arguments]))


def main():
    bench, lines = Bench(sys.argv[1], "public cases and findings"), []
    all_cases(bench, pathlib.Path(sys.argv[2]), lines)
    findings(bench, lines)
    print("| case | command | verdict | what it said |\n|---|---|---|---|")
    for name, at, verdict, found in lines:
        print(f"| {name} | {at} | {verdict} | {found} |")
    sys.exit(bench.end())


if __name__ == "__main__":
    main()
