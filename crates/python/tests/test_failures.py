"""Tests of failures: operators written in Python, the errors of the package, and Ctrl-C during each kind of call.
"""

import collections
import copy
import itertools
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import cembra
from cembra import L, M

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")
pd = pytest.importorskip("pandas", "3.0")

THREADS = [1, 2]
count = itertools.count()


def fresh():
    """Returns a name for an operator that no other test uses."""
    return f"failures.op{next(count)}"


# Operators written in Python.


def noting(types, result, function, **more):
    """Registers an operator. Returns its name, and the list that the arguments of its calls are appended to."""
    name, calls = fresh(), []

    @cembra.operator(name, types, result, **more)
    def operator(x):
        calls.append(x)
        return function(x)

    return name, calls


def no_rate(x):
    if x in (2.0, 5.0):
        raise KeyError(f"no rate for {x:.0f} é")
    return x * 10.0


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("on_error", ["missing", "skip"])
@pytest.mark.parametrize("rows", [7, 64, 65, 5000])
def test_a_function_that_fails_is_called_once_for_each_row(rows, on_error, threads):
    name, calls = noting("f64", "f64", no_rate)
    x = np.arange(rows) % 7.0
    made, failed, messages = cembra.compile(f"{name}(x)").run({"x": x}, threads=threads, on_error=on_error)
    assert sorted(calls) == sorted(x.tolist())
    bad = np.isin(x, [2.0, 5.0])
    assert failed == np.flatnonzero(bad).tolist() and made.tolist() == (
        [None if is_bad else value * 10.0 for value, is_bad in zip(x, bad)] if on_error == "missing" else (x[~bad] * 10.0).tolist()
    )
    assert messages[0] == f"{name}: the Python function raised KeyError: 'no rate for 2 é' (line 1, column 1: `{name}(x)`)"


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_the_exception_of_a_function_is_the_cause_and_its_text_is_in_the_message(backend, threads):
    name, calls = noting("f64", "f64", no_rate)
    model = cembra.compile(f"input x: f64; output y = {name}(x) + 1.0", backend=backend)
    x = np.array([1.0, 3.0, 2.0, 4.0])
    for row, evaluate in [
        (None, lambda: model(2.0)),
        (None, lambda: model.session()(2.0)),
        (2, lambda: model(x)),
        (2, lambda: model.table(pd.DataFrame({"x": x}))),
        (2, lambda: model.run({"x": x}, threads=threads)),
    ]:
        calls.clear()
        with pytest.raises(cembra.EvaluationError, match="raised KeyError: 'no rate for 2 é'") as caught:
            evaluate()
        error = caught.value
        assert type(error.__cause__) is KeyError and error.__cause__.args == ("no rate for 2 é",)
        assert error.row == row and error.operator == name and model.source[slice(*error.span)] == f"{name}(x)"
        assert calls == ([2.0] if row is None else [1.0, 3.0, 2.0])


def test_a_function_over_columns_that_fails_says_where_and_why():
    name, _ = noting("f64", "f64", lambda x: np.linalg.inv(x), columns=True)
    model = cembra.compile(f"input x: f64; output y = {name}(x)")
    for on_error in ["stop", "missing", "skip"]:
        with pytest.raises(cembra.EvaluationError, match="raised LinAlgError: ") as caught:
            model.run({"x": np.ones(3)}, on_error=on_error)
        assert isinstance(caught.value.__cause__, np.linalg.LinAlgError) and model.source[slice(*caught.value.span)] == f"{name}(x)"


