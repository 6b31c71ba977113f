"""Types that are taken from the first rows hold for all rows: a value further down keeps every digit, or is an error that names row, line and column.

Each case is a bad cell behind row 1,000 in a column of its own; a file has hundreds of columns. What the help says to declare is declared, and then the
value must be there as it is written. Types that are taken from few rows are those that the rule of `docs/tables.md` gives, computed here with `decimal`.

    PYTHON tests/outside/late_rows.py target/debug/cembra
"""

import decimal
import json
import random
import re

import pyarrow.ipc as ipc

from cases import EPOCH, MICROSECOND, REFUSED, RIGHT, WRONG, again, brief, cells, main, moment, table

RNG = random.Random(67)
ROWS, SAMPLE = 1_400, 1_000

# What columns of CSV have in their first rows, and what comes late: `None` must be an error, a text must be the value.
CSV = {
    "i64": (
        lambda: str(RNG.randrange(-999, 999)),
        {
            "01234": None,
            '"007"': None,
            "+417": None,
            "+41791234567": None,
            "1e400": None,
            "2.5": None,
            "-0": None,
            "9a": None,
            "NA": None,
            "-": None,
            "18446744073709551615": None,
            "9223372036854775808": None,
            "-9223372036854775809": None,
            "1234567890123456789012": None,
            "2026-01-01": None,
            "true": None,
            "nan": None,
            "1_000": None,
            "0x10": None,
            "1.000,5": None,
            '"2,590"': None,
            "00": None,
            "0": "0",
            "-7": "-7",
            "5.0": "5",
            "9223372036854775807": "9223372036854775807",
            "-9223372036854775808": "-9223372036854775808",
            "9007199254740993": "9007199254740993",
            "1.5e0": None,
            "--1": None,
            "1 2": None,
            "١": None,
        },
    ),
    "f64": (
        lambda: f"{RNG.randrange(-999, 999)}.{RNG.randrange(1, 10)}5",
        {
            "007": None,
            "-007": None,
            "00.5": None,
            "+417": None,
            "+1.5": None,
            "1e400": None,
            "-1E+400": None,
            '"1,5"': None,
            "1.5.2": None,
            "NA": None,
            "1_0.5": None,
            "2026-01-01": None,
            "false": None,
            "0x1p3": None,
            "0": "0",
            "-0": "-0",
            "0.5": "0.5",
            "-0.5": "-0.5",
            ".5": "0.5",
            "1e300": "1e300",
            "1e-400": "0",
            "nan": "nan",
            "inf": "inf",
            "7": "7",
            "5e-324": "5e-324",
        },
    ),
    "date": (
        lambda: f"2026-{RNG.randrange(1, 13):02}-{RNG.randrange(1, 29):02}",
        {
            "20260101": None,
            "2026-02-30": None,
            "01.02.2026": None,
            "46023": None,
            "2026-01-01T00:00:00Z": None,
            "2026/01/02": None,
            "0": None,
            "x": None,
            "2026-1-5": None,
            "2024-02-29": "2024-02-29",
            "0001-01-01": "0001-01-01",
            "9999-12-31": "9999-12-31",
            "10000-01-01": None,
            "-2026-01-01": None,
        },
    ),
    "timestamp": (
        lambda: f"2026-01-{RNG.randrange(1, 29):02}T00:00:00Z",
        {
            "1767225600": None,
            "1767225600000": None,
            "20260101": None,
            "2026-01-01": None,
            "2026-01-01T00:00:00": None,
            "2026-01-01T25:00:00Z": None,
            "2026-06-30T23:59:60Z": None,
            "x": None,
            "2026-01-01T01:00:00+01:00": "2026-01-01T00:00:00Z",
            "2026-01-01 00:00:00.5Z": "2026-01-01T00:00:00.5Z",
        },
    ),
    "bool": (
        lambda: RNG.choice(["true", "False"]),
        {"1": None, "0": None, "yes": None, "t": None, "tRUE": None, "2.5": None, "TRUE": "true", "FALSE": "false"},
    ),
    "text": (lambda: RNG.choice(["a", "b c"]), {"007": "007", "+1": "+1", "1e400": "1e400", "20260101": "20260101", '" 5"': " 5", "NA": "NA"}),
}


