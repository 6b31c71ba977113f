"""Fifty kinds of calls of the Python package on memory that is lent to it, for valgrind, which sees each byte that is read or written outside of its
owner. `.ci/doors` runs it; each call's values are compared, so that a call that does nothing fails.

    PYTHONMALLOC=malloc valgrind --undef-value-errors=no --suppressions=tests/outside/lent.supp target/doors/bin/python tests/outside/lent.py
"""

import gc
import itertools

import numpy as np
import pyarrow as pa

import cembra

ROWS = 1500
NUMBERS = {"f32": "f4", "f64": "f8", "i32": "i4", "i64": "i8"}
CALLS = itertools.count(1)


def call(what, run, want):
    """One call, its values, and what is left after its inputs are gone."""
    made = run()
    gc.collect()
    got = made.to_pylist() if hasattr(made, "to_pylist") else np.asarray(made).tolist()
    assert got == (want if isinstance(want, list) else want.tolist()), what
    print(next(CALLS), what)


def columns():
    for qtype, dtype in NUMBERS.items():
        x = np.arange(ROWS).astype(dtype)
        model = cembra.compile(f"input x: {qtype}; output y = x + x")
        call(f"NumPy {dtype}", lambda: model(x), x + x)
        call(f"NumPy {dtype}, two threads", lambda: model.run({"x": x}, threads=2)[0], x + x)
        call(f"NumPy {dtype}, from behind", lambda: model(x[::-1]), (x + x)[::-1])
        call(f"NumPy {dtype}, each third", lambda: model(x[1::3]), (x + x)[1::3])
        out = np.empty(ROWS, dtype)
        call(f"NumPy {dtype}, out", lambda: model.run({"x": x}, out={"y": out})[0], x + x)
        whole = pa.array(x)
        call(f"Arrow {dtype}, a slice", lambda: model(whole.slice(7, 900)), (x + x)[7:907])
        chunks = pa.chunked_array([whole.slice(3, 40), whole.slice(0, 0), whole.slice(50, 700)])
        call(f"Arrow {dtype}, chunks", lambda: model(chunks), np.concatenate([(x + x)[3:43], (x + x)[50:750]]))


def optional():
    given = [None if at % 3 == 0 else float(at) for at in range(ROWS)]
    want = [None if value is None else value * 2.0 for value in given]
    model = cembra.compile("input x: f64?; output y = x * 2.0")
    call("Arrow with nulls", lambda: model(pa.array(given)), want)
    call("Arrow with nulls, from a bit within a byte", lambda: model(pa.array(given).slice(5)), want[5:])
    masked = np.ma.masked_array(np.arange(ROWS) * 1.0, [at % 3 == 0 for at in range(ROWS)])
    call("a mask of NumPy", lambda: model(masked).filled(-1.0), [-1.0 if value is None else value for value in want])
    bits = [None if at % 5 == 0 else at % 2 == 0 for at in range(ROWS)]
    model = cembra.compile("input x: bool?; output y = x")
    call("bits of Arrow", lambda: model(pa.array(bits).slice(3)), bits[3:])


def texts():
    given = [None if at % 7 == 0 else "a text of more than twelve bytes " * (at % 3) + str(at) for at in range(ROWS)]
    model = cembra.compile("input x: text?; output y = x")
    for qtype in (pa.string(), pa.large_string(), pa.string_view()):
        call(f"{qtype}", lambda: model(pa.array(given, qtype).slice(2)), given[2:])
    call("a dictionary", lambda: model(pa.array(given).dictionary_encode()), given)
    call("objects of NumPy", lambda: model(np.array(given, object)), given)


def arrays():
    x = np.arange(float(ROWS))
    model = cembra.compile("input x: [f64]; output y = math.sum(x)")
    call("an array of NumPy", lambda: [model(x)], [x.sum()])
    call("an array of NumPy, from behind", lambda: [model(x[::-1])], [x.sum()])
    lists = pa.array([[1.0] * (at % 5) for at in range(ROWS)])
    call("lists of Arrow", lambda: model(lists.slice(3, 900)), [float(at % 5) for at in range(3, 903)])
    large = lists.cast(pa.large_list(pa.float64()))
    call("large lists of Arrow", lambda: model(large.slice(3, 900)), [float(at % 5) for at in range(3, 903)])


def tensors():
    x = np.arange(48.0 * 40).reshape(48, 40)
    model = cembra.compile('input x: tensor[f64, 2]; y("i") = x("i,j") * x("i,j")')
    want = (x * x).sum(axis=1)
    session = model.session()
    for name, given in {"rows": x, "columns": np.asfortranarray(x), "each second": np.repeat(x, 2, axis=1)[:, ::2]}.items():
        call(f"a tensor, {name}", lambda: model(given), want)
        call(f"a tensor in a session, {name}", lambda: session(given), want)
    kept = [session(x * factor) for factor in (1.0, 2.0, 3.0)]
    call("arrays of a session that are kept", lambda: np.concatenate(kept), np.concatenate([want, 4 * want, 9 * want]))
    small = cembra.compile('input x: tensor[f64, 1]; y("i") = x("i") * 2.0')
    call("a small tensor", lambda: small(np.arange(8.0)), 2.0 * np.arange(8.0))


def refused():
    x = np.arange(float(ROWS))
    model = cembra.compile("input x: f64; output y = x * 2.0")
    for out in (x, x[::-1], x.view("i8").view("f8")):
        try:
            model.run({"x": x}, out={"y": out})
        except cembra.DataError:
            continue
        raise AssertionError("`out` upon an input")
    call("after `out` was refused", lambda: model(x), x * 2.0)


for part in (columns, optional, texts, arrays, tensors, refused):
    part()
