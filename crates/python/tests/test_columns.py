"""Tests of calls with many rows: NumPy and Arrow arrays as inputs and outputs."""

import datetime
import decimal
import signal

import numpy as np
import pytest

import cembra

pa = pytest.importorskip("pyarrow")

BACKENDS = ["native", "interpreter"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i4"])
@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 1000])
def test_numbers(backend, kind, rows):
    x = np.arange(rows).astype(kind)
    model = cembra.compile("output y = a * b + a", backend=backend)
    made = model(a=x, b=x)
    assert made.dtype == np.dtype(kind) and isinstance(made, np.ndarray) and not np.ma.isMaskedArray(made)
    np.testing.assert_array_equal(made, x * x + x)


def test_a_value_beside_columns_is_the_same_in_every_row():
    model = cembra.compile("input x: f64, rate: f64, name: text; output y = x * rate; output n = name")
    made = model(np.array([1.0, 2.0]), 0.5, "a")
    assert made.y.tolist() == [0.5, 1.0]
    assert made.n.tolist() == ["a", "a"]


def test_masked_arrays_are_missing_and_nan_is_a_number():
    model = cembra.compile("output y = x + 1.0; output z = x ?? 0.0")
    x = np.ma.MaskedArray([1.0, np.nan, 3.0], [False, False, True])
    made = model(x=x)
    assert isinstance(made.y, np.ma.MaskedArray)
    assert np.ma.getmaskarray(made.y).tolist() == [False, False, True]
    assert made.y[0] == 2.0 and np.isnan(made.y.data[1])
    assert not np.ma.isMaskedArray(made.z) and made.z[2] == 0.0 and np.isnan(made.z[1])


@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i4", "u8", "?", "M8[us]"])
def test_masks_of_many_rows(kind):
    mask = np.random.default_rng(5).random(1000) < 0.3
    x = np.ma.MaskedArray((np.arange(1000) % 2).astype(kind), mask)
    made = cembra.compile("output y = x")(x=x)
    assert np.ma.getmaskarray(made).tolist() == mask.tolist()
    assert made.tolist() == x.tolist()


LAYOUTS = {
    "steps": lambda x: np.repeat(x, 2)[::2],
    "backwards": lambda x: x[::-1][::-1][::1][::-1][::-1],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "column": lambda x: np.stack([x, x], axis=1)[:, 1],
    "swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "misaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype="u1")[1:].view(x.dtype) if len(x) else x,
    "read-only": lambda x: np.frombuffer(x.tobytes(), dtype=x.dtype),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["f8", "f4", "i8", "i4"])
def test_arrays_may_lie_in_any_way(layout, kind):
    x = np.arange(100).astype(kind)
    laid = LAYOUTS[layout](x)
    np.testing.assert_array_equal(cembra.compile("a - b")(a=laid, b=x), x - x)
    np.testing.assert_array_equal(cembra.compile("a + b")(a=laid, b=laid), x + x)


def test_a_value_broadcast_by_a_stride_of_zero():
    x = np.broadcast_to(np.float64(1.5), 1000)
    assert cembra.compile("x * 2.0")(x=x).tolist() == [3.0] * 1000


@pytest.mark.parametrize(
    ("kind", "qtype"),
    [("i1", "i32"), ("i2", "i32"), ("u1", "i32"), ("u2", "i32"), ("u4", "i64"), ("f2", "f32"), ("?", "bool")],
)
def test_other_numbers_are_widened(kind, qtype):
    x = np.array([0, 1, 1], dtype=kind)
    model = cembra.compile("output y = x")
    assert model(x=x).tolist() == x.tolist()
    assert model.signatures[0]["inputs"] == {"x": qtype}


def test_strings_dates_and_objects():
    model = cembra.compile("output y = x")
    days = np.array(["2024-02-29", "1969-12-31"], dtype="M8[D]")
    assert model(x=days).tolist() == days.tolist() and model(x=days).dtype == "M8[D]"
    moments = np.array(["2024-02-29T12:00:00.5", "NaT"], dtype="M8[ns]")
    made = model(x=moments)
    assert made.dtype == "M8[us]" and made[0] == np.datetime64("2024-02-29T12:00:00.500000") and made.mask.tolist() == [False, True]
    assert model(x=moments.astype(">M8[us]")).tolist() == made.tolist()
    lengths = np.array([1, -5], dtype="m8[ms]")
    assert model(x=lengths).tolist() == [datetime.timedelta(milliseconds=1), datetime.timedelta(milliseconds=-5)]
    assert model(x=np.array(["a", "bc"])).tolist() == ["a", "bc"]
    assert model(x=np.array(["a", None], dtype=object)).tolist() == ["a", None]
    assert [signature["inputs"]["x"] for signature in model.signatures] == ["date", "timestamp?", "duration", "text", "text?"]


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 2)), np.array([1j]), np.array([object()]), np.array([None]), np.array([decimal.Decimal(1)]), np.zeros(2, "f8,f8")],
)
def test_arrays_that_are_no_columns_are_refused(array):
    with pytest.raises(cembra.Error):
        cembra.compile("output y = x")(x=array)


