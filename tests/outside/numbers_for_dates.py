"""Numbers where dates, timestamps and durations are wanted: never a value by themselves, and the right one where an option says what they count.

Each form of data is held against Python's `datetime`: CSV, JSON (values, lists, structs, keys), `-s`, tables of models, integers of Parquet and Arrow,
`timestamp.from_unix`.

    PYTHON tests/outside/numbers_for_dates.py target/debug/cembra
"""

import datetime
import decimal
import json
import random

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from cases import EPOCH, REFUSED, RIGHT, WRONG, again, brief, cells, is_moment, main, moment

RNG = random.Random(66)
TYPES = ("date", "timestamp", "duration")
GOOD = {"date": "2026-01-31", "timestamp": "2026-01-31T10:15:00Z", "duration": "P1D"}
# A part of the help that each type has for a number.
HELP = {"date": "--date-format %Y%m%d", "timestamp": "--timestamp-unit s", "duration": "n * 1s"}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def numerals(count):
    """Texts of numbers as files have them: digits of dates, counts of days, seconds to nanoseconds, and some odd ones."""
    fixed = [
        "0",
        "-1",
        "20260101",
        "20260131.0",
        "1e9",
        "2147483647",
        "2147483648",
        "9223372036854775807",
        "1772000000000000000",
        "46023",
        "1.5",
        "-20260101",
    ]
    made = []
    for _ in range(count):
        at = RNG.randrange(-2_000_000_000, 4_000_000_000)
        on = datetime.date.fromordinal(RNG.randrange(1, 3_652_059))
        made.append(
            RNG.choice(
                [
                    f"{on:%d%m%Y}",
                    on.isoformat().replace("-", ""),
                    str(at),
                    str(at * 1000),
                    str(at * 10**6),
                    str(at * 10**9 + 7),
                    str(RNG.randrange(99_999)),
                ]
            )
        )
    return fixed + made


def rows_of_text(bench):
    """CSV and JSON: a row whose column of dates is a number fails, and is told with its column."""
    numbers = numerals(60)
    for of in TYPES:
        model = f"input x: {of}; output y = x"
        texts = [number if at % 2 else GOOD[of] for at, number in enumerate(["", *numbers, *numbers])]
        texts[0] = GOOD[of]
        for form in ("csv", "jsonl", "jsonl of texts"):
            kind = f"{form}: a number for a {of}"
            file = bench.file(f"r.{form[:5].strip()}", document(form, texts))
            args = ["eval", "-e", model, file, "--on-error", "missing", "--errors", "errors.csv", "--format", "csv"]
            done = bench.run(*args)
            told, found = bench.failures(), cells(done.out)
            if done.status != 0 or len(found) != len(texts):
                bench.tally(kind, WRONG, f"{len(found)} rows of {len(texts)}: {brief(done.err)}", again(*args))
                continue
            for at, text in enumerate(texts):
                row = told.get(at + 1)
                shown = again("eval", "-e", model, "r." + form[:5].strip(), **{"r_" + form[:5].strip(): document(form, [text])})
                if text == GOOD[of]:
                    bench.value(kind, found[at], [text], shown)
                elif found[at] == [""] and row and row["column"] == "x" and row["code"] == "column-type" and text.lstrip("0") in row["message"]:
                    bench.tally(kind, REFUSED)
                else:
                    bench.tally(kind, WRONG, f"`{text}` gives {found[at]}, told {row}", shown)
            # The help is not in the list of failed rows.
            for number in ("20260101", "1505154600", "-1"):
                content = document(form, [number])
                file = bench.file(f"one.{form[:5].strip()}", content)
                done = bench.run("eval", "-e", model, file)
                bench.refusal(
                    f"{form}: help for a {of}", done, [HELP[of], number], again("eval", "-e", model, file, **{file.replace(".", "_"): content})
                )


def document(form, texts):
    if form == "csv":
        return "x\n" + "".join(f"{text}\n" for text in texts)
    is_number = lambda text: not (":" in text or "P" in text or text.count("-") > 1)
    quoted = lambda text: text if is_number(text) and form == "jsonl" else json.dumps(text)
    # JSON has no numbers with zeros in front.
    return "".join('{"x": ' + quoted(text.lstrip("0") or "0" if is_number(text) and form == "jsonl" else text) + "}\n" for text in texts)


