"""Tests of sessions, of tensors and their memory, of output arrays of the caller, limits, deadlines, cancellation, files, folders and warnings."""

import gc
import os
import pickle
import threading
import time
import warnings

import numpy as np
import pytest

import cembra

LONG = "core.while_loop"
BACKENDS = ["native", "interpreter"]
PRODUCT = """
input a: tensor[f64, 2], b: tensor[f64, 2]
y("i,j") = a("i,k") * b("k,j")
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_gives_what_the_model_gives(backend):
    model = cembra.compile("input x: f64, y: f64?; output a = x + 1.0; output b = y", backend=backend)
    session = model.session()
    assert session(1.0, y=None) == (2.0, None) and session(x=2.0, y=3.0) == (3.0, 3.0)
    arrays = cembra.compile("input x: [f64]; output y = x * 2.0; output s = math.sum(x)", backend=backend).session()
    made = arrays(np.array([1.0, 2.0]))
    assert made.y.tolist() == [2.0, 4.0] and made.s == 3.0
    untyped = cembra.compile("x * 2", backend=backend).session()
    assert (untyped(4), untyped(1.5), untyped(4)) == (8, 3.0, 8)


def test_a_session_of_tensors_writes_again_what_nobody_has():
    model = cembra.compile(PRODUCT)
    session = model.session()
    draw = np.random.default_rng(1)
    a, b = draw.random((40, 30)), draw.random((30, 20))
    kept = session(a, b)
    assert np.allclose(kept, a @ b) and kept.shape == (40, 20)
    before = kept.copy()
    other = session(a + 1.0, b)
    assert np.array_equal(kept, before) and np.allclose(other, (a + 1.0) @ b)
    # A view keeps the array of the session from being written again.
    part, wanted = other[1:3], ((a + 1.0) @ b)[1:3]
    del other
    session(a - 1.0, b)
    assert np.allclose(part, wanted)
    del part, kept
    places = set()
    for at in range(20):
        made = session(a + at, b)
        assert np.allclose(made, (a + at) @ b)
        places.add(made.ctypes.data)
        del made
    assert len(places) <= 2 and session.memory_bytes > 0
    # Other sizes, other strides, other orders of bytes.
    assert np.allclose(session(a[::2, ::-1], b[::-1]), a[::2, ::-1] @ b[::-1])
    assert np.allclose(session(np.asfortranarray(a), b.astype(">f8")), a @ b)
    assert session(np.zeros((0, 30)), b).shape == (0, 20)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_session_of_arrays_writes_again_what_nobody_has(backend):
    session = cembra.compile("input x: [f64?]; output y = x * 2.0; output z = x + 1.0", backend=backend).session()
    x = np.ma.MaskedArray(np.arange(5_000.0), np.arange(5_000) % 7 == 3)
    kept = session(x)
    # A view of a part, of an array that is dropped, and its owner without any array.
    part, owner = session(x + 1.0).y.data[2_000:], session(x + 2.0).z.data.base
    places = set()
    for at in range(3, 30):
        made = session(x + at)
        assert np.ma.allequal(made.y, (x + at) * 2.0) and np.ma.allequal(made.z, x + at + 1.0)
        assert np.array_equal(made.y.mask, x.mask)
        for array in made:
            places.add(array.ctypes.data)
            # What a caller writes is nobody else's.
            array[:] = -1.0
    # The interpreter makes its arrays anew.
    assert backend == "interpreter" or len(places) <= 8
    assert np.ma.allequal(kept.y, x * 2.0) and np.ma.allequal(kept.z, x + 1.0)
    assert np.ma.allequal(np.ma.MaskedArray(part, x.mask[2_000:]), (x + 1.0)[2_000:] * 2.0)
    del owner, kept
    # Other lengths, few elements, none, and other sizes of numbers.
    for count in (3, 0, 1_024, 70_000):
        y = np.arange(float(count))
        assert session(y).y.tolist() == (y * 2.0).tolist()
    assert session(x).z.tolist() == (x + 1.0).tolist()


def test_arrays_that_are_given_back_are_copied_or_handed_over():
    x = np.arange(3_000.0)
    same = cembra.compile("input x: [f64]; output a = x; output b = x")
    for call in (same, same.session()):
        made = call(x)
        made.a[5] = -1.0
        assert made.b[5] == x[5] == 5.0 and made.a[6] == 6.0
    doubled = cembra.compile("input x: [i32]; output a = x * 2")
    made = doubled(np.arange(3_000, dtype="i4"))
    assert made.dtype == np.int32 and made[2_999] == 5_998 and made.flags.writeable and made.flags.aligned
    # The array is the last to have its memory.
    del doubled
    gc.collect()
    made += 1
    assert made[2_999] == 5_999 and pickle.loads(pickle.dumps(made))[0] == 1


def test_the_arrays_of_a_tensor_are_writable_and_belong_to_python():
    model = cembra.compile("input x: tensor[f64, 1]; y(\"i\") = x(\"i\") * 2.0")
    x = np.arange(4.0)
    first, second = model(x), model(x)
    first[0] = 7.0
    assert second.tolist() == [0.0, 2.0, 4.0, 6.0] and model(x).tolist() == second.tolist() and x[0] == 0.0
    # What comes in comes out: then memory is shared, and copied.
    same = cembra.compile("input x: tensor[f64, 1]; output y = x; output z = x")
    made = same(x)
    made.y[1] = 9.0
    assert made.z.tolist() == x.tolist()


def test_tensors_of_other_packages():
    class Half:
        """An array that has only DLPack's interface."""

        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **kwargs):
            return self._array.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    model = cembra.compile("input x: tensor[f32, 2]; y(\"j,i\") = x(\"i,j\")")
    x = np.arange(6, dtype="f4").reshape(2, 3)
    assert model(Half(x)).tolist() == x.T.tolist()
    assert model(x.astype("f2")).tolist() == x.T.tolist()
    assert model([[1, 2], [3, 4]]).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert np.from_dlpack(model(x)).tolist() == x.T.tolist()
    with pytest.raises(cembra.DataError, match="float64"):
        model(x.astype("f8"))
    with pytest.raises(cembra.DataError, match="no memory|elements"):
        cembra.compile("input x: tensor[f64, 1]; y(\"i\") = x(\"i\") * 2.0")(np.broadcast_to(np.float64(1.0), 2**44))