def test_columns_of_unlike_lengths_are_named():
    with pytest.raises(cembra.DataError, match="input `b` has 2 rows, and `a` has 3"):
        cembra.compile("a + b")(a=np.zeros(3), b=np.zeros(2))


def test_a_row_that_fails_is_named_or_missing():
    model = cembra.compile("input x: i64; output y = 100 // x; output z = x + 1")
    x = np.array([1, 0, 5, 0])
    with pytest.raises(cembra.EvaluationError) as caught:
        model(x)
    assert (caught.value.code, caught.value.row) == ("div-by-zero", 1)
    made, failed, messages = model.run({"x": x}, on_error="missing", threads=2)
    assert made.y.tolist() == [100, None, 20, None] and made.z.tolist() == [2, None, 6, None]
    assert failed == [1, 3] and "division by zero" in messages[0]


def test_arrow_in_and_out():
    model = cembra.compile("output y = x * 2.0; output t = name + '!'")
    x = pa.array([None, 1.0, 2.0, None, 4.0])[1:]
    name = pa.array(["z", "a", None, "c", "d"])[1:]
    made = model(x=x, name=name)
    assert pa.array(made.y).to_pylist() == [2.0, 4.0, None, 8.0]
    assert pa.array(made.t).to_pylist() == ["a!", None, "c!", "d!"]
    chunked = pa.chunked_array([[1.0, 2.0], [], [3.0]])
    assert pa.array(cembra.compile("x + 1.0")(x=chunked)).to_pylist() == [2.0, 3.0, 4.0]


def test_arrow_and_numpy_beside_each_other():
    made = cembra.compile("a + b")(a=pa.array([1.0, None]), b=np.array([1.0, 2.0]))
    assert pa.array(made).to_pylist() == [2.0, None]


def test_dictionaries_and_lists_of_arrow():
    names = pa.array(["a", "b", "a", None]).dictionary_encode()
    assert pa.array(cembra.compile("output y = x + '!'")(x=names)).to_pylist() == ["a!", "b!", "a!", None]
    lists = pa.array([[1.0, 2.0], [], [3.0]])
    assert pa.array(cembra.compile("input x: [f64]; math.sum(x) ?? 0.0")(x=lists)).to_pylist() == [3.0, 0.0, 3.0]


def test_arrays_and_tensors_of_one_row():
    assert cembra.compile("input x: [f64]; math.sum(x)")(np.array([1.0, 2.0])) == 3.0
    doubled = cembra.compile("input x: [f64?]; output y = x * 2.0")
    assert doubled([1.0, None]) == [2.0, None]
    assert doubled(pa.array([1.0, None])).to_pylist() == [2.0, None]
    made = doubled(np.array([1.0, 2.0]))
    assert isinstance(made, np.ndarray) and made.tolist() == [2.0, 4.0]
    a = np.arange(6.0).reshape(2, 3)
    model = cembra.compile("input a: tensor[f64, 2]; output y = a * 2.0")
    for laid in (a, a.T.copy().T, a[::-1][::-1], np.asfortranarray(a), a.astype(">f8"), a.tolist(), a.astype(int).tolist()):
        np.testing.assert_array_equal(model(laid), a * 2.0)
    halves = cembra.compile("input a: tensor[f32, 1]; output y = a + a")
    assert halves(np.array([0.5, 1.5], dtype="f2")).tolist() == [1.0, 3.0]


@pytest.mark.parametrize("package", ["pyarrow", "polars", "pandas"])
def test_a_table_gives_a_table_of_its_package(package):
    module = pytest.importorskip(package)
    model = cembra.compile("input x: f64?, name: text?; output y = x * 2.0; output t = name + '!'")
    columns = {"x": [1.0, None, 3.0], "name": ["a", "b", None], "other": [1, 2, 3]}
    frame = module.table(columns) if package == "pyarrow" else module.DataFrame(columns)
    made = model.table(frame, threads=2)
    assert type(made) is type(frame)
    assert pa.table(made).to_pydict() == {"y": [2.0, None, 6.0], "t": ["a!", "b!", None]}


