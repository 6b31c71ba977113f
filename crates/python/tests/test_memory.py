"""Tests of shared memory: `out` arrays that overlap inputs, arrays that are written or resized during a call, and values that outlive their call."""

import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import cembra

N = 64


def buffers(array):
    """Returns the buffers of an Arrow array as NumPy arrays that can write them, by their positions."""
    found = array.buffers() + (array.dictionary.buffers() if isinstance(array, pa.DictionaryArray) else [])
    return [(at, one) for at, one in enumerate(found) if one is not None and one.size > 0]


def over(address, count, dtype):
    """Makes a NumPy array at an address. NumPy does not know that it shares memory with another array."""
    dtype = np.dtype(dtype)
    place = {"shape": (count,), "typestr": dtype.str, "data": (address, False), "version": 3}
    return np.asarray(type("Memory", (), {"__array_interface__": place})())


ARROW = {
    "values": (pa.array([1.0, None] * N), "f64?"),
    "bits": (pa.array([True, None] * 8 * N), "bool?"),
    "offsets": (pa.array(["a", None, "a text of more than twelve bytes"] * N), "text?"),
    "large offsets": (pa.array(["a", None] * N, pa.large_string()), "text?"),
    "views": (pa.array(["a", None, "a text of more than twelve bytes"] * N, pa.string_view()), "text?"),
    "keys": (pa.array(["a", None, "bb"] * N).dictionary_encode(), "text?"),
    "numbers of a dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 1, None] * N, "i4"), pa.array([1.0, 2.0])), "f64?"),
    "lists": (pa.array([[1.0], [2.0, 3.0]] * N), "[f64]"),
    "large lists": (pa.array([[1.0], [2.0, 3.0]] * N, pa.large_list(pa.float64())), "[f64]"),
}


@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("as_chunks", [False, True])
def test_out_is_not_upon_a_buffer_of_arrow(kind, as_chunks):
    column, qtype = ARROW[kind]
    rows = len(column)
    given = pa.chunked_array([column.slice(0, 0), column]) if as_chunks else column
    model = cembra.compile(f"input c: {qtype}, x: i32; output y = x; output s = c")
    found = buffers(column)
    assert len(found) > 1
    for _, buffer in found:
        # From the last byte on, and up to the first.
        for start in [buffer.address + buffer.size - 1, buffer.address - 4 * rows + 4]:
            x = np.arange(rows, dtype="i4")
            out = {"y": over(start & ~3, rows, "i4")}
            with pytest.raises(cembra.DataError, match="`out` for `y` shares memory with input `c`: give `out`"):
                model.run({"c": given, "x": x}, out=out)


def test_memory_that_only_touches_is_taken():
    memory = np.zeros(3 * N + 2)
    model = cembra.compile("input x: f64, y: f64; output a = x * 2.0; output b = x + y")
    x, y, a, b = memory[:N], memory[N : 2 * N], memory[2 * N : 3 * N], np.zeros(N)
    memory[: 2 * N] = np.arange(2.0 * N)
    want = x * 2.0, x + y
    model.run({"x": pa.array(x), "y": y}, out={"a": over(a.ctypes.data, N, "f8"), "b": b})
    assert (a == want[0]).all() and (b == want[1]).all()
    # Two numbers at each place from in front of the input to behind it.
    few = {"x": memory[N : N + 2], "y": b[:2]}
    for at in range(N - 3, N + 4):
        out = over(memory.ctypes.data + 8 * at, 2, "f8")
        if at + 2 <= N or at >= N + 2:
            model.run(few, out={"a": out})
            continue
        with pytest.raises(cembra.DataError, match="shares memory with input `x`"):
            model.run(few, out={"a": out})


