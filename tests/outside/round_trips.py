"""Random frames through the Python package: what comes back for what went in, in pandas, Polars, pyarrow and NumPy.

A frame has columns of all types, with gaps, in chunks and slices; a frame of pandas has an index of some kind. It goes through `table`, calls and `run`
of a model with inputs that are outputs too, computed outputs and a constant. Values, types and the index must be those that the rules below give,
which work on values of Python alone; or the frame is refused by a message that names the column and the type. Every frame has a seed of its own,
which the message of a wrong one says.

    PYTHON tests/outside/round_trips.py [--count 2000] [--seed 1] [--only FRAME]
"""

import argparse
import collections
import datetime
import decimal
import random
import sys
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import cembra

UTC = datetime.timezone.utc
MICROSECOND = datetime.timedelta(microseconds=1)
# The most wrong cases of a kind that are shown.
SHOWN = 4

# --- The rules: which type an output has. They are here alone. ---

# The packages whose columns an output keeps as they are, if it is an input and nothing else: types that are not the model's (`int16`, categories,
# zones) stay. Columns of the others come back as of the model's type.
CARRYING = {"pandas", "polars", "pyarrow"}
# The columns that give an output of pandas its family: "call" for the columns of all inputs, "output" for those that it is computed from.
FAMILY_OF = "output"
# True if whole numbers go into `f64`, and numbers into wider types, where each value is one of the wider type's.
WIDENS = True

PANDAS_TYPES = {
    # The type of an output by its type in the model: without gaps, with gaps.
    "numpy": {
        "bool": ("bool", "boolean"),
        "i32": ("int32", "Int32"),
        "i64": ("int64", "Int64"),
        "u64": ("uint64", "UInt64"),
        "f32": ("float32", "float32"),
        "f64": ("float64", "float64"),
        "text": ("str", "str"),
        "bytes": ("object", "object"),
        "date": ("datetime64[s]", "datetime64[s]"),
        "timestamp": ("datetime64[us, UTC]", "datetime64[us, UTC]"),
        "duration": ("timedelta64[us]", "timedelta64[us]"),
    },
    "nullable": {
        "bool": ("boolean", "boolean"),
        "i32": ("Int32", "Int32"),
        "i64": ("Int64", "Int64"),
        "u64": ("UInt64", "UInt64"),
        "f32": ("Float32", "Float32"),
        "f64": ("Float64", "Float64"),
        "text": ("string", "string"),
        "bytes": ("object", "object"),
        "date": ("datetime64[s]", "datetime64[s]"),
        "timestamp": ("datetime64[us, UTC]", "datetime64[us, UTC]"),
        "duration": ("timedelta64[us]", "timedelta64[us]"),
    },
    "arrow": {
        "bool": ("bool[pyarrow]",) * 2,
        "i32": ("int32[pyarrow]",) * 2,
        "i64": ("int64[pyarrow]",) * 2,
        "u64": ("uint64[pyarrow]",) * 2,
        "f32": ("float[pyarrow]",) * 2,
        "f64": ("double[pyarrow]",) * 2,
        "text": ("string[pyarrow]",) * 2,
        "bytes": ("binary[pyarrow]",) * 2,
        "date": ("date32[day][pyarrow]",) * 2,
        "timestamp": ("timestamp[us, tz=UTC][pyarrow]",) * 2,
        "duration": ("duration[us][pyarrow]",) * 2,
    },
}
POLARS_TYPES = {
    "bool": pl.Boolean(),
    "i32": pl.Int32(),
    "i64": pl.Int64(),
    "u64": pl.UInt64(),
    "f32": pl.Float32(),
    "f64": pl.Float64(),
    "text": pl.String(),
    "bytes": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "duration": pl.Duration("us"),
    "[f64]": pl.List(pl.Float64()),
}
ARROW_TYPES = {
    "bool": pa.bool_(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "u64": pa.uint64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "duration": pa.duration("us"),
    "[f64]": pa.list_(pa.float64()),
}
NUMPY_TYPES = {
    "bool": "bool",
    "i32": "int32",
    "i64": "int64",
    "u64": "uint64",
    "f32": "float32",
    "f64": "float64",
    "text": "object",
    "bytes": "object",
    "date": "datetime64[D]",
    "timestamp": "datetime64[us]",
    "duration": "timedelta64[us]",
    "[f64]": "object",
}


def family_of(columns):
    """The family of outputs that are computed of these columns: Arrow's if one is Arrow's, else the nullable if one is, else NumPy's."""
    families = {column.kind.family for column in columns}
    return next(family for family in ("arrow", "nullable", "numpy") if family in families or family == "numpy")


def without_size(spelled):
    """The name of a type of Arrow's with 64-bit offsets, or as views, as that of the usual one."""
    return spelled.replace("large_", "").replace("_view", "")


def has_type(made, output, frame):
    """True if an output's column has the type that the rules give; else a text that says which it should have."""
    carried = output.carried
    if frame.package == "pandas":
        if carried is not None:
            return made.dtype == carried.made.dtype or f"{made.dtype}, not {carried.made.dtype} as it went in"
        if output.qtype.startswith("["):
            found = without_size(str(made.dtype))
            return (found.startswith("list<") and found.endswith(": double>[pyarrow]")) or f"{made.dtype}, not a list of Arrow"
        # An output that needs no column is of the family of all that are read.
        family = family_of(output.columns if FAMILY_OF == "output" and output.columns else frame.read_columns())
        wanted = PANDAS_TYPES[family][output.qtype][any(value is None for value in output.values)]
        return without_size(str(made.dtype)) == wanted or f"{made.dtype}, not {wanted}"
    if frame.package == "polars":
        wanted = carried.made.dtype if carried is not None else POLARS_TYPES[output.qtype]
        return made.dtype == wanted or f"{made.dtype}, not {wanted}"
    if frame.package == "pyarrow":
        wanted = str(carried.made.type if carried is not None else ARROW_TYPES[output.qtype])
        same = without_size(str(made.type)).replace("element:", "item:") == without_size(wanted).replace("element:", "item:")
        return same or f"{made.type}, not {wanted}"
    return str(made.dtype) == NUMPY_TYPES[output.qtype] or f"{made.dtype}, not {NUMPY_TYPES[output.qtype]}"


# --- Values. ---


def plain(value):
    """A value of any of the packages as one of Python's, that is equal to another only if both are the same: floats by their digits, NaN too."""
    if value is None or value is pd.NA or value is pd.NaT or value is np.ma.masked:
        return None
    if isinstance(value, (pd.Timestamp, pd.Timedelta)):
        value = value.to_pydatetime() if isinstance(value, pd.Timestamp) else value.to_pytimedelta()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        value = None if np.isnat(value) else value.astype("M8[D]" if value.dtype == "M8[D]" else value.dtype.str[1:2] + "8[us]").item()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, datetime.datetime):
        return (value.replace(tzinfo=UTC) if value.tzinfo is None else value).astimezone(UTC)
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, (pa.Scalar,)):
        return plain(value.as_py())
    if isinstance(value, (list, tuple, np.ndarray, pl.Series, pa.Array)):
        return [plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return value


def found_values(made, output, frame):
    """The values of a column that came back."""
    if frame.package == "pandas":
        values = [plain(value) for value in made.array]
        # A gap of NumPy's floats and texts is NaN.
        is_of_objects = made.dtype == object or isinstance(made.dtype, pd.CategoricalDtype)
        if (output.qtype in ("f32", "f64", "text", "bytes") or is_of_objects) and not isinstance(made.dtype, pd.ArrowDtype):
            values = [None if value == ("float", "nan") else value for value in values]
    elif frame.package == "polars":
        values = [plain(value) for value in made.to_list()]
    elif frame.package == "pyarrow":
        values = [plain(value) for value in made.to_pylist()]
    else:
        mask = np.ma.getmaskarray(made)
        values = [None if hidden else plain(value) for value, hidden in zip(np.ma.getdata(made), mask)]
    if output.qtype == "date":
        values = [value.date() if isinstance(value, datetime.datetime) and value.time() == datetime.time() else value for value in values]
    return values


RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63, "uint8": -8, "uint16": -16, "uint32": -32, "uint64": -64}


