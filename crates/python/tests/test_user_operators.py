"""Operators of the user in Python."""

import itertools
import math
import threading

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
    with pytest.raises(cembra.EvaluationError, match="raised an exception") as raised:
        model(-1.0)
    assert repr(raised.value.__cause__) == "RuntimeError('below zero')" and raised.value.operator == name
    with pytest.raises(cembra.EvaluationError) as raised:
        model(0.0)
    assert "gave str, not f64" in str(raised.value.__cause__)
    made, failed, messages = model.run({"x": np.array([1.0, -1.0, 2.0])}, on_error="missing")
    assert made.tolist() == [1.0, None, 2.0] and failed == [1] and "raised an exception" in messages[0]
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
    for parameters, result, hint in [
        ("f32", "f64", "one or two parameters"),
        (["f64", "i64", "f64"], "f64", "one or two parameters"),
        ([], "f64", "one or two parameters"),
        ("f64?", "f64", "without `?`"),
        ("f64", "[f64]", "one or two parameters"),
    ]:
        with pytest.raises(TypeError, match=hint):
            cembra.operator(fresh(), parameters, result)(abs)
    with pytest.raises(ValueError, match="math.add"):
        cembra.operator("math.add", "f64", "f64")(abs)
    with pytest.raises(ValueError, match="alone"):
        cembra.operator("alone", "f64", "f64")(abs)
    with pytest.raises(cembra.Error):
        cembra.operator(fresh(), "f65", "f64")(abs)


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
