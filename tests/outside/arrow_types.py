"""Every type of Arrow, written by pyarrow, pandas, Polars and DuckDB: read with equal values, or refused by a message that names column and type.
What the command writes is read by all four with equal values.

The expected values are those that pyarrow (of files of Polars alone, Polars) reads from the same file.

    PYTHON tests/outside/arrow_types.py target/debug/cembra [ROUNDS]
"""

import datetime
import decimal
import math
import random
import re
import sys
import uuid

import duckdb
import numpy
import pandas
import polars
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from cases import EPOCH, MICROSECOND, REFUSED, RIGHT, WRONG, again, brief, main
from tables import NO_PARQUET, table as every_type

RNG = random.Random(71)
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
# A word that a refusal of a type must have, by the beginning of the type's name in pyarrow.
WORDS = {
    "decimal": "ecimal",
    "time32": "Time32",
    "time64": "Time64",
    "date64": "Date64",
    "month_day_nano": "Interval",
    "sparse_union": "Union",
    "dense_union": "Union",
    "list_view": "ListView",
    "large_list_view": "ListView",
    "run_end": "RunEndEncoded",
    "map": "Map",
    "list": "List",
    "large_list": "List",
    "fixed_size_list": "List",
    "struct": "Struct",
    "dictionary": "Dictionary",
    "null": "Null",
    "extension": "",
    "uint": "UInt",
    "int": "Int",
    "timestamp": "Timestamp",
    "duration": "Duration",
    "string": "Utf8",
    "fixed_size_binary": "Binary",
    "halffloat": "Float16",
}


def plain(value):
    """A value that is the same whoever read it: moments are microseconds, durations too, everything of NumPy is Python's."""
    if value is None or value is pandas.NaT or value is pandas.NA:
        return None
    if isinstance(value, pandas.Timestamp):
        return (
            "us",
            (
                int(value.as_unit("ns").value) // 1000
                if 1678 < value.year < 2262
                else (value.tz_convert(None) if value.tzinfo else value).to_pydatetime(warn=False).__sub__(EPOCH) // MICROSECOND
            ),
        )
    if isinstance(value, datetime.datetime):
        utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        return ("us", (utc - EPOCH) // MICROSECOND)
    if isinstance(value, pandas.Timedelta):
        return ("span", int(value.as_unit("ns").value) // 1000)
    if isinstance(value, datetime.timedelta):
        return ("span", value // MICROSECOND)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, numpy.ndarray):
        return [plain(one) for one in value.tolist()] if value.dtype != object else [plain(one) for one in value]
    if isinstance(value, polars.Series):
        return [plain(one) for one in value.to_list()]
    if isinstance(value, numpy.generic):
        return plain(value.item())
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        # A pair of a map is a tuple, whose members are called 0 and 1.
        is_pair = list(value) == ["0", "1"]
        return [plain(one) for one in value.values()] if is_pair else {name: plain(one) for name, one in value.items()}
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def same(found, expected):
    """Equal, with 1 not equal to true, and 0.0 not to -0.0."""
    return (
        repr(found) == repr(expected)
        or found == expected
        and not isinstance(found, (bool, float))
        and type(found) in (list, dict, int, str, bytes, tuple, decimal.Decimal)
    )


def write_arrow(rows, path, **options):
    with ipc.new_file(path, rows.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows, max_chunksize=17)


def write_stream(rows, path, **options):
    with ipc.new_stream(path, rows.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(rows, max_chunksize=17)


def more_types(rows):
    """What the table of every type lacks: types within types, extensions, dictionaries of other values."""
    count = rows.num_rows
    numbers = list(range(count))
    struct = pa.struct([("a", pa.int64()), ("b", pa.string())])
    more = {
        "lists": pa.array([[[1, None], []], None, [[2]]] * count, pa.list_(pa.list_(pa.int64())))[:count],
        "structs": pa.array([[{"a": 1, "b": "x"}, None], None, []] * count, pa.list_(struct))[:count],
        "deep": pa.array([{"s": {"a": 1, "b": None}}, None, {"s": None}] * count, pa.struct([("s", struct)]))[:count],
        "map_of_structs": pa.array([[("k", {"a": 1, "b": "x"})], [], None] * count, pa.map_(pa.string(), struct))[:count],
        "map_of_ints": pa.array([[(1, 1.5)], [(2, None)], []] * count, pa.map_(pa.int64(), pa.float64()))[:count],
        "coded_ints": pa.array([7, None, 9] * count, pa.int64())[:count].dictionary_encode(),
        "coded_days": pa.array([7, None, 9] * count, pa.date32())[:count].dictionary_encode(),
        "coded_bytes": pa.array([b"a", None, b"bc"] * count, pa.binary())[:count].dictionary_encode(),
        "coded_small": pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * count, pa.int8())[:count], pa.array(["x", None], pa.string())),
        "coded_large": pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * count, pa.uint64())[:count], pa.array(["x", "y"], pa.large_string())),
        "views": pa.array([["a long text of a view", None], [], None] * count, pa.list_(pa.string_view()))[:count],
        "moments": pa.array([[1, None, -1], [], None] * count, pa.list_(pa.timestamp("ns", "UTC")))[:count],
        "spans": pa.array([{"d": 5}, None, {"d": None}] * count, pa.struct([("d", pa.duration("ms"))]))[:count],
        "fixed_structs": pa.array([[{"a": 1, "b": "x"}, None], None, [None, None]] * count, pa.list_(struct, 2))[:count],
        "uuid": pa.array([uuid.UUID(int=at).bytes for at in numbers], pa.binary(16)).cast(pa.binary(16)),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None, "7"] * count, pa.string())[:count]),
        "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0] * count, pa.int8())[:count]),
        "runs_of_texts": pa.RunEndEncodedArray.from_arrays(pa.array([count], pa.int16()), pa.array(["x"])),
    }
    more["uuid"] = pa.ExtensionArray.from_storage(pa.uuid(), more["uuid"])
    for name, column in more.items():
        rows = rows.append_column(name, column)
    return rows


