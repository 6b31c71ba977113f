"""Tests of user-defined operators in Python."""

import functools
import itertools
import math
import threading
import time

import numpy as np
import pytest

import cembra
from cembra import L

BACKENDS = ["native", "interpreter"]
count = itertools.count()


def fresh():
    return f"test.op{next(count)}"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_is_called_for_each_row(backend):
    name, seen = fresh(), []

    @cembra.operator(name, ["f64", "f64"], "f64")
    def hypot(a, b):
        """The length of the longest side."""
        seen.append((a, b))
        return math.hypot(a, b)

    assert hypot(3.0, 4.0) == 5.0
    model = cembra.compile(f"input a: f64?, b: f64; {name}(a, b) + 1.0", backend=backend)
    seen.clear()
    assert model(3.0, 4.0) == 6.0 and model(None, 4.0) is None and seen == [(3.0, 4.0)]
    a = np.ma.MaskedArray([3.0, 6.0, 0.0], [False, False, True])
    assert model(a, np.array([4.0, 8.0, 1.0])).tolist() == [6.0, 11.0, None]
    assert name in model.explain("plan")
    family, own = name.split(".")
    operator = getattr(getattr(cembra.M, family), own)
    assert "The length of the longest side." in operator.__doc__
    assert cembra.compile(operator(L.a, L.b), types={"a": "f64", "b": "f64"}, backend=backend)(3.0, 4.0) == 5.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_types_of_parameters_and_results(backend):
    values = {"f64": 2.5, "i64": 7, "bool": True, "text": "grün"}
    for (one, a), (other, b), result in itertools.product(values.items(), values.items(), values):
        if len({one, other, result}) == 1 or result == "text" or (one, other) == ("text", "i64"):
            name = fresh()
            cembra.operator(name, [one, other], result)(lambda a, b, made=values[result]: made if (a, b) == (a, b) else None)
            model = cembra.compile(f"{name}(a, b)", types={"a": one, "b": other}, backend=backend)
            assert model(a, b) == values[result]
    name = fresh()
    cembra.operator(name, "text", "i64?")(lambda text: int(text) if text.isdigit() else None)
    model = cembra.compile(f"input x: text; {name}(x) ?? -1", backend=backend)
    assert [model("12"), model("a")] == [12, -1]
    name = fresh()
    cembra.operator(name, ["f64"] * 4, "f64")(lambda *all: sum(all))
    assert cembra.compile(cembra.call(name, L.x, 2.0, 3.0, 4.0), types={"x": "f64"}, backend=backend)(1.0) == 10.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_function_raises_is_the_cause(backend):
    name = fresh()

    @cembra.operator(name, "f64", "f64")
    def fails(x):
        if x < 0.0:
            raise RuntimeError("below zero")
        return "no number" if x == 0.0 else x

    model = cembra.compile(f"input x: f64; {name}(x)", backend=backend)
    with pytest.raises(cembra.EvaluationError, match="the Python function raised") as raised:
        model(-1.0)
    assert repr(raised.value.__cause__) == "RuntimeError('below zero')" and raised.value.operator == name
    with pytest.raises(cembra.EvaluationError) as raised:
        model(0.0)
    assert "returned str, but must return f64" in str(raised.value.__cause__)
    made, failed, messages = model.run({"x": np.array([1.0, -1.0, 2.0])}, on_error="missing")
    assert made.tolist() == [1.0, None, 2.0] and failed == [1] and "raised RuntimeError: below zero" in messages[0]
    # What another evaluation raised is no cause of this one.
    with pytest.raises(cembra.EvaluationError) as raised:
        cembra.compile("input x: i64; 1 // x", backend=backend)(0)
    assert raised.value.__cause__ is None


def test_what_a_row_raised_is_no_cause_of_another_failure():
    name = fresh()
    cembra.operator(name, "f64", "f64")(lambda x: 1 / 0)
    model = cembra.compile(f"input x: f64; {name}(x)")
    made, failed, _ = model.run({"x": np.array([1.0])}, on_error="missing")
    assert made.tolist() == [None] and failed == [0]
    with pytest.raises(cembra.EvaluationError) as raised:
        cembra.compile("input b: bytes; strings.decode(b)")(b"\xff")
    assert raised.value.code == "invalid" and raised.value.__cause__ is None


