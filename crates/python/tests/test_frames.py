"""Tests of columns and frames of pandas, Polars, pyarrow and NumPy: the types, indices, digits and missing values of outputs, and refused columns.
"""

import collections
import copy
import datetime
import decimal
import fractions
import json
import pickle
import types

import numpy as np
import pytest

import cembra

pytest.importorskip("numpy", "2.0")
pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas", "3.0")

# The least integer above 0 that `f64` does not have, and one of `u64` that it does not have either.
ODD, ODD_UNSIGNED = 2**53 + 1, 2**64 - 59
THREADS = [1, 2]
UTC = datetime.timezone.utc


def dtype_of(made):
    """Returns the type of a column, as its package writes it."""
    return str(made.type if isinstance(made, (pa.Array, pa.ChunkedArray)) else made.dtype)


def plain(made):
    """Returns the elements of a column as a list, with `None` for a missing element. In a pandas column of NumPy floats, NaN is missing."""
    if isinstance(made, pd.Series):
        return [None if missing else value for value, missing in zip(made.tolist(), made.isna())]
    return made.to_pylist() if isinstance(made, (pa.Array, pa.ChunkedArray)) else made.to_list() if isinstance(made, pl.Series) else made.tolist()


def arrow_series(values, of, **more):
    """Makes a pandas Series with an Arrow type."""
    return pd.Series(pd.array(pa.array(values, of), dtype=pd.ArrowDtype(of)), **more)


# What a call, `run` and `table` give for the one column `x` and the one output of a model.
DOORS = {
    "call": lambda model, x: model(x),
    "run": lambda model, x: model.run({"x": x})[0],
    "run, two threads": lambda model, x: model.run({"x": x}, threads=2, on_error="missing")[0],
    "run of a frame": lambda model, x: model.run(pd.DataFrame({"x": x}))[0],
    "table": lambda model, x: model.table(pd.DataFrame({"x": x}))[model.outputs[0]],
}


@pytest.fixture(params=DOORS)
def door(request):
    return DOORS[request.param]


# The families of pandas: digits, gaps and the index are kept.


@pytest.mark.parametrize(
    ["text", "column", "dtype", "expected"],
    [
        ("x + 0", pd.Series([ODD, 5]), "int64", [ODD, 5]),
        ("if x > 5 then x + 0 else missing", pd.Series([ODD, 5]), "Int64", [ODD, None]),
        ("if x > 5 then x + 0 else missing", pd.Series([7, 5], dtype="int16"), "Int32", [7, None]),
        ("x + 0", pd.Series([ODD, None], dtype="Int64"), "Int64", [ODD, None]),
        ("x ?? u64{0}", pd.Series([ODD_UNSIGNED, None], dtype="UInt64"), "UInt64", [ODD_UNSIGNED, 0]),
        ("x + 0", pd.Series([7, None], dtype="Int8"), "Int32", [7, None]),
        ("x + 0", arrow_series([ODD, None], pa.int64()), "int64[pyarrow]", [ODD, None]),
        ("input x: i64?; x + 0", pd.Series([ODD, None], dtype=object), "Int64", [ODD, None]),
        ("not x", pd.Series([True, False]), "bool", [False, True]),
        ("not x", pd.Series([True, None], dtype="boolean"), "boolean", [False, None]),
        ("not x", arrow_series([True, None], pa.bool_()), "bool[pyarrow]", [False, None]),
        ("not x", pd.Series([True, np.nan], dtype=object), "boolean", [False, None]),
        ("x > 1", pd.Series([1, None, 2], dtype="Int64"), "boolean", [False, False, True]),
        ("x > 1", pd.Series([1, 2]), "bool", [False, True]),
        ("x * 2.0", pd.Series([1.5, None]), "float64", [3.0, None]),
        ("x * 2.0", pd.Series([1.5, None], dtype="Float64"), "Float64", [3.0, None]),
        ("x * 2.0", pd.Series([1.5, None], dtype="float32"), "float32", [3.0, None]),
        ("x * 2.0", arrow_series([1.5, None], pa.float64()), "double[pyarrow]", [3.0, None]),
        ('x + "!"', pd.Series(["a", None], dtype="str"), "str", ["a!", None]),
        ('x + "!"', pd.Series(["a", np.nan], dtype=object), "str", ["a!", None]),
        ('x + "!"', pd.Series(["a", None], dtype="string"), "string", ["a!", None]),
        ('x + "!"', pd.Series(["a", None], dtype="category"), "str", ["a!", None]),
        ('x + "!"', arrow_series(["a", None], pa.large_string()), "string[pyarrow]", ["a!", None]),
        ('if x > 1 then "a" else missing', pd.Series([1, 2]), "str", [None, "a"]),
        ('if x > 1 then "a" else missing', pd.Series([1, 2], dtype="Int64"), "string", [None, "a"]),
        ('if x > 1 then "a" else missing', arrow_series([1, 2], pa.int64()), "string[pyarrow]", [None, "a"]),
    ],
)
def test_an_output_of_pandas_has_the_family_of_its_column(door, text, column, dtype, expected):
    column.index = range(len(column), 0, -1)
    made = door(cembra.compile(text), column)
    assert isinstance(made, pd.Series) and dtype_of(made) == dtype
    assert plain(made) == expected and made.index.equals(column.index)
    # A double of another integer compares as equal to no integer.
    assert [type(value) for value in plain(made) if value is not None] == [type(value) for value in expected if value is not None]


@pytest.mark.parametrize(
    ["categories", "text", "expected"],
    [
        ([1, 2, None], "x + 1", ["Int64", [2, 3, None]]),
        ([1.5, None], "x * 2.0", ["float64", [3.0, None]]),
        ([True, None], "not x", ["boolean", [False, None]]),
        ([datetime.date(2024, 1, 1), None], "x + 1", ["datetime64[s]", [pd.Timestamp("2024-01-02"), None]]),
        (pd.array([1, None], dtype="Int64"), "x + 1", ["Int64", [2, None]]),
        (pd.array(["a", None], dtype="string"), 'x + "!"', ["str", ["a!", None]]),
    ],
    ids=str,
)
def test_categories_of_any_type(door, categories, text, expected):
    column = pd.Series(pd.Categorical(categories), index=range(5, 5 + len(categories)))
    made = door(cembra.compile(text), column)
    assert [dtype_of(made), plain(made)] == expected and made.index.equals(column.index)


def test_each_output_has_the_family_of_the_columns_that_it_is_computed_from():
    model = cembra.compile(
        "input a: i64?, b: i64?, c: i64?; output p = a + 1; output q = b + 1; output r = c + 1; output pq = a + b; output qr = b + c; output all = a + b + c"
    )
    frame = pd.DataFrame({"a": [ODD, 2], "b": pd.array([1, None], dtype="Int64"), "c": arrow_series([None, 1], pa.int64())})
    made = model.table(frame)
    assert [dtype_of(made[name]) for name in made] == ["int64", "Int64", "int64[pyarrow]", "Int64", "int64[pyarrow]", "int64[pyarrow]"]
    assert plain(made["pq"]) == [ODD + 1, None] and plain(made["qr"]) == [None, None] and plain(made["p"]) == [ODD + 1, 3]


@pytest.mark.parametrize(
    ["a", "b", "dtype"],
    [
        (pd.Series([1, 2]), pl.Series([1, 2]), "int64[pyarrow]"),
        (pl.Series([1, 2]), pd.Series([1, 2]), "int64[pyarrow]"),
        (pa.array([1, 2]), pd.Series([1, 2]), "int64[pyarrow]"),
        (np.array([1, 2]), pd.Series([1, 2]), "int64"),
        (pd.Index([1, 2]), pd.Series([1, 2]), "int64"),
        (np.ma.MaskedArray([1, 2], [False, True]), pd.Series([1, 2]), "Int64"),
        (5, pd.Series([1, 2]), "int64"),
        (np.array([1, 2]), pl.Series([1, 2]), "Int64"),
        (pa.array([1, 2]), pl.Series([1, 2]), "int64"),
    ],
    ids=str,
)
def test_columns_of_several_packages_in_one_call(a, b, dtype):
    frames = [column for column in (a, b) if isinstance(column, pd.Series)]
    for column in frames:
        column.index = [8, 9]
    made = cembra.compile("input a: i64?, b: i64?; a + b")(a, b)
    assert dtype_of(made) == dtype and plain(made)[0] == (6 if isinstance(a, int) else 2)
    assert isinstance(made, pd.Series) == bool(frames)
    assert not frames or made.index.tolist() == [8, 9]


