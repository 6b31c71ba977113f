"""Tests of invalid and hostile arguments, and of the lifetime of models: calls must raise errors, and the memory of the process must not grow."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import cembra


def resident():
    """Returns the bytes of memory that the process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_more_rows_than_there_is_memory_for():
    with pytest.raises((MemoryError, cembra.Error)):
        cembra.compile("x * 2.0")(x=np.broadcast_to(np.float64(1.5), 2**40))


@pytest.mark.parametrize("answer", [None, 1, (), (1, 2), (object(), object())])
def test_objects_that_only_look_like_arrays_of_arrow(answer):
    class Lying:
        def __arrow_c_array__(self, requested_schema=None):
            return answer

    with pytest.raises((TypeError, ValueError, IndexError, cembra.Error)):
        cembra.compile("x * 2.0")(x=Lying())


def test_errors_of_objects_are_theirs_or_ours():
    class Failing:
        def __arrow_c_array__(self, requested_schema=None):
            raise RuntimeError("no array today")

    with pytest.raises(RuntimeError, match="no array today"):
        cembra.compile("x * 2.0")(x=Failing())


def test_values_within_themselves():
    endless = []
    endless.append(endless)
    with pytest.raises(cembra.DataError):
        cembra.compile("input x: [f64]; math.sum(x)")(endless)
    knot = {}
    knot["x"] = knot
    with pytest.raises(cembra.DataError):
        cembra.compile("input s: {x: f64}; s.x")(s=knot)


def test_a_list_that_changes_while_it_is_read():
    class Growing:
        def __init__(self, all):
            self.all = all

        def __index__(self):
            self.all.clear()
            return 1

    all = []
    all.extend([Growing(all), 2, 3])
    assert cembra.compile("input x: [i64]; math.sum(x)")(all) == 1


def test_arrays_without_axes_and_arrays_of_more():
    model = cembra.compile("input x: f64; x * 2.0")
    assert model(np.array(1.5)) == 3.0
    with pytest.raises(cembra.DataError, match="an array of 2 axes"):
        model(np.zeros((2, 2)))


def test_ten_thousand_models_leave_no_memory():
    def some(count):
        for at in range(count):
            cembra.compile(f"input x: f64; x * {at}.0 + math.sqrt(x)")(1.5)
        gc.collect()

    some(500)
    before = resident()
    some(10_000)
    assert resident() - before < 8 << 20