def late(bench):
    """Columns of CSV that are inputs, or carried through as values; each has its bad cell in a row of its own."""
    columns = [(of, make, text, value) for of, (make, odd) in CSV.items() for text, value in odd.items()]
    names = [f"c{at}" for at in range(len(columns))]
    rows = [[make() for _, make, _, _ in columns] for _ in range(ROWS)]
    places = RNG.sample(range(SAMPLE, ROWS), len(columns))
    for at, place in enumerate(places):
        rows[place][at] = columns[at][2].strip('"')
    content = table(names, rows)
    file = bench.file("late.csv", content)
    outputs = "; ".join(f"output y{at} = {name}" for at, name in enumerate(names))
    inputs = ["eval", "-e", outputs, file, "--on-error", "missing", "--errors", "errors.csv"]
    done = bench.run(*inputs)
    found, told = cells(done.out), bench.failures()
    judge(bench, "csv: late cells of inputs", columns, names, places, found, told, done)
    # As values of another form.
    carried = ["eval", "-e", "output one = 1", file, "--keep-all", "--on-error", "missing", "--errors", "errors.csv", "-o", "late.jsonl"]
    done = bench.run(*carried)
    lines = [json.loads(line, parse_float=str, parse_int=str) for line in bench.read("late.jsonl").splitlines()]
    found = [
        [
            "" if row[name] is None else {True: "true", False: "false", "NaN": "nan", "Infinity": "inf"}.get(row[name], str(row[name]))
            for name in names
        ]
        for row in lines
    ]
    judge(bench, "csv: late cells that become values of JSON", columns, names, places, found, bench.failures(), done)
    # As they are written.
    done = bench.run("eval", "-e", "output one = 1", file, "--keep-all")
    found = cells(done.out)
    for at, place in enumerate(places):
        bench.value("csv: late cells that are carried to CSV", found[place][at] if len(found) == ROWS else brief(done.err), rows[place][at])


def judge(bench, kind, columns, names, places, found, told, done):
    if len(found) != ROWS:
        return bench.tally(kind, WRONG, f"{len(found)} rows of {ROWS}: {brief(done.err)}")
    for at, (place, (of, _, text, value)) in enumerate(zip(places, columns)):
        row = told.get(place + 1)
        shown = f"a column of {of} with {text} in row {place + 1}"
        cell = found[place][at]
        if row and row["column"] == names[at] and int(row["line"]) == place + 2 and cell == "":
            # More than is asked for is refused where Python has a value.
            bench.tally(kind, REFUSED if value is None else WRONG, f"{row['message']}, and {value} is its value", shown)
        elif value is None:
            bench.tally(kind, WRONG, f"`{text}` among {of} is {cell!r}; told {row}", shown)
        else:
            number = re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", value) and of in ("i64", "f64")
            same = (
                cell == value or number and decimal.Decimal(cell or "nan") == decimal.Decimal(value) and cell.startswith("-") == value.startswith("-")
            )
            bench.tally(kind, RIGHT if same else WRONG, f"`{text}` among {of} is {cell!r}; told {row}", shown)


def advised(bench):
    """What the help says to declare is declared, and the value is there as it is written."""
    for of, (make, odd) in CSV.items():
        for text, value in odd.items():
            if value is not None:
                continue
            plain = text.strip('"')
            content = table(["x"], [[make()] for _ in range(ROWS - 1)] + [[plain]])
            file = bench.file("one.csv", content)
            args = ["eval", "-e", "output y = x", file, "-o", "y.csv"]
            done = bench.run(*args)
            shown = f"1,399 rows of {of} and `{text}`; {again(*args)}"
            kind = f"csv: help for a late cell among {of}"
            if not bench.refusal(kind, done, [f"`{plain}`", f"one.csv:{ROWS + 1}", "`x`"], shown):
                continue
            declared = re.search(r"declare `(input x: [^`]+)`", done.err)
            if declared is None:
                option = re.search(r"`(--[a-z-]+ [^`]+)`", done.err)
                if option is None:
                    bench.tally(kind, WRONG, f"no declaration in {brief(done.err)}", shown)
                continue
            done = bench.run("eval", "-e", f"{declared[1]}; output y = x", file, "-o", "y.csv")
            found = cells(bench.read("y.csv"))
            last = found[-1][0] if len(found) == ROWS else None
            same = last == plain or last is not None and "f64" in declared[1] and float(last) == float(plain)
            bench.tally(
                f"csv: what is declared then, among {of}", RIGHT if same else WRONG, f"`{declared[1]}` gives {last!r}: {brief(done.err)}", shown
            )