def reference(path):
    """The table that pyarrow reads, by the form."""
    if path.suffix == ".parquet":
        try:
            return pq.ParquetFile(path).read()
        except pa.ArrowInvalid:
            # Lists of a fixed length that are missing, as DuckDB writes them.
            return duckdb.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    data = path.read_bytes()
    return (ipc.open_file(data) if data[:6] == b"ARROW1" else ipc.open_stream(data)).read_all()


def values(column):
    try:
        return [plain(value) for value in column.to_pylist()]
    except (ValueError, OverflowError, pa.ArrowInvalid, NotImplementedError, TypeError):
        # Days beyond the years of Python.
        return column.cast(pa.int32()).to_pylist() if column.type == pa.date32() else [str(value) for value in column]


def word_of(of):
    name = str(of)
    return next((word for start, word in sorted(WORDS.items(), key=lambda pair: -len(pair[0])) if name.startswith(start)), "")


def check(bench, writer, path):
    """All columns of a file, carried through and as inputs."""
    try:
        expected = reference(path)
    except Exception as error:
        return print(f"{writer}: no reader has {path.name}: {error}")
    names = list(expected.column_names)
    carry(bench, writer, path, expected, names, "arrow")
    carry(bench, writer, path, expected, names, "parquet")
    inputs(bench, writer, path, expected, names)


def carry(bench, writer, path, expected, names, ending):
    """Columns that are carried to an Arrow or Parquet file."""
    kind = f"{writer}: carried to {ending}"
    left = list(names)
    while left:
        args = ["eval", "-e", "output made = 1", path.name, "--keep", ",".join(left), "-o", f"carried.{ending}"]
        done = bench.run(*args)
        if done.status == 0:
            try:
                found = reference(bench.folder / f"carried.{ending}")
            except Exception as error:
                if len(left) > 1:
                    return [carry(bench, writer, path, expected, [name], ending) for name in left]
                said = f"`{left[0]}` of {expected[left[0]].type}: pyarrow does not read what is written: {error}"
                return bench.tally(kind, WRONG, said, f"{writer} writes {path.name}; {again(*args)}")
            for name in left:
                wanted = expected[name]
                if ending == "parquet" and pa.types.is_time32(wanted.type):
                    wanted = wanted.cast(pa.time32("ms"))
                got, there = values(found[name]), values(wanted)
                said = f"`{name}` of {expected[name].type}: {differing(got, there)}"
                shown = again("eval", "-e", "output made = 1", path.name, "--keep", name, "-o", f"carried.{ending}")
                bench.tally(kind, RIGHT if same(got, there) else WRONG, said, f"{writer} writes {path.name}; {shown}")
            return
        left = without(bench, kind, done, left, expected, args)


def inputs(bench, writer, path, expected, names):
    """Columns that are inputs without a declared type."""
    kind = f"{writer}: inputs"
    left = list(names)
    while left:
        model = "; ".join(f"output y{at} = {asked(name, expected)}" for at, name in enumerate(left))
        args = ["eval", "-e", model, path.name, "-o", "made.arrow"]
        done = bench.run(*args)
        if done.status == 0:
            found = reference(bench.folder / "made.arrow")
            for at, name in enumerate(left):
                wanted = values(expected[name])
                if pa.types.is_map(expected[name].type):
                    wanted = [None if one is None else len(one) for one in wanted]
                got = values(found[f"y{at}"])
                alike = same(got, wanted)
                bench.tally(
                    kind,
                    RIGHT if alike else WRONG,
                    f"`{name}` of {expected[name].type}: {differing(got, wanted)}",
                    f"{writer} writes {path.name}; {again('eval', '-e', f'output y = L[{name!r}]', path.name)}",
                )
            return
        left = without(bench, kind, done, left, expected, args)