def test_a_million_calls_leave_no_memory():
    model = cembra.compile("input x: f64, name: text; output y = x * 2.0; output t = name + '!'")
    column = np.arange(1000.0)
    double = cembra.compile("x * 2.0")

    def some(count):
        for _ in range(count):
            model(1.5, "a")
        for _ in range(count // 100):
            double(x=column)

    some(10_000)
    before = resident()
    some(200_000)
    assert resident() - before < 8 << 20


def test_a_process_may_fork_after_use():
    model = cembra.compile("input x: f64; x * 2.0")
    assert model(1.5) == 3.0
    child = os.fork()
    if child == 0:
        os._exit(0 if model(2.5) == 5.0 and cembra.compile("x + 1")(x=1) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


def peak_growth(prepare, call):
    """Returns the bytes by which a call raises the peak memory of a process. A copy that is freed during the call counts."""
    # Not `ru_maxrss`: a new process begins with that of the process that has started it.
    script = f"""
import numpy as np
import cembra

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

x = np.ones(10_000_000)
{prepare}
before = peak()
{call}
print(peak() - before)
"""
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)


def test_numbers_are_not_copied():
    prepare = "model = cembra.compile('x * 2.0'); model(x=x[:1000])"
    # The result, and nothing of the argument.
    assert 0.9 * 80e6 < peak_growth(prepare, "made = model(x=x)") < 1.3 * 80e6


@pytest.mark.parametrize("door", ["call", "table"])
@pytest.mark.parametrize(("offsets", "data"), [([0, 2], b"\xff\xfe"), ([0, -1, 2], b"ab"), ([0, 1, 2], "é".encode())])
def test_strings_of_arrow_that_are_none(door, offsets, data):
    pa = pytest.importorskip("pyarrow")
    buffers = [pa.py_buffer(np.array(offsets, "i4")), pa.py_buffer(data)]
    array = pa.StringArray.from_buffers(len(offsets) - 1, *buffers)
    model = cembra.compile("output y = x + '!'")
    with pytest.raises(cembra.DataError):
        model(x=array) if door == "call" else model.table(pa.table({"x": array}))


def test_a_process_may_end_while_threads_evaluate():
    script = """
import threading, time
import numpy as np
import cembra

model = cembra.compile("input x: f64; " + " + ".join(f"math.exp(x * {at}.0)" for at in range(40)))
cembra.operator("test.slow", "f64", "f64")(lambda x: x)
slow = cembra.compile("input x: f64; test.slow(x)")
rows, begun = np.ones(1_000_000), threading.Barrier(4)

def work(model):
    begun.wait()
    while True:
        model(rows)

for one in (model, model, slow):
    threading.Thread(target=work, args=(one,), daemon=True).start()
begun.wait()
time.sleep(0.2)
print("end")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "end\n", "")


def test_tables_that_are_none_and_columns_without_a_type():
    polars, model = pytest.importorskip("polars"), cembra.compile("x + 1.0")
    for call, hint in [
        (lambda: model(polars.Series([None, None])), "declare the input's type"),
        (lambda: model.table(polars.DataFrame({"x": [None]})), "declare the input's type"),
        (lambda: model.table(polars.LazyFrame({"x": [1.0]})), "LazyFrame is given: collect it first"),
        (lambda: model.table({"x": [1.0]}), "a dict of columns is given"),
    ]:
        with pytest.raises(cembra.DataError, match=hint):
            call()


@pytest.mark.parametrize("view", ["x", "x[::-1]", "x[::-2]", "x.reshape(1000, -1)", "x.reshape(1000, -1)[::-1, ::-1]", "x.reshape(1000, -1).T"])
def test_tensors_are_not_copied(view):
    prepare = f"x = {view}; model = cembra.compile('tensor.sum(x)', types={{'x': f'tensor[f64, {{x.ndim}}]'}}); model(x[:10])"
    assert peak_growth(prepare, "assert model(x) == x.size") < 0.1 * 80e6


def test_arrays_are_not_copied():
    prepare = "model = cembra.compile('input x: [f64]; math.sum(x)'); model(x[:1000])"
    assert peak_growth(prepare, "assert model(x) == x.size") < 0.1 * 80e6


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_memory_of_numpy_is_read_where_it_is(backend):
    whole = np.arange(40_000.0).reshape(200, 200)
    model = cembra.compile('input x: tensor[f64, 2]; output y("i,j") = x("i,j") * 2.0; output z("j,i") = x("i,j")', backend=backend)
    unaligned = np.frombuffer(b"." + whole.tobytes(), "f8", offset=1).reshape(200, 200)
    padded = np.zeros(40_000, [("a", "i2"), ("x", "f8")])
    padded["x"] = whole.ravel()
    for x in [
        whole,
        whole.T,
        whole[::-1],
        whole[::2, ::-3],
        whole[150:, :50][:, ::-1],
        np.asfortranarray(whole),
        np.broadcast_to(whole[0], (200, 200)),
        np.broadcast_to(3.0, (200, 200)),
        np.lib.stride_tricks.sliding_window_view(whole[0], 50),
        unaligned,
        padded["x"].reshape(200, 200),
        whole.astype(">f8"),
    ]:
        made = model(x)
        assert np.array_equal(made.y, x * 2.0) and np.array_equal(made.z, np.transpose(x))
    # What was given does not change with its argument, and nothing of that is kept.
    x = whole.copy()
    references = sys.getrefcount(x)
    made = model(x)
    x[:] = 0.0
    assert np.array_equal(made.z, whole.T) and sys.getrefcount(x) == references
    # Nor is an argument changed by what is written over it.
    over = cembra.compile('input x: tensor[f64, 1]; x("i") += x("i")', backend=backend)
    line = np.ones(5000)
    assert over(line).sum() == 10_000.0 and line.sum() == 5000.0


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize(("dtype", "spelled"), [("f8", "f64"), ("f4", "f32"), ("i8", "i64"), ("i4", "i32")])
def test_arrays_of_numpy_are_read_where_they_are(dtype, spelled, backend):
    model = cembra.compile(f"input x: [{spelled}]; output y = x + x; output n = array.size(x)", backend=backend)
    whole = np.arange(5001).astype(dtype)
    records = np.zeros(5001, [("a", "i2"), ("x", dtype)])
    records["x"] = whole
    gaps = np.ma.MaskedArray(whole, whole % 3 == 0)
    optional = cembra.compile(f"input x: [{spelled}?]; math.sum(x)", backend=backend)
    for x in [whole, whole[1:], whole[:5000], whole[1:5000], whole[::2], whole[::-1], records["x"], np.frombuffer(b"." + whole.tobytes(), dtype, offset=1)]:
        made = model(x)
        assert np.array_equal(made.y, x + x) and made.n == len(x)
    assert optional(gaps) == gaps.sum()
    references = sys.getrefcount(whole)
    kept = cembra.compile(f"input x: [{spelled}]; x", backend=backend)(whole)
    whole[:] = 0
    assert kept[5000] == 5000 and sys.getrefcount(whole) == references


class Exporting:
    """An object with Arrow's interface that exports the same capsules each time."""

    def __init__(self, of):
        self.of = of
        if hasattr(of, "__arrow_c_array__"):
            capsules = of.__arrow_c_array__()
            self.__class__ = type("OfArray", (Exporting,), {"__arrow_c_array__": lambda self, requested_schema=None: capsules})
        else:
            capsule = of.__arrow_c_stream__()
            self.__class__ = type("OfStream", (Exporting,), {"__arrow_c_stream__": lambda self, requested_schema=None: capsule})


# Each way into the package for data of Arrow: a column, a column of an input without a type, an array, an operand of `run`, a tensor, a table.
DOORS = {
    "column": lambda given: cembra.compile("input x: f64?; x")(given),
    "untyped": lambda given: cembra.compile("x + 1.0")(given),
    "array": lambda given: cembra.compile("input x: [f64?]; x")(given),
    "lists": lambda given: cembra.compile("input x: [f64?]; x").run({"x": given}),
    "run": lambda given: cembra.compile("input x: f64?; x").run({"x": given}),
    "session": lambda given: cembra.compile("input x: [f64?]; x").session()(given),
    "tensor": lambda given: cembra.compile("input x: tensor[f64, 1]; tensor.sum(x)")(given),
    "edge": lambda given: cembra.Edge.from_sizes(given),
    "table": lambda given: cembra.compile("input x: f64?; x").table(given),
}


@pytest.fixture(scope="module")
def deep():
    """An Arrow array with 8,000 levels of lists, on which operations of its own package take seconds."""
    pa = pytest.importorskip("pyarrow")
    made = pa.array([1.0])
    for _ in range(8000):
        made = pa.StructArray.from_arrays([made], ["a"])
    return made


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_arrays_of_arrow_that_nest_deep(door, is_stream, deep):
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(cembra.Error):
        DOORS[door](pa.chunked_array([deep]) if is_stream else deep)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("is_stream", [False, True])
def test_what_panics_in_the_import_of_arrow(door, is_stream):
    pa = pytest.importorskip("pyarrow")
    # A name that is no text, which the library in Rust panics on.
    strange = pa.StructArray.from_arrays([pa.array([1.0])], fields=[pa.field(b"\xff\xfe", pa.float64())])
    with pytest.raises(cembra.Error):
        DOORS[door](pa.chunked_array([strange]) if is_stream else strange)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("method", ["__arrow_c_array__", "__arrow_c_stream__"])
def test_panics_of_other_packages_are_our_errors(door, method):
    panic = pytest.importorskip("polars").exceptions.PanicException

    def panics(self, requested_schema=None):
        raise panic("of another package")

    with pytest.raises(cembra.Error) as raised:
        DOORS[door](type("Panicking", (), {method: panics})())
    # An array may be a sequence nevertheless, and a tensor an array of NumPy.
    assert raised.value.code == "values" or (raised.value.code, type(raised.value.__cause__)) == ("internal", panic)


@pytest.mark.parametrize("door", ["column", "untyped", "array", "run", "session"])
@pytest.mark.parametrize("is_stream", [False, True])
def test_capsules_give_their_data_once(door, is_stream):
    pa = pytest.importorskip("pyarrow")
    given = Exporting(pa.chunked_array([[1.0], [2.0]]) if is_stream else pa.array([1.0, 2.0]))
    DOORS[door](given)
    with pytest.raises(cembra.DataError, match="released: export the data again, because a capsule gives its data once"):
        DOORS[door](given)
    # In one call each object is imported once.
    given = Exporting(pa.chunked_array([[1.0], [2.0]]) if is_stream else pa.array([1.0, 2.0]))
    made, failed, _ = cembra.compile("input a: f64, b: f64; a + b").run({"a": given, "b": given})
    assert (pa.array(made).to_pylist(), failed) == ([2.0, 4.0], [])


def test_tables_of_capsules_and_readers():
    pa = pytest.importorskip("pyarrow")
    model, batch = cembra.compile("output y = x + 1.0"), pa.record_batch({"x": [1.0, 2.0]})
    for whole in [batch, pa.table({"x": [1.0, 2.0]})]:
        given = Exporting(whole)
        assert pa.table(model.table(given))["y"].to_pylist() == [2.0, 3.0]
        with pytest.raises(cembra.DataError, match="released: export the data again, because a capsule gives its data once"):
            model.table(given)
    missing = pa.StructArray.from_arrays([pa.array([1.0])], ["x"], mask=pa.array([True]))
    with pytest.raises(cembra.DataError, match="the rows of a table must not be null"):
        model.table(missing)
    with pytest.raises(cembra.DataError, match="a table must be a struct array, not Float64"):
        model.table(pa.array([1.0]))

    def batches():
        yield batch
        raise ZeroDivisionError("no second batch")

    reader = pa.RecordBatchReader.from_batches(batch.schema, batches())
    with pytest.raises(cembra.DataError, match="no second batch"):
        model.table(reader)


STREAMS = {
    "full": "lambda: pa.record_batch({'x': np.ones(100_000)})",
    "empty": "lambda: pa.record_batch({'x': pa.array([], 'f8')})",
    "views": "lambda: pa.record_batch({'x': pa.array(['a text that is no short one'] * 10_000, 'string_view')})",
}


@pytest.mark.parametrize("batch", STREAMS)
def test_streams_without_an_end_take_what_they_may(batch):
    pytest.importorskip("pyarrow")
    prepare = f"""
import pyarrow as pa
make = {STREAMS[batch]}
def batches():
    while True:
        yield make()
reader = pa.RecordBatchReader.from_batches(make().schema, batches())
models = [cembra.compile("output y = x", limits={{"array_bytes": 16_000_000}}) for _ in range(2)]
models[0].table(pa.table([make()["x"]], ["x"]))
"""
    call = """
try:
    models[0].table(reader)
    raise SystemExit("no end")
except cembra.LimitError as error:
    assert "the limit `array_bytes`" in str(error) and "limits=" in str(error)
"""
    assert peak_growth(prepare, call) < 1.25 * 16e6 + 20e6


def test_imports_take_what_they_may():
    pytest.importorskip("pyarrow")
    prepare = """
import pyarrow as pa
def model(text):
    return cembra.compile(text, limits={"array_bytes": 16_000_000})

class Stream:
    def __init__(self, chunks):
        self.chunks = chunks
    def __len__(self):
        return 1 << 62
    def __arrow_c_stream__(self, requested_schema=None):
        return self.chunks.__arrow_c_stream__()

class Table:
    def __len__(self):
        return 1 << 62
    def __arrow_c_stream__(self, requested_schema=None):
        batches = (pa.record_batch({"x": np.ones(100_000)}) for _ in range(2000))
        return pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches).__arrow_c_stream__()

whole = pa.array(x)
chunks = pa.chunked_array([whole[:100_000]] * 500)
bits = pa.chunked_array([pa.array(np.ones(1_000_000, "?"))] * 500)
texts = pa.chunked_array([pa.array(["x" * 1000] * 1000) for _ in range(40)])
lists = pa.chunked_array([pa.array([np.ones(100_000)])] * 500)
long = pa.array(["x" * 1_000_000], pa.string_view())
views = pa.concat_arrays([long] * 100)
keys = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100, "i4")), long.cast(pa.string()))
numbers, fields = model("input x: [f64]; output y = math.sum(x)"), model("input x: {l: [f64]}; output y = math.sum(x.l)")
array = "input x: [text]; output y = array.size(x)"
model("input x: f64; x * 2.0")(whole[:1000])
"""
    call = """
for at, way in enumerate([
    lambda: model("input x: f64; output y = x")(chunks),
    lambda: model("input x: f64; output y = x").run({"x": chunks}),
    lambda: model("x * 2.0")(Stream(chunks)),
    lambda: model("input x: bool; output y = x")(bits),
    lambda: model("input x: text; output y = x")(texts),
    lambda: model("input x: text; output y = strings.length(x)").table(pa.table({"x": texts})),
    lambda: model("input x: [f64]; output y = math.sum(x)")(lists),
    lambda: model("x * 2.0").table(Table()),
    lambda: numbers(chunks),
    lambda: numbers(Stream(chunks)),
    lambda: numbers.session()(Stream(chunks)),
    lambda: fields({"l": chunks}),
    lambda: fields({"l": Stream(chunks)}),
    lambda: model("input x: {a: {l: [f64]}}; output y = x")({"a": {"l": Stream(chunks)}}),
    lambda: model("input x: ([f64], f64); output y = x")((Stream(chunks), 1.0)),
    lambda: model("input x: tensor[f64, 1]; output y = tensor.sum(x)")(Stream(chunks)),
    lambda: model(array)(views),
    lambda: model(array)(keys),
    lambda: model("input x: {l: [text]}; output y = x")({"l": views}),
]):
    try:
        way()
        raise SystemExit(f"{at} was not refused")
    except cembra.LimitError as error:
        assert "the limit `array_bytes`" in str(error) and "limits=" in str(error)
"""
    assert peak_growth(prepare, call) < 1.25 * 16e6 + 40e6


def test_numbers_of_one_chunk_are_taken_whatever_the_limit_is():
    pa = pytest.importorskip("pyarrow")
    whole = pa.array(np.ones(10_000))
    for text, given in [
        ("input x: [f64]; math.sum(x)", whole),
        ("input x: {l: [f64]}; math.sum(x.l)", {"l": whole}),
        ("input x: tensor[f64, 1]; tensor.sum(x)", whole),
    ]:
        assert cembra.compile(text, limits={"array_bytes": 40_000})(given) == 10_000.0
    model = cembra.compile("input x: f64; x + 1.0", limits={"array_bytes": 40_000})
    assert len(model(whole)) == 10_000 and model.table(pa.table({"x": whole})).num_rows == 10_000


@pytest.mark.parametrize("text", ["strings.upper(x)", "strings.join(x, 'a')"])
def test_texts_that_rows_share_are_counted_before_they_are_copied(text):
    pytest.importorskip("pyarrow")
    prepare = f"""
import pyarrow as pa
x = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, "i4")), pa.array(["x" * 100_000]))
model = cembra.compile("input x: text; input n: f64? = 0.0; output y = {text}; output m = n", limits={{"array_bytes": 16_000_000}})
one, n = x[0].as_py(), np.zeros(10_000)
"""
    call = """
ways = [lambda x: model(x), lambda x: model.run({"x": x}), lambda x: model.table(pa.table({"x": x}))]
ways.append(lambda x: model.table(pa.table({"x": pa.chunked_array([x.slice(at, 100) for at in range(0, len(x), 100)])})))
ways.append(lambda x: model.run({"x": one, "n": n}))
for at, way in enumerate(ways):
    try:
        way(x)
        raise SystemExit(f"{at} was not refused")
    except cembra.LimitError as error:
        assert "the limit `array_bytes`" in str(error)
"""
    assert peak_growth(prepare, call) < 1.25 * 16e6 + 40e6


def test_texts_of_one_row_are_counted_as_objects_of_python():
    model = cembra.compile(
        "input x: [text], g: edge; array.expand(x, over=g)", limits={"array_bytes": 16_000_000}
    )
    texts = ["x" * 100_000]
    assert len(model(texts, cembra.Edge.from_sizes([100]))) == 100
    for call in [model, model.session()]:
        with pytest.raises(cembra.LimitError, match="the limit `array_bytes`"):
            call(texts, cembra.Edge.from_sizes([10_000]))


@pytest.mark.parametrize("around", [lambda inner: [inner], lambda inner: (inner,), lambda inner: {"x": inner}])
@pytest.mark.parametrize("of", ["f64", "f64?", "[f64]", "{x: f64}", "[{x: f64}]", "{x: {x: f64}}", "(f64, f64)", "tensor[f64, 1]"])
def test_objects_that_nest_deep(around, of):
    deep = 1.0
    for _ in range(100_000):
        deep = around(deep)
    with pytest.raises(cembra.Error):
        cembra.compile(f"input x: {of}; output y = x")(x=deep)


def in_child(run):
    """Runs a function in a forked process, and returns true if the process succeeded. A process that does not end is ended by a signal."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        done = False
        try:
            run()
            done = True
        finally:
            os._exit(0 if done else 1)
    return os.waitpid(child, 0)[1] == 0


def test_a_forked_process_computes_on_several_threads():
    rows = np.arange(1 << 18, dtype="f8")
    doubled = cembra.compile("input x: f64; output y = x * 2.0")
    summed = cembra.compile("input x: [f64]; math.sum(x * 2.0)")
    product = cembra.compile('input a: tensor[f64, 2]; output c("i,j") = a("i,k") * a("k,j")')
    square = np.ones((256, 256))

    def run():
        assert (doubled.run({"x": rows}, threads=2)[0] == rows * 2.0).all()
        assert (doubled.run({"x": rows}, threads=2, time_limit=100)[0] == rows * 2.0).all()
        assert summed(rows) == rows.sum() * 2.0
        assert (np.asarray(product(square)) == 256.0).all()

    assert in_child(run)
    run()
    assert in_child(run)
    assert in_child(lambda: run() or (in_child(run) or os._exit(2)))


def scaled(factor):
    """Computes a result in a worker of `multiprocessing`, with a model that the worker inherited."""
    return float(SCALED.run({"x": np.full(1 << 17, factor)}, threads=2)[0].sum())


SCALED = cembra.compile("input x: f64; output y = x * 2.0")


def test_workers_that_are_forked_run_on_several_threads():
    SCALED.run({"x": np.ones(1 << 17)}, threads=2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        # The bound only keeps workers that wait from hanging the tests.
        made = pool.map_async(scaled, [1.0, 2.0, 3.0]).get(timeout=60)
    assert made == [2.0 * (1 << 17) * factor for factor in (1.0, 2.0, 3.0)]


def test_outputs_beyond_memory_are_an_error_of_python():
    script = """
import resource, cembra, numpy as np
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
model = cembra.compile("input x: f64\\n" + "".join(f"output y{i} = x + {i}.0\\n" for i in range(20)))
try:
    model(np.zeros(100_000_000))
except MemoryError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert "for an array with shape (100000000,)" in ended.stdout, ended
def ends_well(script, most_bytes=4 << 30, **environment):
    """Returns the output of a process whose address space is limited to the size of its packages and `most_bytes`. The process must end by itself."""
    script = f"""
import resource, numpy as np, cembra
from cembra import compile as made
with open("/proc/self/statm") as statm:
    size = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + {most_bytes},) * 2)
{script}"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ, **environment})
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def refusals(lines, most_bytes=4 << 30):
    """Returns the names of the exceptions that lines of code raise, all in one process."""
    script = f"""
class Long(list):
    def __len__(self):
        return 2**60

class Endless(list):
    def __iter__(self):
        import itertools
        return itertools.repeat(1.0)

class Listed:
    def tolist(self):
        return Long([1.0])

one = np.broadcast_to
for line in {lines!r}:
    try:
        eval(line)
        print("none")
    except Exception as error:
        print(type(error).__name__)
"""
    return ends_well(script, most_bytes).split()


def test_lengths_are_no_memory():
    """Virtual arrays of 2^40 elements, which take no memory, and objects that only report a length."""
    virtual = {
        "made('input x: bytes; output y = x')(memoryview(one(np.uint8(1), 2**40)))": "MemoryError",
        "made('input x: [bool]; array.size(x)')(one(True, 2**40))": "MemoryError",
        "made('input x: [unit]; array.size(x)')(one(True, 2**40))": "MemoryError",
        "made('input x: bool; output y = x')(one(True, 2**40))": "MemoryError",
        "made('input x: f64?; x')(np.ma.MaskedArray(one(1.0, 2**40), mask=one(False, 2**40), copy=False))": "MemoryError",
        "made('input x: [f64?]; x')(np.ma.MaskedArray(one(1.0, 2**40), mask=one(False, 2**40), copy=False))": "MemoryError",
        "made('input x: [i64]; array.size(x)')(one(1, 2**40))": "MemoryError",
        "made('input x: [text]; array.size(x)')(one(np.array('a', object), 2**40))": "MemoryError",
        "made('input x: [date]; array.size(x)')(one(np.datetime64('2020-01-01'), 2**40))": "MemoryError",
        "made('input x: [{a: f64}]; output y = x')(one(np.array({'a': 1.0}, object), 2**40))": "MemoryError",
        "made('input x: (f64, f64); output y = x')(one(1.0, 2**40))": "MemoryError",
        "made('input x: tensor[bool, 1]; output y = x')(one(True, 2**40))": "DataError",
        "cembra.Edge.from_sizes(one(1, 2**40))": "MemoryError",
        "cembra.Edge.from_mapping(one(0, 2**40), 1)": "MemoryError",
        "made('input x: bytes; output y = x')(range(2**60))": "DataError",
        "made('input x: bytes; output y = x')([1, 2])": "DataError",
        "made('input x: [f64]; array.size(x)')(Long([1.0]))": "none",
        "made('input x: [f64]; array.size(x)')(Endless([1.0]))": "none",
        "made('input x: [f64]; array.size(x)')(Listed())": "none",
        "made('input x: [{a: f64}]; output y = x')(Long([{'a': 1.0}]))": "none",
    }
    assert refusals(list(virtual)) == list(virtual.values())


def test_bytes_are_given_as_any_of_python():
    same = cembra.compile("input x: bytes; output y = x")
    for given in [b"ac", bytearray(b"ac"), memoryview(b"abcd")[::2], np.bytes_(b"ac")]:
        assert same(given) == b"ac"
    strided = cembra.compile("input x: [bool]; output y = x")
    holds = np.arange(200_000) % 3 == 0
    for given in [holds[::2], holds[::-1], np.broadcast_to(True, 70_000), holds[:130:2], holds[:0:2]]:
        assert strided.session()(given).tolist() == given.tolist()


def test_points_of_an_edge_are_no_memory():
    few = "limits={'array_bytes': 64_000_000}"
    lines = {
        f"made('output y = edge.from_sizes([1000000000000])', {few})().mapping": "LimitError",
        f"made('output y = edge.from_sizes([200000000])', {few})().mapping": "LimitError",
        f"made('output y = edge.from_sizes([200000000])', {few}).session()().mapping": "LimitError",
        "cembra.Edge.from_sizes([2**62]).mapping": "LimitError",
        "cembra.Edge.from_split_points([0, 2**28 + 1]).mapping": "LimitError",
        "cembra.Edge.from_sizes([2**28]).mapping": "MemoryError",
        f"made('input s: [i64]; output y = edge.from_sizes(s)', {few})(np.ones(2_000_000, 'i8')).split_points": "LimitError",
    }
    assert refusals(list(lines), 1 << 30) == list(lines.values())
    edge = cembra.compile("output y = edge.from_sizes([2, 0, 3])")()
    assert (edge.mapping.tolist(), edge.split_points) == ([0, 0, 2, 2, 2], [0, 2, 2, 5])
    assert cembra.Edge.from_sizes(np.ones(100_000, "i8")).mapping[65_530:65_540].tolist() == list(range(65_530, 65_540))


MANY = 'array.expand([{0}], over=edge.from_sizes([n]))'

OBJECTS = {
    # An output and a call of the model; for how many it is refused within 64 MB, though the arrays are within them, and for how many it is not.
    "list of truth values": (MANY.format("true"), "made(n)", 8_000_000, 3_000_000),
    "list of numbers": (MANY.format("1.5"), "made(n)", 4_000_000, 1_000_000),
    "list of structs": ("map(fn(v) = {a: v, b: v}, " + MANY.format("7") + ")", "made(n)", 1_000_000, 200_000),
    "structs of a session": ("map(fn(v) = {a: v, b: v}, " + MANY.format("7") + ")", "made.session()(n)", 1_000_000, 200_000),
    "truth values of a session": (MANY.format("true"), "made.session()(n)", 100_000_000, 50_000_000),
    "texts of a session": (MANY.format('"a"'), "made.session()(n)", 1_200_000, 800_000),
    "texts of rows": ("strings.as_text(n)", "made(np.arange(n))", 1_000_000, 500_000),
    "structs of rows": ("{a: n, b: n}", "made(np.arange(n))", 400_000, 150_000),
}


@pytest.mark.parametrize("kind", OBJECTS)
def test_objects_of_python_count(kind):
    result, call, many, few = OBJECTS[kind]
    prepare = f"""
made = cembra.compile('input n: i64; output y = {result}', limits={{'array_bytes': 64_000_000}})
n = 100
{call}
n = """
    refused = f"""
try:
    {call}
    raise SystemExit("not refused")
except cembra.LimitError as error:
    assert "as Python objects" in str(error) and "the limit `array_bytes`" in str(error) and "compile the model with limits=" in str(error)
"""
    assert peak_growth(f"{prepare}{many}", refused) < 1.25 * 64e6 + 40e6
    assert peak_growth(f"{prepare}{few}", f"assert len({call}) == n") < 1.25 * 64e6 + 40e6


def test_arrays_that_are_copied_count():
    outputs = "; ".join(f"output y{at} = x" for at in range(50))
    model = cembra.compile(f"input x: [f64]; {outputs}", limits={"array_bytes": 64_000_000})
    assert len(model(np.ones(100_000)).y7) == 100_000
    with pytest.raises(cembra.LimitError, match="the limit `array_bytes`"):
        model(np.ones(400_000))


def test_making_objects_ends_with_the_time():
    text = "input n: i64; output y = " + MANY.format("true")
    session = cembra.compile(text, limits={"array_bytes": 1 << 31}).session(time_limit=0.2)
    with pytest.raises(cembra.EvaluationError) as raised:
        session(1 << 28)
    assert raised.value.code == "deadline"
    assert session(3).tolist() == [True] * 3


SIGNALLED = """
import os, signal, threading, time

class Ended(BaseException):
    pass

def end(*_):
    raise Ended

signal.signal(signal.SIGALRM, end)

def heard(call):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    begun = time.monotonic()
    try:
        call()
        print("none")
    except Ended:
        print("Ended" if time.monotonic() - begun < 20 else "late")
"""


def test_signals_are_heard_with_few_rows_of_loops():
    pytest.importorskip("pyarrow")
    script = f"""{SIGNALLED}
import pyarrow as pa
model = made("input n: i64; output y = seq.reduce(fn(a, b) = a + b * a % 7, seq.range(9000000), n)")
rows = np.arange(1000)
heard(lambda: model(rows))
heard(lambda: model.run({{"n": rows}}, threads=2))
heard(lambda: model.run({{"n": rows}}, on_error="missing", time_limit=60))
heard(lambda: model.table(pa.table({{"n": rows}})))
"""
    assert ends_well(script).split() == ["Ended"] * 4


def test_signals_are_heard_while_objects_are_made():
    script = f"""{SIGNALLED}
model = made('input n: i64; output y = {MANY.format("1.5")}')
heard(lambda: model(40_000_000))
with open("/proc/self/status") as status:
    print(next(int(line.split()[1]) >> 10 for line in status if line.startswith("VmHWM:")))
"""
    ended, peak = ends_well(script).split()
    # The numbers of the whole list would be 1280 MB.
    assert ended == "Ended" and int(peak) < 1200


ENDING = """
import threading, pyarrow as pa

calls = []

@cembra.operator("hostile.ends", "f64", "f64", pure=False)
def ends(x):
    calls.append(x)
    if x == 100.0:
        raise raised("mine")
    return x

def ended(call, most):
    calls.clear()
    try:
        call()
        print("none")
    except raised as error:
        print(str(error) if len(calls) <= most else len(calls))

rows = np.arange(20_000.0)
one, lists, sums = made("input x: f64; hostile.ends(x)"), made("input x: [f64]; map(fn(v) = hostile.ends(v), x)"), made("input x: f64; hostile.ends(x) + seq.reduce(fn(a, b) = a + b, seq.range(3), x)")
for raised in [KeyboardInterrupt, SystemExit, GeneratorExit]:
    ended(lambda: one(100.0), 1)
    ended(lambda: one.session()(100.0), 1)
    ended(lambda: lists(rows), 300)
    for model in [one, sums]:
        ended(lambda: model(rows), 101)
        ended(lambda: model(np.concatenate([rows] * 7)), 101)
        for on_error in ["stop", "missing"]:
            ended(lambda: model.run({"x": rows}, on_error=on_error), 101)
            ended(lambda: model.run({"x": rows}, on_error=on_error, threads=2), 10_000)
            ended(lambda: model.table(pa.table({"x": rows}), on_error=on_error), 101)
# Of what is an `Exception` a row is missing, as before, and what is no end is forgotten.
raised = ValueError
made, failed, messages = one.run({"x": rows}, on_error="missing")
print(failed == [100], len(calls) > 1, one(1.0), cembra.compile("input x: f64; hostile.ends(x)").run({"x": rows[:50]})[1])
"""


def test_what_ends_the_program_ends_a_run():
    pytest.importorskip("pyarrow")
    printed = ends_well(ENDING).split("\n")
    assert printed[:-2] == ["mine"] * 3 * (3 + 2 * (2 + 2 * 3))
    assert printed[-2] == "True True 1.0 []"


def test_the_run_of_another_thread_goes_on():
    script = """
import threading
go, ready = threading.Event(), threading.Event()

@cembra.operator("hostile.waits", "f64", "f64", pure=False)
def waits(x):
    if x == 0.0:
        ready.set()
        assert go.wait(20)
    return x

@cembra.operator("hostile.exits", "f64", "f64", pure=False)
def exits(x):
    raise SystemExit

results = []
other = threading.Thread(target=lambda: results.append(made("input x: f64; hostile.waits(x)")(np.arange(5000.0)).sum()))
other.start()
assert ready.wait(20)
model = made("input x: f64; hostile.exits(x)")
for call in [lambda: model.run({"x": np.ones(5000)}, on_error="missing"), lambda: model(1.0), lambda: model.session()(1.0)]:
    try:
        call()
    except SystemExit:
        print("ended")
go.set()
other.join()
print(*results)
"""
    assert ends_well(script).split() == ["ended"] * 3 + [str(np.arange(5000.0).sum())]


def test_exceptions_of_values_that_end_the_program():
    class Number:
        def __index__(self):
            raise KeyboardInterrupt("mine")

    for text, given in [("i64", Number()), ("[i64]", [Number()]), ("{a: i64}", {"a": Number()}), ("[{a: i64}]", [{"a": Number()}])]:
        with pytest.raises(KeyboardInterrupt, match="mine"):
            cembra.compile(f"input x: {text}; output y = x")(given)


def test_outputs_without_memory():
    script = """
for call in [
    lambda: made("input x: f64; " + "; ".join(f"output y{at} = x + {at}.0" for at in range(20)))(rows),
    lambda: made("input x: [f64]; " + "; ".join(f"output y{at} = x" for at in range(20)))(rows),
    lambda: made("input x: tensor[f64, 1]; " + "; ".join(f'output y{at}("i") = x("i")' for at in range(20))).session()(rows),
]:
    try:
        call()
        print("none")
    except (MemoryError, cembra.LimitError) as error:
        print(type(error).__name__ if "defect" not in str(error) else "defect")
"""
    printed = ends_well(f"rows = np.ones(10_000_000)\n{script}", 600 << 20).split()
    assert len(printed) == 3 and set(printed) <= {"MemoryError", "_ArrayMemoryError", "LimitError"}


def test_an_evaluation_without_a_thread():
    script = """
model = made("input n: i64; output y = seq.reduce(fn(a, b) = a + b, seq.range(n), 0)")
print(model(10), model(np.arange(3)).tolist(), made("x + 1.0")(np.ones(200_000)).sum())
"""
    # No thread has a stack of so many bytes.
    assert ends_well(script, RUST_MIN_STACK=str(1 << 46)) == "45 [0, 0, 1] 400000.0\n"


def test_names_of_outputs_that_python_takes_for_one():
    made = cembra.compile({"\ufb01": cembra.L.x, "fi": cembra.L.x * 2.0, "\uff41": cembra.L.x * 3.0})(1.0)
    assert (made.fi, tuple(made), made._fields) == (2.0, (1.0, 2.0, 3.0), ("_0", "fi", "\uff41"))
    assert cembra.compile({"\ufb01x": cembra.L.x, "f\u0131x": cembra.L.x, "\ufb01x2": cembra.L.x})(1.0)._fields == ("\ufb01x", "f\u0131x", "\ufb01x2")


def test_expressions_of_virtual_arrays_and_long_names():
    for given in [np.broadcast_to(1.0, 2**40), [np.broadcast_to(1.0, 2**40)], (np.ma.MaskedArray(np.broadcast_to(1.0, 2**40)),)]:
        with pytest.raises(cembra.LimitError, match="make it an input") as raised:
            cembra.L.x + given
        assert raised.value.code == "limit"
    with pytest.raises(cembra.Error):
        cembra.compile({"_" * 300_000: cembra.L.x})
    assert cembra.compile({"__": cembra.L["___"] * 2.0})(1.0) == 2.0