def inside(bench):
    """Lists, structs and keys of JSON."""
    for of in TYPES:
        for name, declared, value, read in (
            ("a list", f"[{of}?]", "[%s, null]", "x"),
            ("a struct", f"{{a: {of}, b: i64}}", '{"a": %s, "b": 1}', "x.a"),
            ("a struct in a list", f"[{{a: {of}}}]", '[{"a": %s}]', "x.a"),
            ("a key", f"dict[{of}, f64]", "{%s: 1.5}", f'lookup({of}"{GOOD[of]}", x)' if of != "duration" else "lookup(1d, x)"),
        ):
            model = f"input x: {declared}; output y = {read}"
            for number in ("20260101", "1505154600", "-1", '"20260101"', '"0"'):
                if name == "a key":
                    number = '"' + number.strip('"') + '"'
                content = '{"x": ' + value % number + "}\n"
                args = ["eval", "-e", model, bench.file("in.jsonl", content), "--format", "jsonl"]
                bench.refusal(
                    f"jsonl: a number for a {of} in {name}", bench.run(*args), [HELP[of], number.strip('"')], again(*args, in_jsonl=content)
                )


def constants(bench):
    """Values of `-s`."""
    for of in TYPES:
        for number in ("20260101", "1505154600", "0", "-1", "1772000000000000000", "20260101.0", "[20260101]"):
            args = ["eval", "-e", f"input x: {'[' + of + ']' if number[0] == '[' else of}; output y = x", "-s", f"x={number}"]
            words = ["`-s x=", HELP[of]] if number[0] != "[" else ["`-s x="]
            bench.refusal(f"-s: a number for a {of}", bench.run(*args), words, again(*args))


def tables(bench):
    """Keys and values of tables of models."""
    for of in TYPES:
        for name, line, rows in (
            ("a key", f"table t: {of} -> f64", "%s,1\n"),
            ("a range", f"table t: ranges of {of} -> f64", "%s,1\n"),
            ("a value", f"table t: text -> {of}", "k,%s\n"),
            ("a key of two", f"table t: (text, {of}) -> f64", "k,%s,1\n"),
            ("a field", f"table t: text -> {{a: f64, b: {of}}}", "k,1,%s\n"),
        ):
            if name == "a range" and of == "duration":
                continue
            for number in ("20260101", "1505154600", "0", "-1"):
                header = {"a key of two": "p,k,v\n", "a field": "k,a,b\n"}.get(name, "k,v\n")
                content, text = header + rows % number, f'{line} = "t.csv"\noutput one = array.size(dict.keys(t))\n'
                if name not in ("a key", "a value"):
                    text = f'{line} = "t.csv"\ninput z: f64\noutput one = z\n'
                bench.file("t.csv", content)
                args = ["check", bench.file("t.cem", text)]
                shown = f"{again(*args, t_csv=content, t_cem=text)}"
                bench.refusal(f"table: a number for a {of} as {name}", bench.run(*args), ["t.csv:2", number, "write it"], shown)


def stored(bench, name, columns):
    """The columns as Parquet and as an Arrow file."""
    rows = pa.table(columns)
    pq.write_table(rows, bench.folder / f"{name}.parquet")
    with ipc.new_file(bench.folder / f"{name}.arrow", rows.schema) as writer:
        writer.write_table(rows)
    return f"{name}.parquet", f"{name}.arrow"