# What keys of JSON have in their first rows, and what comes late.
JSON = {
    "i64": (
        "%d",
        {
            "2.5": None,
            '"a"': None,
            '"7"': None,
            "18446744073709551615": None,
            "9223372036854775808": None,
            "1234567890123456789012": None,
            "1e400": None,
            "null": None,
            "true": None,
            "[1]": None,
            "{}": None,
            "-9223372036854775809": None,
            "9007199254740993": "9007199254740993",
            "-9223372036854775808": "-9223372036854775808",
            "0": "0",
            "7.5e0": None,
        },
    ),
    "f64": (
        "%d.5",
        {
            "1e400": None,
            "-1e400": None,
            '"a"': None,
            '"1.5"': None,
            "null": None,
            "false": None,
            "7": "7",
            "1e300": "1e300",
            "-0.0": "-0.0",
            "1e-400": "0.0",
            '"NaN"': '"NaN"',
            "12345678901234567890123": None,
        },
    ),
    "text": (
        '"t%d"',
        {
            "7": None,
            "1234567890123456789012": None,
            "1.50": None,
            "null": None,
            "true": None,
            "[1]": None,
            '"007"': '"007"',
            '"\\u00fc"': '"ü"',
            '"\\ud83d\\ude00"': '"😀"',
        },
    ),
    "bool": ("true", {"1": None, '"true"': None, "null": None, "false": "false"}),
    "struct": (
        '{"a": %d}',
        {
            '{"a": 1, "b": 2}': None,
            '{"a": "x"}': None,
            '{"b": 1}': None,
            "{}": None,
            "null": None,
            "7": None,
            '{"a": 7}': '{"a":7}',
            '{"a": 1e400}': None,
            '{"a": 18446744073709551615}': None,
            '{"a": 1, "b": null}': None,
        },
    ),
    "nested": (
        '{"a": {"c": %d}}',
        {
            '{"a": {"c": 1, "d": "e"}}': None,
            '{"a": {"c": 1}, "b": {}}': None,
            '{"a": {}}': None,
            '{"a": null}': None,
            '{"a": {"c": 2}}': '{"a":{"c":2}}',
        },
    ),
    "structs in a list": (
        '[{"a": %d}]',
        {'[{"a": 1}, {"a": 3, "b": 2}]': None, '[{"a": 1.5}]': None, "[]": "[]", '[{"a": 1}, {}]': None, '[{"a": [1]}]': None, "[null]": None},
    ),
    "list": (
        "[%d, 2]",
        {
            "[1.5]": None,
            '["a"]': None,
            "[18446744073709551615]": None,
            "null": None,
            "[[1]]": None,
            "7": None,
            "[]": "[]",
            "[9007199254740993]": "[9007199254740993]",
        },
    ),
    "list of f64": ("[%d.5]", {"[1e400]": None, "[1, -1e400]": None, "[7]": "[7.0]", '["x"]': None}),
}