def integer(rng, name):
    """A number of an integer type, so that one more is one of it too. Numbers that no float has are usual."""
    bits = abs(RANGES[name])
    low, high = (0, 2**bits - 2) if RANGES[name] < 0 else (-(2**bits), 2**bits - 2)
    usual = [0, 1, 7, -1, low, high, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 + 1]
    return rng.choice([one for one in usual if low <= one <= high] + [rng.randint(low, high)] * 3)


def moment(rng, unit):
    """A moment whose fraction the unit has."""
    seconds = rng.randrange(-(10**9), 2 * 10**9)
    step = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]
    return datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=seconds, microseconds=rng.randrange(0, 10**6, step))


def length(rng, unit):
    step = {"s": 10**6, "ms": 1000, "us": 1, "ns": 1}[unit]
    return rng.choice([-1, 1]) * step * rng.randrange(10**9 if step == 1 else 10**6) * MICROSECOND


def text(rng):
    return rng.choice(["", "a", "größe", "x" * 40, "\U0001f332", "b\0c", str(rng.random())])


def float64(rng):
    return rng.choice([0.1, -0.0, 1e300, 5e-324, float("inf"), 2.0**53 + 2.0, rng.uniform(-1e6, 1e6)])


def float32(rng):
    return rng.choice([0.5, -0.0, 1.25, float("-inf"), rng.randrange(2**20) / 1024])


def day(rng):
    return datetime.date.fromordinal(rng.randrange(700_000, 760_000))


# --- Kinds of columns. ---

Kind = collections.namedtuple("Kind", "package family name qtype value make has_gaps has_nan", defaults=(True, False))
KINDS = []


def kind(*args, **more):
    KINDS.append(Kind(*args, **more))


def cut(rng, count):
    """Sizes of chunks that are as many together; some are empty."""
    edges = sorted(rng.randrange(count + 1) for _ in range(rng.choice([0, 0, 1, 3])))
    return [high - low for low, high in zip([0, *edges], [*edges, count])]


def qtype_of_integer(name):
    return {"uint64": "u64", "int64": "i64", "uint32": "i64"}.get(name, "i32")


def naive(value):
    return None if value is None else value.replace(tzinfo=None)