def columns_of_numbers(bench):
    """Columns of integers, floats and decimals of Parquet and Arrow."""
    kinds = {f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)}
    kinds |= {"float32": pa.float32(), "float64": pa.float64(), "decimal": pa.decimal128(12, 2), "bool": pa.bool_(), "list": pa.list_(pa.int64())}
    columns = {}
    for name, of in kinds.items():
        if name == "bool":
            values = [True, False]
        elif name == "list":
            values = [[20260101], []]
        elif name == "decimal":
            values = [decimal.Decimal("20260101.00"), None]
        else:
            values = [100 if name.endswith(("8", "16")) else 2.5e7 if "float" in name else 20260101, None]
        columns[f"c_{name}"] = pa.array(values, of)
    for file in stored(bench, "n", columns):
        for name in kinds:
            for of in TYPES:
                wanted = f"[{of}?]" if name == "list" else f"{of}?"
                args = ["eval", "-e", f"input c_{name}: {wanted}; output y = c_{name}", file]
                words = [f"`c_{name}", "expected"] + ([HELP[of]] if "int" in name else [])
                bench.refusal(
                    f"{file}: a column of numbers for a {of}",
                    bench.run(*args),
                    words,
                    f"pyarrow writes a column c_{name} of {kinds[name]}; {again(*args)}",
                )


def digits_of_dates(bench):
    """`--date-format` where dates are digits: each date is the one that `strptime` reads."""
    for form, years in (
        ("%Y%m%d", (1000, 9999)),
        ("%y%m%d", (1970, 2068)),
        ("%Y%j", (1000, 9999)),
        ("%d%m%Y", (1000, 9999)),
        ("%m/%d/%Y", (1, 9999)),
    ):
        on = [datetime.date(RNG.randint(*years), RNG.randint(1, 12), RNG.randint(1, 28)) for _ in range(120)]
        on += [datetime.date(years[0], 1, 1), datetime.date(years[1], 12, 31), datetime.date(2024, 2, 29)]
        texts = [f"{one:%m/%d/}{one.year:04}" if "/" in form else one.strftime(form) for one in on]
        # No days: months of 13, days of 31 in short months.
        texts += ["".join(RNG.choice("0123456789") for _ in range(len(texts[0]))) for _ in range(30)]
        expected = [parsed(text, form) for text in texts]
        model = "input x: date?; output y = x"
        for data in ("csv", "jsonl", "jsonl of texts"):
            file = bench.file(f"d.{data[:5].strip()}", document(data, texts))
            if data == "jsonl" and ("/" in form or any(text[0] == "0" for text in texts)):
                continue
            check_dates(bench, f"{data}: --date-format", model, file, form, texts, expected)
        if form in ("%Y%m%d", "%Y%j"):
            numbers = [int(text) for text in texts]
            for of in (pa.int32(), pa.int64(), pa.uint32(), pa.uint64()):
                for file in stored(bench, "d", {"x": pa.array(numbers, of)}):
                    # A number has lost the zeros in front, and is refused then.
                    unpadded = [parsed(text, form) if text[0] != "0" else None for text in texts]
                    check_dates(bench, f"{file}: --date-format, {of}", model, file, form, list(map(str, numbers)), unpadded)
        for text, value in list(zip(texts, expected))[:6] + list(zip(texts, expected))[-3:]:
            args = ["eval", "-e", "input x: date; output y = x", "-s", f"x={text}", "--date-format", form]
            done = bench.run(*args)
            if value is None:
                bench.refusal("-s: --date-format", done, ["--date-format"], again(*args))
            else:
                bench.value("-s: --date-format", cells(done.out), [[value]], again(*args))


def parsed(text, form):
    try:
        return datetime.datetime.strptime(text, form).date().isoformat()
    except ValueError:
        return None


def check_dates(bench, kind, model, file, form, texts, expected):
    args = ["eval", "-e", model, file, "--date-format", form, "--on-error", "missing", "--errors", "errors.csv", "--format", "csv"]
    done = bench.run(*args)
    told, found = bench.failures(), cells(done.out)
    if len(found) != len(texts):
        return bench.tally(kind, WRONG, f"{len(found)} rows of {len(texts)}: {brief(done.err)}", again(*args))
    for at, (text, value) in enumerate(zip(texts, expected)):
        shown = f"{again(*args[:6])} of one row {text}"
        if value is not None:
            bench.value(kind, found[at], [value], shown)
        else:
            refused = found[at] == [""] and text in told.get(at + 1, {}).get("message", "")
            bench.tally(kind, REFUSED if refused else WRONG, f"`{text}` in {form} is {found[at]}, Python has none; told {told.get(at + 1)}", shown)