def late_of_json(bench):
    columns = [(of, form, text, value) for of, (form, odd) in JSON.items() for text, value in odd.items()]
    names = [f"c{at}" for at in range(len(columns))]
    fill = lambda form: form % RNG.randrange(99) if "%" in form else form
    rows = [[fill(form) for _, form, _, _ in columns] for _ in range(ROWS)]
    places = RNG.sample(range(SAMPLE, ROWS), len(columns))
    for at, place in enumerate(places):
        rows[place][at] = columns[at][2]
    line = lambda row: "{" + ", ".join(f'"{name}": {cell}' for name, cell in zip(names, row)) + "}\n"
    file = bench.file("late.jsonl", "".join(map(line, rows)))
    outputs = "; ".join(f"output y{at} = {name}" for at, name in enumerate(names))
    for kind, model, more in (("inputs", outputs, []), ("values that are carried", "output one = 1", ["--keep-all"])):
        args = ["eval", "-e", model, file, "--on-error", "missing", "--errors", "errors.csv", "-o", "out.jsonl", *more]
        done = bench.run(*args)
        found, told = bench.read("out.jsonl").splitlines(), bench.failures()
        kind = f"jsonl: late cells of {kind}"
        if len(found) != ROWS:
            bench.tally(kind, WRONG, f"{len(found)} rows of {ROWS}: {brief(done.err)}")
            continue
        for at, (place, (of, _, text, value)) in enumerate(zip(places, columns)):
            row = told.get(place + 1)
            cell = member(found[place], f"y{at}" if not more else names[at])
            shown = f"a key of {of} with {text} in row {place + 1}"
            # What is carried as it comes loses nothing.
            as_it_comes = more and cell.replace(" ", "") == text.replace(" ", "")
            if as_it_comes or value is not None and cell.replace(" ", "") == value.replace(" ", ""):
                bench.tally(kind, RIGHT)
            elif value is not None and of == "f64" and cell not in ("null", "") and float(cell) == float(value):
                bench.tally(kind, RIGHT)
            elif row and row["column"].split(".")[0] == names[at] and int(row["line"]) == place + 1 and value is None:
                bench.tally(kind, REFUSED)
            elif value is None and text == "null" and cell == "null":
                bench.tally(kind, RIGHT)
            else:
                bench.tally(kind, WRONG, f"`{text}` among {of} is {cell}; told {row}", shown)


def member(line, name):
    """The text of a member of an object, as it is written."""
    at = line.find(f'"{name}":')
    if at < 0:
        return ""
    text = line[at + len(name) + 3 :].lstrip()
    _, end = json.JSONDecoder().raw_decode(text)
    return text[:end]


def advised_of_json(bench):
    """What the help says to declare is declared, and the value is there as it is written."""
    for of, (form, odd) in JSON.items():
        for text, value in odd.items():
            if value is not None:
                continue
            fill = form % 7 if "%" in form else form
            file = bench.file("one.jsonl", f'{{"x": {fill}}}\n' * (ROWS - 1) + f'{{"x": {text}}}\n')
            args = ["eval", "-e", "output y = x", file, "-o", "y.jsonl"]
            done = bench.run(*args)
            shown = f"1,399 rows of {fill} and {text}; {again(*args)}"
            kind = f"jsonl: help for a late cell among {of}"
            if not bench.refusal(kind, done, [f"one.jsonl:{ROWS}", "`x"], shown):
                continue
            declared = re.search(r"declare `(input x: [^`]+)`", done.err)
            if declared is None:
                # No type holds both: then the message says so, or tells the type that is expected.
                if "no type can hold both" not in done.err and "write `[]`" not in done.err:
                    bench.tally(kind, WRONG, f"no declaration in {brief(done.err)}", shown)
                continue
            done = bench.run("eval", "-e", f"{declared[1]}; output y = x", file, "-o", "y.jsonl")
            lines = bench.read("y.jsonl").splitlines()
            last = member(lines[-1], "y") if len(lines) == ROWS else ""
            same = last and kept(json.loads(text, parse_float=decimal.Decimal), json.loads(last, parse_float=decimal.Decimal))
            bench.tally(
                f"jsonl: what is declared then, among {of}", RIGHT if same else WRONG, f"`{declared[1]}` gives {last}: {brief(done.err)}", shown
            )


