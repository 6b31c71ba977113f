"""Files as programs write them: INT96 of Parquet, quotes, ends of lines, marks, columns without names, and rows of JSON that cannot be read.

Each is held against Python's `csv` and `json`, and pyarrow.

    PYTHON tests/outside/odd_files.py target/debug/cembra
"""

import csv
import datetime
import io
import json
import random
import subprocess
import sys

import pandas
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from cases import EPOCH, FIRST_MOMENT, LAST_MOMENT, MICROSECOND, REFUSED, RIGHT, WRONG, again, brief, cells, main, moment

RNG = random.Random(68)


def int96(bench):
    """Timestamps of twelve bytes, in columns, lists and structs, of the years 1 to 9999, as inputs and carried through."""
    moments = [FIRST_MOMENT, LAST_MOMENT, 0, -1, (datetime.datetime(1000, 1, 1) - EPOCH) // MICROSECOND]
    moments += [RNG.randrange(FIRST_MOMENT, LAST_MOMENT) for _ in range(55)]
    of = pa.timestamp("us")
    item = pa.struct([("at", of), ("n", pa.int64())])
    columns = {
        "t": pa.array([None if at % 9 == 4 else value for at, value in enumerate(moments)], of),
        "l": pa.array([[value, None, moments[at - 1]] for at, value in enumerate(moments)], pa.list_(of)),
        "s": pa.array([{"at": value, "n": at} for at, value in enumerate(moments)], item),
        "ls": pa.array([[{"at": value, "n": at}] * (at % 3) for at, value in enumerate(moments)], pa.list_(item)),
    }
    model = "; ".join(f"output y_{name} = {name}" for name in columns)
    # Spark and Impala write no schema of Arrow's beside Parquet's own.
    for has_dictionary, has_schema in ((True, True), (True, False), (False, False)):
        pq.write_table(
            pa.table(columns),
            bench.folder / "i.parquet",
            use_deprecated_int96_timestamps=True,
            use_dictionary=has_dictionary,
            store_schema=has_schema,
        )
        physical = pq.ParquetFile(bench.folder / "i.parquet").schema.column(0).physical_type
        assert physical == "INT96", physical
        for kind, args, prefix in (("inputs", ["-e", model], "y_"), ("carried", ["-e", "output one = 1", "--keep-all"], "")):
            for ending in ("arrow", "parquet", "jsonl"):
                done = bench.run("eval", *args, "i.parquet", "-o", f"o.{ending}")
                shown = f"pyarrow writes INT96; {again('eval', *args, 'i.parquet', '-o', f'o.{ending}')}"
                if done.status != 0:
                    bench.tally(f"INT96: {kind}", WRONG, brief(done.err), shown)
                    continue
                if ending == "jsonl":
                    rows = [json.loads(line) for line in bench.read("o.jsonl").splitlines()]
                    spell = lambda value: moment(value).removesuffix("Z")
                else:
                    read = pq.read_table(bench.folder / "o.parquet") if ending == "parquet" else ipc.open_file(bench.folder / "o.arrow").read_all()
                    rows, spell = read.to_pylist(), lambda value: value
                for name, column in columns.items():
                    for row, value in zip(rows, wanted(column)):
                        found = simple(row[prefix + name], ending)
                        expected = respelled(value, spell)
                        bench.value(f"INT96: {kind}", found, expected, f"{shown}: {name}")


def wanted(column):
    """Values of a column whose timestamps are microseconds."""

    def counted(value):
        if isinstance(value, datetime.datetime):
            return ("us", (value.replace(tzinfo=None) - EPOCH) // MICROSECOND)
        if isinstance(value, list):
            return [counted(one) for one in value]
        return {name: counted(one) for name, one in value.items()} if isinstance(value, dict) else value

    return [counted(value) for value in column.to_pylist()]


def respelled(value, spell):
    if isinstance(value, tuple):
        return spell(value[1])
    if isinstance(value, list):
        return [respelled(one, spell) for one in value]
    return {name: respelled(one, spell) for name, one in value.items()} if isinstance(value, dict) else value


def simple(value, ending):
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND
    if isinstance(value, str) and ending == "jsonl":
        return value.removesuffix("Z")
    if isinstance(value, list):
        return [simple(one, ending) for one in value]
    return {name: simple(one, ending) for name, one in value.items()} if isinstance(value, dict) else value


def quotes(bench):
    """Lines of random quotes, commas and blanks: the cells that Python's strict reader finds, or an error of the row."""
    lines, expected = [], []
    while len(lines) < 400:
        cell = "".join(RNG.choice('""",a b;5') for _ in range(RNG.randrange(1, 9)))
        line = f"{len(lines)},{cell},z"
        if line.count('"') % 2:
            continue
        try:
            row = next(csv.reader([line], strict=True))
            expected.append(row if len(row) == 3 else None)
        except csv.Error as error:
            if "unexpected end" in str(error):
                continue
            expected.append(None)
        lines.append(line)
    content = "id,t,e\n" + "\n".join(lines) + "\n"
    file = bench.file("q.csv", content)
    done = bench.run(
        "eval",
        "-e",
        "input t: text?; input id, e: text; output y = t; output z = e",
        file,
        "--on-error",
        "missing",
        "--errors",
        "errors.csv",
        "-o",
        "q.jsonl",
        "--null",
        "NA",
    )
    rows, told = [json.loads(line) for line in bench.read("q.jsonl").splitlines()], bench.failures()
    kind = "quotes in one line"
    if len(rows) != len(lines):
        bench.tally(kind, WRONG, f"{len(rows)} rows of {len(lines)}: {brief(done.err)}")
        return
    for at, (line, row, found) in enumerate(zip(lines, expected, rows)):
        shown = again("eval", "-e", "input t: text?; t", "q.csv", q_csv=f"id,t,e\n{line}\n")
        error = told.get(at + 1)
        inside = not line.split(",", 1)[1].startswith('"')
        if error and int(error["line"]) == at + 2 and (row is None or inside and "quote" in error["message"]):
            bench.tally(kind, REFUSED)
        elif row is None:
            bench.tally(kind, WRONG, f"`{line}` is {found}, told {error}; Python refuses it", shown)
        else:
            empty = row[1] == "" and '"' not in line
            bench.value(kind, [found["y"], found["z"]], [None if empty else row[1], row[2]], shown)


def ends(bench):
    """Files with lines inside of fields, with LF and CRLF, blank lines and a mark: cells, and the lines of cells that do not fit."""
    for end in ("\n", "\r\n"):
        for mark in ("", "\ufeff"):
            rows = []
            for at in range(60):
                text = RNG.choice(["plain", 'a "quote"', f"two{end}lines", f"{end}{end}", "comma, here", "ü", f'"{end}"', ""])
                rows.append([str(at), text, "x" if RNG.random() < 0.4 else str(at * 2)])
            out = io.StringIO()
            writer = csv.writer(out, lineterminator=end)
            writer.writerow(["id", "t", "n"])
            for row in rows:
                if RNG.random() < 0.15:
                    out.write(end)
                writer.writerow(row)
            content = mark + out.getvalue()
            places, reader = [], csv.reader(io.StringIO(out.getvalue(), newline=""), strict=True)
            for row in reader:
                # A record begins behind the blank lines before it.
                if row:
                    places.append(reader.line_num - "".join(row).count("\n"))
            file = bench.file("e.csv", content)
            args = [
                "eval",
                "-e",
                "input t: text?; input n: i64; output y = t; output m = n",
                file,
                "--keep",
                "id",
                "--on-error",
                "missing",
                "--errors",
                "errors.csv",
                "-o",
                "e.jsonl",
            ]
            done = bench.run(*args)
            found, told = [json.loads(line) for line in bench.read("e.jsonl").splitlines()], bench.failures()
            kind = f"lines within fields, {'CRLF' if end == chr(13) + chr(10) else 'LF'}{', a mark' if mark else ''}"
            if len(found) != len(rows):
                bench.tally(kind, WRONG, f"{len(found)} rows of {len(rows)}: {brief(done.err)}", again(*args, e_csv=content[:300]))
                continue
            for at, row in enumerate(rows):
                if row[2] == "x":
                    error = told.get(at + 1)
                    line = error and int(error["line"])
                    bench.tally(kind, REFUSED if line == places[at + 1] else WRONG, f"row {at + 1} at line {line}, Python at {places[at + 1]}")
                else:
                    bench.value(kind, [found[at]["id"], found[at]["y"], found[at]["m"]], [at, row[1] or None, at * 2])


def tables_of_models(bench):
    """Tables with CRLF, marks and quotes: the line of what is wrong, and values behind a mark."""
    model = 'table t: text -> f64 = "t.csv"\ninput k: text\noutput v = lookup(k, t)\n'
    bench.file("t.cem", model)
    for end in ("\n", "\r\n"):
        for mark in ("", "\ufeff"):
            for at in range(1, 6):
                rows = [f"k{row},{row}" for row in range(5)]
                for name, bad, words in (
                    ("a text", "b,x", ["`x`"]),
                    ("an open quote", 'b,"1', ["quote", "never closed"]),
                    ("an open key", '"b,1', ["quote", "never closed"]),
                    ("behind a quote", 'b,"2"5', ["closing quote"]),
                    ("a field too many", "b,1,2", []),
                ):
                    content = mark + end.join(["k,v", *rows[: at - 1], bad, *rows[at - 1 :]]) + end
                    bench.file("t.csv", content)
                    bench.refusal(
                        f"table: the line of {name}",
                        bench.run("check", "t.cem"),
                        [f"t.csv:{at + 1}", *words],
                        again("check", "t.cem", t_csv=content, t_cem=model),
                    )
            content = mark + f'"k",v{end}"a ""b""",1.5{end}ü,2{end}' + (end if mark else "")
            bench.file("t.csv", content)
            args = ["eval", "t.cem", bench.file("k.csv", 'k\n"a ""b"""\nü\n')]
            bench.value("table: marks and quotes", cells(bench.run(*args).out), [["1.5"], ["2"]], again(*args, t_csv=content))


def encodings(bench):
    """UTF-16 with a mark is read, without one it is named; so is Latin-1; a quote that is never closed is told at its line."""
    content = 'name,n\nJosé,1\n"two\nlines",2\n'
    for name, of in (("UTF-16, little", "utf-16-le"), ("UTF-16, big", "utf-16-be")):
        for mark in ("\ufeff", ""):
            for form, text in (("csv", content), ("jsonl", '{"name": "José", "n": 1}\n{"name": "two\\nlines", "n": 2}\n')):
                file = bench.file(f"u.{form}", (mark + text).encode(of))
                done = bench.run("eval", "-e", "input name: text; input n: i64; output y = name; output m = n", file, "--format", "jsonl")
                shown = f"{form} in {of}{', with a mark' if mark else ''}"
                if mark:
                    bench.value(
                        f"{name}, with a mark",
                        [json.loads(line) for line in done.out.splitlines()],
                        [{"y": "José", "m": 1}, {"y": "two\nlines", "m": 2}],
                        shown + ": " + brief(done.err),
                    )
                else:
                    bench.refusal(f"{name}, without a mark", done, ["UTF-16", "UTF-8"], shown)
    for of in ("latin-1", "cp1252"):
        for at in (2, 3):
            text = "name,n\n" + "Jose,1\n" * (at - 2) + "José,1\n"
            args = ["eval", "-e", "input name: text; input n: i64; output y = name", bench.file("l.csv", text.encode(of))]
            bench.refusal("Latin-1", bench.run(*args), ["UTF-8", f"l.csv:{at}"], f"{of}: {again(*args)}")
    for at in range(2, 22):
        for quoted in ('"x', 'a,"x', '"x","y'):
            rows = ["1,2"] * (at - 2) + [quoted if quoted != '"x' else '"x,2'] + ["3,4"] * 3
            text = "a,b\n" + "\n".join(rows) + "\n"
            for more in ([], ["--on-error", "skip"]):
                args = ["eval", "-e", "input a: text?; a", bench.file("o.csv", text), *more]
                bench.refusal("a quote that is never closed", bench.run(*args), ["quote", f"o.csv:{at}"], again(*args, o_csv=text))


def unnamed(bench):
    """Columns without a name, as pandas writes its index."""
    for at in range(25):
        frame = pandas.DataFrame(
            {name: [RNG.randrange(99) for _ in range(3)] for name in RNG.sample("abcdef", RNG.randrange(1, 4))},
            index=[RNG.randrange(99) for _ in range(3)],
        )
        content = frame.to_csv()
        args = ["eval", "-e", "output one = 1", bench.file("p.csv", content), "--keep-all"]
        bench.value(
            "the index of pandas, carried",
            bench.run(*args).out,
            content.replace("\n", ",1\n").replace(",1\n", ",one\n", 1),
            again(*args, p_csv=content),
        )
        args = ["eval", "-e", 'output y = L[""]', "p.csv"]
        bench.value(
            "the index of pandas, an input", cells(bench.run(*args).out), [[str(value)] for value in frame.index], again(*args, p_csv=content)
        )
    for header in ("id,,", ",", ",a,", '"",b'):
        width = header.count(",") + 1
        content = header + "\n" + ",".join(map(str, range(1, width + 1))) + "\n"
        args = ["eval", "-e", "output one = 1", bench.file("p.csv", content), "--keep-all"]
        bench.value(
            "columns without a name",
            list(csv.reader(bench.run(*args).out.splitlines()))[1:],
            [[*map(str, range(1, width + 1)), "1"]],
            again(*args, p_csv=content),
        )


def bad_rows_of_json(bench):
    """Rows of JSON of which some do not fit, or are none: their `--keep` columns are in the results and in the list, as far as they can be read."""
    lines, expected = [], []
    for at in range(300):
        good = {"id": at, "name": f"n{at}", "x": at * 3}
        odd = RNG.choice(["good", "good", "a text", "a float", "null", "absent", "broken", "no object", "a number wrong", "twice", "cut"])
        line = json.dumps(good)
        kept, value = [str(at), f"n{at}"], None
        if odd == "good":
            value = str(at * 3)
        elif odd == "a text":
            line = json.dumps(good | {"x": f"t{at}"})
        elif odd == "a float":
            line = json.dumps(good | {"x": at + 0.5})
        elif odd == "null":
            line = json.dumps(good | {"x": None})
        elif odd == "absent":
            line = json.dumps({"id": at, "name": f"n{at}"})
        elif odd == "broken":
            line, kept = line.replace('"x": ', '"x" '), None
        elif odd == "no object":
            line, kept = RNG.choice(["oops", "7", '"text"', "[1]", "null"]), None
        elif odd == "a number wrong":
            line, kept = line.replace(f'"x": {at * 3}', f'"x": 0{at * 3 + 1}'), None
        elif odd == "twice":
            line, kept = line[:-1] + ', "x": 1}', None
        elif odd == "cut":
            line, kept = line[: RNG.randrange(2, len(line) - 1)], None
        lines.append(line)
        expected.append((odd, kept, value))
    file = bench.file("b.jsonl", "\n".join(lines) + "\n")
    for mode in ("missing", "skip"):
        args = [
            "eval",
            "-e",
            "input x: i64; output y = x",
            file,
            "--keep",
            "id,name",
            "--on-error",
            mode,
            "--errors",
            "errors.csv",
            "--format",
            "csv",
        ]
        done = bench.run(*args)
        found, told = cells(done.out), bench.failures()
        kind = f"rows of JSON that cannot be read, --on-error {mode}"
        if mode == "skip":
            good = [[*kept, value] for _, kept, value in expected if value is not None]
            bench.value(kind, found, good, again(*args))
        elif len(found) != len(lines):
            bench.tally(kind, WRONG, f"{len(found)} rows of {len(lines)}: {brief(done.err)}", again(*args))
            continue
        for at, (odd, kept, value) in enumerate(expected):
            shown = again(*args, b_jsonl=lines[at] + "\n")
            row = told.get(at + 1)
            if value is not None:
                if mode == "missing":
                    bench.value(kind, found[at], [*kept, value], shown)
                continue
            there = row and int(row["line"]) == at + 1 and (kept is None or [row["id"], row["name"]] == kept)
            # Of what is not JSON nothing is promised, but nothing wrong may be there.
            result = mode == "skip" or found[at][2] == "" and (found[at][:2] == kept if kept else found[at][:2] in (["", ""], [str(at), f"n{at}"]))
            bench.tally(
                kind,
                REFUSED if there and result else WRONG,
                f"{odd} `{lines[at]}`: result {found[at] if mode == 'missing' else '-'}, told {row}",
                shown,
            )


def codecs(bench):
    """Pages of Parquet in each codec that pyarrow writes: read, or refused by a message that names the codec and those that are read."""
    rows = pa.table({"a": pa.array(range(100), pa.int64()), "b": pa.array([f"text {at}" for at in range(100)])})
    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        for page in ("1.0", "2.0"):
            pq.write_table(rows, bench.folder / "c.parquet", compression=codec, data_page_version=page)
            for name in ("a", "b"):
                done = bench.run("eval", "-e", f"output y = {name}", "c.parquet")
                if done.status == 0:
                    bench.value(f"pages in {codec}", [row[0] for row in cells(done.out)], [str(value) for value in rows[name].to_pylist()])
                else:
                    bench.refusal(f"pages in {codec}", done, [codec, "snappy", "zstd", f"`{name}`"], f"pyarrow writes {codec}, pages {page}")


def many_bad_rows(bench):
    """A file of nothing but bad rows, told on standard error, takes no memory for each."""
    peaks = []
    for count in (100_000, 1_000_000):
        file = bench.file("m.csv", "x\n" + "a\n" * count)
        args = [bench.command, "eval", "-e", "input x: i64; x", file, "--on-error", "skip", "--errors", "-"]
        code = (
            "import resource, subprocess, sys; status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode; "
            "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        done = subprocess.run([sys.executable, "-c", code, *args], cwd=bench.folder, capture_output=True, text=True)
        status, peak = map(int, done.stdout.split())
        peaks.append(peak * 1024)
        bench.value("status of a million bad rows", status, 0)
    grown = (peaks[1] - peaks[0]) / 900_000
    bench.tally(
        "memory of a million bad rows",
        RIGHT if grown < 30 else WRONG,
        f"peaks {peaks}: {grown:.0f} bytes a row more",
        "1e5 and 1e6 rows `a` for `input x: i64`, --on-error skip --errors -",
    )


if __name__ == "__main__":
    main("odd files", int96, quotes, ends, tables_of_models, encodings, unnamed, bad_rows_of_json, codecs, many_bad_rows)