def pandas_kinds():
    def numpy(name, qtype, value, dtype=None, before=lambda value: value, **more):
        kind("pandas", "numpy", name, qtype, value, lambda rng, values: pd.Series([before(value) for value in values], dtype=dtype or name), **more)

    for name in RANGES:
        numpy(name, qtype_of_integer(name), lambda rng, name=name: integer(rng, name), has_gaps=False)
        nullable = name.capitalize().replace("Ui", "UI")
        make = lambda rng, values, nullable=nullable: pd.Series(pd.array(values, dtype=nullable))  # noqa: E731
        kind("pandas", "nullable", nullable, qtype_of_integer(name), lambda rng, name=name: integer(rng, name), make)
    numpy("bool", "bool", lambda rng: rng.random() < 0.5, has_gaps=False)
    numpy("float32", "f32", float32)
    numpy("float64", "f64", float64)
    numpy("str", "text", text)
    numpy("object of text", "text", text, dtype=object)
    numpy("object of bytes", "bytes", lambda rng: text(rng).encode(), dtype=object)
    numpy("object of dates", "date", day, dtype=object)
    numpy("object of integers", "i64", lambda rng: integer(rng, "int64"), dtype=object)
    numpy("category of text", "text", text, dtype="category")
    numpy("category of integers", "i64", lambda rng: integer(rng, "int64"), before=lambda value: value, dtype="category", has_gaps=False)
    for unit in ["s", "ms", "us", "ns"]:
        numpy(f"datetime64[{unit}]", "timestamp", lambda rng, unit=unit: moment(rng, unit), before=naive)
        numpy(f"timedelta64[{unit}]", "duration", lambda rng, unit=unit: length(rng, unit))
    for zone in ["UTC", "Europe/Zurich"]:
        make = lambda rng, values, zone=zone: pd.Series(values, dtype="datetime64[us, UTC]").dt.tz_convert(zone)  # noqa: E731
        kind("pandas", "numpy", f"datetime64[us, {zone}]", "timestamp", lambda rng: moment(rng, "us"), make)
    kind("pandas", "nullable", "boolean", "bool", lambda rng: rng.random() < 0.5, lambda rng, values: pd.Series(pd.array(values, dtype="boolean")))
    for name, qtype, value in [("Float32", "f32", float32), ("Float64", "f64", float64), ("string[python]", "text", text), ("string[pyarrow]", "text", text)]:
        kind("pandas", "nullable", name, qtype, value, lambda rng, values, name=name: pd.Series(pd.array(values, dtype=name)))
    for of, qtype, value, _ in arrow_types():
        make = lambda rng, values, of=of: pd.Series(pd.array(pa.array(values, of), dtype=pd.ArrowDtype(of)))  # noqa: E731
        # pandas takes NaN for a gap in its types of Arrow too, and makes it one where it computes.
        kind("pandas", "arrow", f"{of}[pyarrow]", qtype, value, make, has_gaps=qtype != "[f64]")


def arrow_types():
    """Types of Arrow, with the model's type, and how a value is made."""
    for name in RANGES:
        yield pa.type_for_alias(name), qtype_of_integer(name), lambda rng, name=name: integer(rng, name), False
    yield pa.bool_(), "bool", lambda rng: rng.random() < 0.5, False
    yield pa.float32(), "f32", float32, True
    yield pa.float64(), "f64", float64, True
    for of in [pa.string(), pa.large_string()]:
        yield of, "text", text, False
    for of in [pa.binary(), pa.large_binary()]:
        yield of, "bytes", lambda rng: text(rng).encode(), False
    yield pa.date32(), "date", day, False
    for unit in ["s", "ms", "us", "ns"]:
        yield pa.timestamp(unit, tz="UTC"), "timestamp", lambda rng, unit=unit: moment(rng, unit), False
        yield pa.duration(unit), "duration", lambda rng, unit=unit: length(rng, unit), False
    yield pa.timestamp("us", tz="Europe/Zurich"), "timestamp", lambda rng: moment(rng, "us"), False
    yield pa.list_(pa.float64()), "[f64]", lambda rng: [float64(rng) for _ in range(rng.randrange(3))], False


def arrow_kinds():
    def chunked(rng, values, of):
        # Values before and after, so that a column is a slice of a larger one.
        before, parts, at = rng.choice([0, 3]), [], 0
        for size in cut(rng, len(values)):
            part = pa.array([None] * before + values[at : at + size] + [None], of)
            parts.append(part.slice(before, size))
            at += size
        return pa.chunked_array(parts, of)

    for of, qtype, value, has_nan in arrow_types():
        kind("pyarrow", "arrow", str(of), qtype, value, lambda rng, values, of=of: chunked(rng, values, of), has_gaps=qtype != "[f64]", has_nan=has_nan)
    for index in [pa.int8(), pa.int32()]:
        make = lambda rng, values, index=index: pa.chunked_array([pa.array(values, pa.string()).dictionary_encode().cast(pa.dictionary(index, pa.string()))])  # noqa: E731
        kind("pyarrow", "arrow", f"dictionary of {index}", "text", text, make)


def polars_kinds():
    def series(rng, values, of):
        parts, at = [], 0
        for size in cut(rng, len(values)):
            parts.append(pl.Series([None] + values[at : at + size] + [None], dtype=of).slice(1, size))
            at += size
        return pl.concat(parts, rechunk=False)

    def add(of, qtype, value, **more):
        kind("polars", "polars", str(of), qtype, value, lambda rng, values, of=of: series(rng, values, of), **more)

    for name in RANGES:
        of = getattr(pl, name.capitalize().replace("Ui", "UI"))
        add(of, qtype_of_integer(name), lambda rng, name=name: integer(rng, name))
    add(pl.Boolean, "bool", lambda rng: rng.random() < 0.5)
    add(pl.Float32, "f32", float32, has_nan=True)
    add(pl.Float64, "f64", float64, has_nan=True)
    add(pl.String, "text", text)
    add(pl.Binary, "bytes", lambda rng: text(rng).encode())
    add(pl.Categorical, "text", text)
    add(pl.Enum(["a", "b", "größe"]), "text", lambda rng: rng.choice(["a", "b", "größe"]))
    add(pl.Date, "date", day)
    for unit in ["ms", "us", "ns"]:
        add(pl.Datetime(unit, "UTC"), "timestamp", lambda rng, unit=unit: moment(rng, unit))
        add(pl.Duration(unit), "duration", lambda rng, unit=unit: length(rng, unit))
    kind("polars", "polars", "Datetime without a zone", "timestamp", lambda rng: moment(rng, "us"), lambda rng, values: series(rng, list(map(naive, values)), pl.Datetime("us")))
    add(pl.Datetime("us", "Europe/Zurich"), "timestamp", lambda rng: moment(rng, "us"))
    add(pl.List(pl.Float64), "[f64]", lambda rng: [float64(rng) for _ in range(rng.randrange(3))], has_gaps=False)