def asked(name, expected):
    """What a model makes of a column: the value, and of a dictionary the number of its keys, as dictionaries are no outputs."""
    column = f'L["{name}"]'
    return f"array.size(dict.keys({column}))" if pa.types.is_map(expected[name].type) else column


def without(bench, kind, done, left, expected, args):
    """The columns without the one that a run refused; the case is told."""
    said = done.err
    named = [name for name in left if f"`{name}`" in said or f"`{name}." in said]
    # An output is no column.
    at = re.search(r"`y(\d+)`", said)
    if not named and at and int(at[1]) < len(left):
        named = [left[int(at[1])]]
    if not named or done.broke():
        # One by one, so that one column hides no others.
        bad = {name: one for name in left if not (one := bench.run(*alone(args, name))).refuses(f"`{name}") and one.status != 0}
        for name, one in bad.items():
            bench.tally(kind, WRONG, f"`{name}` of {expected[name].type}: status {one.status}: {brief(one.err)}", again(*alone(args, name)))
        if not bad:
            bench.tally(kind, WRONG, f"status {done.status}, no column is named: {brief(said)}", again(*args)[:300])
        return [name for name in left if name not in bad] if bad else left[1:]
    name = max(named, key=len)
    word = word_of(expected[name].type)
    # A list is never missing in a model.
    is_list = "found a missing value" in said and "list" in str(expected[name].type)
    verdict = REFUSED if word.lower() in said.lower() or is_list else WRONG
    bench.tally(kind, verdict, f"`{name}` of {expected[name].type}: {brief(said)}", again(*alone(args, name)))
    return [one for one in left if one != name]


def alone(args, name):
    """The arguments of a run for one column of many."""
    file = next(argument for argument in args if argument.endswith((".parquet", ".arrow", ".arrows")))
    asked = ["-e", "output made = 1", file, "--keep", name] if "--keep" in args else ["-e", f'output y = L["{name}"]', file]
    return ["eval", *asked, *args[args.index("-o") :]]


def differing(found, expected):
    pairs = [(a, b) for a, b in zip(found, expected) if not same(a, b)]
    return f"{len(found)} rows of {len(expected)}" if len(found) != len(expected) else f"{len(pairs)} of {len(found)}, as {pairs[:1]}"


def of_pyarrow(bench):
    rng = random.Random(72)
    for turn in range(ROUNDS):
        rows = more_types(every_type(rng).slice(0, 40))
        folder = bench.folder
        write_arrow(rows, folder / "a.arrow")
        check(bench, "pyarrow, file", folder / "a.arrow")
        codec = ("lz4", "zstd")[turn % 2]
        write_arrow(rows, folder / "b.arrow", compression=codec)
        check(bench, f"pyarrow, file in {codec}", folder / "b.arrow")
        write_stream(rows, folder / "c.arrows")
        check(bench, "pyarrow, stream", folder / "c.arrows")
        # Parquet of pyarrow has no runs, and no dictionaries with a value that is missing.
        some = rows.drop_columns([name for name in (*NO_PARQUET, "runs_of_texts", "coded_small") if name in rows.column_names])
        for version, codec in (("1.0", "snappy"), ("2.6", "zstd"), ("2.4", "lz4"))[: 1 + 2 * (turn == 0)]:
            pq.write_table(
                some,
                folder / "d.parquet",
                version=version,
                compression=codec,
                row_group_size=17,
                use_dictionary=version != "2.6",
                data_page_version="2.0" if version == "2.6" else "1.0",
                coerce_timestamps=None if version == "2.6" else "us",
                allow_truncated_timestamps=version != "2.6",
            )
            check(bench, f"pyarrow, Parquet {version} in {codec}", folder / "d.parquet")
        pq.write_table(some, folder / "e.parquet", store_schema=False)
        check(bench, "pyarrow, Parquet without a schema of Arrow", folder / "e.parquet")
        simple = some.select([name for name in some.column_names if not pa.types.is_nested(some.schema.field(name).type)])
        encodings = {
            name: encoding
            for name in simple.column_names
            for of in [simple.schema.field(name).type]
            for encoding in [
                (
                    "DELTA_BINARY_PACKED"
                    if pa.types.is_integer(of) and of.bit_width >= 32
                    else (
                        "BYTE_STREAM_SPLIT"
                        if pa.types.is_floating(of) and of.bit_width >= 32
                        else "DELTA_BYTE_ARRAY" if of in (pa.string(), pa.binary()) else None
                    )
                )
            ]
            if encoding
        }
        pq.write_table(simple.select(list(encodings)), folder / "f.parquet", use_dictionary=False, column_encoding=encodings)
        check(bench, "pyarrow, Parquet of other encodings", folder / "f.parquet")
    # A dictionary that grows, and nothing at all.
    first, second = pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b", "c"]).dictionary_encode()
    with ipc.new_stream(
        bench.folder / "g.arrows", pa.schema([("d", first.type)]), options=ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    ) as writer:
        for column in (first, second, second):
            writer.write_batch(pa.record_batch([column], ["d"]))
    check(bench, "pyarrow, dictionaries that grow", bench.folder / "g.arrows")
    empty = every_type(rng).slice(0, 0)
    write_arrow(empty, bench.folder / "h.arrow")
    check(bench, "pyarrow, no rows", bench.folder / "h.arrow")