def test_out_is_not_upon_arrays_of_numpy():
    memory = bytearray(8 * (N + 1))
    a, b = np.frombuffer(memory), np.frombuffer(memory)
    a[:] = np.arange(len(a))
    model = cembra.compile("input x: f64; output y = x * 2.0")
    with pytest.raises(cembra.DataError, match="`out` for `y` shares memory with input `x`: give `out` an array"):
        model.run({"x": a[:-1]}, out={"y": b[1:]})
    assert (a == np.arange(len(a))).all()
    # Copied ones: of other strides, another order of bytes, another type, and at no multiple of their size.
    other = over(a.ctypes.data, N, "f8")
    halves, odd = np.frombuffer(memory, "f4"), np.frombuffer(memory, "f8", N, 1)
    for given in [a[: N : 2], a[: N : 2][::-1], a[: N // 2].view(">f8"), halves[: N // 2], odd[: N // 2], a[:1]]:
        rows = len(given)
        with pytest.raises(cembra.DataError, match="shares memory with input `x`"):
            model.run({"x": given}, out={"y": other[:rows]})
    # A mask, and values below one.
    optional = cembra.compile("input x: f64?; output y = x ?? 0.0")
    bits = np.frombuffer(memory, "?", N)
    for given in [np.ma.MaskedArray(np.zeros(N), bits, copy=False), np.ma.MaskedArray(other, np.zeros(N, bool), copy=False)]:
        with pytest.raises(cembra.DataError, match="shares memory with input `x`"):
            optional.run({"x": given}, out={"y": b[:N]})
    # One array for all rows, and an input that no output needs.
    shared = cembra.compile("input v: [f64], x: f64, z: f64; output y = x + math.sum(v)")
    x, z = np.zeros(N), np.zeros(N)
    for given in [{"v": a[:N], "z": z}, {"v": [1.0], "z": a[:N]}, {"v": [1.0], "z": pa.array(a[:N])}, {"v": a[: N : 4], "z": z}]:
        with pytest.raises(cembra.DataError, match="shares memory with input `[vz]`"):
            shared.run({"x": x, **given}, out={"y": b[:N]})


def test_arrays_of_out_are_not_upon_each_other():
    model = cembra.compile("input x: f64, z: f64?; output a = x * 2.0; output b = x + 1.0; output c = x + z")
    x = np.arange(float(N))
    z = np.ma.MaskedArray(np.ones(N), np.arange(N) % 2 == 0)
    memory = bytearray(8 * 2 * N)
    [a, b] = [np.frombuffer(memory, "f8", N, 8 * at) for at in [0, N]]
    made = model.run({"x": x, "z": z}, out={"a": a, "b": b})[0]
    assert (made.a == x * 2.0).all() and (made.b == x + 1.0).all()
    masked = np.ma.MaskedArray(np.zeros(N), np.frombuffer(memory, "?", N, 8 * N), copy=False)
    own = np.ma.MaskedArray(a, np.frombuffer(memory, "?", N), copy=False)
    for out, what in [
        ({"a": a, "b": np.frombuffer(memory, "f8", N, 8 * (N - 1))}, "`out` for `a`"),
        ({"b": b, "c": masked}, "`out` for `b`"),
        ({"c": own}, "its own mask"),
    ]:
        with pytest.raises(cembra.DataError, match=f"shares memory with {what}: give `out`"):
            model.run({"x": x, "z": z}, out=out)
    # The mask of an input.
    with pytest.raises(cembra.DataError, match="shares memory with input `z`"):
        model.run({"x": x, "z": z}, out={"c": np.ma.MaskedArray(np.zeros(N), z.mask, copy=False)})


def test_columns_that_operators_make_are_not_written():
    kept = {}

    @cembra.operator("memory.same", "f64", "f64", columns=True)
    def same(x):
        return kept["out"][:]

    model = cembra.compile("input x: f64; output y = memory.same(x) + 1.0")
    kept["out"] = np.zeros(N)
    assert model.run({"x": np.arange(float(N))})[0].tolist() == [1.0] * N
    out = over(kept["out"].ctypes.data, N, "f8")
    with pytest.raises(cembra.DataError, match="shares memory with the result of an operator over columns"):
        model.run({"x": np.arange(float(N))}, out={"y": out})


GROUPS = [
    "math.sum(x, into=e)",
    "math.cum_sum(x, over=e)",
    "math.median(x, into=e)",
    "math.max(x, into=e)",
    "math.argmax(x, into=e)",
    "edge.sizes(e)",
    "edge.mapping(e)",
    "strings.agg_join(array.expand([\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\"], e), into=e)",
    "array.expand([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], e)",
]


@pytest.mark.parametrize("result", GROUPS)
@pytest.mark.parametrize("written", [1_000_000_000, -1, 3])
def test_an_edge_has_its_own_groups(result, written):
    model = cembra.compile(f"input x: [f64]; input e: edge; output y = {result}; output n = array.size(x)")
    x = np.arange(4096.0)
    groups = np.arange(4096) % 10
    want = model(x, cembra.Edge.from_mapping(groups.copy(), 10)).y
    edge = cembra.Edge.from_mapping(groups, 10)
    groups[:] = written
    assert np.array_equal(np.asarray(model(x, edge).y), np.asarray(want))
    assert edge.mapping.tolist() == (np.arange(4096) % 10).tolist()


def test_an_edge_of_an_array_that_a_session_gave():
    model = cembra.compile("input n: [i64]; output g = n + 0i64")
    session = model.session()
    groups = session(np.arange(4096) % 10)
    edge = cembra.Edge.from_mapping(groups, 10)
    groups[:] = 1_000_000_000
    sums = cembra.compile("input x: [f64]; input e: edge; math.sum(x, into=e)")
    assert np.asarray(sums(np.ones(4096), edge)).tolist() == [410.0] * 6 + [409.0] * 4


def test_arrays_are_free_after_a_call():
    n = 5000
    models = {
        "x * 2.0": lambda x: {"x": x},
        "input x: [f64]; math.sum(x)": lambda x: {"x": x},
        "input x: tensor[f64, 1]; y(\"i\") = x(\"i\") * 2.0": lambda x: {"x": x},
    }
    for text, given in models.items():
        x = np.arange(float(n))
        cembra.compile(text)(**given(x))
        x.resize(10, refcheck=False)
        assert x.tolist() == list(range(10)), text
    # And after one that failed.
    model = cembra.compile("input x: [f64], y: [f64]; math.sum(x) + math.sum(y)")
    x = np.arange(float(n))
    with pytest.raises(cembra.Error):
        model(x=x, y="no array")
    x.resize(10, refcheck=False)
    assert len(x) == 10


RESIZED = [
    ("x + memory.resized(1.0)", lambda x: x, 10),
    ("x + memory.resized(1.0)", lambda x: x, 100_000),
    ("x + memory.resized(1.0)", lambda x: x[1:], 100_000),
    ("x + memory.resized(1.0)", lambda x: np.frombuffer(x), 100_000),
    ("input x: [f64]; math.sum(map(fn(v) = v + memory.resized(1.0), x))", lambda x: x, 100_000),
    ("input x: [f64]; math.sum(x) + memory.resized(1.0)", lambda x: x[8:], 100_000),
]

STATE = {"resize": lambda: None, "errors": []}


@cembra.operator("memory.resized", "f64", "f64", pure=False)
def resized(one):
    try:
        STATE["resize"]()
    except ValueError as error:
        STATE["errors"].append(str(error))
    return one


@pytest.mark.parametrize("at", range(len(RESIZED)))
def test_an_array_that_is_read_is_not_resized(at):
    text, view, n = RESIZED[at]
    x = np.arange(float(n))
    given = view(x)
    want = given + 1.0 if "[f64]" not in text else None
    STATE["errors"].clear()
    STATE["resize"] = lambda: x.resize(1, refcheck=False)
    made = cembra.compile(text)(given)
    STATE["resize"] = lambda: None
    assert len(STATE["errors"]) >= 1 and all("cannot resize" in error for error in STATE["errors"])
    assert len(x) == n
    assert want is None or (made == want).all()
    del given
    x.resize(1, refcheck=False)


def test_an_array_that_is_written_is_not_resized():
    for n in [10, 100_000]:
        x, y = np.arange(float(n)), np.zeros(n)
        STATE["errors"].clear()
        STATE["resize"] = lambda: y.resize(1, refcheck=False)
        cembra.compile("x + memory.resized(1.0)").run({"x": x}, out={"result": y})
        STATE["resize"] = lambda: None
        assert "cannot resize" in STATE["errors"][0] and (y == x + 1.0).all()
        y.resize(1, refcheck=False)


def test_truth_values_of_any_byte_are_one_of_two():
    bytes = np.full(5000, 255, "u1")
    bytes[::3] = 0
    for given in [bytes, bytes[:10], bytes[::-1]]:
        made = cembra.compile("input x: tensor[bool, 1]; output y = x")(given.view("?"))
        assert made.view("u1").tolist() == (given != 0).astype("u1").tolist()


def test_slices_of_arrow_are_copied_no_further_than_they_reach():
    texts = ["a", None, "a text of more than twelve bytes", "é"] * 1000
    model = cembra.compile("input t: text?; output n = strings.length(t); output u = strings.upper(t)")
    for array in [
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(texts).dictionary_encode(),
        pa.chunked_array([pa.array(texts[:7]).dictionary_encode()] * 3 + [pa.array(["zz", None]).dictionary_encode()]),
        pa.chunked_array([pa.array(texts, pa.string_view())[at : at + 9] for at in range(0, 4000, 400)]),
        pl.Series(texts),
        pl.Series(texts, dtype=pl.Categorical),
    ]:
        for part in [array, array[5:], array[1:1], array[3:11], array[:1]]:
            listed = part.to_pylist() if isinstance(part, (pa.Array, pa.ChunkedArray)) else part.to_list()
            made = model.run({"t": part})[0]
            as_list = lambda column: column.to_pylist() if isinstance(column, (pa.Array, pa.ChunkedArray)) else column.to_list()
            assert as_list(made.n) == [None if text is None else len(text) for text in listed]
            assert as_list(made.u) == [None if text is None else text.upper() for text in listed]
    lists = cembra.compile("input v: [f64]; output s = math.sum(v)")
    for array in [pa.array([[1.0], [], [2.0, 3.0]] * 50), pa.array([[1.0], [], [2.0, 3.0]] * 50, pa.large_list(pa.float64()))]:
        for part in [array, array[2:], array[4:9]]:
            assert lists.run({"v": part})[0].to_pylist() == [sum(one) for one in part.to_pylist()]


def test_shared_memory_of_many_chunks_is_copied_once():
    text = "x" * 1_000_000
    view = pa.array([text + text], pa.string_view())
    model = cembra.compile("input t: text; output n = strings.length(t)", limits={"array_bytes": 64_000_000})
    [views, data] = [one for one in view.buffers() if one is not None]
    chunks = []
    for at in range(2000):
        moved = np.frombuffer(views, "u4").copy()
        moved[0], moved[1], moved[3] = 1_000_000 + at % 7, int.from_bytes(b"xxxx", "little"), at
        chunks.append(pa.Array.from_buffers(pa.string_view(), 1, [None, pa.py_buffer(moved), data]))
    assert model.run({"t": pa.chunked_array(chunks)})[0].to_pylist() == [1_000_000 + at % 7 for at in range(2000)]


WRITER = """
import threading
import numpy as np, pyarrow as pa, cembra

kind = {kind!r}
n = 1 << 14
stop = threading.Event()
text = "some text of many bytes"
if kind == "keys":
    memory, good, bad = np.zeros(n, "i4"), 1, 2_000_000_000
    column = pa.DictionaryArray.from_arrays(pa.array(memory), pa.array(["a", "bb"]))
    model = cembra.compile("input c: text?; output n = strings.length(c)")
elif kind == "keys of numbers":
    memory, good, bad = np.zeros(n, "i8"), 1, 1 << 60
    column = pa.DictionaryArray.from_arrays(pa.array(memory), pa.array([1.0, 2.0]))
    model = cembra.compile("input c: f64?; output n = c * 2.0")
elif kind == "nulls":
    keys = np.full(n, 2_000_000_000, "i4")
    memory, good, bad = np.zeros(n // 8, "u1"), 0, 255
    values = pa.array(["a", "bb"])
    keys = pa.Array.from_buffers(pa.int32(), n, [pa.py_buffer(memory), pa.py_buffer(keys)])
    column = pa.DictionaryArray.from_arrays(keys, values, safe=False)
    model = cembra.compile("input c: text?; output n = strings.length(c)")
elif kind == "offsets":
    good = np.arange(n + 1, dtype="i4")
    memory, bad = good.copy(), 2_000_000_000
    column = pa.StringArray.from_buffers(n, pa.py_buffer(memory), pa.py_buffer(b"x" * n))
    model = cembra.compile("input c: text; output n = strings.length(c); output u = strings.upper(c)")
elif kind == "bytes":
    memory, good, bad = np.full(n, 120, "u1"), 120, 0xF0
    offsets = np.arange(n + 1, dtype="i4")
    column = pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(memory))
    model = cembra.compile("input c: text; output n = strings.length(c); output u = strings.upper(c)")
elif kind == "views":
    made = pa.array([text] * n, pa.string_view())
    memory = np.frombuffer(made.buffers()[1], "u4").copy()
    good, bad = memory.copy(), 0x7FFFFFFF
    column = pa.Array.from_buffers(pa.string_view(), n, [None, pa.py_buffer(memory)] + made.buffers()[2:])
    model = cembra.compile("input c: text; output n = strings.length(c); output u = strings.upper(c)")
elif kind == "lists":
    good = np.arange(n + 1, dtype="i4")
    memory, bad = good.copy(), 2_000_000_000
    column = pa.ListArray.from_arrays(pa.array(memory), pa.array(np.ones(n)))
    column = pa.Array.from_buffers(pa.list_(pa.float64()), n, [None, pa.py_buffer(memory)], children=[pa.array(np.ones(n))])
    model = cembra.compile("input c: [f64]; output n = math.sum(c)")
elif kind == "groups":
    memory, good, bad = np.ones(n, "i8"), 1, 1 << 60
    column = memory
    model = cembra.compile("input c: [i64]; output n = math.sum(c, into=edge.from_mapping(c, 3)); output m = array.at(c, c)")
else:
    memory, good, bad = np.ones(n, "i8"), 1, 1 << 60
    column = memory
    model = cembra.compile("input c: tensor[i64, 1]; y(\\"i\\") = c(\\"i\\") * 2i64")


def write():
    while not stop.is_set():
        memory[:] = bad
        memory[:] = good


table = pa.table({{"c": column}}) if kind not in ("groups", "tensors") else None
writer = threading.Thread(target=write)
writer.start()
made = refused = 0
try:
    for at in range(60):
        try:
            if at % 3 == 2 and table is not None:
                model.table(table)
            else:
                model(column)
            made += 1
        except cembra.Error:
            refused += 1
finally:
    stop.set()
    writer.join()
memory[:] = good
model(column)
print(made, refused)
"""


@pytest.mark.parametrize("kind", ["keys", "keys of numbers", "nulls", "offsets", "bytes", "views", "lists", "groups", "tensors"])
def test_memory_that_another_thread_writes_costs_no_more_than_values(kind):
    ended = subprocess.run([sys.executable, "-c", WRITER.format(kind=kind)], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    made, refused = map(int, ended.stdout.split())
    assert made + refused == 60


def test_offsets_beyond_the_bytes_are_refused():
    offsets = np.array([0, 1, 2], "i4")
    for array in [
        pa.StringArray.from_buffers(2, pa.py_buffer(offsets), pa.py_buffer(b"ab")),
        pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"ab")]),
    ]:
        offsets[:] = [0, 1, 2]
        model = cembra.compile(f"input c: {'text' if pa.types.is_string(array.type) else 'bytes'}; output y = c")
        assert len(model(array)) == 2
        table = pa.table({"c": array})
        for bad in [[0, 1, 2_000_000_000], [0, 2, 1], [-1, 1, 2], [0, 1, 3]]:
            offsets[:] = bad
            for call in [lambda: model(array), lambda: model.table(table)]:
                with pytest.raises(cembra.DataError):
                    call()