def kept(wanted, found):
    """True if all of a value is there; members that are null may be absent, and a text may have the digits of a number."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(kept(value, found.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(kept, wanted, found))
    return found == wanted or not isinstance(wanted, bool) and isinstance(found, str) and found == str(wanted)


def late_keys(bench):
    """Keys that first come behind the sample: carried as they come, or an error; digits beyond 64 bits are carried as they are written."""
    for value in ("3", '"x"', "null", "[1]", '{"y": 1}', "1234567890123456789012", "1.50", "true"):
        content = '{"a": 1}\n' * SAMPLE + f'{{"a": 2, "b": {value}}}\n{{"a": 3, "b": {value}}}\n'
        file = bench.file("k.jsonl", content)
        for name, more in (("--keep-all", ["--keep-all"]), ("--keep b", ["--keep", "b"]), ("an input", None)):
            model = "output y = a" if more else "output y = b"
            args = ["eval", "-e", model, file, "-o", "k_out.jsonl", *(more or [])]
            done = bench.run(*args)
            lines = bench.read("k_out.jsonl").splitlines()
            (bench.folder / "k_out.jsonl").unlink(missing_ok=True)
            shown = f"1,000 rows of a, and 2 with b of {value}; {again(*args)}"
            kind = f"jsonl: a late key by {name}"
            if done.status == 0 and value == "null":
                bench.tally(kind, RIGHT)
            elif done.status == 0:
                # Digits are carried as they are written; white space within a value need not be.
                found = [member(line, "b" if more else "y").replace('": ', '":') for line in lines[-2:]]
                bench.value(kind, found, [value.replace('": ', '":')] * 2, shown)
            else:
                bench.refusal(kind, done, ["`b`"], shown)
        # Named with its type it is there, and missing before.
        args = ["eval", "-e", "input b: text?; output y = b", file, "-o", "k_out.jsonl"]
        done = bench.run(*args)
        lines = bench.read("k_out.jsonl").splitlines()
        if value in ('"x"', "1234567890123456789012", "3", "null"):
            expected = value if value in ("null", '"x"') else f'"{value}"'
            found = [member(lines[0], "y"), member(lines[-1], "y")] if len(lines) == SAMPLE + 2 else brief(done.err)
            bench.value("jsonl: a late key that is declared", found, ["null", expected], again(*args))
    for value in (
        "18446744073709551615",
        "18446744073709551616",
        "1234567890123456789012",
        "-9223372036854775809",
        "[[1, 2], [3]]",
        "12345678901234567890",
        "1e400",
        '[1, "a", {"b": [null]}]',
        "0.1000",
        '{"x": 18446744073709551616}',
    ):
        content = f'{{"a": 1, "n": {value}}}\n{{"a": 2, "n": 5}}\n'
        args = ["eval", "-e", "output y = a", bench.file("n.jsonl", content), "--keep", "n", "--format", "jsonl"]
        done = bench.run(*args)
        lines = done.out.splitlines()
        found = member(lines[0], "n") if done.status == 0 and lines else ""
        kind, shown = "jsonl: a value that no type holds, carried", again(*args, n_jsonl=content)
        same_number = re.fullmatch(r"[0-9.]+", found + value) and "." in value and decimal.Decimal(found) == decimal.Decimal(value)
        if found.replace(" ", "") == value.replace(" ", "") or same_number:
            bench.tally(kind, RIGHT)
        elif done.status == 0:
            bench.tally(kind, WRONG, f"found {found}, expected {value}", shown)
        else:
            bench.refusal(kind, done, ["`n", "`--types n="], shown)


def few(bench):
    """The types of columns of few rows, by the rule of the documents; and that `check` states them."""
    texts = [
        "7",
        "-3",
        "0",
        "007",
        "+5",
        "1.5",
        "-0.0",
        "1e5",
        "1e400",
        "nan",
        "inf",
        "true",
        "FALSE",
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "2026-01-02 03:04:05.25+02:00",
        "",
        "x",
        "18446744073709551615",
        "-9223372036854775808",
        "9007199254740993",
        "-0",
        "00",
        "1_0",
        " 5",
        "20260101",
        "2026-02-30",
        "-.5",
        "5.",
        "Infinity",
        "0x1f",
    ]
    groups = [texts[:3], texts[5:12], texts[11:13], texts[13:14], texts[14:16], texts]
    columns = [[text] for text in texts] + [[text, "7"] for text in texts] + [[text, "1.5"] for text in texts] + [["", text] for text in texts]
    for _ in range(160):
        group = RNG.choice(groups)
        columns.append([RNG.choice(group) for _ in range(RNG.randrange(1, 5))])
    names = [f"c{at}" for at in range(len(columns))]
    rows = [[column[at % len(column)] for column in columns] for at in range(4)]
    file = bench.file("few.csv", table(names, rows))
    model = "; ".join(f"output y{at} = {name}" for at, name in enumerate(names))
    done = bench.run("eval", "-e", model, file, "-o", "few.arrow")
    kind = "csv: types that are taken from rows"
    if done.status != 0:
        return bench.tally(kind, WRONG, brief(done.err))
    found = ipc.open_file(bench.folder / "few.arrow").read_all()
    for at, column in enumerate(columns):
        of = rule(column)
        result = found[f"y{at}"]
        same = str(result.type) == of and [shown(value) for value in result.to_pylist()] == [
            spelled(of, column[row % len(column)]) for row in range(4)
        ]
        bench.tally(
            kind,
            RIGHT if same else WRONG,
            f"{column}: {result.type} {result.to_pylist()}, by the rule {of}",
            again("eval", "-e", "x", "x.csv", x_csv=table(["x"], [[text] for text in column])),
        )
    # What was taken is stated, with the row that decided it.
    content = "a,b,c\n" + "1,2026-01-01,x\n" * 3 + "1.5,,007\n"
    file = bench.file("s.csv", content)
    for args in (
        ["check", "-e", "output p = a; output q = b; output r = c", file],
        ["eval", "-e", "output p = a; output q = b; output r = c", file, "--verbose"],
    ):
        done = bench.run(*args)
        said = done.out + done.err
        for name, of, line in (("a", "f64?", "5"), ("b", "date?", "2"), ("c", "text?", "2")):
            stated = re.search(rf"\b{name}\b.*{re.escape(of)}", said)
            row = [text for text in said.splitlines() if re.search(rf"\b{name}\b", text) and of in text]
            bench.tally(
                "inference is stated",
                RIGHT if stated and any(re.search(r"\d", text) for text in row) else WRONG,
                f"nothing of {name}: {of}: {brief(said)}",
                again(*args, s_csv=content),
            )


def rule(column):
    """The type of Arrow that the rule of `docs/tables.md` gives a column."""
    there = [text for text in column if text]
    if not there:
        return "double"
    if all(is_whole(text) for text in there):
        return "int64"
    if all(re.fullmatch(r"-?\d+", text) for text in there):
        # A type would lose the sign of a zero, the zeros of a code, or digits.
        return "string"
    if all(is_number(text) for text in there):
        # A whole number that is not a float would lose a digit.
        is_lost = any(is_whole(text) and int(float(text)) != int(text) for text in there)
        return "string" if is_lost else "double"
    if all(text in ("true", "false", "True", "False", "TRUE", "FALSE") for text in there):
        return "bool"
    if all(re.fullmatch(r"\d{4}-\d\d-\d\d", text) and text != "2026-02-30" for text in there):
        return "date32[day]"
    if all(re.fullmatch(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-][\d:]+)", text) for text in there):
        return "timestamp[us, tz=UTC]"
    return "string"


def is_whole(text):
    return re.fullmatch(r"-?(0|[1-9]\d*)", text) is not None and text != "-0" and -(2**63) <= int(text) < 2**63


def is_number(text):
    if text in ("nan", "inf", "-inf"):
        return True
    whole = is_whole(text) or text == "-0"
    fraction = re.fullmatch(r"-?((0|[1-9]\d*)\.\d*|\.\d+|(0|[1-9]\d*))([eE][+-]?\d+)?", text) is not None
    if whole:
        return True
    is_integer = re.fullmatch(r"-?\d+", text) is not None
    return fraction and not is_integer and abs(float(text)) != float("inf")


def spelled(of, text):
    if text == "":
        return None
    if of == "int64":
        return int(text)
    if of == "double":
        return repr(float(text))
    if of == "bool":
        return text.lower() == "true"
    if of.startswith("timestamp"):
        return "2026-01-02T03:04:05Z" if text.endswith("Z") else "2026-01-02T01:04:05.25Z"
    return text


def shown(value):
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "tzinfo"):
        return moment((value.replace(tzinfo=None) - EPOCH) // MICROSECOND)
    return value.isoformat() if hasattr(value, "isoformat") else value


if __name__ == "__main__":
    main("late rows", late, advised, late_of_json, advised_of_json, late_keys, few)