def counts_of_units(bench):
    """`--timestamp-unit` and `timestamp.from_unix`: counts from 1970, nanoseconds rounded down, years 1 to 9999."""
    for unit, per_second in PER_SECOND.items():
        most = min(LAST * per_second, 2**63 - 1)
        counts = [
            0,
            1,
            -1,
            -999,
            999,
            1505154600,
            FIRST * per_second if FIRST * per_second > -(2**63) else -(2**63),
            most,
            most + 1 if most < 2**63 - 1 else most,
            2**63 - 1,
            -(2**63),
            20260101,
        ]
        counts += [RNG.randrange(-(10**9), 4 * 10**9) * per_second + RNG.randrange(per_second) for _ in range(60)]
        expected = [as_moment(count, per_second) for count in counts]
        model = "input x: timestamp?; output y = x"
        texts = list(map(str, counts))
        files = [
            ("csv", bench.file("u.csv", document("csv", texts))),
            ("jsonl", bench.file("u.jsonl", document("jsonl", texts))),
            ("jsonl of texts", bench.file("v.jsonl", document("jsonl of texts", texts))),
        ]
        files += [(file, file) for file in stored(bench, "u", {"x": pa.array(counts, pa.int64())})]
        for name, file in files:
            args = ["eval", "-e", model, file, "--timestamp-unit", unit, "--on-error", "missing", "--errors", "errors.csv", "--format", "csv"]
            check_counts(bench, f"{name}: --timestamp-unit", args, texts, expected)
        few = [count for count in counts if -(2**31) <= count < 2**31]
        for of in (pa.int32(), pa.uint64()):
            some = [count for count in few if count >= 0] if of == pa.uint64() else few
            for file in stored(bench, "w", {"x": pa.array(some, of)}):
                args = ["eval", "-e", model, file, "--timestamp-unit", unit, "--on-error", "missing", "--errors", "errors.csv", "--format", "csv"]
                check_counts(bench, f"{file}: --timestamp-unit, {of}", args, list(map(str, some)), [as_moment(count, per_second) for count in some])
        args = [
            "eval",
            "-e",
            f'input x: i64; output y = timestamp.from_unix(x, "{unit}")',
            "u.csv",
            "--on-error",
            "missing",
            "--errors",
            "errors.csv",
            "--format",
            "csv",
        ]
        for backend in ("interp", "native"):
            check_counts(bench, f"timestamp.from_unix, {backend}", [*args, "--backend", backend], texts, expected)
        for text, value in list(zip(texts, expected))[:14]:
            args = ["eval", "-e", "input x: timestamp; output y = x", "-s", f"x={text}", "--timestamp-unit", unit]
            done = bench.run(*args)
            if value is None:
                bench.refusal("-s: --timestamp-unit", done, ["outside of the years 1 to 9999"], again(*args))
            else:
                bench.value("-s: --timestamp-unit", cells(done.out), [[value]], again(*args))
        # Not whole.
        for text in ("1505154600.5", "1e-3", "1505154600,5"):
            content = f'x\n"{text}"\n'
            args = ["eval", "-e", "input x: timestamp; output y = x", bench.file("h.csv", content), "--timestamp-unit", unit]
            bench.refusal("csv: --timestamp-unit of what is not whole", bench.run(*args), ["expected timestamp", text], again(*args, h_csv=content))


FIRST = (datetime.datetime.min - EPOCH) // datetime.timedelta(seconds=1)
LAST = (datetime.datetime.max - EPOCH) // datetime.timedelta(seconds=1)


def as_moment(count, per_second):
    microseconds = count * 10**6 // per_second
    return moment(microseconds) if is_moment(microseconds) else None


def check_counts(bench, kind, args, texts, expected):
    done = bench.run(*args)
    told, found = bench.failures(), cells(done.out)
    if len(found) != len(texts):
        return bench.tally(kind, WRONG, f"{len(found)} rows of {len(texts)}: {brief(done.err)}", again(*args))
    for at, (text, value) in enumerate(zip(texts, expected)):
        shown = f"{again(*args)} of one row {text}"
        if value is not None:
            bench.value(kind, found[at], [value], shown)
        else:
            refused = found[at] == [""] and text in told.get(at + 1, {}).get("message", "")
            bench.tally(kind, REFUSED if refused else WRONG, f"`{text}` is {found[at]}, which is beyond the years; told {told.get(at + 1)}", shown)