def test_an_array_gets_another_type_during_a_run():
    # Its memory stays, and its own extents and type are not asked again.
    kept = {}

    def retype(v):
        kept["x"].dtype = "u1"
        return v

    cembra.operator("test.retypes", "f64", "f64", pure=False)(retype)
    model = cembra.compile("input x: f64; output y = test.retypes(x) + x")
    for rows in (20, 5000):
        kept["x"] = np.arange(float(rows))
        assert (model(kept["x"]) == 2.0 * np.arange(rows)).all()
        assert len(kept["x"]) == 8 * rows


def test_an_array_that_a_function_of_python_changes_is_refused():
    kept = {}

    def change(v):
        kept["change"](kept["x"])
        return v

    cembra.operator("test.changes", "f64", "f64", columns=True)(change)
    model = cembra.compile("input x: f64; output y = test.changes(x) + x")
    for one in [lambda x: x.resize(1, refcheck=False), lambda x: setattr(x, "shape", (2, -1))]:
        kept.update(x=np.arange(5000.0), change=one)
        with pytest.raises(cembra.DataError, match="resized or reshaped while the call read it: arrays must keep their sizes"):
            model(kept["x"])


def test_names_of_out_are_not_asked_twice():
    x = np.arange(2000.0)
    out = np.zeros(2000)

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            x.resize(1, refcheck=False)
            return str.__eq__(self, other)

    model = cembra.compile("input x: f64; output y = x * 2.0")
    assert (model.run({"x": x}, out={Name("y"): out})[0] == 2.0 * np.arange(2000.0)).all()
    assert len(x) == 2000 and out[-1] == 3998.0


