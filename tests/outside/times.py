"""Moments in all of their spellings, in every form of data: nanoseconds are rounded down, offsets are read, hours that clocks skip are told as such.

Each is held against Python's integers, `datetime` and `zoneinfo`.

    PYTHON tests/outside/times.py target/debug/cembra
"""

import datetime
import json
import random
import zoneinfo

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from cases import EPOCH, MICROSECOND, REFUSED, WRONG, again, brief, cells, is_moment, main, moment, table

RNG = random.Random(69)
SECOND = datetime.timedelta(seconds=1)
ZONES = (
    "Europe/Zurich",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
    "Asia/Tehran",
    "Europe/Dublin",
    "Pacific/Chatham",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "UTC",
)


def spellings():
    """Texts of moments, and the microseconds since 1970 that each is; `None` for what is no moment."""
    made = []
    years = [*range(1, 3), 1000, 1582, 1900, *range(1960, 1980), 2000, 2024, 2026, 2262, 9998]
    for _ in range(260):
        at = datetime.datetime(RNG.choice(years), RNG.randrange(1, 13), RNG.randrange(1, 29), RNG.randrange(24), RNG.randrange(60), RNG.randrange(60))
        digits = "".join(RNG.choice("0123456789") for _ in range(RNG.choice([0, 0, 1, 3, 6, 7, 9, 9])))
        digits = RNG.choice([digits, "9" * len(digits), digits[:6] + "0" * len(digits[6:])])
        minutes = RNG.choice([None, 0, 60, -270, 345, 14 * 60, -12 * 60, 23 * 60 + 59])
        sign = "" if minutes is None else "+" if minutes >= 0 else "-"
        hours, rest = divmod(abs(minutes or 0), 60)
        forms = [f"{sign}{hours:02}:{rest:02}", f"{sign}{hours:02}{rest:02}"] + ([f"{sign}{hours:02}"] if rest == 0 else [])
        text = (
            f"{at.year:04}-{at:%m-%d}{RNG.choice('T ')}{at:%H:%M:%S}{'.' + digits if digits else ''}{'Z' if minutes is None else RNG.choice(forms)}"
        )
        value = ((at - EPOCH) // SECOND - 60 * (minutes or 0)) * 10**6 + int((digits + "000000")[:6])
        made.append((text, value if is_moment(value) else None))
    made += [
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1969-12-31T23:59:59.0000009Z", -1_000_000),
        ("0001-01-01T00:00:00.0000001Z", (datetime.datetime.min - EPOCH) // MICROSECOND),
    ]
    for text in (
        "2026-02-30T00:00:00Z",
        "2026-01-01T24:00:01Z",
        "2026-01-01T00:60:00Z",
        "2026-06-30T23:59:60Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00+25:00",
        "2026-01-01T00:00:00+1",
        "2026-01-01T00:00:00.Z",
        "2026-01-01",
        "20260101T000000Z",
        "2026-1-1T00:00:00Z",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:00 Z x",
    ):
        made.append((text, None))
    return made


def judge(bench, kind, texts, found, told, args):
    """A case for each row of one column."""
    if len(found) != len(texts):
        return bench.tally(kind, WRONG, f"{len(found)} rows of {len(texts)}", again(*args))
    for at, ((text, value), cell) in enumerate(zip(texts, found)):
        shown = f"{again(*args)} of a row {text}"
        if value is not None:
            bench.value(kind, cell, value if isinstance(value, str) else moment(value), shown)
        else:
            refused = cell in ("", None) and at + 1 in told
            bench.tally(kind, REFUSED if refused else WRONG, f"`{text}` is {cell}, and it is no moment; told {told.get(at + 1)}", shown)


FAIL = ["--on-error", "missing", "--errors", "errors.csv", "--format", "csv"]


def forms(bench):
    """The same texts in CSV, JSON, lists, structs, `parse_timestamp`, `-s`, tables and by `--timestamp-format`."""
    # An offset may lead out of the years 1 to 9999, which Python does not have.
    beyond = {"0001-01-01T00:00:00+01:00": "+0000-12-31T23:00:00Z", "9999-12-31T23:59:59-01:00": "+10000-01-01T00:59:59Z"}
    bench.file("beyond.csv", table(["t"], [[text] for text in beyond]))
    args = ["eval", "-e", "input t: timestamp; output y = t", "beyond.csv"]
    for cell, value in zip(cells(bench.run(*args).out), beyond.values()):
        bench.value("csv: beyond the years of four digits", cell, [value], again(*args))
    texts = spellings()
    bench.file("t.csv", table(["t"], [[text] for text, _ in texts]))
    bench.file("t.jsonl", "".join(json.dumps({"t": text, "l": [text], "s": {"a": text}}) + "\n" for text, _ in texts))
    parse = "input t: text; output y = strings.parse_timestamp(t)"
    for kind, model, file in (
        ("csv", "input t: timestamp; output y = t", "t.csv"),
        ("jsonl", "input t: timestamp; output y = t", "t.jsonl"),
        ("jsonl, a struct", "input s: {a: timestamp}; output y = s.a", "t.jsonl"),
        ("jsonl, a list", "input l: [timestamp]; output y = max(l)", "t.jsonl"),
        ("parse_timestamp of csv", parse, "t.csv"),
        ("parse_timestamp of jsonl", parse, "t.jsonl"),
    ):
        for backend in ("native", "interp") if "parse" in kind else ("native",):
            args = ["eval", "-e", model, file, *FAIL, "--backend", backend]
            done = bench.run(*args)
            judge(bench, kind, texts, [row[0] for row in cells(done.out)], bench.failures(), args)
    # A column whose type is taken from the data.
    good = [(text, value) for text, value in texts if value is not None]
    bench.file("g.csv", table(["t"], [[text] for text, _ in good]))
    done = bench.run("eval", "-e", "output y = t", "g.csv", "-o", "g.arrow")
    kind = "csv, a type that is taken from the data"
    if done.status == 0:
        column = ipc.open_file(bench.folder / "g.arrow").read_all()["y"]
        found = [
            moment((value.replace(tzinfo=None) - EPOCH) // MICROSECOND) if pa.types.is_timestamp(column.type) else value
            for value in column.to_pylist()
        ]
        judge(bench, kind, good, found, {}, ["eval", "-e", "output y = t", "g.csv"])
    else:
        bench.tally(kind, WRONG, brief(done.err))
    # Values and keys of a table of the model.
    bench.file("v.csv", table(["k", "t"], [[str(at), text] for at, (text, _) in enumerate(good)]))
    bench.file("k.csv", table(["k"], [[str(at)] for at in range(len(good))]))
    bench.file("v.cem", 'table t: i64 -> timestamp = "v.csv"\ninput k: i64\noutput y = lookup(k, t)\n')
    args = ["eval", "v.cem", "k.csv", *FAIL]
    done = bench.run(*args)
    judge(bench, "table: values", good, [row[0] for row in cells(done.out)], {}, args)
    keys = {}
    for text, value in good:
        keys.setdefault(value, text)
    bench.file("w.csv", table(["t", "k"], [[text, str(at)] for at, text in enumerate(keys.values())]))
    bench.file("w.cem", 'table t: timestamp -> i64 = "w.csv"\ninput t: timestamp\noutput y = lookup(t, t0)\n'.replace("table t:", "table t0:"))
    bench.file("x.csv", table(["t"], [[moment(value)] for value in keys]))
    args = ["eval", "w.cem", "x.csv", *FAIL]
    done = bench.run(*args)
    judge(bench, "table: keys", [(text, str(at)) for at, text in enumerate(keys.values())], [row[0] for row in cells(done.out)], {}, args)
    for text, value in RNG.sample(good, 25) + [one for one in texts if one[1] is None]:
        args = ["eval", "-e", "input t: timestamp; output y = t", "-s", f"t={text}"]
        done = bench.run(*args)
        if value is None:
            bench.refusal("-s", done, ["`-s t="], again(*args))
        else:
            bench.value("-s", cells(done.out), [[moment(value)]], again(*args))


def literals(bench):
    """Literals of models: up to six digits and any offset; more digits are an error that says so."""
    texts = [one for one in spellings() if one[1] is not None and " " not in one[0]]
    fraction = lambda text: len(text.partition(".")[2].split("Z")[0].split("+")[0].split("-")[0])
    short = [one for one in texts if fraction(one[0]) <= 6]
    model = "\n".join(f'output y{at} = timestamp"{text}"' for at, (text, _) in enumerate(short))
    bench.file("l.cem", model)
    done = bench.run("eval", "l.cem", "--format", "csv")
    found = (cells(done.out) or [[brief(done.err)]])[0]
    judge(bench, "literals", short, found, {}, ["eval", "-e", 'timestamp".."'])
    for text, _ in [one for one in texts if fraction(one[0]) > 6][:40]:
        args = ["eval", "-e", f'timestamp"{text}"']
        bench.refusal("literals of more digits", bench.run(*args), ["is not a valid timestamp", "six digits"], again(*args))


def stored(bench):
    """Columns of Parquet and Arrow in each unit, with and without a zone; nanoseconds are rounded down."""
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    for unit, per_second in per.items():
        counts = [0, -1, -999, -1001, 999, 1_500] + [RNG.randrange(-9 * 10**9, 9 * 10**9) * per_second + RNG.randrange(per_second) for _ in range(60)]
        expected = [("count", count * 10**6 // per_second) for count in counts]
        for zone in (None, "UTC", "Europe/Zurich", "+02:00"):
            column = pa.array(counts, pa.timestamp(unit, zone))
            for ending in ("parquet", "arrow", "list.arrow"):
                rows = pa.table(
                    {"t": column if ending != "list.arrow" else pa.ListArray.from_arrays(pa.array(range(len(counts) + 1), pa.int32()), column)}
                )
                if ending == "parquet":
                    pq.write_table(rows, bench.folder / "t.parquet")
                else:
                    with ipc.new_file(bench.folder / "t.arrow", rows.schema) as writer:
                        writer.write_table(rows)
                model = "input t: [timestamp]; output y = max(t)" if ending == "list.arrow" else "input t: timestamp; output y = t"
                args = ["eval", "-e", model, "t.parquet" if ending == "parquet" else "t.arrow", "--format", "csv"]
                done = bench.run(*args)
                kind = f"{ending}: timestamps in {unit}"
                found = [row[0] for row in cells(done.out)]
                judge(bench, kind, [(str(column[at]), value) for at, (_, value) in enumerate(expected)], found, {}, args)


def zones(bench):
    """`--time-zone`: what clocks of zones show around each change, in CSV, JSON and by a form: the earlier of two, an error for an hour that is skipped."""
    for zone in ZONES:
        shows = around(zone)
        texts = []
        for at in shows:
            value = as_utc(at, zone)
            texts.append((at, None if value is None else moment(value)))
        for kind, spell, more in (
            ("csv", lambda at: f"{at:%Y-%m-%d %H:%M:%S}", []),
            ("jsonl", lambda at: f"{at:%Y-%m-%dT%H:%M:%S}", []),
            ("csv by a form", lambda at: f"{at:%d.%m.%Y %H:%M:%S}", ["--timestamp-format", "%d.%m.%Y %H:%M:%S"]),
        ):
            rows = [(spell(at), value) for at, value in texts]
            content = "".join(json.dumps({"t": text}) + "\n" for text, _ in rows) if kind == "jsonl" else table(["t"], [[text] for text, _ in rows])
            file = bench.file("z.jsonl" if kind == "jsonl" else "z.csv", content)
            args = ["eval", "-e", "input t: timestamp; output y = t", file, "--time-zone", zone, *more, *FAIL]
            done = bench.run(*args)
            told = bench.failures()
            judge(bench, f"--time-zone: {kind}", rows, [row[0] for row in cells(done.out)], told, args)
            for at, (text, value) in enumerate(rows):
                if value is None:
                    message = told.get(at + 1, {}).get("message", "")
                    verdict = REFUSED if "does not exist" in message and zone in message else WRONG
                    bench.tally(f"a skipped hour is told as such: {kind}", verdict, f"{text} in {zone}: {message}", again(*args))
        for at, value in texts[:3] + [one for one in texts if one[1] is None][:2]:
            args = ["eval", "-e", "input t: timestamp; output y = t", "-s", f"t={at:%Y-%m-%d %H:%M:%S}", "--time-zone", zone]
            done = bench.run(*args)
            if value is None:
                bench.refusal("--time-zone: -s", done, ["does not exist", zone], again(*args))
            else:
                bench.value("--time-zone: -s", cells(done.out), [[value]], again(*args))
    # Zones that do not exist.
    for name in ("Europe/Zuerich", "europe/zurich", "CET+1", "", "Mars/Phobos", "Zurich"):
        args = ["eval", "-e", "input t: timestamp; output y = t", "z.csv", "--time-zone", name]
        bench.refusal("a zone that does not exist", bench.run(*args), [name or "time-zone"], again(*args))
        content = table(["z"], [["Europe/Zurich"], [name or "x y"]])
        args = ["eval", "-e", 'input z: text; output t = timestamp.local(timestamp"2026-01-01T00:00:00Z", z)', bench.file("n.csv", content), *FAIL]
        bench.run(*args)
        message = bench.failures().get(2, {}).get("message", "")
        bench.tally(
            "a zone of the data that does not exist",
            REFUSED if f"`{name or 'x y'}`" in message else WRONG,
            f"{name}: {message}",
            again(*args, n_csv=content),
        )


def around(zone):
    """What clocks show near some changes of a zone, and at random; changes are where the offset of two following half hours differs."""
    of, shows, step = zoneinfo.ZoneInfo(zone), [], datetime.timedelta(hours=6)
    at = datetime.datetime(1972, 1, 1, tzinfo=datetime.timezone.utc)
    end = datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)
    before, changes = at.astimezone(of).utcoffset(), []
    while at < end:
        now = at.astimezone(of).utcoffset()
        if now != before:
            changes.append(at)
        before, at = now, at + step
    for change in RNG.sample(changes, min(8, len(changes))):
        local = change.astimezone(of).replace(tzinfo=None, minute=0, second=0)
        shows += [local + datetime.timedelta(minutes=minutes) for minutes in range(-8 * 60, 121, 15)]
    shows += [
        datetime.datetime(
            RNG.randrange(1972, 2024), RNG.randrange(1, 13), RNG.randrange(1, 29), RNG.randrange(24), RNG.randrange(60), RNG.randrange(60)
        )
        for _ in range(20)
    ]
    return shows


def as_utc(at, zone):
    """The microseconds since 1970 at which clocks show it, the earlier of two; `None` if they skip it."""
    utc = at.replace(tzinfo=zoneinfo.ZoneInfo(zone), fold=0).astimezone(datetime.timezone.utc)
    back = utc.astimezone(zoneinfo.ZoneInfo(zone)).replace(tzinfo=None)
    return (utc.replace(tzinfo=None) - EPOCH) // MICROSECOND if back == at else None


def letters(bench):
    """Forms with `%f` of up to nine digits, `%I` with `%p`, and `%z`: by `--timestamp-format` and by `parse_timestamp`."""
    spell = {
        "%d.%m.%Y %H:%M:%S.%f": lambda at, digits: f"{at:%d.%m.%Y %H:%M:%S}.{digits}",
        "%m/%d/%Y %I:%M:%S %p": lambda at, digits: f"{at:%m/%d/%Y %I:%M:%S} {RNG.choice(['AM', 'am']) if at.hour < 12 else RNG.choice(['PM', 'pm'])}",
        "%m/%d/%Y %I:%M:%S.%f %p": lambda at, digits: f"{at:%m/%d/%Y %I:%M:%S}.{digits} {'AM' if at.hour < 12 else 'PM'}",
        "%Y-%m-%dT%H:%M:%S.%f%z": lambda at, digits: f"{at:%Y-%m-%dT%H:%M:%S}.{digits}+01:30",
        "%Y%m%d%H%M%S%f": lambda at, digits: f"{at:%Y%m%d%H%M%S}{digits}",
        "%b %d %Y %H:%M:%S": lambda at, digits: f"{at:%b %d %Y %H:%M:%S}",
        "%Y-%j %H:%M:%S": lambda at, digits: f"{at:%Y-%j %H:%M:%S}",
        "%H:%M:%S %d %B %Y %z": lambda at, digits: f"{at:%H:%M:%S %d %B %Y} -0430",
    }
    for form, write in spell.items():
        texts = []
        for _ in range(40):
            at = datetime.datetime(
                RNG.randrange(1000, 9999),
                RNG.randrange(1, 13),
                RNG.randrange(1, 29),
                RNG.choice([0, 12, 11, 23, RNG.randrange(24)]),
                RNG.randrange(60),
                RNG.randrange(60),
            )
            digits = "".join(RNG.choice("0123456789") for _ in range(RNG.choice([1, 3, 6, 7, 9])))
            minutes = 90 if "%S.%f%z" in form else -270 if "%z" in form else 0
            value = ((at - EPOCH) // SECOND - 60 * minutes) * 10**6 + (int((digits + "00000")[:6]) if "%f" in form else 0)
            texts.append((write(at, digits), value if is_moment(value) else None))
        for bad in ("", "x", write(datetime.datetime(2026, 1, 2, 3, 4, 5), "1234567890").replace("2026", "20x6")):
            texts.append((bad or "-", None))
        bench.file("f.csv", table(["t"], [[text] for text, _ in texts]))
        bench.file("f.jsonl", "".join(json.dumps({"t": text}) + "\n" for text, _ in texts))
        for kind, model, more in (
            ("--timestamp-format", "input t: timestamp; output y = t", ["--timestamp-format", form]),
            ("parse_timestamp", f'input t: text; output y = strings.parse_timestamp(t, "{form}")', []),
        ):
            for file in ("f.csv", "f.jsonl"):
                args = ["eval", "-e", model, file, *more, *FAIL]
                done = bench.run(*args)
                judge(bench, f"{kind}: {file[2:]}", texts, [row[0] for row in cells(done.out)], bench.failures(), args)
    for form, words in (("%H:%M %p %Y", ["%I"]), ("%I:%M %Y", ["%p"]), ("%H:%M", ["year"]), ("%Y-%q", ["%q"]), ("%d.%m.%Y %H:%M %f %f", ["twice"])):
        args = ["eval", "-e", "input t: timestamp; output y = t", "f.csv", "--timestamp-format", form]
        bench.refusal("forms that are none", bench.run(*args), words, again(*args))


def without_zone(bench):
    """Timestamps that say no zone are refused in every form, with the option that says it for all."""
    for file, content in (
        ("n.csv", "t\n2026-01-01T00:00:00\n"),
        ("n.jsonl", '{"t": "2026-01-01T00:00:00.123"}\n'),
        ("n.csv", "t\n2026-01-01 00:00:00.123456789\n"),
        ("n.jsonl", '{"t": "2026-01-01 00:00:00"}\n'),
    ):
        args = ["eval", "-e", "input t: timestamp; output y = t", bench.file(file, content)]
        bench.refusal("no zone", bench.run(*args), ["--time-zone"], again(*args, **{file.replace(".", "_"): content}))
    args = ["eval", "-e", "input t: timestamp; output y = t", "-s", "t=2026-01-01T00:00:00"]
    bench.refusal("no zone", bench.run(*args), ["--time-zone"], again(*args))
    args = ["eval", "-e", 'timestamp"2026-01-01T00:00:00"']
    bench.refusal("no zone", bench.run(*args), ["is not a valid timestamp"], again(*args))
    args = ["eval", "-e", "input t: text; strings.parse_timestamp(t)", "-s", "t=2026-01-01T00:00:00"]
    bench.refusal("no zone", bench.run(*args), ["2026-01-01T00:00:00"], again(*args))


if __name__ == "__main__":
    main("times", forms, literals, stored, zones, letters, without_zone)