def lost_zeros(bench):
    """Digits of days whose zeros in front are lost, as numbers have none: the day that has them, or an error, but never another day."""
    for form in ("%d%m%Y", "%y%m%d", "%m%d%Y"):
        on = [datetime.date(RNG.randint(2001, 2009), RNG.randint(1, 12), RNG.randint(1, 9)) for _ in range(12)]
        numbers = [int(one.strftime(form)) for one in on]
        files = [
            ("csv", bench.file("z.csv", document("csv", map(str, numbers)))),
            ("jsonl", bench.file("z.jsonl", document("jsonl", map(str, numbers)))),
        ]
        files += [(file, file) for file in stored(bench, "z", {"x": pa.array(numbers, pa.int64())})]
        for name, file in files:
            args = ["eval", "-e", "input x: date?; output y = x", file, "--date-format", form, "--on-error", "missing", "--format", "csv"]
            found = cells(bench.run(*args).out)
            for number, one, row in zip(numbers, on, found):
                verdict = RIGHT if row == [one.isoformat()] else REFUSED if row == [""] else WRONG
                shown = again(*args[:6], **{file.replace(".", "_"): document(name, [str(number)])} if name in ("csv", "jsonl") else {})
                bench.tally(f"{name}: digits without zeros in front", verdict, f"`{number}` in {form} is {row}, and not {one}", shown)


def inside_with_options(bench):
    """Digits of dates, and counts of seconds, in lists, structs and keys of JSON."""
    on = [datetime.date(RNG.randint(1000, 9999), RNG.randint(1, 12), RNG.randint(1, 28)) for _ in range(40)]
    texts = [one.isoformat() for one in on]
    digits = [text.replace("-", "") for text in texts]
    rows = [{"l": [int(one), one, None], "s": {"a": one}, "ls": [{"a": int(one)}], "m": {one: 1.5}} for one in digits]
    bench.file("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    model = "input l: [date?]; input s: {a: date}; input ls: [{a: date}]; input m: dict[date, f64]; output a = l; output b = s.a; output c = ls; output d = dict.keys(m)"
    args = ["eval", "-e", model, "in.jsonl", "--date-format", "%Y%m%d", "--format", "jsonl"]
    done = bench.run(*args)
    found = [json.loads(line) for line in done.out.splitlines()]
    for at, text in enumerate(texts):
        wanted = {"a": [text, text, None], "b": text, "c": [{"a": text}], "d": [text]}
        bench.value(
            "jsonl: --date-format inside", found[at] if found else brief(done.err), wanted, again(*args, in_jsonl=json.dumps(rows[at]) + "\n")
        )
    counts = [RNG.randrange(-(10**9), 10**10) for _ in range(40)]
    texts = [moment(count * 10**6) for count in counts]
    rows = [{"l": [count, str(count), None], "s": {"a": count}, "ls": [{"a": str(count)}], "m": {str(count): 1.5}} for count in counts]
    bench.file("in.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    args = ["eval", "-e", model.replace("date", "timestamp"), "in.jsonl", "--timestamp-unit", "s", "--format", "jsonl"]
    done = bench.run(*args)
    found = [json.loads(line) for line in done.out.splitlines()]
    for at, text in enumerate(texts):
        wanted = {"a": [text, text, None], "b": text, "c": [{"a": text}], "d": [text]}
        bench.value(
            "jsonl: --timestamp-unit inside", found[at] if found else brief(done.err), wanted, again(*args, in_jsonl=json.dumps(rows[at]) + "\n")
        )


if __name__ == "__main__":
    main(
        "numbers for dates",
        rows_of_text,
        inside,
        constants,
        tables,
        columns_of_numbers,
        digits_of_dates,
        counts_of_units,
        lost_zeros,
        inside_with_options,
    )