def test_out_of_another_class_is_its_own_memory():
    hidden = np.zeros(64)

    class Lying(np.ma.MaskedArray):
        data = property(lambda self: hidden)

    class Unmasked(np.ndarray):
        mask = np.zeros(1, bool)

    model = cembra.compile("input x: f64?; output y = x * 2.0")
    x = np.ma.MaskedArray(np.arange(64.0), np.arange(64) > 5)
    out = np.zeros(64).view(Lying)
    model.run({"x": x}, out={"y": out})
    assert (np.asarray(out)[:6] == 2.0 * np.arange(6)).all() and not hidden.any()
    with pytest.raises(cembra.DataError, match="shares memory with input `x`"):
        model.run({"x": x}, out={"y": x.view(np.ndarray).view(Lying)})
    # Only NumPy's own class has masks.
    with pytest.raises(cembra.DataError, match="must be a masked array"):
        model.run({"x": x}, out={"y": np.zeros(64).view(Unmasked)})


@pytest.mark.parametrize("count", [40, 40_000])
def test_a_masked_result_that_fails_leaves_no_view_of_freed_memory(count):
    model = cembra.compile("input x: [f64?]; output y = x + 1.0")
    x = np.ma.MaskedArray(np.arange(float(count)), np.arange(count) % 2 == 0)
    kept = []

    def raises(frame, event, _):
        if event == "call" and frame.f_code.co_name == "__new__" and "data" in frame.f_locals and not kept:
            kept.append(frame.f_locals["data"])
            raise InterruptedError

    session = model.session()
    for run in (model, session):
        kept.clear()
        sys.setprofile(raises)
        try:
            run(x)
        except InterruptedError:
            pass
        finally:
            sys.setprofile(None)
        for other in range(3):
            session(x * other)
        assert all((array[1::2] == np.arange(float(count))[1::2] + 1.0).all() for array in kept)