def taken(rows, take):
    """The columns that another library takes, one by one."""
    made = {}
    for name in rows.column_names:
        try:
            made[name] = take(rows.select([name]))
        except BaseException:  # Libraries of Rust end in panics of their own.
            pass
    return made


def of_nesting(bench):
    """Each type within each type that has others within."""
    two = pa.array([0, 1], pa.int32())
    offsets, texts = pa.array([0, 1, 2], pa.int32()), pa.array(["a", "b"])
    number = lambda of: pa.array([1000, 2000] if pa.types.is_duration(of) else [1, 2], of)
    kinds = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)] + [
        pa.float16(),
        pa.float32(),
        pa.float64(),
        pa.date32(),
        pa.time32("s"),
        pa.time64("ns"),
    ]
    kinds += [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC", "Europe/Zurich")] + [
        pa.duration(unit) for unit in ("s", "ms", "us", "ns")
    ]
    inner = {str(of): number(of) for of in kinds}
    inner |= {f"{of}": pa.array(["a", "a text of more than twelve bytes"], of) for of in (pa.string(), pa.large_string(), pa.string_view())}
    inner |= {f"{of}": pa.array([b"ab", b"cd"], of) for of in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))}
    inner |= {
        f"{of}": pa.array([decimal.Decimal("1.5"), None], of)
        for of in (pa.decimal32(5, 1), pa.decimal64(15, 1), pa.decimal128(25, 1), pa.decimal256(45, 1))
    }
    inner |= {
        "bool": pa.array([True, None]),
        "null": pa.nulls(2),
        "list": pa.array([[1], []]),
        "struct": pa.array([{"a": 1}, {"a": None}]),
        "empty": pa.array([{}, {}], pa.struct([])),
        "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
        "fixed_list": pa.array([[1], [2]], pa.list_(pa.int64(), 1)),
        "coded": texts.dictionary_encode(),
    }
    for name, make in (
        ("dictionary", lambda one: pa.DictionaryArray.from_arrays(two, one)),
        ("runs", lambda one: pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), one)),
        ("list", lambda one: pa.ListArray.from_arrays(offsets, one)),
        ("large list", lambda one: pa.LargeListArray.from_arrays(offsets.cast(pa.int64()), one)),
        ("list view", lambda one: pa.ListViewArray.from_arrays(two, pa.array([1, 1], pa.int32()), one)),
        ("fixed list", lambda one: pa.FixedSizeListArray.from_arrays(one, 1)),
        ("struct", lambda one: pa.StructArray.from_arrays([one], ["a"])),
        ("map", lambda one: pa.MapArray.from_arrays(offsets, texts, one)),
        ("list of dictionaries", lambda one: pa.ListArray.from_arrays(offsets, pa.DictionaryArray.from_arrays(two, one))),
        ("union", lambda one: pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [one])),
    ):
        columns = {}
        for of, one in inner.items():
            # Names of columns are separated by commas.
            of = re.sub(r"\W+", "_", of)
            try:
                made = pa.table({of: make(one)})
                write_arrow(made, bench.folder / "probe.arrow")
                reference(bench.folder / "probe.arrow")[of].to_pylist()
                columns[of] = made[of]
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, ValueError, TypeError, KeyError):
                pass
        write_arrow(pa.table(columns), bench.folder / "n.arrow")
        check(bench, f"pyarrow, within: {name}", bench.folder / "n.arrow")