def numpy_kinds():
    def laid(rng, array):
        """The array in another order of memory, or as a part of a larger one."""
        choice = rng.randrange(4)
        if choice == 1:
            return array[::-1].copy()[::-1]
        if choice == 2:
            return np.repeat(array, 2)[::2]
        if choice == 3 and array.dtype.kind in "iufmM":
            return array.astype(array.dtype.newbyteorder())
        return array

    def add(name, qtype, value, dtype=None, filler=0, before=lambda value: value, **more):
        dtype = np.dtype(dtype or name)

        def array(values):
            made = np.empty(len(values), dtype)
            made[:] = [filler if value is None else before(value) for value in values]
            return made

        def make(rng, values):
            mask = [value is None for value in values]
            if more.get("has_gaps") is False or (dtype.kind in "Mm" and rng.random() < 0.5) or dtype.kind == "O" or not any(mask):
                if dtype.kind in "Mm" and any(mask):
                    made = array(values)
                    made[mask] = "NaT"
                    return laid(rng, made)
                return laid(rng, array(values))
            return np.ma.MaskedArray(laid(rng, array(values)), mask)

        kind("numpy", "array", name, qtype, value, make, **more)

    for name in RANGES:
        add(name, qtype_of_integer(name), lambda rng, name=name: integer(rng, name))
    add("bool", "bool", lambda rng: rng.random() < 0.5)
    add("float32", "f32", float32, has_nan=True)
    add("float64", "f64", float64, has_nan=True)
    add("float16", "f32", lambda rng: rng.choice([0.5, -2.0, 1024.0]))
    add("object of text", "text", text, dtype=object, filler=None)
    add("object of bytes", "bytes", lambda rng: text(rng).encode(), dtype=object, filler=None)
    add("object of dates", "date", day, dtype=object, filler=None)
    add("U", "text", lambda rng: text(rng).strip("\0"), dtype="U60", filler="")
    add("datetime64[D]", "date", day)
    for unit in ["s", "ms", "us", "ns"]:
        add(f"datetime64[{unit}]", "timestamp", lambda rng, unit=unit: moment(rng, unit), before=naive)
        add(f"timedelta64[{unit}]", "duration", lambda rng, unit=unit: length(rng, unit))


# --- Frames and models. ---

# Outputs that are computed: the text, the type of the result, and the value, of values that are not missing.
COMPUTED = {
    "bool": [("not {}", "bool", lambda value: not value)],
    "i32": [("{} + 1", "i32", lambda value: value + 1)],
    "i64": [("{} + 1", "i64", lambda value: value + 1)],
    "f32": [("{} * 2.0", "f32", lambda value: value * 2.0)],
    "f64": [("{} * 2.0", "f64", lambda value: value * 2.0), ("{} > 1.0", "mask", lambda value: value > 1.0)],
    "text": [('{} + "!"', "text", lambda value: value + "!"), ("strings.length({})", "i64", len)],
    "bytes": [('strings.join({}, b"!")', "bytes", lambda value: value + b"!")],
    "date": [("{} + 1", "date", lambda value: value + datetime.timedelta(days=1))],
    "timestamp": [("{} + duration{{1us}}", "timestamp", lambda value: value + MICROSECOND)],
    "duration": [("{} + duration{{1us}}", "duration", lambda value: value + MICROSECOND)],
}
WIDER = {"i32": ["i64", "f64", "f32"], "i64": ["f64", "f32"], "f32": ["f64"], "u64": ["f64", "f32"]}
# The binary digits of floats.
DIGITS = {"f64": 53, "f32": 24}


def laid_series(rng, kind, values):
    """A series, sometimes a part of a larger one, in the other order, or of chunks."""
    choice = rng.randrange(5)
    if choice == 0:
        return kind.make(rng, [values[0], values[-1], *values, values[0]]).iloc[2:-1]
    if choice == 1:
        return kind.make(rng, values[::-1]).iloc[::-1]
    if choice == 2 and kind.family == "arrow":
        at = rng.randrange(len(values) + 1)
        return pd.concat([kind.make(rng, values[:at]), kind.make(rng, values[at:])])
    return kind.make(rng, values)


