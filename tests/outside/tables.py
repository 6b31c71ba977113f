"""Random tables of all types of Arrow through all forms of the command, read back with pyarrow and pandas.

For each form that has types (Parquet, Arrow) a table of every type that pyarrow makes is written by pyarrow, carried through `cembra eval
--keep-all` to Parquet and Arrow, and read back: values and types are those that were written. For the forms of text (CSV, JSON) what is
read back is compared with the values as texts. Columns that the model makes, texts among them, are filtered, taken and sorted.

How to run it, with a command that is built (`cargo build --bin cembra`):

    python3 -m venv venv && venv/bin/pip install pyarrow pandas
    venv/bin/python tests/outside/tables.py target/debug/cembra [ROUNDS [SEED]]
"""

import csv
import datetime
import decimal
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import pandas
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROWS = 200
MODEL = """
input n: i64?; input t: text?; input b: bytes?; input x: f64?
output m = n + 1
output u = strings.upper(t)
output c = b
output d = x
"""
# What Parquet of the command has no form for, and what pyarrow writes none of.
NO_PARQUET = {"interval", "sparse", "dense", "runs", "list_view", "large_list_view"}


def column(rng, make):
    """Values, a fifth of them missing."""
    return [None if rng.random() < 0.2 else make() for _ in range(ROWS)]


def integers(rng, bits, signed):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return lambda: rng.choice([low, high, 0, rng.randint(low, high)])


def texts(rng):
    return lambda: rng.choice(["", "é", 'a "quoted", text', "two\nlines", "x" * rng.randint(0, 40), str(rng.random())])