def test_nan_of_pandas_is_missing_and_that_of_others_is_a_number():
    model = cembra.compile("input x: f64?; output y = x ?? 5.0; output z = x / x")
    of = {
        "pandas": pd.Series([0.0, None]),
        "Float64": pd.Series([0.0, None], dtype="Float64"),
        "Polars": pl.Series([0.0, None]),
        "pyarrow": pa.array([0.0, None]),
    }
    for column in of.values():
        made = model(column)
        assert plain(made.y) == [0.0, 5.0]
    # What is computed as NaN stays a number where the type can tell the two apart.
    assert np.isnan(model(of["Float64"]).z.array._data[0]) and model(of["Float64"]).z.array._mask.tolist() == [False, True]
    assert np.isnan(model(of["Polars"]).z[0]) and model(of["Polars"]).z[1] is None
    assert plain(model(pl.Series([float("nan"), None])).y)[1] == 5.0 and np.isnan(model(pl.Series([float("nan"), None])).y[0])
    assert np.isnan(model(pa.array([float("nan")])).y[0].as_py())


def test_large_frames_keep_index_digits_and_gaps():
    rows = np.arange(200_000)
    frame = pd.DataFrame({"x": rows, "c": pd.Categorical((rows % 3).astype(str))}, index=rows[::-1])
    text = f'input x: i64; output y = if x % 7 == 3 then missing else x + {ODD}; output "kind" = c'
    for threads in THREADS:
        made = cembra.compile(text).table(frame, threads=threads)
        assert made.index.equals(frame.index) and dtype_of(made.y) == "Int64"
        np.testing.assert_array_equal(made.y.isna().to_numpy(), rows % 7 == 3)
        np.testing.assert_array_equal(made.y.fillna(0).to_numpy(), np.where(rows % 7 == 3, 0, rows + ODD))
        assert made.kind.dtype == frame.c.dtype and (made.kind.cat.codes == frame.c.cat.codes).all()


# The index.

INDICES = {
    "sorted": pd.Index(["c", "a", "b"]),
    "duplicates": pd.Index([1, 1, 2], name="n"),
    "several levels": pd.MultiIndex.from_tuples([(1, "a"), (2, "b"), (2, "a")], names=["k", "l"]),
    "moments": pd.date_range("2024-03-30", periods=3, freq="D", tz="Europe/Zurich"),
    "intervals": pd.interval_range(0, 3),
    "with NaN": pd.Index([1.0, np.nan, 2.0]),
    "categories": pd.CategoricalIndex(["a", "b", "a"]),
}


@pytest.mark.parametrize("kind", INDICES)
def test_the_index_is_kept(door, kind):
    column = pd.Series([3.0, 1.0, 2.0], index=INDICES[kind])
    made = door(cembra.compile("x * 2.0"), column)
    assert made.index.equals(column.index) and made.index.names == column.index.names and type(made.index) is type(column.index)
    assert plain(made) == [6.0, 2.0, 4.0]


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_parts_of_frames(rows):
    frame = pd.DataFrame({"x": np.arange(12.0), "y": np.arange(12.0)}, index=np.arange(12) * 10)
    for part in [frame.iloc[:rows], frame.iloc[::-4].iloc[:rows], frame[frame.x > 5].iloc[:rows]]:
        made = cembra.compile("output sum = x + y").table(part)
        assert isinstance(made, pd.DataFrame) and made.index.equals(part.index) and made["sum"].tolist() == (part.x * 2).tolist()


def test_assignment_to_a_sorted_or_filtered_frame():
    frame = pd.DataFrame({"x": [3, 1, 2]}, index=["c", "a", "b"])
    model = cembra.compile("output y = x * 10")
    for part in [frame.sort_values("x"), frame[frame.x != 1], frame.sample(3, random_state=1)]:
        part = part.copy()
        part["y"] = model.table(part)["y"]
        assert part.y.tolist() == (part.x * 10).tolist()
    assert frame.assign(y=lambda part: model(part.x)).y.tolist() == [30, 10, 20]
    grouped = frame.groupby(["p", "q", "p"])["x"].transform(model)
    assert grouped.tolist() == [30, 10, 20] and grouped.index.equals(frame.index)


def test_a_subclass_of_a_frame_and_labels_that_are_no_strings():
    class Special(pd.DataFrame):
        @property
        def _constructor(self):
            return Special

    assert cembra.compile("output y = x * 2.0").table(Special({"x": [1.5]}, index=["q"])).to_dict() == {"y": {"q": 3.0}}
    model = cembra.compile('output y = L["0"] * 2.0')
    assert model.table(pd.DataFrame({0: [1.0]})).y.tolist() == [2.0]
    # A label that is the name itself comes first.
    assert model.table(pd.DataFrame({0: [1.0], "0": [5.0]})).y.tolist() == [10.0]


UNLIKE = {
    "permuted": (list("xyz"), list("zyx")),
    "shifted": ([0, 1, 2], [1, 2, 3]),
    "duplicates": ([1, 1, 2], [1, 2, 2]),
    "levels": ([(1, "a"), (1, "b"), (2, "a")], [("a", 1), ("b", 1), ("a", 2)]),
    "zones": (pd.date_range("2024", periods=3), pd.date_range("2024", periods=3, tz="UTC")),
}


@pytest.mark.parametrize("kind", UNLIKE)
def test_series_of_unlike_indices_are_refused(kind):
    a, b = (pd.Series([1.0, 2.0, 3.0], index=pd.MultiIndex.from_tuples(index) if kind == "levels" else index) for index in UNLIKE[kind])
    model = cembra.compile("a - b")
    for evaluate in [lambda: model(a, b), lambda: model(b=b, a=a), lambda: model({"a": a, "b": b}), lambda: model.run({"a": a, "b": b}, threads=2)]:
        with pytest.raises(cembra.DataError, match="`a` and `b` are Series.*align"):
            evaluate()
    assert plain(model(a, b.to_numpy())) == [0.0, 0.0, 0.0] and model(a, b.to_numpy()).index.equals(a.index)
    same = model(a, a.copy())
    assert plain(same) == [0.0, 0.0, 0.0] and same.index.equals(a.index)


# Outputs that are inputs.

CARRIED = {
    "int8": pd.Series([1, 2], dtype="int8"),
    "uint16": pd.Series([1, 2], dtype="uint16"),
    "float16": pd.Series([1.5, 2.5], dtype="float16"),
    "Int8": pd.Series([1, None], dtype="Int8"),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "ordered categories": pd.Series(pd.Categorical(["a", None], categories=["b", "a", "z"], ordered=True)),
    "nanoseconds of a zone": pd.Series(pd.to_datetime(["2024-01-01 00:00:00.123456789", None]).tz_localize("Asia/Tokyo")),
    "naive seconds": pd.Series(np.array(["2024-01-01T01", "NaT"], "M8[s]")),
    "nanoseconds": pd.Series(np.array([1, -1], "m8[ns]")),
    "objects": pd.Series([datetime.date(2024, 1, 1), None], dtype=object),
    "decimal dates": arrow_series([datetime.date(2024, 1, 1), None], pa.date64()),
    "strings": pd.Series(["a", None], dtype="string"),
}


@pytest.mark.parametrize("kind", CARRIED)
@pytest.mark.parametrize("text", ["output w = x", "let a = x; output w = a"])
def test_a_carried_column_of_pandas_stays_as_it_is(door, text, kind):
    column = CARRIED[kind].set_axis(["q", "p"])
    made = door(cembra.compile(text), column)
    pd.testing.assert_series_equal(made, column.rename("w"))


def test_carried_columns_of_polars_and_pyarrow_stay_as_they_are():
    model = cembra.compile("output w = x; output z = [x]")
    for column in [
        pl.Series([1, 200], dtype=pl.UInt8),
        pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
        pl.Series(["a", None], dtype=pl.Categorical),
        pl.Series([datetime.datetime(2024, 1, 1), None], dtype=pl.Datetime("ns")),
    ]:
        made = model(column).w
        assert made.name == "w" and made.dtype == column.dtype and made.to_list() == column.to_list()
    for column in [
        pa.chunked_array([pa.array([1], pa.int8()), pa.array([None, 3], pa.int8())]),
        pa.array(["a", None, "a"]).dictionary_encode(),
        pa.array([1, None], pa.timestamp("ns", "Asia/Tokyo")),
        pa.array(["a", None], pa.string_view()),
    ]:
        made = model(column).w
        assert made.type == column.type and made.equals(column)