def of_pandas(bench):
    rng = random.Random(73)
    rows = more_types(every_type(rng).slice(0, 40))
    for name, mapper in (("pandas", None), ("pandas of Arrow", pandas.ArrowDtype)):

        def take(one, mapper=mapper):
            frame = one.to_pandas(types_mapper=mapper)
            frame.to_parquet(bench.folder / "probe.parquet")
            frame.to_feather(bench.folder / "probe.arrow")
            return frame

        frames = taken(rows, take)
        frame = pandas.concat(frames.values(), axis=1)
        frame.to_parquet(bench.folder / "p.parquet")
        check(bench, f"{name}, Parquet", bench.folder / "p.parquet")
        frame.to_feather(bench.folder / "p.feather.arrow")
        check(bench, f"{name}, Feather", bench.folder / "p.feather.arrow")
    # Types of pandas itself.
    own = pandas.DataFrame(
        {
            "category": pandas.Categorical(["a", None, "b", "a"]),
            "ordered": pandas.Categorical(["x", "y", "x", None], ordered=True),
            "int_na": pandas.array([1, None, 3, 4], "Int64"),
            "small_na": pandas.array([1, None, 3, 4], "UInt8"),
            "bool_na": pandas.array([True, None, False, True], "boolean"),
            "string": pandas.array(["a", None, "ü", ""], "string"),
            "object": ["a", None, "b", "c"],
            "bytes": [b"a", None, b"", b"\xff"],
            "float": [1.5, None, float("inf"), -0.0],
            "ns": pandas.to_datetime(["2026-01-01 00:00:00.123456789", None, "1969-12-31 23:59:59.999999999", "2000-01-01"], format="ISO8601"),
            "zone": pandas.to_datetime(["2026-07-01 10:00", None, "1969-12-31 23:59", "2000-01-01 00:00"]).tz_localize("Europe/Zurich"),
            "delta": pandas.to_timedelta(["1 days 02:03:04.567", None, "-1 us", "0 s"]),
            "period": pandas.period_range("2026-01", periods=4, freq="M"),
            "interval": pandas.interval_range(0, 4),
            "lists": [[1, 2], None, [], [3]],
            "dicts": [{"a": 1}, None, {"a": 2}, {"a": None}],
            "decimals": [decimal.Decimal("1.50"), None, decimal.Decimal("-0.01"), decimal.Decimal("123456789.12")],
            "days": [datetime.date(2026, 1, 1), None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
            "times": [datetime.time(1, 2, 3, 4), None, datetime.time(0), datetime.time(23, 59, 59, 999999)],
        }
    )
    own.to_parquet(bench.folder / "o.parquet")
    check(bench, "pandas, its own types, Parquet", bench.folder / "o.parquet")
    own.to_feather(bench.folder / "o.arrow")
    check(bench, "pandas, its own types, Feather", bench.folder / "o.arrow")


def of_polars(bench):
    rng = random.Random(74)
    rows = more_types(every_type(rng).slice(0, 40))

    def take(one):
        frame = polars.from_arrow(one)
        frame.write_ipc(bench.folder / "probe.arrow")
        frame.write_parquet(bench.folder / "probe.parquet")
        return frame

    frames = taken(rows, take)
    frame = polars.concat(frames.values(), how="horizontal")
    frame = frame.with_columns(
        polars.Series("enum", ["a", "b", None, "a"] * 10, dtype=polars.Enum(["a", "b"])),
        polars.Series("category", ["a", "b", None, "a"] * 10, dtype=polars.Categorical),
        polars.Series("array", [[1, 2], None, [3, None], [5, 6]] * 10, dtype=polars.Array(polars.Int64, 2)),
        polars.Series("decimal", [decimal.Decimal("1.50"), None, decimal.Decimal("-0.01"), decimal.Decimal("3")] * 10, dtype=polars.Decimal(20, 2)),
        polars.Series("null", [None] * 40, dtype=polars.Null),
        polars.Series("time", [datetime.time(1, 2, 3, 4), None, datetime.time(0), datetime.time(23, 59, 59)] * 10),
        polars.Series("empty", [{}] * 40, dtype=polars.Struct([])),
    )
    for name, write in (
        ("Polars, IPC", lambda path: frame.write_ipc(path)),
        ("Polars, IPC in lz4", lambda path: frame.write_ipc(path, compression="lz4")),
        ("Polars, IPC in zstd", lambda path: frame.write_ipc(path, compression="zstd")),
        ("Polars, IPC of old types", lambda path: frame.write_ipc(path, compat_level=polars.CompatLevel.oldest())),
        ("Polars, stream", lambda path: frame.write_ipc_stream(path)),
        ("Polars, streamed IPC", lambda path: frame.lazy().sink_ipc(path)),
        ("Polars, IPC of no rows", lambda path: frame.head(0).write_ipc(path)),
        ("Polars, IPC of parts", lambda path: polars.concat([frame, frame], rechunk=False).write_ipc(path)),
    ):
        try:
            write(bench.folder / "p.arrow")
        except BaseException as error:
            print(f"{name} writes nothing: {error}")
            continue
        check(bench, name, bench.folder / "p.arrow")
    wide = polars.DataFrame({"n": [1, 2], "i128": polars.Series([2**100, -1], dtype=polars.Int128)})
    wide.write_ipc(bench.folder / "w.arrow")
    wide.write_parquet(bench.folder / "w.parquet")
    for file in ("w.arrow", "w.parquet"):
        for args in (["eval", "-e", "output y = i128", file], ["eval", "-e", "output y = n", file, "--keep-all"]):
            bench.refusal("Polars, integers of 128 bits", bench.run(*args), ["i128"], f"Polars writes {file}; {again(*args)}")
        args = ["eval", "-e", "output y = n", file]
        bench.value("Polars, integers of 128 bits beside what is read", bench.run(*args).out, "y\n1\n2\n", f"Polars writes {file}; {again(*args)}")
    for name, options in (
        ("Polars, Parquet", {}),
        ("Polars, Parquet in snappy", {"compression": "snappy", "row_group_size": 17}),
        ("Polars, Parquet uncompressed", {"compression": "uncompressed", "data_page_size": 64}),
    ):
        some = frame
        for column in frame.columns:
            try:
                frame.select(column).write_parquet(bench.folder / "probe.parquet")
            except BaseException:
                some = some.drop(column)
        some.write_parquet(bench.folder / "p.parquet", **options)
        check(bench, name, bench.folder / "p.parquet")


DUCK = {
    "bool": "true",
    "i8": "(-7)::TINYINT",
    "i16": "(-7)::SMALLINT",
    "i32": "(-7)::INTEGER",
    "i64": "(-7)::BIGINT",
    "u8": "7::UTINYINT",
    "u16": "7::USMALLINT",
    "u32": "4000000000::UINTEGER",
    "u64": "18446744073709551615::UBIGINT",
    "huge": "170141183460469231731687303715884105727::HUGEINT",
    "uhuge": "340282366920938463463374607431768211455::UHUGEINT",
    "f32": "1.5::FLOAT",
    "f64": "1e300::DOUBLE",
    "d4": "1.5::DECIMAL(4,1)",
    "d9": "1.50::DECIMAL(9,2)",
    "d18": "-1.5::DECIMAL(18,3)",
    "d38": "12345678901234567890.5::DECIMAL(38,1)",
    "text": "'ü'",
    "blob": "'\\xFF'::BLOB",
    "bit": "'0101'::BIT",
    "day": "DATE '2026-01-31'",
    "clock": "TIME '01:02:03.4'",
    "clock_tz": "TIMETZ '01:02:03+02'",
    "at": "TIMESTAMP '2026-01-31 01:02:03.456789'",
    "at_s": "TIMESTAMP_S '2026-01-31 01:02:03'",
    "at_ms": "TIMESTAMP_MS '2026-01-31 01:02:03.456'",
    "at_ns": "TIMESTAMP_NS '2026-01-31 01:02:03.456789123'",
    "at_tz": "TIMESTAMPTZ '2026-01-31 01:02:03+02'",
    "old": "TIMESTAMP '1969-12-31 23:59:59.999999'",
    "span": "INTERVAL '1 month 2 days 3 seconds'",
    "uuid": "'00000000-0000-0000-0000-000000000007'::UUID",
    "enum": "'b'::mood",
    "list": "[1, NULL, 3]",
    "lists": "[[1], [], NULL]",
    "struct": "{'a': 1, 'b': 'x'}",
    "structs": "[{'a': 1}, NULL]",
    "map": "MAP {'k': 1.5::DOUBLE}",
    "array": "[1, 2]::INTEGER[2]",
    "union": "union_value(n := 1)",
    "json": "'{\"a\": 1}'::JSON",
    "texts": "['a', NULL]",
    "days": "[DATE '2026-01-31']",
    "first_day": "DATE '0001-01-01'",
    "last_day": "DATE '9999-12-31'",
    "bc": "DATE '0044-03-15 (BC)'",
}


def of_duckdb(bench):
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("CREATE TYPE mood AS ENUM ('a', 'b')")
    there = {}
    for name, value in DUCK.items():
        try:
            con.execute(f"COPY (SELECT {value} AS {name}) TO '{bench.folder}/probe.parquet' (FORMAT parquet)")
            there[name] = value
        except duckdb.Error as error:
            print(f"DuckDB writes no {name} to Parquet: {str(error).splitlines()[0]}")
    # Months, days and milliseconds of Parquet; pyarrow has bytes for them.
    for value, wanted in (("1 month 2 days 3 seconds", "P1M2DT3S"), ("14 months", "P1Y2M")):
        con.execute(f"COPY (SELECT INTERVAL '{value}' AS span) TO '{bench.folder}/span.parquet' (FORMAT parquet)")
        args = ["eval", "-e", "output made = 1", "span.parquet", "--keep", "span", "--format", "csv"]
        done = bench.run(*args)
        shown = f"DuckDB writes INTERVAL '{value}'; {again(*args)}"
        if done.status == 0:
            bench.value("DuckDB, Parquet of intervals", done.out, f"span,made\n{wanted},1\n", shown)
        else:
            bench.refusal("DuckDB, Parquet of intervals", done, ["`span`", "INTERVAL"], shown)
    del there["span"]
    own = {name: there.pop(name) for name in ("array", "bc") if name in there}
    for name, value in own.items():
        con.execute(
            f"COPY (SELECT CASE WHEN i % 3 = 1 THEN NULL ELSE {value} END AS {name} FROM range(40) t(i)) TO '{bench.folder}/{name}.parquet' (FORMAT parquet)"
        )
        check(bench, f"DuckDB, Parquet of {name}", bench.folder / f"{name}.parquet")
    select = (
        "SELECT " + ", ".join(f"CASE WHEN i % 3 = 1 THEN NULL ELSE {value} END AS {name}" for name, value in there.items()) + " FROM range(40) t(i)"
    )
    for codec in ("snappy", "zstd", "uncompressed", "lz4_raw"):
        for version in ("V1", "V2"):
            try:
                con.execute(f"COPY ({select}) TO '{bench.folder}/d.parquet' (FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version})")
            except duckdb.Error as error:
                print(f"DuckDB, {codec} {version}: {str(error).splitlines()[0]}")
                continue
            check(bench, f"DuckDB, Parquet {version} in {codec}", bench.folder / "d.parquet")
    columns = {}
    for name, value in DUCK.items():
        try:
            one = con.sql(f"SELECT CASE WHEN i % 3 = 1 THEN NULL ELSE {value} END AS {name} FROM range(40) t(i)").to_arrow_table()
            write_arrow(one, bench.folder / "probe.arrow")
            columns[name] = one[name]
        except Exception as error:
            print(f"DuckDB has no {name} for Arrow: {str(error).splitlines()[0]}")
    write_arrow(pa.table(columns), bench.folder / "d.arrow")
    check(bench, "DuckDB, Arrow", bench.folder / "d.arrow")
    rows = every_type(random.Random(75)).slice(0, 40)

    def take(one):
        con.register("one", one)
        con.execute(f"COPY (SELECT * FROM one) TO '{bench.folder}/probe.parquet' (FORMAT parquet)")
        return pq.read_table(bench.folder / "probe.parquet").column_names[0]

    few = rows.select(list(taken(rows, take).values()))
    con.register("few", few)
    con.execute(f"COPY (SELECT * FROM few) TO '{bench.folder}/e.parquet' (FORMAT parquet)")
    check(bench, "DuckDB, Parquet of Arrow's types", bench.folder / "e.parquet")


def random_rows(rng):
    """A table of all types of models, as Arrow has them."""
    count = rng.choice([0, 1, 7, 200])
    few = lambda make: [None if rng.random() < 0.2 else make() for _ in range(count)]
    floats = lambda: rng.choice([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), rng.uniform(-1e9, 1e9), 5e-324, 1.7976931348623157e308])
    single = lambda: float(numpy.float32(rng.choice([0.0, -0.0, 1.5, float("inf"), rng.uniform(-1e9, 1e9)])))
    text = lambda: rng.choice(["", "é", 'a "b", c', "two\nlines", "x" * rng.randrange(40), "😀", " "])
    at = lambda: rng.choice([0, -1, rng.randrange(-62135596800, 253402300800) * 10**6 + rng.randrange(10**6)])
    of = {
        "n32": (pa.int32(), lambda: rng.choice([-(2**31), 2**31 - 1, rng.randrange(-99, 99)])),
        "n64": (pa.int64(), lambda: rng.choice([-(2**63), 2**63 - 1, rng.randrange(-99, 99)])),
        "u64": (pa.uint64(), lambda: rng.choice([0, 2**64 - 1, rng.randrange(99)])),
        "f32": (pa.float32(), single),
        "f64": (pa.float64(), floats),
        "flag": (pa.bool_(), lambda: rng.random() < 0.5),
        "text": (pa.string(), text),
        "raw": (pa.binary(), lambda: rng.randbytes(rng.randrange(20))),
        "day": (pa.date32(), lambda: rng.randrange(-719162, 2932897)),
        "at": (pa.timestamp("us", "UTC"), at),
        "span": (pa.duration("us"), lambda: rng.randrange(-(10**15), 10**15)),
        "list": (pa.list_(pa.int64()), lambda: [rng.choice([None, rng.randrange(9)]) for _ in range(rng.randrange(4))]),
        "texts": (pa.list_(pa.string()), lambda: [text() for _ in range(rng.randrange(4))]),
        "struct": (
            pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.date32())]),
            lambda: {"a": rng.randrange(9), "b": text(), "c": rng.randrange(20000)},
        ),
        "structs": (
            pa.list_(pa.struct([("a", pa.int64()), ("b", pa.float64())])),
            lambda: [{"a": rng.randrange(9), "b": 1.5} for _ in range(rng.randrange(4))],
        ),
    }
    return pa.table({name: pa.array(few(make), kind) for name, (kind, make) in of.items()})