def test_views_by_strides_keep_their_memory_too():
    x = np.arange(300_000.0)
    view = np.lib.stride_tricks.sliding_window_view(x, len(x))[0]
    found = []

    def resize(v):
        try:
            x.resize(1, refcheck=False)
        except ValueError as error:
            found.append(str(error))
        return v

    cembra.operator("test.resizes", "f64", "f64")(resize)
    model = cembra.compile("input x: f64; output y = test.resizes(x)")
    assert model(view[:3]).tolist() == [0.0, 1.0, 2.0]
    assert len(found) == 3 and len(x) == 300_000


def strings(bad):
    """Returns pyarrow arrays, batches and readers with strings whose last offset was overwritten later, by the place of the strings."""
    offsets, bytes = np.array([0, 1, 2], "i4"), pa.py_buffer(b"ab")
    array = pa.Array.from_buffers(pa.binary(), 2, [None, pa.py_buffer(offsets), bytes])
    keys, points = pa.array([0, 1], "i4"), pa.array([0, 2], "i4")
    dictionary = pa.DictionaryArray.from_arrays(keys, array)
    struct = pa.StructArray.from_arrays([dictionary], ["c"])
    batch, dictionaries = pa.record_batch({"c": array}), pa.record_batch({"c": dictionary})
    made = {
        "array": (array, "bytes"),
        "chunks": (pa.chunked_array([array, array]), "bytes"),
        "dictionary": (dictionary, "bytes"),
        "list": (pa.ListArray.from_arrays(points, array), "[bytes]"),
        "list of a dictionary": (pa.ListArray.from_arrays(points, dictionary), "[bytes]"),
        "large list of a dictionary": (pa.LargeListArray.from_arrays(points.cast("i8"), dictionary), "[bytes]"),
        "sized list of a dictionary": (pa.FixedSizeListArray.from_arrays(dictionary, 2), "[bytes]"),
        "chunks of a list of a dictionary": (pa.chunked_array([pa.ListArray.from_arrays(points, dictionary)]), "[bytes]"),
        "batch": (batch, None),
        "struct": (struct, None),
        "reader": (pa.RecordBatchReader.from_batches(batch.schema, [batch, batch]), None),
        "reader of dictionaries": (pa.RecordBatchReader.from_batches(dictionaries.schema, [dictionaries]), None),
        "reader of a table": (pa.table({"c": array}).to_reader(), None),
    }
    offsets[2] = bad
    return made


