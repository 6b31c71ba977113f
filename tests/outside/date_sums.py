"""Dates and whole numbers of 64 bits: sums, months, years, and dates and moments made of their parts, each against Python's `datetime` and integers.

    PYTHON tests/outside/date_sums.py target/debug/cembra
"""

import calendar
import datetime
import random

from cases import EPOCH, RIGHT, WRONG, again, brief, cells, main, table

RNG = random.Random(69)
LONG = 2**63


def number(*usual):
    """A number of the usual ones, or of any size."""
    bits = RNG.choice([4, 12, 31, 32, 33, 62, 63])
    return RNG.choice([RNG.choice(usual), RNG.randrange(-(2**bits), 2**bits), RNG.choice([0, 1, -1, 2**31, -(2**31) - 1, 2**32, -(2**32), LONG - 1, -LONG])])


def date():
    return RNG.choice([datetime.date.min, datetime.date.max, datetime.date(2024, 2, 29), datetime.date.fromordinal(RNG.randrange(1, 3_652_060))])


def later(day, months):
    """The day so many months later; `None` outside of the years 1 to 9999."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        return None
    return day.replace(year=year, month=month + 1, day=min(day.day, calendar.monthrange(year, month + 1)[1]))


def part(bench, name, model, header, rows, expected):
    """Evaluates a model whose only output is `y`, in both backends; what is expected is a text, or `None` for a fault with its code."""
    bench.file("rows.csv", table(header, rows))
    for backend in ("native", "interp"):
        arguments = ("eval", "-e", model, "rows.csv", "--format", "csv", "--backend", backend, "--on-error", "missing", "--errors", "errors.csv")
        done = bench.run(*arguments)
        found, failed = cells(done.out), bench.failures()
        if len(found) != len(rows):
            bench.tally(name, WRONG, f"{len(found)} of {len(rows)} rows: {brief(done.err)}", again(*arguments))
            continue
        for at, (row, made, wanted) in enumerate(zip(rows, found, expected), 1):
            faulty = "time-range" in str(failed.get(at, {}))
            right = faulty if wanted is None else (made[0] if made else "") == wanted and at not in failed
            bench.tally(name, RIGHT if right else WRONG, f"{row}: {made}, {failed.get(at)}, expected {wanted}", again(*arguments))


def days(bench):
    """Sums and differences, as days since 1970, which 32 bits hold or not."""
    rows = [[date(), number(*range(-400, 400), 2**31, 2_147_000_000)] for _ in range(400)]

    def held(count):
        return str(count) if -(2**31) <= count < 2**31 else None

    since = [(day - EPOCH.date()).days for day, _ in rows]
    for sign, model in ((1, "d + n"), (1, "n + d"), (-1, "d - n")):
        expected = [held(count + sign * n) for count, (_, n) in zip(since, rows)]
        text = f'input d: date; input n: i64; output y = strings.as_text(({model}) - date"1970-01-01")'
        part(bench, model, text, ["d", "n"], rows, expected)


def months(bench):
    rows = [[date(), number(*range(-40, 40), *range(-2000, 2000, 12))] for _ in range(400)]
    for name, factor in (("add_months", 1), ("add_years", 12)):
        made = [later(day, factor * n) for day, n in rows]
        expected = [None if day is None else day.isoformat() for day in made]
        part(bench, name, f"input d: date; input n: i64; output y = date.{name}(d, n)", ["d", "n"], rows, expected)


def parts(bench):
    rows = [[number(*range(1, 3000)), number(*range(1, 13)), number(*range(1, 32))] for _ in range(600)]

    def day(parts):
        try:
            return datetime.date(*parts).isoformat()
        except (ValueError, OverflowError):
            return ""

    part(bench, "date.make", "input a, m, d: i64; output y = date.make(a, m, d)", ["a", "m", "d"], rows, [day(row) for row in rows])
    rows = [[number(*range(24)), number(*range(60)), number(*range(60))] for _ in range(600)]

    def moment(parts):
        try:
            return datetime.datetime(2026, 11, 20, *parts).isoformat() + "Z"
        except (ValueError, OverflowError):
            return ""

    text = 'input h, m, s: i64; output y = timestamp.make(date"2026-11-20", h, m, s)'
    part(bench, "timestamp.make", text, ["h", "m", "s"], rows, [moment(row) for row in rows])


main("sums of dates", days, months, parts)