def written(bench):
    """What the command writes, read by all four."""
    rng, con = random.Random(76), duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    for turn in range(5 * ROUNDS):
        rows = random_rows(rng)
        source = f"s.{('arrow', 'parquet')[turn % 2]}"
        write_arrow(rows, bench.folder / source) if turn % 2 == 0 else pq.write_table(rows, bench.folder / source)
        # Lists of structs that are missing are no values of models.
        made = [name for name in rows.column_names if name not in ("list", "texts", "structs", "struct")]
        model = (
            "; ".join(f'output made_{name} = L["{name}"]' for name in made)
            + '; output upper = strings.upper(L["text"]); output sum = n64 & (n64 < 0); output later = day + 1'
        )
        for ending in ("arrow", "parquet"):
            args = ["eval", "-e", model, source, "--keep-all", "-o", f"w.{ending}"]
            done = bench.run(*args)
            if done.status != 0:
                bench.tally(f"written, {ending}", WRONG, brief(done.err), again(*args))
                continue
            expected = {name: values(rows[name]) for name in rows.column_names} | {f"made_{name}": values(rows[name]) for name in made}
            expected["upper"] = [None if one is None else one.upper() for one in expected["text"]]
            expected["sum"] = [one if one is not None and one < 0 else None for one in expected["n64"]]
            expected["later"] = [
                None if one is None else one if one == "9999-12-31" else (datetime.date.fromisoformat(one) + datetime.timedelta(1)).isoformat()
                for one in expected["day"]
            ]
            path = bench.folder / f"w.{ending}"
            for reader, read in readers(con, path, ending).items():
                for name, column in expected.items():
                    kind = f"written, {ending}, read by {reader}"
                    if name == "later" and "9999-12-31" in expected["day"]:
                        continue
                    try:
                        found = [plain(one) for one in read(name)]
                    except BaseException as error:
                        bench.tally(kind, WRONG, f"`{name}`: {type(error).__name__}: {error}", f"{again(*args)[:200]}")
                        continue
                    spans = [one[1] if isinstance(one, tuple) and one[0] == "span" else one for one in column]
                    alike = same(found, column) or reader == "DuckDB" and same(found, spans)
                    bench.tally(kind, RIGHT if alike else WRONG, f"`{name}`: {differing(found, column)}", f"{again(*args)[:200]}")