@pytest.mark.parametrize("place", strings(2))
def test_offsets_are_within_the_buffers_of_pyarrow(place):
    def run(bad):
        given, qtype = strings(bad)[place]
        model = cembra.compile(f"input c: {qtype or 'bytes'}; output y = c")
        return model.run({"c": given})[0] if qtype else model.table(given)["y"]

    if "list of a dictionary" in place:
        # No input is of this type, which is found once it is imported.
        with pytest.raises(cembra.DataError, match="cannot be a column of"):
            run(2)
    else:
        assert run(2).to_pylist() in ([b"a", b"b"], [b"a", b"b"] * 2, [[b"a", b"b"]])
    for bad in [3, 400, 2_000_000_000]:
        with pytest.raises(cembra.DataError, match="has strings outside of its memory"):
            run(bad)


def test_readers_give_their_batches_and_exceptions():
    batch = pa.record_batch({"x": [1.0, 2.0], "t": pa.array(["a", None]).dictionary_encode()})
    model = cembra.compile("input x: f64, t: text?; output y = x * 2.0; output u = t")
    table = pa.Table.from_batches([batch] * 3)
    for reader in [table.to_reader(max_chunksize=1), pa.RecordBatchReader.from_stream(table)]:
        made = model.table(reader)
        assert (made["y"].to_pylist(), made["u"].to_pylist()) == ([2.0, 4.0] * 3, ["a", None] * 3)
    empty = model.table(pa.RecordBatchReader.from_batches(batch.schema, []))
    assert (empty.num_rows, empty.column_names) == (0, ["y", "u"])

    def stopped():
        yield batch
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.table(pa.RecordBatchReader.from_batches(batch.schema, stopped()))