def test_a_carried_column_is_converted_where_a_declared_type_asks_for_it():
    for column, of in [(pd.Series([1, 2]), "float64"), (pl.Series([1, 2]), "Float64"), (pa.array([1, 2]), "double"), (np.array([1, 2]), "float64")]:
        made = cembra.compile("input x: f64; output w = x")(column)
        assert dtype_of(made) == of and plain(made) == [1.0, 2.0]
    days = cembra.compile("input x: date?; output w = x")(pd.Series(np.array(["2024-02-29", "NaT"], "M8[ns]")))
    assert dtype_of(days) == "datetime64[s]" and days[0] == pd.Timestamp("2024-02-29") and days.isna().tolist() == [False, True]


def test_a_carried_column_shares_no_memory_with_its_input():
    array, frame = np.array([1.0, 2.0]), pd.DataFrame({"x": pd.array([1, 2], dtype="Int64"), "y": [1.0, 2.0]})
    model = cembra.compile("output w = x")
    model(array)[0] = 99.0
    beside = cembra.compile("input x: f64, z: f64; output w = x; output v = z")(array, pd.Series([1.0, 2.0]))
    beside.w.array[0] = 99.0
    assert array.tolist() == [1.0, 2.0]
    made = cembra.compile("output w = x; output v = y").table(frame)
    made.loc[0, "v"] = 99.0
    frame.loc[0, "x"] = 77
    assert frame.y.tolist() == [1.0, 2.0] and made.w.tolist() == [1, 2]


# Rows that fail.

FAILING = """
    input x: i64, c: text
    output y = 100 // x
    output size = if y > 30 then "a" else "b"
    output day = date{2024-01-01} + y
    output float = 1.0 * y
    output all = [y]
    output record = {q: y}
    output one = 1
    output "kind" = c
"""


def failing_frame(dtype):
    return pd.DataFrame(
        {"x": pd.array([3, 0, 2, 0], dtype=dtype), "c": pd.Categorical(["u", "v", "u", "w"])}, index=INDICES["several levels"][[0, 1, 1, 2]]
    )


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ["dtype", "missing"],
    [
        ("int64", ["Int64", "str", "datetime64[s]", "float64"]),
        ("Int64", ["Int64", "string", "datetime64[s]", "Float64"]),
        ("int64[pyarrow]", ["int64[pyarrow]", "string[pyarrow]", "date32[day][pyarrow]", "double[pyarrow]"]),
    ],
)
def test_rows_of_pandas_that_fail_are_missing_or_left_out(dtype, missing, threads):
    model, frame = cembra.compile(FAILING), failing_frame(dtype)
    made = model.table(frame, on_error="missing", threads=threads)
    assert made.index.equals(frame.index) and [dtype_of(made[name]) for name in ["y", "size", "day", "float"]] == missing
    assert all(made[name].isna().tolist() == [False, True, False, True] for name in made)
    assert plain(made.y) == [33, None, 50, None] and plain(made.kind) == ["u", None, "u", None]
    left = model.table(frame, on_error="skip", threads=threads)
    assert left.index.equals(frame.index[[0, 2]]) and left.kind.tolist() == ["u", "u"] and left.kind.dtype == frame.c.dtype
    assert left.y.tolist() == [33, 50] and left.one.tolist() == [1, 1] and left["size"].tolist() == ["a", "a"] and left.float.tolist() == [33.0, 50.0]
    assert dtype_of(left.y) == dtype and [list(value) for value in left["all"]] == [[33], [50]] and left.record.tolist() == [{"q": 33}, {"q": 50}]


@pytest.mark.parametrize("threads", THREADS)
def test_rows_that_are_left_out_by_the_other_doors(threads):
    model, rows = cembra.compile("output y = 100 // x; output w = x"), [3, 0, 2, 0]
    series = pd.Series(rows, index=list("abcd"), dtype="int8")
    (y, w), failed, messages = model.run({"x": series}, on_error="skip", threads=threads)
    assert y.index.tolist() == w.index.tolist() == ["a", "c"] and (y.tolist(), w.tolist()) == ([33, 50], [3, 2]) and dtype_of(w) == "int8"
    assert failed == [1, 3] and all("division by zero" in message for message in messages)
    for column in [np.array(rows), pl.Series(rows), pa.array(rows), pa.chunked_array([rows[:1], rows[1:]])]:
        (y, w), failed, _ = model.run({"x": column}, on_error="skip", threads=threads)
        assert plain(y) == [33, 50] and plain(w) == [3, 2] and failed == [1, 3]
    assert model.table(pl.DataFrame({"x": rows}), on_error="skip", threads=threads).to_dict(as_series=False) == {"y": [33, 50], "w": [3, 2]}
    assert model.table(pa.table({"x": rows}), on_error="skip", threads=threads).to_pydict() == {"y": [33, 50], "w": [3, 2]}
    none = model.table(pd.DataFrame({"x": [0, 0]}, index=[7, 8]), on_error="skip", threads=threads)
    assert len(none) == 0 and list(none) == ["y", "w"] and dtype_of(none.y) == "int64"


def test_many_rows_that_are_left_out():
    rows = np.arange(100_000)
    frame = pd.DataFrame({"x": rows}, index=rows + 5)
    for threads in THREADS:
        made = cembra.compile("input x: i64; output y = 100000 // (x % 1000)").table(frame, on_error="skip", threads=threads)
        kept = frame[frame.x % 1000 != 0]
        assert made.index.equals(kept.index) and (made.y.to_numpy() == 100000 // (kept.x.to_numpy() % 1000)).all()


# Outputs without inputs.


@pytest.mark.parametrize(
    ["text", "expected"],
    [("3.0", 3.0), ('"a"', "a"), ("7", 7), ("1 < 2", True), ("date{2024-02-29}", datetime.date(2024, 2, 29))],
)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_constant_has_as_many_rows_as_the_columns(text, expected, rows):
    model, ones = cembra.compile(f"input x: f64; {text}"), np.ones(rows)
    for column in [ones, pl.Series(ones), pa.array(ones)]:
        for made in [model(column), model.run({"x": column}, threads=2)[0], model.run({"x": column}, on_error="skip")[0]]:
            assert type(made).__module__ == type(column).__module__ and plain(made) == [expected] * rows
    series = pd.Series(ones, index=list("abc")[:rows])
    for made in [model(series), model.run({"x": series})[0], model.table(pd.DataFrame({"x": series}))["result"]]:
        assert (
            made.index.equals(series.index)
            and plain(made) == [pd.Timestamp("2024-02-29") if isinstance(expected, datetime.date) else expected] * rows
        )


def test_values_of_one_row_are_outputs_of_all_rows():
    model = cembra.compile("input x: f64, s: f64?; output a = s; output b = 1")
    made = model(np.ones(2), 7.0)
    assert made.a.tolist() == [7.0, 7.0] and made.b.tolist() == [1, 1]
    made = model(pd.Series([1.0, 2.0], index=[4, 5]), pd.NA)
    assert made.a.isna().tolist() == [True, True] and made.a.index.tolist() == made.b.index.tolist() == [4, 5]
    # A frame without columns has rows as well.
    assert cembra.compile("output y = 3").table(pd.DataFrame(index=list("ab"))).y.to_dict() == {"a": 3, "b": 3}


def test_outputs_that_are_arrays_or_records():
    model = cembra.compile("input x: f64; output y = [x, x * 2.0]; output z = {a: x}")
    made = model(np.array([1.0, 2.0]))
    assert made.y.dtype == object and all(isinstance(row, np.ndarray) and row.dtype == np.float64 for row in made.y)
    assert [row.tolist() for row in made.y] == [[1.0, 2.0], [2.0, 4.0]] and made.z == [{"a": 1.0}, {"a": 2.0}]
    made = model(pd.Series([1.0, 2.0], index=["p", "q"]))
    assert pa.types.is_nested(made.y.dtype.pyarrow_dtype) and pa.types.is_struct(made.z.dtype.pyarrow_dtype)
    assert made.y.tolist() == [[1.0, 2.0], [2.0, 4.0]] and made.z.tolist() == [{"a": 1.0}, {"a": 2.0}] and made.z.index.tolist() == ["p", "q"]
    made = model(pl.Series([1.0, 2.0]))
    assert made.y.dtype == pl.List(pl.Float64) and made.y.to_list() == [[1.0, 2.0], [2.0, 4.0]] and made.z.dtype == pl.Struct({"a": pl.Float64})
    made = model(pa.array([1.0, 2.0]))
    assert made.y.to_pylist() == [[1.0, 2.0], [2.0, 4.0]] and made.z.to_pylist() == [{"a": 1.0}, {"a": 2.0}]


# Columns that are not read.

UNREAD_OF_PANDAS = {
    "objects of several types": pd.Series([1, "a"], dtype=object),
    "complex128": pd.Series([1j, 2]),
    "sparse": pd.Series(pd.arrays.SparseArray([0, 1])),
    "period": pd.Series(pd.period_range("2024", periods=2, freq="M")),
    "interval": pd.Series(pd.interval_range(0, 2)),
    "decimal": pd.Series([decimal.Decimal(1), None], dtype=object),
    "functions": pd.Series([len, print], dtype=object),
    "decimal128": arrow_series([decimal.Decimal("1.50"), None], pa.decimal128(5, 2)),
    "null": arrow_series([None, None], pa.null()),
}
UNREAD_OF_POLARS = {
    "Int128": pl.Series([1, 2], dtype=pl.Int128),
    "Null": pl.Series([None, None]),
    "Decimal": pl.Series([1, 2]).cast(pl.Decimal(10, 2)),
    "Object": pl.Series([len, print], dtype=pl.Object),
    "Time": pl.Series([datetime.time(1), None]),
    "Struct": pl.Series([{"a": 1}, {"a": 2}]),
}
UNREAD_OF_ARROW = {
    "decimal128(10, 2)": pa.array([decimal.Decimal("1.5"), None], pa.decimal128(10, 2)),
    "null": pa.nulls(2),
    "time32[s]": pa.array([1, 2], pa.time32("s")),
    "fixed_size_binary[2]": pa.array([b"ab", b"cd"], pa.binary(2)),
    "month_day_nano_interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
    "sparse_union": pa.UnionArray.from_sparse(pa.array([0, 0], pa.int8()), [pa.array([1.0, 2.0])]),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays([2], [1.5]),
}


@pytest.mark.parametrize("name", [*UNREAD_OF_PANDAS, *UNREAD_OF_POLARS, *UNREAD_OF_ARROW])
def test_a_column_that_is_not_read_may_have_any_type(name):
    model = cembra.compile("output y = x * 2.0")
    for of, table in [(UNREAD_OF_PANDAS, pd.DataFrame), (UNREAD_OF_POLARS, pl.DataFrame), (UNREAD_OF_ARROW, pa.table)]:
        if name in of:
            made = model.table(table({"odd": of[name], "x": [1.5, 2.5]}))
            assert plain(made["y"]) == [3.0, 5.0]
            assert plain(model.run({"odd": of[name], "x": np.array([1.5, 2.5])})[0]) == [3.0, 5.0]


def test_names_that_occur_twice_count_only_where_they_are_read():
    frame = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "o", "o"])
    assert cembra.compile("output y = x").table(frame).y.tolist() == [1.0]
    with pytest.raises(cembra.DataError, match="`o` is the name of 2 columns"):
        cembra.compile("output y = o").table(frame)
    table = pa.table([[1.0], [2.0], [3.0]], names=["x", "o", "o"])
    assert cembra.compile("output y = x").table(table).to_pydict() == {"y": [1.0]}
    with pytest.raises(cembra.DataError, match="`o` is the name of 2 columns"):
        cembra.compile("output y = o").table(table)