def test_exceptions_whose_text_is_odd():
    class Silent(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    def fail(x):
        raise raised[-1]

    raised = []
    name, _ = noting("f64", "f64", fail)
    model = cembra.compile(f"{name}(x)")
    for exception, text in [
        (Silent(), "Silent"),
        (StopIteration(), "StopIteration"),
        (ValueError("first\nsecond"), "ValueError: first"),
        (ValueError("\ud800\x00"), "ValueError"),
    ]:
        raised.append(exception)
        with pytest.raises(cembra.EvaluationError, match=f"raised {text}") as caught:
            model(1.0)
        assert caught.value.__cause__ is exception
        made, failed, messages = model.run({"x": np.ones(1)}, on_error="missing")
        assert made.tolist() == [None] and failed == [0] and f"raised {text}" in messages[0] and "\n" not in messages[0]
    for given, text in [("a", "returned str, but must return f64"), (None, "returned NoneType, but must return f64"), (10**400, "returned int, but must return f64"), (True, "returned bool, but must return f64")]:
        name, _ = noting("f64", "f64", lambda x, given=given: given)
        with pytest.raises(cembra.EvaluationError, match=text):
            cembra.compile(f"{name}(x)")(1.0)


def test_an_operator_that_is_replaced_counts_for_later_models_alone():
    name = fresh()
    cembra.operator(name, "f64", "f64")(lambda x: x * 2.0)
    first = cembra.compile(f"{name}(x)")
    session = first.session()
    cembra.operator(name, "f64", "f64", columns=True)(lambda x: x * 3.0)
    second = cembra.compile(f"{name}(x)")
    cembra.operator(name, ["i64", "i64"], "text?")(lambda x, y: str(x + y) if x else None)
    third = cembra.compile(f"input x: i64, y: i64; {name}(x, y)")
    for _ in range(2):
        # The first is compiled for columns only now, and still calls its own function.
        assert first(1.0) == session(1.0) == 2.0 and first(np.array([1.0, 2.0])).tolist() == [2.0, 4.0]
        assert second(1.0) == 3.0 and second(pl.Series([1.0, 2.0])).to_list() == [3.0, 6.0]
        assert third(1, 2) == "3" and third(0, 2) is None
    family, operator = name.split(".")
    assert cembra.compile(getattr(getattr(M, family), operator)(L.x, L.y), types={"x": "i64", "y": "i64"})(4, 5) == "9"
    with pytest.raises(ValueError, match="already"):
        cembra.operator("math.sqrt", "f64", "f64")(lambda x: x)
    assert cembra.compile("math.sqrt(x)")(4.0) == 2.0


# Errors.


@pytest.mark.parametrize(
    ["text", "name"],
    [
        ('output s = "Zürich" + zz(1)', "zz"),
        ('output s = "😀é" + zz(1)', "zz"),
        ("# ünïcode 日本\noutput s = zz(1)", "zz"),
        ('output s = "é"\r\noutput q = "ß" + zz(1)', "zz"),
        ('\ufeffoutput s = "é" + zz(1)', "zz"),
        ("output ü = 1", "ü"),
    ],
)
def test_a_span_counts_characters(text, name):
    with pytest.raises(cembra.TextError) as caught:
        cembra.compile(text)
    assert text[slice(*caught.value.span)] == name


def test_spans_of_types_rows_and_files_count_characters():
    text = 'input x: i64; output "ß" = "Zürich 😀"; output q = 1 // x'
    model = cembra.compile(text)
    for evaluate in [lambda: model(0), lambda: model.session()(0), lambda: model(np.array([0])), lambda: model.run({"x": np.array([0])}, threads=2)]:
        with pytest.raises(cembra.EvaluationError) as caught:
            evaluate()
        assert text[slice(*caught.value.span)] == "1 // x"
    text = 'input x: f64; output "ß" = "é"; output q = upper(x)'
    with pytest.raises(cembra.TypesError) as caught:
        cembra.compile(text)(1.0)
    assert text[slice(*caught.value.span)] == "upper(x)"
    other = 'let w = "éé" + zz(1)'
    with pytest.raises(cembra.TextError) as caught:
        cembra.compile('use "é.cem"\noutput q = w', files={"é.cem": other})
    assert other[slice(*caught.value.span)] == "zz"


def failures():
    name, _ = noting("f64", "f64", no_rate)
    loop = cembra.compile("input n: i64; seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64)", limits={"loop_iterations": 10**15})
    return {
        "text": lambda: cembra.compile('"é" + zz(1)'),
        "types": lambda: cembra.compile("input x: f64; upper(x)")(1.0),
        "data": lambda: cembra.compile("input x: f64; x")("a"),
        "row": lambda: cembra.compile("1 // x")(np.array([1, 0])),
        "function": lambda: cembra.compile(f"{name}(x)")(np.array([1.0, 2.0])),
        "deadline": lambda: loop.table(pd.DataFrame({"n": [10**14]}), time_limit=0.01),
        "tracing": lambda: cembra.function(lambda x: f"{x}")(1.0),
    }


@pytest.mark.parametrize("kind", failures())
def test_errors_pickle_by_every_protocol(kind):
    with pytest.raises(cembra.Error) as caught:
        failures()[kind]()
    error = caught.value
    for given in [
        *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
        copy.copy(error),
        copy.deepcopy(error),
    ]:
        assert type(given) is type(error) and str(given) == str(error) and isinstance(given, cembra.Error)
        for attribute in ["code", "message", "span", "row", "element", "operator"]:
            assert getattr(given, attribute) == getattr(error, attribute)


def test_files_that_do_not_exist():
    for open_ in [cembra.load, cembra.ModelSet]:
        with pytest.raises(FileNotFoundError) as caught:
            open_("/there/is/no/such.cem")
        assert str(caught.value.filename) == "/there/is/no/such.cem" and caught.value.errno == 2
        assert pickle.loads(pickle.dumps(caught.value)).errno == 2


@pytest.mark.parametrize("on_error", ["stop", "missing", "skip"])
@pytest.mark.parametrize("threads", THREADS)
def test_a_time_limit_ends_a_table(on_error, threads):
    loop = cembra.compile("input n: i64; output y = seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64)", limits={"loop_iterations": 10**15})
    frame = pd.DataFrame({"n": [10**14] * 3})
    with pytest.raises(cembra.EvaluationError) as caught:
        loop.table(frame, time_limit=0.02, on_error=on_error, threads=threads)
    assert caught.value.code == "deadline"
    assert loop.table(pd.DataFrame({"n": [10]}), time_limit=60, on_error=on_error, threads=threads).y.tolist() == [45]
    for wrong in [-1, float("nan"), float("inf")]:
        with pytest.raises(cembra.DataError, match="time_limit"):
            loop.table(frame, time_limit=wrong)


# Ctrl-C.

LIMITS = {"loop_iterations": 10**15}
LOOP = "input n: i64; output y = seq.reduce(fn(a, b) = a + b, seq.range(n), 0i64)"
# Hours, if nobody ended it.
LONG = 10**14


@pytest.fixture
def interrupts():
    """Makes Ctrl-C raise `KeyboardInterrupt`, even if the tests were started with this signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


LOOPS = {
    "call": lambda model: model(LONG),
    "by name": lambda model: model(n=LONG),
    "dict": lambda model: model({"n": LONG}),
    "session": lambda model: model.session()(LONG),
    "session with a time limit": lambda model: model.session(time_limit=3600)(LONG),
    "session with two threads": lambda model: model.session(threads=2)(LONG),
    "NumPy": lambda model: model(np.full(3, LONG)),
    "pandas": lambda model: model(pd.Series([LONG] * 300)),
    "Polars": lambda model: model(pl.Series([LONG] * 3)),
    "pyarrow": lambda model: model(pa.chunked_array([[LONG], [LONG]])),
    "table": lambda model: model.table(pd.DataFrame({"n": [LONG] * 3}), on_error="skip"),
    "table with two threads": lambda model: model.table(pl.DataFrame({"n": [LONG] * 3}), threads=2),
    "run": lambda model: model.run({"n": np.full(3, LONG)}),
    "run that goes on": lambda model: model.run({"n": np.full(3, LONG)}, on_error="missing"),
    "run with two threads": lambda model: model.run({"n": np.full(300, LONG)}, threads=2, on_error="skip", time_limit=3600),
}


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("kind", LOOPS)
def test_ctrl_c_ends_a_loop(interrupts, kind, backend):
    model = cembra.compile(LOOP, limits=LIMITS, backend=backend)
    assert model(10) == 45
    timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        LOOPS[kind](model)
    timer.join()
    assert model(10) == 45 and model(np.array([10, 3])).tolist() == [45, 3] and model.session()(10) == 45


def test_ctrl_c_ends_tests_of_a_text_and_cancels_no_token(interrupts):
    model = cembra.compile(f'{LOOP}; test "long" {{ n => y; {LONG} => 1 }}', limits=LIMITS)
    token = cembra.Cancellation()
    for evaluate in [
        model.run_tests,
        lambda: model.session(cancellation=token)(LONG),
        lambda: model.run({"n": np.array([LONG])}, cancellation=token),
    ]:
        timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            evaluate()
        timer.join()
    assert not token.is_cancelled and model.session(cancellation=token)(10) == 45


# An operator sends the signal itself, when it is called for 3.0: each evaluation is interrupted at the same place.
INTERRUPTED = {
    "call": ("{op}(x)", lambda model: model(3.0)),
    "session": ("{op}(x)", lambda model: model.session()(3.0)),
    "NumPy": ("{op}(x)", lambda model: model(np.arange(6.0))),
    "a branch": ("if x > 0.0 then {op}(x) else 0.0", lambda model: model(np.arange(6.0))),
    "pandas": ("{op}(x)", lambda model: model(pd.Series(np.arange(6.0)))),
    "table": ("{op}(x)", lambda model: model.table(pl.DataFrame({"x": np.arange(6.0)}), on_error="skip")),
    "run that goes on": ("{op}(x)", lambda model: model.run({"x": np.arange(6.0)}, on_error="missing")),
    "run with two threads": ("{op}(x)", lambda model: model.run({"x": np.arange(6.0)}, threads=2)),
    "many rows": ("{op}(x)", lambda model: model(np.arange(1000.0))),
    "arrays of rows": ("input x: [f64]; sum({op}(x))", lambda model: model(pa.array([[1.0, 3.0], [4.0, 5.0]]))),
}
ARRAYS = {
    "array": ("input x: [f64]; {op}(x)", lambda model: model(np.arange(6.0))),
    "sum of an array": ("input x: [f64]; sum({op}(x))", lambda model: model(np.arange(6.0))),
    "map": ("input x: [f64]; core.map(fn(v) = {op}(v), x)", lambda model: model(np.arange(6.0))),
    "array in a session": ("input x: [f64]; {op}(x)", lambda model: model.session()(np.arange(6.0))),
}
TESTED = 'input x: f64; output y = {op}(x); test "t" {{ x => y; 3.0 => 3.0 }}'


@pytest.mark.parametrize("raised", ["Ctrl-C", "KeyboardInterrupt", "SystemExit"])
@pytest.mark.parametrize("kind", [*INTERRUPTED, *ARRAYS, "tests"])
def test_ctrl_c_in_an_operator_ends_the_evaluation(interrupts, kind, raised):
    fired = []

    def interrupt(x):
        if x == 3.0 and not fired:
            fired.append(x)
            if raised == "Ctrl-C":
                os.kill(os.getpid(), signal.SIGINT)
                # The main thread has the exception when it runs next.
                time.sleep(0.02)
            else:
                raise KeyboardInterrupt if raised == "KeyboardInterrupt" else SystemExit(3)
        return x

    name, calls = noting("f64", "f64", interrupt)
    text, evaluate = (INTERRUPTED | ARRAYS | {"tests": (TESTED, lambda model: model.run_tests())})[kind]
    model = cembra.compile(text.format(op=name))
    with pytest.raises(SystemExit if raised == "SystemExit" else KeyboardInterrupt):
        evaluate(model)
    after = list(calls)
    time.sleep(0.02)
    assert calls == after and len(set(calls)) == len(calls) and calls[-1] == 3.0
    assert cembra.compile(f"{name}(x) + 1.0")(np.array([1.0, 3.0])).tolist() == [2.0, 4.0]


def test_ctrl_c_in_an_operator_over_columns(interrupts):
    def interrupt(x):
        if len(calls) == 1:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02)
        return x

    for evaluate in [
        lambda model: model(np.arange(6.0)),
        lambda model: model(1.0),
        lambda model: model.run({"x": np.arange(6.0)}, threads=2),
        lambda model: model.table(pd.DataFrame({"x": [1.0]})),
    ]:
        name, calls = noting("f64", "f64", interrupt, columns=True)
        model = cembra.compile(f"{name}(x)")
        with pytest.raises(KeyboardInterrupt):
            evaluate(model)
        time.sleep(0.02)
        assert len(calls) == 1 and model(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_ctrl_c_ends_the_main_thread_alone(interrupts):
    model, results, started = cembra.compile(LOOP, limits=LIMITS), [], threading.Event()

    def evaluate():
        started.set()
        results.append(model(10**8))

    other = threading.Thread(target=evaluate)
    timer = threading.Timer(0.03, os.kill, (os.getpid(), signal.SIGINT))
    other.start()
    started.wait()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model(np.array([LONG]))
    other.join()
    assert results == [10**8 * (10**8 - 1) // 2]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_ctrl_c_while_an_array_is_asked_for_its_interface(raised):
    # Python delivers a signal in the first function of Python that runs, and an object's `__getattr__` may be one.
    class Interrupted:
        def __getattr__(self, name):
            if name.startswith("__arrow_c_") and not asked:
                asked.append(name)
                raise raised
            return getattr(array, name)

    asked, array, model = [], pa.array([1.0, 2.0]), cembra.compile("x + 1.0")
    with pytest.raises(raised):
        model(Interrupted())
    assert asked and model(Interrupted()).to_pylist() == [2.0, 3.0]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("text", ["{g}({f}(x))", "{f}(x) + {g}(x)", "output y = {f}(x); output z = {g}(x)"])
def test_two_functions_are_called_once_for_each_row(text, threads):
    f, calls = noting("f64", "f64", no_rate)
    g, _ = noting("f64", "f64", lambda x: x + 1.0)
    x = np.arange(700) % 7.0
    cembra.compile(text.format(f=f, g=g)).run({"x": x}, threads=threads, on_error="missing")
    assert collections.Counter(calls) == collections.Counter(x.tolist())


def test_a_function_that_fails_once_in_an_array_fails_the_evaluation():
    failed = []

    def fail_once(x):
        if x == 3.0 and not failed:
            failed.append(x)
            raise ValueError("once")
        return x

    name, calls = noting("f64", "f64", fail_once)
    with pytest.raises(cembra.EvaluationError, match="ValueError: once"):
        cembra.compile(f"input x: [f64]; sum({name}(x))")(np.arange(6.0))
    assert calls == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", ["folder", "bytes"])
def test_files_that_cannot_be_read_are_named(tmp_path, kind):
    path = tmp_path / "a.cem"
    path.mkdir() if kind == "folder" else path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises((OSError, UnicodeError)) as caught:
        cembra.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("rows", [8, 300])
def test_a_function_that_is_not_pure_gives_each_row_its_own_result(rows, backend):
    def number(x):
        if x == 2.0:
            raise ValueError("two")
        return float(len(calls))

    name, calls = noting("f64", "f64", number)
    x = np.ones(rows)
    x[[3, rows - 2]] = 2.0
    made, failed, _ = cembra.compile(f"{name}(x)", backend=backend).run({"x": x}, on_error="missing")
    assert failed == [3, rows - 2] and len(calls) == rows and len(set(made.compressed())) == rows - 2


@pytest.mark.parametrize("text", ["1 // {op}(x)", "output a = {op}(x); output b = 1 // x"])
@pytest.mark.parametrize("on_error", ["missing", "skip", "stop"])
def test_a_function_is_called_once_where_another_operator_fails(text, on_error):
    name, calls = noting("i64", "i64", lambda x: x)
    model = cembra.compile("input x: i64; " + text.format(op=name))
    try:
        model.run({"x": np.array([1, 0, 2, 0])}, on_error=on_error)
    except cembra.EvaluationError:
        # Those of rows that are evaluated together are called before the first failure is known.
        assert calls[:2] == [1, 0] and len(calls) <= 4 and on_error == "stop"
    else:
        assert calls == [1, 0, 2, 0]


@pytest.mark.parametrize("backend", ["native", "interpreter"])
def test_a_loop_calls_a_function_once_in_each_round_where_rows_fail(backend):
    name, calls = noting("f64", "f64", no_rate)
    text = f"input n: i64; seq.reduce(fn(a, b) = a + {name}(to_float64(b)), seq.range(n), 0.0)"
    made = cembra.compile(text, backend=backend).run({"n": np.array([1, 2, 5, 2, 5, 1])}, on_error="missing")
    # Rows end with the round that fails.
    rounds = [[0.0], [0.0, 1.0], [0.0, 1.0, 2.0], [0.0, 1.0], [0.0, 1.0, 2.0], [0.0]]
    failed = [row for row, calls_of_row in enumerate(rounds) if len(calls_of_row) == 3]
    assert (sorted(calls), made[1]) == (sorted(sum(rounds, [])), failed)