def test_arrays_of_the_caller_are_written():
    model = cembra.compile("input x: f64, y: f64?; output a = x * 2.0; output b = x + y")
    x = np.arange(5.0)
    y = np.ma.MaskedArray(np.ones(5), [False, True, False, False, True])
    a, b = np.full(5, -1.0), np.ma.MaskedArray(np.full(5, -1.0), True)
    outputs, failed, messages = model.run({"x": x, "y": y}, out={"a": a, "b": b})
    assert outputs.a is a and outputs.b is b and not failed and not messages
    assert a.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0] and b.tolist() == [1.0, None, 3.0, 4.0, None]
    # Masks of the caller's that are hard, or of another array too, or that there are not.
    hard, none = np.ma.MaskedArray(np.zeros(5), [True, False, False, False, False], hard_mask=True), np.ma.MaskedArray(np.zeros(5))
    assert model.run({"x": x, "y": y}, out={"b": hard})[0].b.tolist() == [None, None, 3.0, 4.0, None]
    assert model.run({"x": x, "y": y}, out={"b": none})[0].b.tolist() == [1.0, None, 3.0, 4.0, None]
    mask = np.ones(9, bool)
    strided = np.ma.MaskedArray(np.zeros(5), mask[::2], copy=False)
    assert model.run({"x": x, "y": y}, out={"b": strided})[0].b.tolist() == [1.0, None, 3.0, 4.0, None]
    only, _, _ = model.run({"x": x, "y": y}, out={"a": a[:]})
    assert only.a.tolist() == a.tolist()
    part = np.zeros(10)
    for out, hint in [
        ({"a": np.zeros(4)}, "4 elements, but must have 5"),
        ({"a": np.zeros(5, "f4")}, "one axis and this type"),
        ({"a": part[::2]}, "must be contiguous"),
        ({"a": x}, "shares memory with input `x`"),
        ({"a": np.broadcast_to(np.float64(0.0), 5)}, "read-only"),
        ({"a": np.ma.MaskedArray(np.zeros(5))}, "must not be a masked array"),
        ({"b": np.zeros(5)}, "must be a masked array"),
        ({"a": [0.0] * 5}, "one axis and this type"),
    ]:
        with pytest.raises(cembra.DataError, match=hint):
            model.run({"x": x, "y": y}, out=out)
    with pytest.raises(ValueError, match="'c', which is not an output"):
        model.run({"x": x, "y": y}, out={"c": a})
    assert x.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