def table(rng):
    """A column of every type."""
    types = {}
    for bits in (8, 16, 32, 64):
        types[f"i{bits}"] = (getattr(pa, f"int{bits}")(), integers(rng, bits, True))
        types[f"u{bits}"] = (getattr(pa, f"uint{bits}")(), integers(rng, bits, False))
    floats = lambda: rng.choice([0.0, -0.0, 1.5, -2.25, 1024.0, float("inf")])
    types["f16"] = (pa.float16(), lambda: floats())
    types["f32"] = (pa.float32(), floats)
    types["f64"] = (pa.float64(), lambda: rng.choice([floats(), rng.uniform(-1e300, 1e300), 5e-324]))
    types["flag"] = (pa.bool_(), lambda: rng.random() < 0.5)
    # Within the years that Python has, and nanoseconds.
    for unit, per_second in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        moment = lambda per_second=per_second: rng.randint(-(2**33), 2**33) * per_second + rng.randrange(per_second)
        types[f"at_{unit}"] = (pa.timestamp(unit), moment)
        for zone in ("UTC", "Europe/Zurich", "GMT", "+02:00"):
            types[f"at_{unit}_{zone}"] = (pa.timestamp(unit, zone), moment)
        types[f"span_{unit}"] = (pa.duration(unit), moment)
    types["day"] = (pa.date32(), lambda: rng.randint(-700_000, 2_900_000))
    types["day_ms"] = (pa.date64(), lambda: rng.randint(-700_000, 2_900_000) * 86_400_000)
    types["time_s"] = (pa.time32("s"), lambda: rng.randrange(86_400))
    types["time_ms"] = (pa.time32("ms"), lambda: rng.randrange(86_400_000))
    types["time_us"] = (pa.time64("us"), lambda: rng.randrange(86_400_000_000))
    types["time_ns"] = (pa.time64("ns"), lambda: rng.randrange(86_400_000_000) * 1000)
    for name in ("string", "large_string", "string_view"):
        types[name] = (getattr(pa, name)(), texts(rng))
    for name in ("binary", "large_binary", "binary_view"):
        types[name] = (getattr(pa, name)(), lambda: rng.randbytes(rng.randrange(30)))
    types["fixed"] = (pa.binary(5), lambda: rng.randbytes(5))
    for bits, digits in ((32, 9), (64, 18), (128, 38), (256, 76)):
        of = getattr(pa, f"decimal{bits}")(digits, 3)
        number = lambda digits=digits: decimal.Decimal(rng.randint(-(10**digits) + 1, 10**digits - 1)).scaleb(
            -3, context=decimal.Context(prec=100)
        )
        types[f"decimal{bits}"] = (of, number)
    few = lambda make: lambda: [None if rng.random() < 0.2 else make() for _ in range(rng.randrange(5))]
    types["list"] = (pa.list_(pa.int32()), few(integers(rng, 32, True)))
    types["large_list"] = (pa.large_list(pa.string()), few(texts(rng)))
    types["list_view"] = (pa.list_view(pa.int32()), few(integers(rng, 32, True)))
    types["large_list_view"] = (pa.large_list_view(pa.int32()), few(integers(rng, 32, True)))
    types["fixed_list"] = (pa.list_(pa.int16(), 2), lambda: [rng.randrange(100), None])
    types["zones"] = (pa.list_(pa.timestamp("ms", "Europe/Zurich")), few(lambda: rng.randint(-(2**40), 2**40)))
    fields = [("a", pa.int64()), ("b", pa.string()), ("c", pa.timestamp("us", "GMT"))]
    types["struct"] = (pa.struct(fields), lambda: {"a": rng.randrange(9), "b": texts(rng)(), "c": rng.randrange(10**15)})
    types["map"] = (pa.map_(pa.string(), pa.int64()), lambda: [(f"k{at}", rng.randrange(9)) for at in range(rng.randrange(4))])
    types["nothing"] = (pa.null(), lambda: None)
    arrays = {name: pa.array(column(rng, make), of) for name, (of, make) in types.items()}
    arrays["coded"] = pa.array(column(rng, lambda: rng.choice(["x", "y", "a long text of a dictionary"]))).dictionary_encode()
    spans = lambda: pa.MonthDayNano([rng.randint(-20, 20), rng.randint(-40, 40), rng.randint(-(10**12), 10**12)])
    arrays["interval"] = pa.array(column(rng, spans), pa.month_day_nano_interval())
    halves = [rng.randrange(1, ROWS), ROWS]
    arrays["runs"] = pa.RunEndEncodedArray.from_arrays(pa.array(halves, pa.int32()), pa.array([7, None], pa.int64()))
    kinds, numbers = [rng.randrange(2) for _ in range(ROWS)], pa.array(column(rng, lambda: rng.randrange(9)), pa.int64())
    parts = [numbers, pa.array(column(rng, texts(rng)), pa.string())]
    arrays["sparse"] = pa.UnionArray.from_sparse(pa.array(kinds, pa.int8()), parts)
    places = pa.array(range(ROWS), pa.int32())
    arrays["dense"] = pa.UnionArray.from_dense(pa.array(kinds, pa.int8()), places, parts)
    # What the model reads.
    arrays["n"] = pa.array(column(rng, lambda: rng.randint(-1000, 1000)), pa.int64())
    arrays["t"] = pa.array(column(rng, texts(rng)), pa.string())
    arrays["b"] = pa.array(column(rng, lambda: rng.randbytes(20)), pa.binary())
    arrays["x"] = arrays["f64"]
    return pa.table(arrays)


def write(rows, path):
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        with ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)


def read(path):
    if path.suffix == ".parquet":
        return pq.read_table(path)
    return ipc.open_file(path).read_all()


def evaluated(command, source, target):
    args = [command, "eval", "-e", MODEL, str(source), "--keep-all", "-o", str(target)]
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == 0, (source.name, target.name, done.stderr)


def same(name, found, expected):
    """Values and their type, but where Parquet has one form for several."""
    found, expected = found.combine_chunks(), expected.combine_chunks()
    if pa.types.is_date64(expected.type) and pa.types.is_date32(found.type):
        expected = expected.cast(pa.date32())
    if pa.types.is_timestamp(expected.type) and expected.type.unit == "s" and found.type != expected.type:
        expected = expected.cast(pa.timestamp("ms", expected.type.tz))
    if expected.type == pa.time32("s") and found.type == pa.time32("ms"):
        expected = expected.cast(found.type)
    if found.type != expected.type:
        assert str(found.type).replace("element", "item") == str(expected.type).replace("element", "item"), (
            name, found.type, expected.type)
    assert str(found.to_pylist()) == str(expected.to_pylist()), (name, found, expected)