@pytest.mark.parametrize(
    ["column", "named"],
    [
        (np.array(["a"], np.dtypes.StringDType()), r"StringDType\(\)"),
        (np.array([1.5], "g"), "float128|longdouble|float96|float64"),
        (np.array([1j]), "complex128"),
        (np.zeros(1, [("a", "f8")]), r"\('a', '<f8'\)"),
        (np.array([1], "m8[Y]"), r"timedelta64\[Y\]"),
        (UNREAD_OF_PANDAS["period"], r"period\[M\]"),
        (UNREAD_OF_PANDAS["sparse"], r"Sparse\[int64, 0\]"),
        (UNREAD_OF_PANDAS["interval"], r"interval\[int64, right\]"),
        (UNREAD_OF_PANDAS["decimal128"], r"decimal128\(5, 2\).*float64"),
        (UNREAD_OF_PANDAS["functions"], "builtin_function_or_method"),
        (UNREAD_OF_POLARS["Int128"], "Int128"),
        (UNREAD_OF_POLARS["Decimal"], r"Decimal\(precision=10, scale=2\): cast it to floats"),
        (UNREAD_OF_POLARS["Time"], "Time"),
        (UNREAD_OF_POLARS["Object"], "Object"),
        (UNREAD_OF_POLARS["Struct"], r"Struct.*declare the input's type"),
        (UNREAD_OF_ARROW["decimal128(10, 2)"], r"decimal128\(10, 2\): cast it to floats"),
        (UNREAD_OF_ARROW["null"], "null: declare the input's type"),
        (UNREAD_OF_ARROW["time32[s]"], r"time32\[s\]"),
        (UNREAD_OF_ARROW["fixed_size_binary[2]"], r"fixed_size_binary\[2\]"),
        (pd.DataFrame({"x": [1.0]}), r"model.table\(frame\)"),
        (pl.DataFrame({"x": [1.0]}), r"model.table\(frame\)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_column_that_is_not_taken_is_named_by_its_own_type(column, named):
    for model in [cembra.compile("x"), cembra.compile("input x: f64?; x")]:
        if "null" in named and "f64" in model.source:
            assert plain(model(column)) == [None, None]
            continue
        with pytest.raises(cembra.DataError, match=rf"input `x`(\[0\])? .*{named}"):
            model(column)


@pytest.mark.parametrize(
    ["given", "advice"],
    [
        (pl.DataFrame({"x": [1.0]}).lazy(), "collect"),
        (pl.Series("x", [1.0]), r"to_frame\(\)"),
        (pd.Series([1.0]), r"to_frame\(\)"),
        (pa.chunked_array([[1.0]]), r"model\(x=array\)"),
    ],
)
def test_what_is_no_table_is_refused_with_advice(given, advice):
    for evaluate in [cembra.compile("x * 2.0").table, cembra.compile("x * 2.0").run]:
        with pytest.raises(cembra.DataError, match=advice):
            evaluate(given)
    with pytest.raises(cembra.DataError, match=r"model\(columns\)"):
        cembra.compile("x * 2.0").table({"x": [1.0]})


# Dates and moments.

DAY = datetime.date(2024, 2, 29)
MIDNIGHT = np.array(["2024-02-29", "NaT"], "M8[s]")


@pytest.mark.parametrize(
    ["column", "dtype"],
    [
        *((MIDNIGHT.astype(f"M8[{unit}]"), "datetime64[D]") for unit in ["D", "h", "m", "s", "ms", "us", "ns"]),
        *((pd.Series(MIDNIGHT.astype(f"M8[{unit}]")), "datetime64[s]") for unit in ["s", "ms", "us", "ns"]),
        (pd.Series([DAY, None], dtype=object), "datetime64[s]"),
        (pd.Series([pd.Timestamp(DAY), None], dtype=object), "datetime64[s]"),
        (pd.Series([pd.Timestamp(DAY), pd.NaT], dtype=object), "datetime64[s]"),
        (arrow_series([DAY, None], pa.date32()), "date32[day][pyarrow]"),
        (arrow_series([DAY, None], pa.date64()), "date32[day][pyarrow]"),
        (arrow_series([datetime.datetime(2024, 2, 29), None], pa.timestamp("us")), "date32[day][pyarrow]"),
        (pl.Series([DAY, None]), "Date"),
        (pl.Series([DAY, None]).cast(pl.Datetime("ns")), "Date"),
        (pa.array([datetime.datetime(2024, 2, 29), None], pa.timestamp("ms")), "date32[day]"),
        (pa.array([DAY, None], pa.date64()), "date32[day]"),
    ],
    ids=str,
)
def test_midnight_is_a_date(column, dtype):
    made = cembra.compile("input d: date?; d + 1")(column)
    assert dtype_of(made) == dtype
    assert [None if value is None else str(value)[:10] for value in plain(made)] == ["2024-03-01", None]


@pytest.mark.parametrize("value", [1, -1, 43_200_000_000_000])
def test_another_time_of_day_is_no_date(value):
    model, column = cembra.compile("input d: date?; d"), np.array([0, value], "M8[ns]")
    for moments in [column, pd.Series(column), pl.Series(column), pa.array(column)]:
        with pytest.raises(cembra.DataError, match="row 1.*not midnight|row 1.*not a value of date"):
            model(moments)
    with pytest.raises(cembra.DataError, match="not midnight"):
        model(column[1])
    # A moment of a zone has another date elsewhere.
    with pytest.raises(cembra.DataError, match="date.*timestamp"):
        model(pd.Series(column[:1]).dt.tz_localize("UTC"))


@pytest.mark.parametrize(
    "value", [np.datetime64("2024-02-29"), np.datetime64("2024-02-29T00", "ns"), pd.Timestamp(DAY), DAY, datetime.datetime(2024, 2, 29)], ids=repr
)
def test_dates_of_one_row(value):
    model = cembra.compile("input d: date?; d + 1")
    assert model(value) == model.session()(value) == datetime.date(2024, 3, 1)
    assert plain(cembra.compile("input d: date, n: i64; d + n")(value, pl.Series([1, 2]))) == [datetime.date(2024, 3, 1), datetime.date(2024, 3, 2)]


# The largest number of each unit that is a moment in microseconds of 64 bits.
LARGEST = {
    "W": (2**63 - 1) // 604_800_000_000,
    "h": (2**63 - 1) // 3_600_000_000,
    "m": (2**63 - 1) // 60_000_000,
    "s": (2**63 - 1) // 10**6,
    "ms": (2**63 - 1) // 1000,
}
SIZE = {"W": 604_800_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 10**6, "ms": 1000}


def columns_of(values, kind, unit):
    """Makes a column of times ("M8") or durations ("m8") in each package that has the unit."""
    array = np.array(values, f"{kind}[{unit}]")
    yield array
    if unit in ["s", "ms", "us", "ns"]:
        of = pa.timestamp(unit) if kind == "M8" else pa.duration(unit)
        yield pd.Series(array)
        yield pa.array(values, of)
        yield pa.chunked_array([values[:1], values[1:]], of)
        yield arrow_series(values, of)
        if unit != "s":
            yield pl.Series(values).cast(pl.Datetime(unit) if kind == "M8" else pl.Duration(unit))


def microseconds(made):
    """Returns times or durations as integers, without a conversion to a type that would round or refuse them."""
    if isinstance(made, pl.Series):
        return made.cast(pl.Int64).to_list()
    if isinstance(made, pd.Series):
        made = pa.array(made)
    return (made.cast(pa.int64()).to_pylist()) if isinstance(made, (pa.Array, pa.ChunkedArray)) else made.astype("i8").tolist()


@pytest.mark.parametrize("kind", ["M8", "m8"])
@pytest.mark.parametrize("unit", LARGEST)
def test_moments_beyond_64_bits_are_refused(kind, unit):
    model = cembra.compile("x + duration{0h}")
    for values in [[LARGEST[unit], -LARGEST[unit]], [0, 1], [-1, 0]]:
        for column in columns_of(values, kind, unit):
            assert microseconds(model(column)) == [value * SIZE[unit] for value in values]
    for beyond in [LARGEST[unit] + 1, -LARGEST[unit] - 2, 2**62, -(2**62)]:
        for column in columns_of([0, beyond], kind, unit):
            with pytest.raises(cembra.DataError, match="row 1 that does not fit into microseconds"):
                model(column)
        with pytest.raises(cembra.DataError, match="does not fit into microseconds"):
            cembra.compile("input x: " + ("timestamp; x" if kind == "M8" else "duration; x"))(np.array(beyond, f"{kind}[{unit}]")[()])


@pytest.mark.parametrize("kind", ["M8", "m8"])
@pytest.mark.parametrize(["unit", "size"], [("ns", 10**3), ("ps", 10**6), ("fs", 10**9), ("as", 10**12)])
def test_fractions_of_a_microsecond_are_rounded_down(kind, unit, size):
    values = [1, -1, size - 1, size, -size, -size - 1, 2**63 - 1, -(2**63) + 1]
    for column in columns_of(values, kind, unit):
        assert microseconds(cembra.compile("x + duration{0h}")(column)) == [value // size for value in values]


def test_durations_and_moments_of_one_row_are_rounded_down_too():
    length, moment = cembra.compile("input x: duration?; x"), cembra.compile("input x: timestamp?; x")
    for value in [np.timedelta64(-1500, "ns"), pd.Timedelta(-1500)]:
        assert length(value) == datetime.timedelta(microseconds=-2)
    assert moment(pd.Timestamp("1969-12-31 23:59:59.999999999", tz="UTC")) == datetime.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)
    assert moment(np.datetime64("2024-01-01T12:00:00.123456789")) == datetime.datetime(2024, 1, 1, 12, 0, 0, 123456, UTC)
    assert moment(datetime.datetime.max.replace(tzinfo=UTC)) == datetime.datetime.max.replace(tzinfo=UTC)


def test_ends_of_microseconds_and_days():
    for values in [[2**63 - 1, -(2**63) + 1], [2**62, -(2**62)]]:
        for kind in ["M8", "m8"]:
            for column in columns_of(values, kind, "us"):
                assert microseconds(cembra.compile("x + duration{0h}")(column)) == values
    days = cembra.compile("input x: date; x")
    assert days(np.array([2**31 - 1, -(2**31)], "M8[D]")).astype("i8").tolist() == [2**31 - 1, -(2**31)]
    for beyond in [2**31, -(2**31) - 1, 2**40, 2**62]:
        with pytest.raises(cembra.DataError, match="row 0 that does not fit into days of 32 bits"):
            days(np.array([beyond], "M8[D]"))


# Numbers.

NULLABLE = {"?": "boolean"} | {
    f"{letter}{size}": f"{name}{size * 8}" for letter, name in [("i", "Int"), ("u", "UInt"), ("f", "Float")] for size in (1, 2, 4, 8)
}
NUMBER_COLUMNS = {
    "NumPy": np.array,
    "pandas": lambda values, dtype: pd.Series(np.array(values, dtype)),
    "Int64 and its like": lambda values, dtype: pd.Series(np.array(values, dtype)).astype(NULLABLE[dtype]),
    "pandas with Arrow's types": lambda values, dtype: pd.Series(
        pd.array(pa.array(np.array(values, dtype)), dtype=pd.ArrowDtype(pa.array(np.array(values, dtype)).type))
    ),
    "Polars": lambda values, dtype: pl.Series(np.array(values, dtype)),
    "pyarrow": lambda values, dtype: pa.array(np.array(values, dtype)),
    "pyarrow, chunked and sliced": lambda values, dtype: pa.chunked_array(
        [pa.array(np.array([0, *values], dtype)), pa.array(np.array(values[:0], dtype))]
    ).slice(1),
}


@pytest.mark.parametrize("package", NUMBER_COLUMNS)
@pytest.mark.parametrize(
    ["qtype", "dtype", "right", "wrong"],
    [
        ("f64", "i8", [2**53, -(2**53), 2**53 + 2, -(2**63), 3 * 2**61], [2**53 + 1, -(2**53) - 1, 2**63 - 1]),
        ("f64", "u8", [2**63, 2**64 - 2048], [2**64 - 1, 2**63 + 1]),
        ("f64", "i4", [2**31 - 1, -(2**31)], []),
        ("f32", "i4", [2**24, 2**24 + 2, -(2**31)], [2**24 + 1, -(2**24) - 1, 2**31 - 1]),
        ("f32", "i8", [2**24, 2**40, -(2**63)], [2**24 + 1, 2**53 + 1]),
        ("f32", "u4", [2**24 + 2, 2**31], [2**24 + 1, 2**32 - 1]),
        ("f32", "i2", [2**15 - 1, -(2**15)], []),
        ("i64", "u4", [2**32 - 1], []),
        ("i64", "i1", [127, -128], []),
        ("i32", "u2", [2**16 - 1], []),
        ("u64", "u1", [255], []),
    ],
)
def test_integers_go_into_a_type_that_has_them(package, qtype, dtype, right, wrong):
    model = cembra.compile(f"input x: {qtype}?; x")
    made = model(NUMBER_COLUMNS[package](right, dtype))
    assert [int(value) for value in plain(made)] == right
    scalars = [model(np.dtype(dtype).type(value)) for value in right]
    assert [int(value) for value in scalars] == right and [model(value) for value in right] == scalars
    for value in wrong:
        with pytest.raises(cembra.DataError, match=f"{value} in row 1"):
            model(NUMBER_COLUMNS[package]([1, value], dtype))
        for scalar in [value, np.dtype(dtype).type(value)]:
            with pytest.raises(cembra.DataError, match=rf"the integer {value}.*float\(..\)"):
                model(scalar)


@pytest.mark.parametrize("package", NUMBER_COLUMNS)
@pytest.mark.parametrize(
    ["qtype", "dtype"],
    [("i32", "i8"), ("i32", "u4"), ("i64", "u8"), ("u64", "i8"), ("f32", "f8"), ("i64", "f8"), ("f64", "?"), ("i64", "?"), ("bool", "i8")],
)
def test_columns_of_other_types_are_refused(package, qtype, dtype):
    with pytest.raises(cembra.DataError, match=f"input `x` is {qtype}.*but the column is"):
        cembra.compile(f"input x: {qtype}; x")(NUMBER_COLUMNS[package]([1, 0], dtype))


def test_floats_are_widened_and_gaps_are_no_values_to_look_at():
    model = cembra.compile("input x: f64?; x")
    for dtype in ["f2", "f4"]:
        for column in [np.array([0.1], dtype), pd.Series(np.array([0.1], dtype)), pl.Series(np.array([0.1], "f4")), pa.array(np.array([0.1], dtype))]:
            assert float(plain(model(column))[0]) in [float(np.array([0.1], dtype)[0]), float(np.float32(0.1))]
    # Behind a mask lies an integer that f64 does not have.
    assert plain(model(np.ma.MaskedArray([1, ODD], [False, True]))) == [1.0, None]
    assert plain(model(pd.Series(pd.arrays.IntegerArray(np.array([1, ODD]), np.array([False, True]))))) == [1.0, None]
    assert plain(model(pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x01"), pa.py_buffer(np.array([1, ODD]))]))) == [1.0, None]


def test_a_file_of_whole_numbers_goes_into_floats():
    frame = pd.DataFrame({"price": [2, 3], "pieces": [4, 5]}, index=["a", "b"])
    assert cembra.compile("input price: f64, pieces: i64; output total = price * pieces").table(frame).total.to_dict() == {"a": 8.0, "b": 15.0}


@pytest.mark.parametrize("value", [decimal.Decimal("1.5"), fractions.Fraction(1, 2), np.longdouble(1.5)])
def test_numbers_that_floats_do_not_have_are_refused_with_advice(value):
    for qtype in ["f64", "f32?"]:
        for given in [value, np.array([value], object)] if not isinstance(value, np.longdouble) else [value]:
            with pytest.raises(cembra.DataError, match=rf"found {type(value).__module__}.{type(value).__name__}: give `float\(..\)`"):
                cembra.compile(f"input x: {qtype}; x")(given)


@pytest.mark.parametrize("value", [True, np.bool_(True), np.array(True), "1.5", 10**400, -(10**400), 2.0**200, np.float64(1e300), 1j])
def test_values_of_one_row_that_f32_does_not_take(value):
    with pytest.raises(cembra.DataError, match="input `x` is f32, found"):
        cembra.compile("input x: f32; x")(value)


# Missing values.

MISSING = [None, np.ma.masked, pd.NA, pd.NaT]
QTYPES = ["f64", "f32", "i32", "i64", "u64", "bool", "text", "bytes", "date", "timestamp", "duration"]


@pytest.mark.parametrize("missing", MISSING, ids=repr)
@pytest.mark.parametrize("qtype", QTYPES)
def test_missing_values_of_every_package(qtype, missing):
    model, known = cembra.compile(f"input x: {qtype}?; x"), cembra.compile(f"input x: {qtype}?; core.has(x)")
    assert model(missing) is None and model(x=missing) is None and model({"x": missing}) is None and model.session()(missing) is None
    for column in [np.array([missing, None], object), pd.Series([missing, None], dtype=object)]:
        assert plain(known(column)) == [False, False] and len(model(column)) == 2


@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_missing_values_beside_columns_and_within_others(missing):
    assert plain(cembra.compile("input x: f64?, r: f64; (x ?? 9.0) * r")(missing, pd.Series([1.0, 2.0]))) == [9.0, 18.0]
    assert cembra.compile("input x: f64?, r: f64; (x ?? 9.0) * r").run({"x": missing, "r": np.array([1.0, 2.0])})[0].tolist() == [9.0, 18.0]
    assert cembra.compile("input x: [f64?]; x")([missing, 1.0]) == [None, 1.0]
    assert cembra.compile("input s: {a: f64?}; s.a ?? 3.0")({"a": missing}) == 3.0


def test_an_element_of_a_masked_result_goes_back_in():
    made = cembra.compile("input x: f64?; x * 2.0")(np.ma.MaskedArray([1.0, 2.0], [False, True]))
    assert cembra.compile("input x: f64?; x")(made[1]) is None and cembra.compile("input x: f64?; x")(made[0]) == 2.0


@pytest.mark.parametrize("qtype", QTYPES)
def test_a_declared_type_decides_columns_without_values(qtype):
    model = cembra.compile(f"input x: {qtype}?; output y = x; output known = core.has(x)")
    for rows, columns in [
        (0, [np.array([], object), pd.Series([], dtype=object), pl.Series([], dtype=pl.Null), pa.nulls(0), pa.chunked_array([], pa.null())]),
        (
            2,
            [
                np.array([None, None], object),
                pd.Series([None, np.nan], dtype=object),
                pl.Series([None, None]),
                pa.nulls(2),
                arrow_series([None, None], pa.null()),
                pd.Series(pd.Categorical([None, None])),
            ],
        ),
    ]:
        for column in columns:
            assert plain(model(column).known) == [False] * rows
    made = cembra.compile(f"input x: {qtype}; x")(np.array([], object))
    assert len(made) == 0


def test_a_declared_type_decides_columns_of_objects():
    model = cembra.compile("input x: f64?; x")
    assert model(np.array([1, 2.5, None, np.float32(0.5)], object)).tolist() == [1.0, 2.5, None, 0.5]
    for column in [np.array([1, ODD], object), pd.Series([1, ODD], dtype=object)]:
        with pytest.raises(cembra.DataError, match=rf"input `x`\[1\] is f64, found the integer {ODD}"):
            model(column)
        with pytest.raises(cembra.DataError, match=r"input `x`\[0\] is text, found int"):
            cembra.compile("input x: text?; x")(column)
    with pytest.raises(cembra.DataError, match=r"input `x`\[1\] is i64, found float: .*of the first one"):
        cembra.compile("x")(np.array([1, 2.5], object))


# Frames and Series as tensors.


def test_series_and_frames_are_tensors():
    one, two = cembra.compile('input x: tensor[f64, 1]; y("i") = x("i") * 2.0'), cembra.compile('input x: tensor[f64, 2]; y("i,j") = x("i,j") * 2.0')
    values = np.arange(6.0)
    for evaluate in [one, one.session()]:
        for x in [
            values,
            pd.Series(values, index=range(6, 0, -1)),
            pd.Series(values, dtype="Float64"),
            arrow_series(values, pa.float64()),
            pd.Index(values),
            pl.Series(values),
        ]:
            assert evaluate(x).tolist() == (values * 2).tolist()
        assert evaluate(pd.Series(values)[::-2]).tolist() == [10.0, 6.0, 2.0]
        assert evaluate(pl.concat([pl.Series(values)] * 2, rechunk=False)).tolist() == (values * 2).tolist() * 2
        for x in [pd.Series([1.0, None], dtype="Float64"), arrow_series([1.0, None], pa.float64()), pl.Series([1.0, None]), pa.array([1.0, None])]:
            with pytest.raises(cembra.DataError, match="nulls"):
                evaluate(x)
    columns = {"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}
    for frame in [pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)]:
        assert two(frame).tolist() == [[2.0, 8.0], [4.0, 10.0], [6.0, 12.0]]
    assert two(pd.DataFrame(np.arange(12.0).reshape(3, 4)).iloc[::2, ::-1]).tolist() == [[6.0, 4.0, 2.0, 0.0], [22.0, 20.0, 18.0, 16.0]]


# Dictionaries and structs.


@pytest.mark.parametrize(
    "mapping", [dict, collections.OrderedDict, collections.UserDict, types.MappingProxyType, lambda given: collections.ChainMap({}, given)]
)
def test_a_dict_may_have_more_keys_and_leave_out_optional_inputs(mapping):
    model = cembra.compile("input a: f64, b: f64?, c: f64? = 2.0; output y = a * (b ?? 10.0) * c")
    for evaluate in [model, model.session()]:
        assert evaluate(mapping({"a": 1.5, "b": 1.0, "other": object(), 7: "x"})) == 3.0
        assert evaluate(mapping({"a": 1.5})) == 30.0
        with pytest.raises(TypeError, match="`a` is not given: it must be given, because its type is f64"):
            evaluate(mapping({"b": 1.5}))
    assert model.run(mapping({"a": np.array([1.0, 2.0]), "other": np.ones(5)}))[0].tolist() == [20.0, 40.0]
    # By keyword a wrong name is an error, as of a function.
    with pytest.raises(TypeError, match="no input `other`"):
        model(a=1.0, other=2.0)


def test_a_model_of_one_struct_takes_the_struct_or_a_dict_by_name():
    model = cembra.compile("input c: {a: f64, b: f64?}; c.a + (c.b ?? 0.0)")
    for evaluate in [model, model.session()]:
        for given in [{"a": 1.0}, {"c": {"a": 1.0}}, {"a": 1.0, "z": 2}, {"c": {"a": 1.0}, "z": 2}, {"c": {"a": 1.0}, "b": 5.0}]:
            assert evaluate(given) == 1.0
    words = cembra.compile('input d: dict[text, f64]; lookup("a", d)')
    assert words({"a": 1.0}) == words({"d": {"a": 1.0}}) == words({"d": 4.0, "a": 1.0}) == words(d={"a": 1.0}) == 1.0


def test_outputs_have_their_real_names():
    made = cembra.compile('output "a b" = 1; output "class" = 2; output "_y" = 3; output ok = 4; output "count" = 5; output "_0" = 6')()
    expected = {"a b": 1, "class": 2, "_y": 3, "ok": 4, "count": 5, "_0": 6}
    for given in [made, pickle.loads(pickle.dumps(made)), copy.deepcopy(made)]:
        assert given._asdict() == expected and json.loads(json.dumps(given._asdict())) == expected and given == (1, 2, 3, 4, 5, 6)
    assert made.ok == 4 and made._replace(ok=7)._asdict() == expected | {"ok": 7}
    table = cembra.compile('input x: f64; output "a b" = x; output "class" = x + 1.0').table(pd.DataFrame({"x": [1.0]}))
    assert table.to_dict("list") == {"a b": [1.0], "class": [2.0]}


RECORDS = [{"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y"}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(RECORDS),
        pa.array([{"a": 0.0, "b": "z"}, *RECORDS])[1:],
        pa.chunked_array([pa.array(RECORDS)]),
        pa.array([row | {"other": 1} for row in RECORDS]),
        pl.Series(RECORDS),
        arrow_series(RECORDS, pa.array(RECORDS).type, index=["p", "q"]),
        pd.Series(RECORDS),
    ],
    ids=["pyarrow", "sliced", "one chunk", "more fields", "Polars", "pandas of Arrow", "objects"],
)
def test_rows_of_structs(column):
    model = cembra.compile("input s: {a: f64, b: text}; output y = s.a * 2.0; output t = s.b")
    for made in [model(column), model({"s": column}), model.run({"s": column}, threads=2)[0]]:
        assert plain(made.y) == [3.0, 5.0] and plain(made.t) == ["x", "y"]
        assert not isinstance(column, pd.Series) or made.y.index.equals(column.index)


def test_rows_of_optional_structs_lists_of_structs_and_dictionaries():
    made = cembra.compile("input s: {a: f64?}?; s.a ?? 9.0")(pa.array([None, {"a": 1.0}, {"a": None}]))
    assert plain(made) == [9.0, 1.0, 9.0]
    items = pa.array([[{"p": 1.5, "n": 2}], []], pa.list_(pa.struct([("p", pa.float64()), ("n", pa.int32())])))
    assert plain(cembra.compile("input i: [{p: f64, n: i32}]; sum(i.p * i.n)")(items)) == [3.0, 0.0]
    rates = pa.array([[("a", 1.5)], [("a", 2.5), ("b", 0.5)]], pa.map_(pa.string(), pa.float64()))
    model = cembra.compile("input d: dict[text, f64], k: text; lookup(k, d)")
    assert plain(model(rates, pa.array(["a", "b"]))) == [1.5, 0.5]
    assert plain(model({"a": 1.5}, pl.Series(["a", "b"]))) == [1.5, None]


def test_a_large_dictionary_beside_many_rows():
    entries, rows = {at: at + 0.5 for at in range(20_000)}, np.arange(200_000) * 7919 % 25_000
    model = cembra.compile("input r: dict[i64, f64], g: i64; lookup(g, r) ?? -1.0")
    expected = np.where(rows < 20_000, rows + 0.5, -1.0)
    for column in [rows, pl.Series(rows), pd.Series(rows)]:
        np.testing.assert_array_equal(np.asarray(model(entries, column)), expected)
    np.testing.assert_array_equal(model.run({"r": entries, "g": rows}, threads=2, on_error="missing")[0], expected)


@pytest.mark.parametrize(
    "column",
    [
        pa.chunked_array([[[1.0, 2.0]], [[], [3.0]]]),
        pa.chunked_array([pa.array([], pa.list_(pa.float64())), pa.array([[1.0, 2.0], [], [3.0]])]),
        pl.concat([pl.Series([[1.0, 2.0]]), pl.Series([[], [3.0]], dtype=pl.List(pl.Float64))], rechunk=False),
        pa.array([[0.0], [1.0, 2.0], [], [3.0]], pa.large_list(pa.float64()))[1:],
    ],
    ids=["chunks", "an empty chunk", "Polars", "sliced"],
)
def test_rows_of_lists_in_chunks(column):
    model = cembra.compile("input x: [f64]; sum(x)")
    assert plain(model(column)) == plain(model.run({"x": column}, threads=2)[0]) == [3.0, 0.0, 3.0]


def test_texts_and_truth_values_in_chunks():
    join = cembra.compile('x + "!"')
    for column in [
        pa.chunked_array([["a"], [], ["b", None]]),
        pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b", None]).dictionary_encode()]),
    ]:
        assert plain(join(column)) == ["a!", "b!", None]
    assert plain(cembra.compile("not x")(pa.chunked_array([pa.array([True] * 9)[3:], pa.array([False, None])]))) == [False] * 6 + [True, None]
    assert plain(cembra.compile("x + 1.0")(pa.chunked_array([], pa.float64()))) == []


# Other packages.


def test_tables_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select i::double as x, {'a': i} as s, i::hugeint as h from range(10000) r(i)")
    made = cembra.compile("output y = x * 2.0").table(relation)
    assert made.to_pandas().y.tolist() == [2.0 * at for at in range(10000)]
    assert pickle.loads(pickle.dumps(made)).equals(made)
    assert duckdb.sql("select sum(y) from made").fetchall() == [(99990000.0,)]
    made = cembra.compile("input n: i64; output y = 10 // n").table(duckdb.sql("select unnest([1, 0, 5])::bigint as n"), on_error="skip")
    assert made.to_pandas().y.tolist() == [10, 2]


def test_frames_and_series_of_narwhals_are_those_of_their_packages():
    narwhals = pytest.importorskip("narwhals")
    model = cembra.compile("output y = x * 2.0")
    made = model.table(narwhals.from_native(pd.DataFrame({"x": [1.5]}, index=["p"])))
    assert isinstance(made, pd.DataFrame) and made.y.to_dict() == {"p": 3.0}
    assert model.table(narwhals.from_native(pl.DataFrame({"x": [1.5]}))).to_dicts() == [{"y": 3.0}]
    series = narwhals.from_native(pd.Series([1.5], index=["p"]), series_only=True)
    for made in [model(series), model.run({"x": series})[0]]:
        assert isinstance(made, pd.Series) and made.to_dict() == {"p": 3.0}
    made = model(narwhals.from_native(pl.Series([1.5, None]), series_only=True))
    assert isinstance(made, pl.Series) and made.to_list() == [3.0, None]


@pytest.mark.parametrize("text", ["x * 2.0", "input x: f64; x * 2.0"])
def test_arrays_of_xarray_are_refused_with_the_way_out(text):
    xarray = pytest.importorskip("xarray")
    given = xarray.DataArray([1.5, 2.5], dims="t")
    with pytest.raises(cembra.DataError, match=r"input `x` cannot be a column of float64: give its array, as in `.to_numpy\(\)`"):
        cembra.compile(text)(given)
    assert cembra.compile(text)(given.to_numpy()).tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    "column",
    [pl.Series([1.0, None]), pa.array([1.0, None]), pd.Series([1.0, None]), pd.Series([1.0, None], dtype="Float64")],
    ids=["Polars", "pyarrow", "float64", "Float64"],
)
def test_a_default_fills_an_output_that_is_the_input(column):
    assert plain(cembra.compile("input x: f64? = 5.0; output y = x")(column)) == [1.0, 5.0]


@pytest.mark.parametrize(
    ["text", "column"],
    [
        ("input x: {a: f64}; x.a", pa.chunked_array([pa.array([{"a": 1.0}]), pa.array([{"a": 2.0}])])),
        ("input x: {a: f64}; x.a", pl.concat([pl.Series([{"a": 1.0}]), pl.Series([{"a": 2.0}])], rechunk=False)),
        ("input x: [{a: f64}]; sum(x.a)", pa.chunked_array([pa.array([[{"a": 1.0}]]), pa.array([[{"a": 2.0}]])])),
        (
            'input x: dict[text, f64]; lookup("a", x) ?? 0.0',
            pa.chunked_array([pa.array([[("a", at)]], pa.map_(pa.string(), pa.float64())) for at in (1.0, 2.0)]),
        ),
    ],
    ids=["structs", "structs of Polars", "lists of structs", "maps"],
)
def test_structs_in_chunks(text, column):
    assert plain(cembra.compile(text)(column)) == [1.0, 2.0]


def test_a_model_in_an_expression_of_polars():
    frame = pl.DataFrame({"x": [1.0, None]})
    expression = pl.col("x").map_batches(cembra.compile("input x: f64?; x * 2.0"), return_dtype=pl.Float64)
    assert frame.select(expression).to_dicts() == frame.lazy().select(expression).collect().to_dicts() == [{"x": 2.0}, {"x": None}]


@pytest.mark.parametrize(
    "frame",
    [pl.DataFrame({"a": [1.0, None]}), pa.table({"a": [1.0, None]}), pd.DataFrame({"a": pd.array([1.0, None], dtype="Float64")})],
    ids=["Polars", "pyarrow", "pandas"],
)
def test_gaps_of_a_frame_that_is_a_tensor_are_refused(frame):
    with pytest.raises(cembra.DataError, match="null|missing"):
        cembra.compile('input x: tensor[f64, 2]; y("i,j") = x("i,j") * 2.0')(frame)


def test_a_frame_of_nullable_columns_without_gaps_is_a_tensor():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}, dtype="Float64")
    assert cembra.compile('input x: tensor[f64, 2]; y("i,j") = x("i,j") * 2.0')(frame).tolist() == [[2.0, 6.0], [4.0, 8.0]]


@pytest.mark.parametrize(["dtype", "named"], [("c8", "complex64"), ("U3", "<U3"), ("?", "bool")])
def test_an_array_that_is_no_tensor_is_named_by_its_type(dtype, named):
    with pytest.raises(cembra.DataError, match=named):
        cembra.compile('input x: tensor[f64, 1]; y("i") = x("i")')(np.zeros(2, dtype))


def test_a_constant_array_beside_columns_has_its_type():
    made = cembra.compile("input x: f64; [1.0, 2.0]")(np.ones(2))
    assert [row.tolist() for row in made] == [[1.0, 2.0]] * 2 and made[0].dtype == np.float64


def test_a_struct_with_a_field_that_has_the_name_of_the_input():
    model = cembra.compile("input c: {c: f64}; c.c")
    assert model({"c": 1.0}) == 1.0 and model({"c": {"c": 1.0}}) == 1.0


@pytest.mark.parametrize("column", [pl.Series([], dtype=pl.Null), pa.nulls(0)], ids=["Polars", "pyarrow"])
def test_no_rows_of_type_null_go_into_any_type(column):
    assert len(cembra.compile("input x: f64; x * 2.0")(column)) == 0


@pytest.mark.parametrize("a", [pd.Index([1, 2]), pl.Series([1, 2]), pa.array([1, 2])], ids=["Index", "Polars", "pyarrow"])
def test_a_carried_column_beside_a_series_has_its_index(a):
    made = cembra.compile("input a: i64, b: i64; output y = a; output z = b")(a, pd.Series([1, 2], index=[8, 9]))
    assert isinstance(made.y, pd.Series) and made.y.index.tolist() == [8, 9]


@pytest.mark.parametrize(
    ["evaluate", "text"],
    [
        (lambda: cembra.compile("input d: timestamp; d")(pd.NaT), "missing|NaT"),
        (lambda: cembra.compile("input d: date; d")(pd.NaT), "missing|NaT"),
        (lambda: cembra.compile("input d: duration; d")(datetime.timedelta.max), "fit|range"),
        (lambda: cembra.compile("output y = k").table(pd.DataFrame({"x": [1.0]})), "no column"),
        (lambda: cembra.compile("output y = x").table(pd.DataFrame([[1.0]], columns=pd.MultiIndex.from_tuples([("x", "a")]))), "levels|MultiIndex"),
    ],
    ids=["NaT as a timestamp", "NaT as a date", "a long duration", "no column", "columns of two levels"],
)
def test_messages_name_the_cause(evaluate, text):
    with pytest.raises(cembra.Error, match=text):
        evaluate()


@pytest.mark.parametrize(
    ["text", "column", "dtype"],
    [
        ("input x: [f64?]; x", pl.Series([[1, None]]), pl.List(pl.Float64)),
        ("input x: {a: f64?}; x", pl.Series([{"a": 1}]), pl.Struct({"a": pl.Float64})),
        ("input x: {a: f64?}; x", pl.Series([{"a": 1.0, "other": 2}]), pl.Struct({"a": pl.Float64})),
    ],
    ids=["list", "struct", "more fields"],
)
def test_a_carried_list_or_struct_has_the_declared_type(text, column, dtype):
    assert cembra.compile(text)(column).dtype == dtype


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["u", "v"], dtype="category"),
        pd.Series([1, 2], dtype="Int8"),
        pd.Series(pd.to_datetime(["2024", "2025"]).tz_localize("Asia/Tokyo")),
        pl.Series(["u", "v"], dtype=pl.Enum(["v", "u"])),
        pl.Series([1, 2], dtype=pl.UInt8),
    ],
    ids=["category", "Int8", "zone", "Enum", "UInt8"],
)
def test_a_carried_column_keeps_its_type_where_rows_fail(column):
    frame = pd.DataFrame({"c": column, "x": [1, 0]}) if isinstance(column, pd.Series) else pl.DataFrame({"c": column, "x": [1, 0]})
    made = cembra.compile("output y = 1 // x; output w = c").table(frame, on_error="missing")["w"]
    assert made.dtype == column.dtype and plain(made)[0] == column[0] and plain(made)[1] is None