class Column:
    """A column of a frame: its values, the object of its package, and what the model declares of it."""

    def __init__(self, rng, name, kind, count):
        self.name, self.kind = name, kind
        share = rng.choice([0.0, 0.0, 0.3, 1.0]) if kind.has_gaps else 0.0
        self.values = [None if rng.random() < share else kind.value(rng) for _ in range(count)]
        if kind.has_nan and rng.random() < 0.5:
            self.values = [float("nan") if value is not None and rng.random() < 0.2 else value for value in self.values]
        self.made = laid_series(rng, kind, self.values) if kind.package == "pandas" and count else kind.make(rng, self.values)
        self.has_gaps = any(value is None for value in self.values)
        self.qtype = kind.qtype
        self.is_widened = False
        spelled = "[f64?]" if kind.qtype == "[f64]" else f"{kind.qtype}?"
        # A column of objects says its type by its elements: without one it must be declared. Objects that are numbers are of no one type.
        says_nothing = kind.name.startswith("object") and (not any(value is not None for value in self.values) or "integers" in kind.name)
        self.declared = spelled if says_nothing or rng.random() < 0.4 else None
        if not self.has_gaps and self.declared is not None and rng.random() < 0.5 and kind.qtype != "[f64]":
            self.declared = kind.qtype
        # NaN of pandas is a gap, of which a column without one knows nothing.
        wider = WIDER.get(kind.qtype) if WIDENS and kind.name != "object of integers" else None
        if wider and kind.name.lower().startswith("uint"):
            wider = wider + ["u64"]
        if wider and rng.random() < 0.15:
            self.qtype, self.is_widened = rng.choice(wider), True
            self.declared = f"{self.qtype}?"

    def fits(self):
        """True if each value is one of the model's type."""
        if not self.is_widened or self.qtype not in DIGITS or self.kind.qtype == "f32":
            return True
        odd = (abs(value) // (abs(value) & -abs(value)) for value in self.values if value)
        return all(one.bit_length() <= DIGITS[self.qtype] for one in odd)

    def model_values(self):
        return [float(value) if self.qtype in DIGITS and value is not None else value for value in self.values]


Output = collections.namedtuple("Output", "name qtype values text columns carried")


class Frame:
    """A random frame, the text of its model and the outputs that it must have."""

    def __init__(self, rng):
        self.package = rng.choice(["pandas"] * 5 + ["polars"] * 3 + ["pyarrow"] * 3 + ["numpy"] * 2)
        kinds = [kind for kind in KINDS if kind.package == self.package]
        if self.package == "pandas" and rng.random() < 0.8:
            family = rng.choice(["numpy", "nullable", "arrow"])
            kinds = [kind for kind in kinds if kind.family == family]
        self.count = rng.choice([0, 1, 2, 3, 7, 64, 65, 130])
        names = rng.sample(["a", "b", "net price", "class", "größe"], rng.randint(1, 4))
        self.columns = [Column(rng, name, rng.choice(kinds), self.count) for name in names]
        self.index = index(rng, self.count) if self.package == "pandas" else None
        for column in self.columns if self.package == "pandas" else []:
            # Without categories nothing says their type.
            if isinstance(column.made.dtype, pd.CategoricalDtype) and not len(column.made.cat.categories):
                column.made = column.made.cat.set_categories(["a"] if column.qtype == "text" else [1])
        if self.index is not None:
            for column in self.columns:
                column.made = column.made.set_axis(self.index)
        # The rows of a divisor that is zero fail.
        self.divisors = [rng.choice([0, 1, 7, -3]) if rng.random() < 0.4 else 5 for _ in range(self.count)]
        self.fails = rng.random() < 0.4
        self.outputs = self.made_outputs(rng)

    def read_columns(self):
        """The columns that some output needs."""
        needed = {id(column) for output in self.outputs for column in output.columns}
        return [column for column in self.columns if id(column) in needed]

    def made_outputs(self, rng):
        made = []
        for column in self.columns:
            spelled, values = f'L["{column.name}"]', column.model_values()
            if rng.random() < 0.8:
                is_carried = self.package in CARRYING and not column.is_widened
                made.append(Output(f"same {column.name}", column.qtype, values, spelled, [column], column if is_carried else None))
            for written, qtype, compute in COMPUTED.get(column.qtype, []):
                if rng.random() < 0.8:
                    # A comparison with what is missing does not hold.
                    gap = False if qtype == "mask" else None
                    computed = [gap if value is None else compute(value) for value in values]
                    made.append(Output(f"{written[:3]} {column.name} {len(made)}", qtype.replace("mask", "bool"), computed, written.format(spelled), [column], None))
            if column.qtype == "u64":
                made.append(Output(f"filled {column.name}", "u64", [7 if value is None else value for value in values], f"{spelled} ?? u64{{7}}", [column], None))
            if column.qtype == "f64" and rng.random() < 0.5:
                made.append(Output(f"pair {column.name}", "[f64]", [[value, 2.5] for value in values], f"[{spelled}, 2.5]", [column], None))
        made.append(Output("seven", "f64", [7.0] * self.count, "7.0", [], None))
        if self.fails:
            quotients = [None if one == 0 else 100 // one for one in self.divisors]
            made.append(Output("quotient", "i64", quotients, "100 // divisor", [], None))
        return made

    def text(self):
        inputs = [f'input "{column.name}": {column.declared}' if column.declared else f'input "{column.name}"' for column in self.columns]
        inputs += ["input divisor: i64"] if self.fails else []
        return "\n".join(inputs + [f'output "{output.name}" = {output.text}' for output in self.outputs])

    def objects(self):
        """The columns by the names of inputs."""
        made = {column.name: column.made for column in self.columns}
        if self.fails:
            divisors = np.array(self.divisors, "i8")
            family = family_of(self.columns) if self.package == "pandas" else None
            made["divisor"] = {
                "pandas": lambda: pd.Series(divisors, index=self.index).astype({"numpy": "int64", "nullable": "Int64", "arrow": "int64[pyarrow]"}[family or "numpy"]),
                "polars": lambda: pl.Series(divisors),
                "pyarrow": lambda: pa.chunked_array([divisors]),
                "numpy": lambda: divisors,
            }[self.package]()
        return made

    def table(self, rng):
        """The columns as a table, sometimes a slice of a larger one, with a column that the model does not read."""
        columns = self.objects()
        if self.package == "pandas":
            made = pd.DataFrame(columns, index=self.index)[rng.sample(list(columns), len(columns))]
            return made.assign(unread=[object()] * self.count) if rng.random() < 0.2 else made
        if self.package == "polars":
            return pl.DataFrame(columns)
        return pa.table(columns)

    def kept(self):
        return [at for at, one in enumerate(self.divisors) if one != 0 or not self.fails]


def index(rng, count):
    """An index of some kind: unsorted, with labels twice, strings, dates, of two levels, with names."""
    labels = list(range(count))
    rng.shuffle(labels)
    some = [rng.randrange(max(count // 2, 1)) for _ in range(count)]
    return rng.choice(
        [
            lambda: pd.RangeIndex(count),
            lambda: pd.RangeIndex(5, 5 + 3 * count, 3, name="at"),
            lambda: pd.Index(labels),
            lambda: pd.Index(some, name="twice"),
            lambda: pd.Index([f"row {at}" for at in labels]),
            lambda: pd.Index([at / 2 for at in labels]),
            lambda: pd.MultiIndex.from_arrays([some, [f"b{at}" for at in labels]], names=["one", None]),
            lambda: pd.DatetimeIndex([pd.Timestamp(2024, 1, 1) + pd.Timedelta(hours=at) for at in labels], tz=rng.choice([None, "Europe/Zurich"]), name="time"),
            lambda: pd.CategoricalIndex([f"c{at}" for at in some]),
        ]
    )()


# --- The tally. ---


class Tally:
    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        self.shown = collections.Counter()
        self.only = None

    def right(self, kind, word="right"):
        self.counts[kind][word] += 1

    def wrong(self, kind, what, again=""):
        self.counts[kind]["wrong"] += 1
        # Doors are often wrong in the same way.
        reason = (kind.split(",")[0], what.split("row")[0][:70])
        self.shown[reason] += 1
        if self.shown[reason] <= SHOWN:
            print(f"wrong, {kind}: {what}\n    {again}", flush=True)

    def refused(self, kind, run, words, again=""):
        """A case that must end in an error of the package with each of the words, one of several where a word is a tuple."""
        try:
            made = run()
        except cembra.Error as error:
            said = str(error)
            lacking = [word for word in words if not any(one in said for one in (word if isinstance(word, tuple) else (word,)))]
            if lacking:
                return self.wrong(kind, f"the refusal lacks {lacking}: {said[:200]!r}", again)
            return self.right(kind, "refused")
        except Exception as error:
            return self.wrong(kind, f"{type(error).__name__} and no error of the package: {str(error)[:150]!r}", again)
        return self.wrong(kind, f"not refused: {str(made)[:150]!r}", again)

    def end(self):
        print("\n| part | cases | right | refused | wrong |\n|---|---:|---:|---:|---:|")
        total = collections.Counter()
        for kind, counts in self.counts.items():
            total.update(counts)
            print(f"| {kind} | {counts.total()} | {counts['right']} | {counts['refused']} | {counts['wrong']} |")
        print(f"| all | {total.total()} | {total['right']} | {total['refused']} | {total['wrong']} |")
        return 1 if total["wrong"] or not total["right"] else 0


# --- The parts. ---


def columns_of(made, frame, outputs):
    """The columns of a result by the names of outputs."""
    if frame.package == "pandas" and isinstance(made, pd.DataFrame):
        names, columns = list(made.columns), {name: made[name] for name in made.columns}
    elif isinstance(made, (pl.DataFrame, pa.Table)):
        names = list(made.columns if isinstance(made, pl.DataFrame) else made.column_names)
        columns = {name: made[name] for name in names}
    elif len(outputs) == 1:
        names, columns = [outputs[0].name], {outputs[0].name: made}
    else:
        columns = made._asdict()
        names = list(columns)
    assert names == [output.name for output in outputs], f"outputs {names}"
    return columns


CLASSES = {"pandas": pd.Series, "polars": pl.Series, "pyarrow": (pa.Array, pa.ChunkedArray), "numpy": np.ndarray}


def compared(tally, kind, made, frame, outputs, index, again):
    """Compares a result with what the rules give."""
    try:
        columns = columns_of(made, frame, outputs)
    except Exception as error:
        return tally.wrong(kind, f"not a result of these outputs: {type(made)} {error}"[:200], again)
    for output in outputs:
        column = columns[output.name]
        of = f"`{output.text}`, {'/'.join(column.kind.name for column in output.columns)}"
        if not isinstance(column, CLASSES[frame.package]):
            tally.wrong(kind, f"class: {of}: {type(column)}", again)
            continue
        typed = has_type(column, output, frame)
        if typed is not True:
            tally.wrong(kind, f"type: {of}: {typed}", again)
            continue
        found, expected = found_values(column, output, frame), [plain(value) for value in output.values]
        if found != expected:
            at = next((at for at, (one, other) in enumerate(zip(found, expected)) if one != other), min(len(found), len(expected)))
            tally.wrong(kind, f"value: {of}: row {at} of {len(expected)} ({len(found)}): {found[at : at + 1]}, not {expected[at : at + 1]}", again)
            continue
        if index is not None:
            try:
                pd.testing.assert_index_equal(column.index, index, exact="equiv")
            except AssertionError as error:
                tally.wrong(kind, f"index: {of}: {str(error)[:150]!r}", again)
                continue
        tally.right(kind)


def may_have_gaps(column):
    """True if a column can be missing in rows that fail, and stay of its type."""
    if isinstance(column.made, pl.Series):
        return True
    return isinstance(column.made, pd.Series) and (not isinstance(column.made.dtype, np.dtype) or column.made.dtype.kind in "fmMO")


def rows_of(outputs, rows, gaps=()):
    """The outputs in some of the rows; those of rows with gaps are missing."""
    made = []
    for output in outputs:
        gap = False if " > " in output.text else None
        values = [gap if at in gaps else output.values[at] for at in rows]
        is_carried = output.carried is not None and (not gaps or may_have_gaps(output.carried))
        made.append(output._replace(values=values, carried=output.carried if is_carried else None))
    return made


def doors(frame, rng, model):
    """The ways into a model: what is called, the outputs that it must give, and the index."""
    objects, every, kept = frame.objects(), range(frame.count), frame.kept()
    failed = set(every) - set(kept)
    missing = rows_of(frame.outputs, every, failed)
    if not failed:
        yield "call", lambda: model(**objects), rows_of(frame.outputs, every), frame.index
        yield "run", lambda: model.run(objects)[0], rows_of(frame.outputs, every), frame.index
        yield "run, 2 threads", lambda: model.run(objects, threads=2)[0], rows_of(frame.outputs, every), frame.index
    yield "run, missing", lambda: model.run(objects, on_error="missing")[0], missing, frame.index
    if frame.package != "numpy":
        table = frame.table(rng)
        if not failed:
            yield "table", lambda: model.table(table), rows_of(frame.outputs, every), frame.index
            yield "table, 2 threads", lambda: model.table(table, threads=2), rows_of(frame.outputs, every), frame.index
        yield "table, missing", lambda: model.table(table, on_error="missing"), missing, frame.index
        skipped = None if frame.index is None else frame.index[kept]
        yield "table, skip", lambda: model.table(table, on_error="skip"), rows_of(frame.outputs, kept), skipped


def frames(tally, count, seed):
    """Random frames through all doors."""
    for at in range(count):
        if tally.only is not None and at != tally.only:
            continue
        rng = random.Random(f"{seed} {at}")
        frame = Frame(rng)
        text, again = frame.text(), f"--seed {seed} --only {at}: {frame.package}, {frame.count} rows, {[column.kind.name for column in frame.columns]}"
        kind = f"{frame.package}, "
        try:
            model = cembra.compile(text)
        except cembra.Error as error:
            tally.wrong(kind + "compile", f"{error}"[:300], again)
            continue
        # A column that no output needs is not looked at.
        unfit = [column for column in frame.read_columns() if not column.fits()]
        for name, run, outputs, index in doors(frame, rng, model):
            if unfit:
                names = tuple(f"`{column.name}`" for column in unfit)
                tally.refused(kind + "unfit numbers", run, [names, tuple(column.qtype for column in unfit)], again)
                continue
            try:
                made = run()
            except Exception as error:
                tally.wrong(kind + name, f"{type(error).__name__}: {str(error).splitlines()[0][:200]!r}", again)
                continue
            compared(tally, kind + name, made, frame, outputs, index, again)


def constants(tally, count, seed):
    """Outputs that no column is read for have as many rows as there are."""
    for rows in [0, 1, 3, 130]:
        x = [float(at) for at in range(rows)]
        given = {
            "numpy": np.array(x),
            "pandas": pd.Series(x, index=[f"r{at}" for at in range(rows)], dtype="float64"),
            "polars": pl.Series(x, dtype=pl.Float64),
            "pyarrow": pa.array(x, pa.float64()),
        }
        for package, column in given.items():
            for text, values in [("input x: f64; output c = 3.5", [3.5] * rows), ('input x: f64; output c = "a"', ["a"] * rows), ("input x: f64; output c: f64? = missing", [None] * rows)]:
                model = cembra.compile(text)
                ways = {"call": lambda: model(column), "run": lambda: model.run({"x": column})[0], "run, 2 threads": lambda: model.run({"x": column}, threads=2)[0]}
                if package != "numpy":
                    table = {"pandas": lambda: column.to_frame("x"), "polars": lambda: column.to_frame("x"), "pyarrow": lambda: pa.table({"x": column})}[package]()
                    ways["table"] = lambda: model.table(table)["c"]
                for name, run in ways.items():
                    kind, again = f"constants, {package}", f"{name}, {rows} rows: {text}"
                    try:
                        made = run()
                        found = [None if value is None or value is pd.NA or value != value else value for value in made.tolist()] if package in ("numpy", "pandas") else made.to_pylist() if package == "pyarrow" else made.to_list()
                    except Exception as error:
                        tally.wrong(kind, f"{type(error).__name__}: {str(error)[:150]!r}", again)
                        continue
                    if not isinstance(made, CLASSES[package]):
                        tally.wrong(kind, f"class: {type(made)}", again)
                    elif found != values or (package == "pandas" and list(getattr(made, "index", [])) != list(column.index)):
                        tally.wrong(kind, f"found {found[:3]} in {len(found)} rows", again)
                    else:
                        tally.right(kind)


def indices(tally, count, seed):
    """Series with unlike indices are refused; like ones, and a table, are not."""
    rng = random.Random(seed)
    model = cembra.compile("input a, b: f64; a - b")
    for _ in range(max(count // 20, 20)):
        rows = rng.randint(2, 9)
        of = index(rng, rows)
        a = pd.Series([rng.random() for _ in range(rows)], index=of)
        order = list(range(rows))
        while order == list(range(rows)):
            rng.shuffle(order)
        others = {
            "the same": of,
            "a copy": of.copy(deep=True),
            "another order": of[order],
            "other labels": pd.Index([f"other {at}" for at in range(rows)]),
        }
        for name, other in others.items():
            b = pd.Series([rng.random() for _ in range(rows)], index=other)
            is_like = other.equals(of)
            for way, run in {"call": lambda: model(a, b), "run": lambda: model.run({"a": a, "b": b})[0], "names": lambda: model(b=b, a=a)}.items():
                kind, again = "unlike indices of pandas", f"{way}, {name}: {list(of)[:4]} {list(other)[:4]}"
                if not is_like:
                    tally.refused(kind, run, [(".align", ".to_numpy()"), "indices", ("`a`", "`b`")], again)
                    continue
                try:
                    made = run()
                    pd.testing.assert_series_equal(made, (a.reset_index(drop=True) - b.reset_index(drop=True)).set_axis(of), check_names=False)
                    tally.right(kind)
                except Exception as error:
                    tally.wrong(kind, f"{type(error).__name__}: {str(error)[:150]!r}", again)
            # The arrays themselves have no index.
            made = model(a, b.to_numpy())
            if made.tolist() == (a.to_numpy() - b.to_numpy()).tolist() and made.index.equals(of):
                tally.right("a Series beside an array")
            else:
                tally.wrong("a Series beside an array", f"{made.tolist()}", name)


def unknown_types(tally, count, seed):
    """Columns of types that no input can have: refused with the name and the type if they are read, and of no concern if they are not."""
    x = [1.0, 2.0]
    columns = {
        "pandas": {
            "complex128": pd.Series([1j, 2j]),
            ("decimal", "Decimal"): pd.Series([decimal.Decimal("1.5")] * 2),
            "period": pd.Series(pd.period_range("2024-01", periods=2, freq="M")),
            "interval": pd.Series(pd.interval_range(0, 2)),
            ("object", "mixed", "int"): pd.Series([1, "a"], dtype=object),
            ("Sparse", "sparse"): pd.Series(pd.arrays.SparseArray([1.0, 0.0])),
            ("decimal128", "Decimal128"): pd.Series([decimal.Decimal("1.5")] * 2, dtype=pd.ArrowDtype(pa.decimal128(5, 1))),
        },
        "polars": {
            "ecimal": pl.Series([decimal.Decimal("1.5")] * 2),
            ("Struct", "struct"): pl.Series([{"a": 1}] * 2),
            ("Time", "time"): pl.Series([datetime.time(1)] * 2),
            ("Int128", "int128"): pl.Series([1, 2], dtype=pl.Int128),
            ("Null", "null"): pl.Series([None, None]),
        },
        "pyarrow": {
            ("decimal128", "Decimal128"): pa.array([decimal.Decimal("1.5")] * 2),
            ("Struct", "struct"): pa.array([{"a": 1}] * 2),
            ("Time64", "time64"): pa.array([datetime.time(1)] * 2),
            ("Null", "null"): pa.nulls(2),
            ("Map", "map"): pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
        },
        "numpy": {
            "complex": np.array([1j, 2j]),
            ("longdouble", "float128"): np.array([1.0, 2.0], np.longdouble),
            ("void", "f8"): np.zeros(2, "f8,f8"),
        },
    }
    tables = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    floats = {"pandas": pd.Series(x), "polars": pl.Series(x), "pyarrow": pa.array(x), "numpy": np.array(x)}
    reads, reads_not = cembra.compile("input x: f64; output y = x; output z = odd"), cembra.compile("input x: f64; output y = x * 2.0")
    for package, all_of_it in columns.items():
        for word, column in all_of_it.items():
            given, again = {"x": floats[package], "odd": column}, f"{package}, {word}"
            tally.refused(f"unknown types, {package}", lambda: reads(**given), ["odd", word], f"call, {again}")
            tally.refused(f"unknown types, {package}", lambda: reads.run(given), ["odd", word], f"run, {again}")
            if package == "numpy":
                continue
            table = tables[package](given)
            tally.refused(f"unknown types, {package}", lambda: reads.table(table), ["odd", word], f"table, {again}")
            try:
                made = reads_not.table(table)["y"]
                found = made.to_pylist() if package == "pyarrow" else made.to_list()
                assert found == [2.0, 4.0], found
                tally.right(f"unknown types that are not read, {package}")
            except Exception as error:
                tally.wrong(f"unknown types that are not read, {package}", f"{type(error).__name__}: {str(error)[:150]!r}", again)
        tally.refused(f"gaps without `?`, {package}", lambda: gaps(package), ["`x`"], package)


def gaps(package):
    """A column with a gap, for an input that may not be missing."""
    model = cembra.compile("input x: i64; x + 1")
    column = {
        "pandas": lambda: pd.Series(pd.array([1, None], dtype="Int64")),
        "polars": lambda: pl.Series([1, None]),
        "pyarrow": lambda: pa.array([1, None]),
        "numpy": lambda: np.ma.MaskedArray([1, 2], [False, True]),
    }[package]()
    return model(column)


def dates(tally, count, seed):
    """Moments at midnight are dates, for an input that is one; others are refused."""
    model = cembra.compile("input d: date?; output same = d; output next = d + 1")
    days = [datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)]
    wanted = [days, [None if one is None else one + datetime.timedelta(days=1) for one in days]]

    def columns(values, unit):
        """The moments as columns of each package, with the type that dates come back in."""
        series = pd.Series(values, dtype=f"datetime64[{unit}]", index=list("zyx"))
        yield "a Series of pandas", series, "datetime64[s]"
        yield "a Series of Arrow's in pandas", pd.Series(pd.array(pa.array(values, pa.timestamp(unit)), dtype=pd.ArrowDtype(pa.timestamp(unit))), index=list("zyx")), "date32[day][pyarrow]"
        yield "an array of NumPy", series.to_numpy(), "datetime64[D]"
        yield "an array of pyarrow", pa.array(values, pa.timestamp(unit)), "date32[day]"
        if unit != "s":
            yield "a Series of Polars", pl.Series(values, dtype=pl.Datetime(unit)), "Date"

    def as_table(column):
        return pa.table({"d": column}) if isinstance(column, pa.Array) else column.to_frame("d")

    for unit in ["s", "ms", "us", "ns"]:
        moments = [None if one is None else datetime.datetime.combine(one, datetime.time()) for one in days]
        late = [moments[0], None, moments[2] + datetime.timedelta(seconds=1)]
        for (name, column, dtype), (_, unfit, _) in zip(columns(moments, unit), columns(late, unit)):
            for way in ["call", "run", "table"]:
                if way == "table" and isinstance(column, np.ndarray):
                    continue
                run = {"call": model, "run": lambda d: model.run({"d": d})[0], "table": lambda d: model.table(as_table(d))}[way]
                again = f"{way}, {name}, {unit}"
                tally.refused("moments into dates", lambda: run(unfit), ["`d`", "date"], again)
                try:
                    made = run(column)
                    for key, values in zip(["same", "next"], wanted):
                        made_column = made[key] if way == "table" else getattr(made, key)
                        found = [plain(value) for value in (made_column.tolist() if isinstance(made_column, np.ndarray) else made_column)]
                        found = [value.date() if isinstance(value, datetime.datetime) and value.time() == datetime.time() else value for value in found]
                        found_type = str(getattr(made_column, "dtype", None) or made_column.type)
                        has_index = not isinstance(column, pd.Series) or list(made_column.index) == list("zyx")
                        if found == values and found_type == dtype and has_index:
                            tally.right("moments into dates")
                        else:
                            tally.wrong("moments into dates", f"{found_type}: {found}", again)
                except Exception as error:
                    tally.wrong("moments into dates", f"{type(error).__name__}: {str(error)[:150]!r}", again)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for add in (pandas_kinds, arrow_kinds, polars_kinds, numpy_kinds):
        add()
    tally = Tally()
    tally.only = given.only
    for part in (frames,) if given.only is not None else (frames, constants, indices, unknown_types, dates):
        try:
            part(tally, given.count, given.seed)
        except Exception:  # A part that breaks off must not hide the others.
            tally.wrong(part.__name__, f"the script broke off: {traceback.format_exc()}")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