ROUNDS = """
input n: i64
output y = seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64)
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_limits_deadlines_and_cancellation(backend):
    model = cembra.compile(ROUNDS, backend=backend)
    assert model.session()(1000) == 499_500
    with pytest.raises(cembra.LimitError, match="iterations|rounds"):
        model.session(limits={"loop_iterations": 100})(1000)
    with pytest.raises(cembra.LimitError):
        cembra.compile(ROUNDS, backend=backend, limits={"loop_iterations": 100})(1000)
    with pytest.raises(cembra.LimitError):
        cembra.compile("x + 1 + 2 + 3 + 4", limits={"nodes": 3}, types={"x": "i64"})
    with pytest.raises(ValueError, match="there is no limit `node`"):
        cembra.compile("1", limits={"node": 3})
    with pytest.raises(ValueError):
        cembra.compile("1", limits={"nodes": -3})
    # A session may take at most what its model may.
    with pytest.raises(cembra.LimitError):
        model.session(limits={"loop_iterations": 10**18})(10**15)
    model = cembra.compile(ROUNDS, backend=backend, limits={"loop_iterations": 10**18})
    with pytest.raises(cembra.EvaluationError) as raised:
        model.session(time_limit=0.02)(10**15)
    assert raised.value.code == "deadline"
    token = cembra.Cancellation()
    session = model.session(cancellation=token)
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(cembra.EvaluationError) as raised:
        session(10**15)
    assert raised.value.code == "cancelled" and token.is_cancelled
    with pytest.raises(cembra.EvaluationError):
        model.run({"n": np.array([1, 2])}, cancellation=token)
    assert model.run({"n": np.array([1, 2])}, time_limit=60.0)[0].tolist() == [0, 1]
    for wrong in [-1.0, float("nan"), float("inf")]:
        with pytest.raises(cembra.DataError, match="time_limit"):
            model.session(time_limit=wrong)


def test_a_session_is_for_one_thread_at_a_time():
    session = cembra.compile(ROUNDS, limits={"loop_iterations": 10**18}).session(time_limit=2.0)
    began = threading.Event()

    def long():
        began.set()
        with pytest.raises(cembra.EvaluationError):
            session(10**15)

    worker = threading.Thread(target=long)
    worker.start()
    began.wait()
    found = None
    for _ in range(2000):
        try:
            session(1)
        except cembra.DataError as error:
            found = error
            break
        time.sleep(0.0005)
    worker.join()
    assert "one thread" in str(found)
    assert session(1000) == 499_500


def test_files_and_folders(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/tax.cem").write_text("let vat = 0.25\nfn taxed(x) = x * (1.0 + vat)")
    (tmp_path / "price.cem").write_text('use "lib/tax.cem"\ninput price: f64\noutput total = taxed(price)')
    model = cembra.load(tmp_path / "price.cem")
    assert model(4.0) == 5.0
    kept = pickle.dumps(model)
    (tmp_path / "lib/tax.cem").write_text("let vat = 0.5\nfn taxed(x) = x * (1.0 + vat)")
    assert pickle.loads(kept)(4.0) == 5.0 and cembra.load(str(tmp_path / "price.cem"))(4.0) == 6.0
    given = cembra.compile('use "tax.cem"\ninput x: f64\nx * vat', files={"tax.cem": "let vat = 0.25"})
    assert given(4.0) == 1.0 and pickle.loads(pickle.dumps(given))(4.0) == 1.0
    with pytest.raises(cembra.TextError, match="tax.cem"):
        cembra.compile('use "tax.cem"; 1')
    with pytest.raises(cembra.TextError, match="in the folder of the model"):
        cembra.compile('use "../tax.cem"; 1', files={"../tax.cem": "let vat = 1"})
    with pytest.raises(FileNotFoundError):
        cembra.load(tmp_path / "nowhere.cem")
    (tmp_path / "broken.cem").write_text("1 +")
    with pytest.raises(cembra.TextError, match="broken.cem"):
        cembra.load(tmp_path / "broken.cem")

    models = cembra.ModelSet(tmp_path)
    assert models.names() == ["price"] and list(models) == ["price"] and len(models) == 1 and "price" in models
    first = models["price"]
    assert first(4.0) == 6.0 and models["price"] is first
    with pytest.raises(KeyError, match="rates"):
        models["rates"]
    (tmp_path / "rates.cem").write_text("input x: f64; x * 2.0")
    (tmp_path / "lib/tax.cem").write_text("let vat = 1.0\nfn taxed(x) = x * (1.0 + vat)")
    changed = models.reload()
    assert (changed["added"], changed["replaced"], changed["removed"]) == (["rates"], ["price"], [])
    assert list(changed["failed"]) == ["broken"] and "broken.cem" in changed["failed"]["broken"]
    assert models["price"](4.0) == 8.0 and first(4.0) == 6.0 and models["rates"](2.0) == 4.0
    assert pickle.loads(pickle.dumps(models["price"]))(4.0) == 8.0
    os.remove(tmp_path / "price.cem")
    assert models.reload()["removed"] == ["price"] and "price" not in models
    with pytest.raises(FileNotFoundError) as raised:
        cembra.ModelSet(tmp_path / "nowhere")
    assert (raised.value.errno, str(raised.value.filename)) == (2, str(tmp_path / "nowhere"))


def test_warnings_are_those_of_python():
    with pytest.warns(cembra.ModelWarning, match="unused") as found:
        cembra.compile("input x: f64; let unused = x + 1.0; x")
    assert found[0].filename == __file__
    untyped = cembra.compile("let unused = x + 1; x")
    with pytest.warns(cembra.ModelWarning, match="unused"):
        untyped(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert untyped(2) == 2
        with pytest.raises(cembra.ModelWarning):
            untyped(2.5)


def test_a_notebook_shows_a_model():
    shown = cembra.compile("input x: f64; output y = x < 2.0")._repr_html_()
    assert "<td>x</td><td>f64</td>" in shown and "x &lt; 2.0" in shown and "outputs: y" in shown


def test_sessions_do_not_grow():
    session = cembra.compile(PRODUCT).session()
    a = np.ones((200, 200))
    session(a, a)
    before = session.memory_bytes
    for _ in range(50):
        session(a, a)
    gc.collect()
    assert session.memory_bytes == before