@pytest.mark.parametrize(["qtype", "values"], [("timestamp", [2**62, 86400]), ("date", [5, 86400]), ("duration", [2**62, 86400])])
def test_values_behind_a_mask_are_not_looked_at(qtype, values):
    column = np.ma.MaskedArray(np.array(values, "m8[s]" if qtype == "duration" else "M8[s]"), [True, False])
    made = cembra.compile(f"input x: {qtype}?; x")(column)
    assert np.ma.getmaskarray(made).tolist() == [True, False]


def test_arrays_of_the_caller_come_back_beside_columns_of_pandas():
    out = np.ma.zeros(2, dtype="i8")
    made, _, _ = cembra.compile("input x: i64?; output y = x + 1").run({"x": pd.Series([1, None], dtype="Int64")}, out={"y": out})
    assert made is out and out.tolist() == [2, None]


def test_categories_of_several_types_are_refused():
    with pytest.raises(cembra.DataError):
        cembra.compile("x")(pd.Series(pd.Categorical([1, "a"])))


def test_integers_go_into_tensors_of_floats_that_have_them():
    double, single = (cembra.compile(f'input x: tensor[{of}, 1]; y("i") = x("i") * 2.0{of}') for of in ["f64", "f32"])
    # Zeros at the end of a number take no digits.
    assert double(np.array([2**63, 2**53 + 2], "u8")).tolist() == [2.0**64, 2.0**54 + 4.0]
    assert double(np.array([-(2**63), 7])).tolist() == [-(2.0**64), 14.0] and single(np.array([2**40, -3])).tolist() == [2.0**41, -6.0]
    for model, values in [(double, np.array([2**53 + 1])), (double, np.array([2**64 - 1], "u8")), (single, np.array([2**24 + 1]))]:
        with pytest.raises(cembra.DataError, match="int64|uint64"):
            model(values)