def readers(con, path, ending):
    held = {}

    def once(name, make):
        if name not in held:
            held[name] = make()
        return held[name]

    arrow = lambda: pq.ParquetFile(path).read() if ending == "parquet" else ipc.open_file(path).read_all()
    frame = lambda: pandas.read_parquet(path, dtype_backend="pyarrow") if ending == "parquet" else pandas.read_feather(path, dtype_backend="pyarrow")
    lines = lambda: polars.read_parquet(path) if ending == "parquet" else polars.read_ipc(path)

    def duck(name):
        if ending == "parquet":
            return [row[0] for row in con.execute(f"SELECT \"{name}\" FROM read_parquet('{path}')").fetchall()]
        table = once("arrow of DuckDB", lambda: feather.read_table(path))
        con.register("held", table)
        return [row[0] for row in con.execute(f'SELECT "{name}" FROM held').fetchall()]

    return {
        "pyarrow": lambda name: once("pyarrow", arrow)[name].to_pylist(),
        "pandas": lambda name: once("pandas", frame)[name].tolist(),
        "Polars": lambda name: once("Polars", lines)[name].to_list(),
        "DuckDB": duck,
    }


if __name__ == "__main__":
    main("types of Arrow", of_pyarrow, of_nesting, of_pandas, of_polars, of_duckdb, written)