def views(texts, seen):
    """Makes an array of string views into one buffer. `seen` has the first byte and the length of each view."""
    rows = [(size, int.from_bytes(texts[first : first + 4], "little"), 0, first) for first, size in seen]
    return pa.Array.from_buffers(pa.string_view(), len(seen), [None, pa.py_buffer(np.array(rows, "u4")), pa.py_buffer(texts)])


def test_views_that_overlap_are_checked_once():
    texts = b"\xff\xc3 " + "é".encode() * 20 + b"\xa9" + b"x" * 1_000_000
    model = cembra.compile("input t: text; output n = strings.length(t)")
    for is_list in [False, True]:
        lists = cembra.compile("input t: [text]; output n = array.size(t)")
        call = lambda array: lists(pa.ListArray.from_arrays(pa.array([0, len(array)], "i4"), array)) if is_list else model(array)
        # What no view sees may be any byte.
        good = [(3, 40), (5, 20), (2, 41), (44, 13), (44, 1_000_000), (21, 22)]
        assert len(call(views(texts, good))) == (1 if is_list else len(good))
        for bad in [(1, 30), (0, 13), (4, 20), (3, 21), (3, 41), (43, 20), (30, 100)]:
            with pytest.raises(cembra.DataError, match="UTF-8"):
                call(views(texts, good + [bad]))
    # A terabyte of text, if each view were read.
    many = views(texts, [(44 + at % 7, 999_990) for at in range(7)])
    buffers = many.buffers()
    rows = np.tile(np.frombuffer(buffers[1], "u4").reshape(7, 4), (150_000, 1))
    many = pa.Array.from_buffers(pa.string_view(), len(rows), [None, pa.py_buffer(rows), buffers[2]])
    # The bound only ends what would take minutes.
    made = cembra.compile('input t: text; output y = t == "a"').run({"t": many}, time_limit=10.0)[0]
    assert made.to_pylist() == [False] * len(rows)


def test_imports_end_with_their_token():
    cancelled = cembra.Cancellation()
    cancelled.cancel()
    # The token is looked at before strings are: these are not within their buffer, or not UTF-8.
    for given in [strings(400)["array"][0], strings(400)["chunks"][0], strings(400)["dictionary"][0], views(b"\xff" * 20, [(0, 20)])]:
        model = cembra.compile(f"input c: {'text' if given.type == pa.string_view() else 'bytes'}; output y = c")
        with pytest.raises(cembra.DataError):
            model(given)
        with pytest.raises(cembra.EvaluationError):
            model.run({"c": given}, cancellation=cancelled)


@pytest.mark.parametrize("qtype", ["f64", "[f64]", "{l: [f64]}", "tensor[f64, 1]"])
def test_imports_end_with_an_exception_that_asks_to_stop(qtype):
    class Stopping:
        def __arrow_c_stream__(self, requested_schema=None):
            raise KeyboardInterrupt

    given = {"l": Stopping()} if "{" in qtype else Stopping()
    model = cembra.compile(f"input x: {qtype}; output y = x")
    # A session takes one row, so no column.
    for call in [model] if qtype == "f64" else [model, model.session()]:
        with pytest.raises(KeyboardInterrupt):
            call(given)