def made(rows, expected):
    """What the model made is what pyarrow and pandas compute, with texts that they filter, take, sort and compare."""
    assert [str(rows.schema.field(name).type) for name in "mucd"] == ["int64", "string", "binary", "double"]
    same("m", rows["m"], pc.add(expected["n"], 1))
    same("c", rows["c"], expected["b"])
    same("d", rows["d"], expected["x"])
    few = rows.select(["u", "c", "m"])
    upper = pc.utf8_upper(expected["t"])
    same("u", rows["u"], upper)
    kept = few.filter(pc.equal(few["u"], "É"))
    assert kept.num_rows == sum(text == "É" for text in upper.to_pylist())
    order = pc.sort_indices(few, [("u", "ascending")])
    assert few.take(order)["u"].drop_null().to_pylist() == sorted(text for text in upper.to_pylist() if text is not None)
    frame = few.to_pandas()
    assert list(frame[frame["u"] == "É"].index) == [at for at, text in enumerate(upper.to_pylist()) if text == "É"]
    frame.sort_values("u")
    frame.take([1, 0])


def main():
    command, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    compared = 0
    for _ in range(rounds):
        whole = table(rng)
        some = whole.drop_columns([name for name in whole.column_names if name in NO_PARQUET])
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for ending, rows in ((".parquet", some), (".arrow", whole)):
                source = folder / f"in{ending}"
                write(rows, source)
                # What pyarrow itself reads again: Parquet has no seconds, and no views in lists.
                there = read(source)
                for target in (".parquet", ".arrow"):
                    if target == ".parquet":
                        names = [name for name in there.column_names if name not in NO_PARQUET]
                        write(there.select(names), source)
                    evaluated(command, source, folder / f"out{target}")
                    found, expected = read(folder / f"out{target}"), read(source)
                    for name in expected.column_names:
                        same(name, found[name], expected[name])
                        compared += 1
                    made(found, expected)
                    if target == ".parquet":
                        frame = pandas.read_parquet(folder / "out.parquet", columns=["n", "t", "day_ms", "at_us_GMT", "u"])
                        assert frame["u"].notna().sum() == expected["t"].drop_null().length()
                        assert frame["day_ms"].dropna().map(lambda day: isinstance(day, datetime.date)).all()
                        write(there, source)
                texts_of(command, source, folder, there)
    print(f"{rounds} rounds: {compared} columns and their texts are those that were written")


def texts_of(command, source, folder, rows):
    """CSV and JSON: a cell for each value, at its place."""
    evaluated(command, source, folder / "out.jsonl")
    found = [json.loads(line, parse_float=str) for line in (folder / "out.jsonl").read_text().splitlines()]
    evaluated(command, source, folder / "out.csv")
    with open(folder / "out.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    assert len(found) == len(cells) == rows.num_rows
    for name in rows.column_names:
        of, values = rows.schema.field(name).type, rows[name].to_pylist()
        nulls = [json_row[name] is None for json_row in found]
        assert nulls == [value is None for value in values], name
        assert [cell[name] == "" for cell in cells] == [value in (None, b"", "") for value in values], name
        for value, cell, row in zip(values, cells, found):
            if value is None:
                continue
            if isinstance(value, bool):
                assert (row[name], cell[name]) == (value, str(value).lower()), name
            elif isinstance(value, int):
                assert (row[name], int(cell[name])) == (value, value), name
            elif isinstance(value, float):
                assert float(row[name]) == value and float(cell[name]) == value, name
            elif isinstance(value, decimal.Decimal):
                assert decimal.Decimal(str(row[name])) == value and decimal.Decimal(cell[name]) == value, name
            elif isinstance(value, str):
                assert row[name] == value and cell[name] == value, name
            elif pa.types.is_timestamp(of):
                # In UTC, whatever the zone.
                utc = pandas.Timestamp(value)
                utc = utc.tz_convert("UTC") if utc.tzinfo else utc
                shown = pandas.Timestamp(row[name])
                assert shown == utc and row[name] == cell[name] and row[name].endswith("Z") == bool(of.tz), (name, row[name])
            elif isinstance(value, list) and not pa.types.is_map(of) and of != pa.list_(pa.timestamp("ms", "Europe/Zurich")):
                assert row[name] == value and json.loads(cell[name]) == value, name
            elif pa.types.is_map(of):
                assert row[name] == dict(value), name
            elif isinstance(value, dict):
                assert (row[name]["a"], row[name]["b"]) == (value["a"], value["b"]), name


if __name__ == "__main__":
    main()