def test_what_is_no_operator():
    def any_count(*values):
        return values[0]

    for parameters, result, hint in [
        ("f32", "f64", "one or two parameters"),
        (["f64", "i64", "f64"], "f64", "one or two parameters"),
        ([], "f64", "one or two parameters"),
        ("f64?", "f64", "without `?`"),
        ("f64", "[f64]", "one or two parameters"),
    ]:
        with pytest.raises(TypeError, match=hint):
            cembra.operator(fresh(), parameters, result)(any_count)
    with pytest.raises(ValueError, match="math.add"):
        cembra.operator("math.add", "f64", "f64")(abs)
    with pytest.raises(ValueError, match="alone"):
        cembra.operator("alone", "f64", "f64")(abs)
    with pytest.raises(cembra.Error):
        cembra.operator(fresh(), "f65", "f64")(abs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_is_called_once_for_each_row_however_long_it_takes(backend):
    # Each evaluation takes longer than one that stays in the thread it began in.
    name, seen = fresh(), []

    @cembra.operator(name, "i64", "i64", pure=False)
    def slow(x):
        seen.append(x)
        time.sleep(0.01)
        return x + 1

    rows = [4, 0, 9, 2, 7, 5]
    model = cembra.compile(f"input x: i64; {name}(x)", backend=backend)
    loop = cembra.compile(f"input n: i64; seq.reduce(fn(a, b) = a + {name}(b), seq.range(n), 0i64)", backend=backend)
    polars = pytest.importorskip("polars")
    for evaluate, given, made in [
        (lambda: model(np.array(rows)).tolist(), rows, [5, 1, 10, 3, 8, 6]),
        (lambda: model.run({"x": np.array(rows)})[0].tolist(), rows, [5, 1, 10, 3, 8, 6]),
        (lambda: model.table(polars.DataFrame({"x": rows}))["result"].to_list(), rows, [5, 1, 10, 3, 8, 6]),
        (lambda: loop(6), list(range(6)), 21),
        (lambda: loop.session()(6), list(range(6)), 21),
        (lambda: loop(np.array([3, 0, 3])).tolist(), [0, 1, 2] * 2, [6, 0, 6]),
    ]:
        seen.clear()
        assert evaluate() == made
        assert sorted(seen) == sorted(given)


@pytest.mark.parametrize("columns", [False, True])
def test_a_function_that_does_not_fit_is_refused_where_it_is_registered(columns):
    one, two = "f64", ["f64", "i64"]
    for parameters, function, hint in [
        (one, lambda: 0.0, r"has 1 parameter \(f64\), and `<lambda>\(\)` cannot be called with that many values: too many positional"),
        (one, lambda x, y: x, "missing a required argument: 'y'"),
        (one, lambda *, x: x, "too many positional"),
        (one, lambda x, *, unit: x, "missing a required .*'unit'"),
        (two, abs, r"has 2 parameters \(f64, i64\), and `abs\(x, /\)` cannot be called with that many values: too many positional"),
        (one, 2.5, "a float is not a function"),
        (one, None, "a NoneType is not a function"),
    ]:
        name = fresh()
        with pytest.raises(TypeError, match=hint) as raised:
            cembra.operator(name, parameters, "f64", columns=columns)(function)
        assert name in str(raised.value)
        with pytest.raises(cembra.TextError):
            cembra.compile(f"{name}(1.0)")
    # These fit: more parameters that have defaults, any count, a class, and a function that does not say what it takes.
    for function in [lambda x, y=0.0: x, lambda *all: all[0], float, max, functools.partial(lambda y, x: x, 0.0)]:
        cembra.operator(fresh(), one, "f64", columns=columns)(function)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operator_that_is_defined_again_is_another_for_later_models(backend):
    name = fresh()
    cembra.operator(name, "f64", "f64")(lambda x: x + 1.0)
    before = cembra.compile(f"input x: f64; {name}(x)", backend=backend)
    assert before(1.0) == 2.0
    cembra.operator(name, ["text", "i64"], "text?")(lambda text, count: text * count if count >= 0 else None)
    after = cembra.compile(f"input t: text, n: i64; {name}(t, n)", backend=backend)
    assert after("ab", 2) == "abab" and after("ab", -1) is None
    # A model that was compiled before keeps its function, also for rows, which are compiled later.
    assert before(2.0) == 3.0 and before(np.array([1.0, 5.0])).tolist() == [2.0, 6.0]
    family, own = name.split(".")
    assert len(getattr(getattr(cembra.M, family), own).__signature__.parameters) == 2
    # A function over columns in the place of one for each row, and the other way round.
    cembra.operator(name, "f64", "f64", columns=True)(lambda x: x - x.mean())
    over = cembra.compile(f"input x: f64; {name}(x)", backend=backend)
    assert over(np.array([1.0, 3.0])).tolist() == [-1.0, 1.0]
    cembra.operator(name, "f64", "f64")(lambda x: x * 2.0)
    assert cembra.compile(f"input x: f64; {name}(x)", backend=backend)(np.array([1.0, 3.0])).tolist() == [2.0, 6.0]
    assert over(np.array([1.0, 5.0])).tolist() == [-2.0, 2.0] and before(np.array([1.0])).tolist() == [2.0]
    # One that is refused leaves the one before.
    with pytest.raises(TypeError):
        cembra.operator(name, ["f64", "i64", "f64"], "f64")(lambda *all: 0.0)
    assert cembra.compile(f"input x: f64; {name}(x)", backend=backend)(4.0) == 8.0
    # As many definitions as there may be names, and more.
    for at in range(300):
        cembra.operator(name, "i64", "i64")(lambda x, at=at: x + at)
    assert cembra.compile(f"input x: i64; {name}(x)", backend=backend)(1) == 300


def test_an_impure_function_and_many_threads():
    name, numbers = fresh(), itertools.count()
    cembra.operator(name, "i64", "i64", pure=False)(lambda x: next(numbers))
    model = cembra.compile(f"input x: i64; {name}(x)")
    assert model(0) != model(0)
    total = fresh()
    cembra.operator(total, "f64", "f64")(lambda x: x * 2.0)
    model, found = cembra.compile(f"input x: f64; {total}(x)"), []
    rows = np.arange(20_000.0)

    def work():
        found.append(np.array_equal(model.run({"x": rows}, threads=2)[0], rows * 2.0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [True] * 4


def over_columns(parameters, result, function):
    """Registers an operator over columns. Returns its name, and the list of the arrays that it was called with."""
    name, seen = fresh(), []

    def kept(*operands):
        seen.append([(operand.dtype.str[1:], operand.tolist()) for operand in operands])
        return function(*operands)

    cembra.operator(name, parameters, result, columns=True)(kept)
    return name, seen


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_function_over_columns_is_called_once(backend):
    name, seen = over_columns(["f64", "i64"], "f64", lambda x, n: np.cumsum(x) * n)
    model = cembra.compile(f"input x: f64?, n: i64; {name}(x * 2.0, n + 1) - 1.0", backend=backend)
    x = np.ma.MaskedArray([1.0, 5.0, 3.0], [False, True, False])
    assert model(x, np.array([0, 0, 1])).tolist() == [1.0, None, 15.0]
    assert seen == [[("f8", [2.0, 6.0]), ("i8", [1, 2])]]
    assert model(4.0, 1) == 15.0 and model(None, 1) is None
    assert seen[1:] == [[("f8", [8.0]), ("i8", [2])]]


def test_calls_of_functions_over_columns_within_others():
    rank, ranked = over_columns("f64", "i64", lambda x: np.argsort(np.argsort(x)))
    share, shared = over_columns("f64", "f64", lambda x: x / x.sum())
    model = cembra.compile(f"input x, y: f64; let part = {share}(to_float64({rank}(x))); output sum = part + {share}(y); output rank = {rank}(x)")
    made = model(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    assert made.rank.tolist() == [2, 0, 1] and made.sum.tolist() == [2 / 3 + 0.25, 0.25, 1 / 3 + 0.5]
    assert len(ranked) == 1 and len(shared) == 2
    # One value for all rows is as many for the function.
    assert model(np.array([3.0, 1.0, 2.0]), 8.0).sum.tolist() == [2 / 3 + 1 / 3, 1 / 3, 1 / 3 + 1 / 3]
    assert shared[-1] == [("f8", [2.0, 0.0, 1.0])] and shared[-2] == [("f8", [8.0, 8.0, 8.0])]
    # A chain that is deeper than there are stages goes on row by row.
    twice, seen = over_columns("f64", "f64", lambda x: x * 2.0)
    text = "x"
    for _ in range(20):
        text = f"{twice}({text})"
    assert cembra.compile(f"input x: f64; {text}")(np.array([1.0, 2.0, -1.0])).tolist() == [2.0**20, 2.0**21, -(2.0**20)]
    assert [len(call[0][1]) for call in seen] == [3] * 16 + [1] * 12


def test_results_of_functions_over_columns():
    name, _ = over_columns("f64", "f64?", lambda x: np.ma.masked_less(x, 0.0))
    model = cembra.compile(f"input x: f64; {name}(x) ?? 7.0")
    assert model(np.array([1.0, -1.0])).tolist() == [1.0, 7.0] and model(-1.0) == 7.0
    name, _ = over_columns("f64", "bool", lambda x: x > 0.0)
    assert cembra.compile(f"input x: f64; where({name}(x), x, 0.5)")(np.array([2.0, -1.0])).tolist() == [2.0, 0.5]
    # Smaller numbers are widened.
    name, _ = over_columns("f64", "f64", lambda x: x.astype("f4"))
    assert cembra.compile(f"input x: f64; {name}(x)")(np.array([0.5])).dtype == np.float64
    for result, function, hint in [
        ("f64", lambda x: x[:-1], r"shape \(1,\) for 2 rows"),
        ("f64", lambda x: x.sum(), r"shape \(\) for 2 rows"),
        ("i64", lambda x: x, "an array of float64, not of int64"),
        ("f64", lambda x: ["a", "b"], "not of float64"),
        ("f64", lambda x: np.ma.masked_greater(x, 0.0), "missing elements"),
        ("f64", lambda x: 1 / 0, "division by zero"),
    ]:
        name, _ = over_columns("f64", result, function)
        with pytest.raises(cembra.EvaluationError, match="the Python function raised") as raised:
            cembra.compile(f"input x: f64; {name}(x)")(np.array([1.0, 2.0]))
        assert raised.value.operator == name and raised.value.code == "invalid"
        with pytest.raises(Exception, match=hint):
            raise raised.value.__cause__
    with pytest.raises(TypeError, match="not text"):
        cembra.operator(fresh(), "text", "f64", columns=True)(abs)


def test_operands_of_functions_over_columns_are_evaluated_in_every_row():
    name, seen = over_columns("i64", "i64", lambda x: x)
    model = cembra.compile(f"input x: i64; where(x != 0, {name}(12 // x), 0)")
    assert model(0) == 0 and model(np.array([3, 4])).tolist() == [4, 3]
    with pytest.raises(cembra.EvaluationError, match="12 // x") as raised:
        model(np.array([3, 0]))
    assert raised.value.row == 1 and raised.value.code == "div-by-zero"


def test_functions_over_columns_and_tables():
    polars, pyarrow, pandas = (pytest.importorskip(name) for name in ["polars", "pyarrow", "pandas"])
    name, seen = over_columns("f64", "f64", lambda x: x - x.mean())
    model = cembra.compile(f"output y = {name}(x); output z = x * 2.0")
    x = [1.0, None, 3.0]
    frames = [polars.DataFrame({"x": x}), pyarrow.table({"x": x})]
    for frame in frames:
        made = model.table(frame)
        assert type(made) is type(frame)
        rows = made.to_pylist() if hasattr(made, "to_pylist") else made.to_dicts()
        assert rows == [{"y": -1.0, "z": 2.0}, {"y": None, "z": None}, {"y": 1.0, "z": 6.0}]
    made = model.table(pandas.DataFrame({"x": [1.0, 3.0]}))
    assert made["y"].tolist() == [-1.0, 1.0] and made["z"].tolist() == [2.0, 6.0]
    assert model.table(pyarrow.table({"x": pyarrow.array([], "f8")})).num_rows == 0
    assert seen == [[("f8", [1.0, 3.0])]] * 3
    # Chunks are one column for the function, and so are series.
    chunked = pyarrow.chunked_array([[1.0], [2.0, 6.0]])
    assert model(chunked).y.to_pylist() == [-2.0, -1.0, 3.0]
    assert model(polars.Series([1.0, 3.0])).y.to_list() == [-1.0, 1.0]


def test_a_function_over_columns_in_runs():
    name, seen = over_columns("f64", "f64", lambda x: x[::-1])
    model = cembra.compile(f"input x: f64; {name}(x)")
    rows = np.arange(200_000.0)
    assert np.array_equal(model.run({"x": rows}, threads=2)[0], rows[::-1]) and len(seen) == 1
    out = np.empty(3)
    assert model.run({"x": np.arange(3.0)}, out={"result": out})[0] is out and out.tolist() == [2.0, 1.0, 0.0]
    made, failed, _ = model.run({"x": np.arange(2.0)}, on_error="missing")
    assert made.tolist() == [1.0, 0.0] and failed == []
    seen.clear()
    # No rows need no call.
    assert model(np.array([])).tolist() == [] and seen == []