def test_tables_type_inputs_and_name_columns_that_lack():
    frame = pa.table({"a": pa.array([1, 2], pa.int64()), "b": pa.array([3, None], pa.int64())})
    model = cembra.compile("output y = a + b")
    assert model.table(frame).to_pydict() == {"y": [4, None]}
    assert model.signatures[0]["inputs"] == {"a": "i64?", "b": "i64?"}
    assert model.table(frame.slice(0, 0)).to_pydict() == {"y": []}
    with pytest.raises(cembra.Error):
        model.table(frame.select(["a"]))
    with pytest.raises(cembra.EvaluationError, match="row 1"):
        cembra.compile("input a: i64?; 1 // (a - 2)").table(frame)


@pytest.mark.parametrize("door", ["call", "table"])
def test_a_handler_of_a_signal_ends_a_long_evaluation(door):
    def interrupt(*_):
        raise KeyboardInterrupt

    # Hours, if nobody ended it.
    model = cembra.compile("input x: f64; core.while_loop(0.0, fn(s) = s < 1e6, fn(s) = s + x)")
    assert model(5e5) == 1e6
    x = np.full(1_000_000, 1.0)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            model(x=x) if door == "call" else model.table(pa.table({"x": x}))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert model(5e5) == 1e6


def test_numbers_of_columns_are_widened_where_nothing_is_lost():
    model = cembra.compile("input x: f64, y: i64?; output a = x * 2.0; output b = y")
    y = np.ma.MaskedArray(np.array([1, 2, 3], "i4"), [False, True, False])
    for dtype in ["i4", "u4", "f4", "f2", ">i2"]:
        made = model(np.array([1, 2, 3], dtype), y)
        assert made.a.tolist() == [2.0, 4.0, 6.0] and made.b.tolist() == [1, None, 3] and made.a.dtype == "f8"
    assert model(np.array([1, 2, 3]), y).a.tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(cembra.DataError):
        model(np.array([True, False, True]), y)
    narrow = cembra.compile("input x: i32; x")
    with pytest.raises(cembra.DataError):
        narrow(np.array([1, 2**40]))
    with pytest.raises(cembra.DataError):
        narrow(np.array([1.5, 2.0]))


def test_results_are_of_the_package_of_the_columns():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    model = cembra.compile("input x: f64?; x * 2.0")
    made = model(pl.Series("x", [1.0, None]))
    assert isinstance(made, pl.Series) and made.to_list() == [2.0, None] and made.name == "result"
    made = model(pa.array([1.0, None]))
    assert isinstance(made, pa.Array) and made.to_pylist() == [2.0, None]
    made = model(pd.Series([1.0, 2.0], index=["a", "b"]))
    assert isinstance(made, pd.Series) and made.to_dict() == {"a": 2.0, "b": 4.0}
    listed = cembra.compile("input x: [f64?]; math.sum(x)")
    assert listed(pl.Series([1.0, None, 4.0])) == 5.0 and listed(pa.array([1.0, None, 4.0])) == 5.0
    assert listed(pa.chunked_array([[1.0], [None, 4.0]])) == 5.0
    tensor = cembra.compile('input x: tensor[f64, 1]; y("i") = x("i") * 2.0')
    assert tensor(pl.Series([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(cembra.DataError, match="nulls"):
        tensor(pl.Series([1.0, None]))


def test_outputs_pickle():
    import pickle

    made = cembra.compile('input x: f64; output a = x; output "b c" = x * 2.0')(1.5)
    again = pickle.loads(pickle.dumps(made))
    assert again == made and again.a == 1.5 and again._fields == made._fields == ("a", "_1")
    assert type(again) is type(made)


def test_masks_of_arrays_of_any_length_and_stride():
    model = cembra.compile("input x: [f64?]; x + 1.0")
    for length in (0, 1, 63, 64, 65, 200):
        at = np.arange(length)
        x = np.ma.MaskedArray(at * 1.0, mask=(at * at % 5 == 1) | (at == length - 1))
        for given in (x, x[::2], x[::-3]):
            made = np.ma.asanyarray(model(given))
            assert np.ma.getmaskarray(made).tolist() == np.ma.getmaskarray(given).tolist()
            assert made.tolist() == (given + 1.0).tolist()
