"""Tests of expressions in Python, of traced functions, and of the registry's operators as functions."""

import copy
import datetime
import gc
import inspect
import pathlib
import pickle
import re
import threading
import weakref

import numpy as np
import pytest

import cembra
from cembra import L, M
from cembra.expressions import literal
from cembra.statements import text_of

BACKENDS = ["native", "interpreter"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_signs_of_python_are_those_of_the_language(backend):
    def run(expr, **row):
        return cembra.compile(expr, backend=backend)(**row)

    x, y = 7, 2
    assert run(L.x + L.y, x=x, y=y) == 9 and run(10 + L.x, x=x) == 17
    assert run(L.x - L.y, x=x, y=y) == 5 and run(10 - L.x, x=x) == 3
    assert run(L.x * L.y, x=x, y=y) == 14 and run(10 * L.x, x=x) == 70
    assert run(L.x / L.y, x=7.0, y=2.0) == 3.5 and run(7.0 / L.y, y=2.0) == 3.5
    assert run(L.x // L.y, x=-7, y=2) == -4 and run(7 // L.y, y=-2) == -4
    assert run(L.x % L.y, x=-7, y=2) == 1 and run(7 % L.y, y=-2) == -1
    assert run(L.x**L.y, x=3.0, y=2.0) == 9.0 and run(2.0**L.y, y=3.0) == 8.0
    assert run((-L.x) ** 2.0, x=3.0) == 9.0 and run(-(L.x**2.0), x=3.0) == -9.0
    assert [run(e, x=1, y=2) for e in (L.x < L.y, L.x <= L.y, L.x > L.y, L.x >= L.y, L.x == L.y, L.x != L.y)] == [
        True,
        True,
        False,
        False,
        False,
        True,
    ]
    assert run((L.x > 1) & (L.x < 3), x=2) is True and run((L.x > 1) & (L.x < 3), x=3) is False
    assert run((L.x < 1) | (L.x > 3), x=4) is True and run(~(L.x == 4), x=4) is False
    assert run(abs(L.x), x=-7) == 7 and run(+L.x, x=-7) == -7
    assert [run(round(L.x), x=x) for x in (2.6, 2.5, 0.5, -0.5)] == [3.0, 2.0, 0.0, 0.0]
    assert run(cembra.where(L.x, 1.0, 2.0), x=True) == 1.0 and run(np.where(L.x, 1.0, 2.0), x=False) == 2.0


def test_what_is_used_twice_is_computed_once_and_depth_is_no_limit():
    root = L.x + 1
    assert text_of({"a": root * root}).text == "let _0 = L.x + 1\noutput a = _0 * _0"
    deep = L.x
    for _ in range(100_000):
        deep = deep + 1
    model = cembra.compile(deep, types={"x": "i64"}, backend="interpreter")
    assert model(5) == 100_005
    assert repr(deep) == "<cembra.Expr of 200001 nodes>"
    del deep, model
    gc.collect()


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        2**31 - 1,
        -(2**31),
        2**63 - 1,
        -(2**63) + 1,
        0.1,
        -2.5e-300,
        1e22,
        float("inf"),
        float("-inf"),
        True,
        False,
        "",
        'a"\\\n\t\u00e9\U0001f332\x00\x7f',
        b"",
        b'\x00\xff"\\a',
        datetime.date(2026, 11, 20),
        datetime.datetime(2026, 11, 20, 10, 15, 0, 125, tzinfo=datetime.timezone.utc),
        datetime.timedelta(days=-3, microseconds=7),
    ],
)
def test_values_are_literals(value):
    assert cembra.compile({"y": cembra.expressions.as_expr(value)})() == value


def test_scalars_of_numpy_keep_their_types():
    for value, qtype in [
        (np.float32(0.1), "f32"),
        (np.float64(-0.1), "f64"),
        (np.int32(-7), "i32"),
        (np.int64(-7), "i64"),
        (np.uint64(2**64 - 1), "u64"),
        (np.float32("nan"), "f32"),
    ]:
        model = cembra.compile({"y": cembra.expressions.as_expr(value)})
        assert model.signatures[0]["outputs"]["y"] == qtype
        assert model() == value or np.isnan(value)
    assert literal(np.float32(0.1)) == "0.10000000149011612f32"
    with pytest.raises(TypeError, match="cannot be a value"):
        L.x + object()
    with pytest.raises(TypeError, match="time zone"):
        L.x + datetime.datetime(2026, 1, 1)


def test_lists_tuples_dicts_fields_and_elements():
    assert cembra.compile(M.math.sum([L.x, None, 2]))(x=1) == 3
    assert cembra.compile((cembra.expressions.as_expr((L.x, 2.5)))).signatures == []
    model = cembra.compile(L.order.price * 2.0, types={"order": "{price: f64, count: i32}"})
    assert model({"price": 2.5, "count": 1}) == 5.0 if len(model.inputs) > 1 else model(order={"price": 2.5, "count": 1}) == 5.0
    assert cembra.compile(L.x[L.i], types={"x": "[f64]", "i": "i64"})([1.0, 2.5], 1) == 2.5
    assert cembra.compile({"made": cembra.expressions.as_expr({"a": L.x, "b c": 2})})(x=1) == {"a": 1, "b c": 2}
    odd = cembra.compile(L["net price"] + L["if"])
    assert list(odd.inputs) == ["net price", "if"] and odd(1, 2) == 3


@pytest.mark.parametrize("name", ["text", "date", "bytes", "f64", "DENSE_ARRAY_X", "let", "inf", "L", "M", "math", "_0", "_1", "__0"])
def test_inputs_and_outputs_may_be_words_of_the_language(name):
    python = {}
    exec(f"def function({name}): return {name} * {name} + {name} // 2", python)
    assert cembra.function(python["function"])(4) == 18
    shared = L[name] + 1
    made = cembra.compile({name: shared * shared, "other": cembra.expressions.as_expr({name: shared})[name]})
    assert tuple(made(4)) == (25, 5) and made.outputs == [name, "other"]


def test_functions_of_numpy_on_expressions_are_operators():
    assert cembra.compile(np.sqrt(L.x) + np.float64(1.0))(4.0) == 3.0
    assert cembra.compile(np.where(L.x > 1, 1, 2))(0) == 2
    assert cembra.compile(np.maximum(L.x, 2.0) * np.float32(2.0))(1.0) == 4.0
    assert cembra.compile(np.float64(3.0) - L.x)(1.0) == 2.0
    assert cembra.compile(np.clip(L.x, 0.0, 1.0))(2.5) == 1.0
    halves = np.array([0.5, 1.5, -2.5, 2.6])
    assert cembra.compile(np.rint(L.x))(halves).tolist() == np.rint(halves).tolist()
    assert cembra.compile(np.trunc(L.x))(halves).tolist() == np.trunc(halves).tolist()
    x, y = np.array([3.0, -0.5, 0.0, 1e300]), np.array([-4.0, 2.0, -0.0, 1e300])
    assert np.allclose(cembra.compile(np.hypot(L.x, L.y))(x, y), np.hypot(x, y), rtol=1e-15, atol=0.0)
    assert np.allclose(cembra.compile(np.arctan2(L.y, L.x))(y, x), np.arctan2(y, x), rtol=1e-15, atol=0.0)
    assert cembra.compile(np.exp2(L.x))(np.array([-1074.0, 0.0, 10.0])).tolist() == [5e-324, 1.0, 1024.0]
    assert cembra.compile(np.hypot(L.x, 4.0))(3.0) == 5.0 and cembra.compile(np.tanh(L.x))(0.0) == 0.0
    digits = np.array([1.25, -1.35, 2.5, 1234.5])
    for function in [lambda e: np.round(e, 1), lambda e: round(e, 1), lambda e: np.around(e, decimals=1)]:
        assert cembra.compile(function(L.x))(digits).tolist() == [1.2, -1.4, 2.5, 1234.5]
    assert cembra.compile(np.round(L.x))(digits).tolist() == np.round(digits).tolist() == cembra.compile(round(L.x))(digits).tolist()
    assert cembra.compile(round(L.x, -2))(1250.0) == 1200.0
    graded = np.select([L.x < 1.0, L.x < 2.0], [10.0, L.x * 2.0], L.x)
    assert cembra.compile(graded)(np.array([0.5, 1.5, 2.5])).tolist() == [10.0, 3.0, 2.5]
    assert cembra.compile(np.select([L.x > 1], [5]))(np.array([0, 2])).tolist() == [0, 5]
    assert cembra.compile(np.cumprod(L.x), types={"x": "[f64]"})([2.0, 3.0, -1.0]) == [2.0, 6.0, -6.0]
    assert cembra.compile(np.sort(L.x), types={"x": "[f64]"})([2.0, 3.0, -1.0]) == [-1.0, 2.0, 3.0]
    known = {*cembra.expressions._UFUNCS.values(), *cembra.expressions._FUNCTIONS.values()} - cembra.expressions._SIGNS
    assert [name for name in known if not cembra._cembra._has_operator(name)] == []
    with pytest.raises(cembra.TracingError, match="np.arcsin"):
        np.arcsin(L.x)
    with pytest.raises(cembra.TracingError, match="np.concatenate"):
        np.concatenate([L.x, L.y])


@pytest.mark.parametrize(
    "ask, hint",
    [
        (lambda e: 1 if e else 2, "where"),
        (lambda e: not e, "where"),
        (lambda e: [x for x in e], "elements"),
        (lambda e: len(e), "M.array.size"),
        (lambda e: float(e), "M.math.sqrt"),
        (lambda e: range(e), "M.math.sqrt"),
        (lambda e: 3 in e, "comparisons"),
        (lambda e: 1 < e < 3, "where"),
        (lambda e: e[1:2], "M.array.slice"),
        (lambda e: L.x.sum(), r"sum\(..\)"),
        (lambda e: np.asarray(e), "not an array"),
        (lambda e: f"{e}", "M.strings.as_text"),
        (lambda e: f"{e:>8}", "M.strings.as_text"),
        (lambda e: "{}".format(e), "M.strings.join"),
        (lambda e: format(e), "M.strings.as_text"),
        (lambda e: round(e, L.n), "digits"),
        (lambda e: np.select([e], [1.0, 2.0]), "1 conditions and 2 choices"),
        (lambda e: np.round(L.x, out=None), "np.round"),
    ],
)
def test_what_needs_a_value_is_refused_with_a_hint(ask, hint):
    with pytest.raises(cembra.TracingError, match=hint) as raised:
        ask(L.x > 1)
    assert raised.value.code == "tracing" and isinstance(raised.value, cembra.Error)


@pytest.mark.parametrize("ask", [str, "{}".format, "%s".__mod__, lambda e: f"{e} pieces", lambda e: f"{e!s}", print, lambda e: {str(e): e}])
def test_a_traced_value_has_no_text(ask):
    with pytest.raises(cembra.TracingError, match=r"M.strings.as_text\(x\)"):
        cembra.function(lambda x: ask(x))(0.5)
    # Outside of a trace it may be printed, and `repr` always shows it.
    assert str(L.x) == repr(L.x) == f"{L.x!r}" == "<cembra.Expr L.x>"
    seen = []
    assert cembra.function(lambda x: seen.append(f"{x!r}") or x)(0.5) == 0.5 and seen == ["<cembra.Expr L.x>"]
    as_text = cembra.function(lambda x: M.strings.join(M.strings.as_text(x), " pieces"))
    assert as_text(3) == "3 pieces"


def test_errors_of_python_pickle_with_their_attributes():
    with pytest.raises(cembra.TracingError) as tracing:
        bool(L.x > 1)
    with pytest.raises(cembra.LimitError) as limit:
        L.x + [0] * (1 << 24)
    for error, code in [(tracing.value, "tracing"), (limit.value, "limit")]:
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is type(error) and str(again) == str(error) == again.message and again.code == code
            for name in ["span", "row", "element", "operator", "filename", "errno"]:
                assert getattr(again, name) is None


def test_operators_have_signatures_and_docstrings():
    assert M.math.sum(L.x, into=L.e)._form == ("call", "math.sum", "into")
    assert "sum" in M.math.sum.__doc__ and "into" in str(M.math.sum.__signature__)
    assert M.tensor.trunc is not None and all("." not in name for name in dir(M))
    assert M.sqrt is M.math.sqrt and "sqrt" in dir(M.math) and "math" in dir(M)
    with pytest.raises(TypeError, match="math.sqrt"):
        M.math.sqrt()
    with pytest.raises(TypeError, match="math.sqrt"):
        M.math.sqrt(L.x, L.y)
    with pytest.raises(AttributeError, match="cembra.M.math has no operator `sqtr`"):
        M.math.sqtr
    close = cembra.compile(M.math.is_close(L.x, L.y, atol=0.5))
    assert close(1.0, 1.4) is True and close(1.0, 1.6) is False
    edge = cembra.Edge.from_sizes([2, 0, 1])
    sums = cembra.compile(M.math.sum(L.x, into=L.e), types={"x": "[f64]", "e": "edge"})
    assert sums([1.0, 2.0, 4.0], edge) == [3.0, 0.0, 4.0]
    assert sums([1.0, 2.0, 4.0], cembra.Edge.from_mapping([1, None, 1], 2)) == [0.0, 5.0]


def test_edges():
    edge = cembra.Edge.from_sizes(np.array([2, 0, 1]))
    assert (edge.child_size, edge.parent_size, edge.split_points) == (3, 3, [0, 2, 2, 3])
    assert edge.mapping.tolist() == [0, 0, 2] and "3 elements" in repr(edge)
    assert edge == cembra.Edge.from_split_points([0, 2, 2, 3])
    mapping = cembra.Edge.from_mapping(np.ma.MaskedArray([1, 7], [False, True]), 2)
    assert mapping.split_points is None and mapping.mapping.tolist() == [1, None]
    for wrong in [
        lambda: cembra.Edge.from_sizes([-1]),
        lambda: cembra.Edge.from_sizes([None]),
        lambda: cembra.Edge.from_sizes([2**62, 2**62]),
        lambda: cembra.Edge.from_split_points([1, 2]),
        lambda: cembra.Edge.from_split_points([0, 2, 1]),
        lambda: cembra.Edge.from_mapping([2], 2),
        lambda: cembra.Edge.from_mapping([0.5], 2),
    ]:
        with pytest.raises(cembra.DataError):
            wrong()
    made = cembra.compile("edge.from_sizes(x)", types={"x": "[i64]"})([1, 2])
    assert made == cembra.Edge.from_sizes([1, 2])
    with pytest.raises(cembra.DataError, match="edge"):
        cembra.compile("edge.sizes(e)", types={"e": "edge"})([1, 2])


@cembra.function
def total(price, pieces, discount=0.0):
    gross = price * pieces
    return gross * (1.0 - discount)


def test_a_function_is_traced_once_and_compiled_for_each_set_of_types():
    calls = []

    @cembra.function
    def twice(x):
        calls.append(x)
        return x * 2

    assert twice(4) == 8 and twice(1.5) == 3.0 and twice(np.array([1, 2])).tolist() == [2, 4]
    assert len(calls) == 1 and len(twice.model.signatures) == 2
    assert total(2.5, 4.0) == 10.0 and total(2.5, pieces=4.0, discount=0.5) == 5.0
    assert list(total.model.inputs) == ["price", "pieces", "discount"]
    assert total.__name__ == "total" and "gross" not in total.source
    with pytest.raises(TypeError, match="price"):
        total()
    with pytest.raises(TypeError, match="multiple values|unexpected"):
        total(1.0, price=2.0)


def test_functions_call_functions_and_give_several_outputs():
    @cembra.function
    def both(a, b):
        return {"sum": a + b, "total": total(a, b)}

    @cembra.function(types={"a": "f64?"}, backend="interpreter")
    def pair(a):
        return a + 1.0, cembra.where(a > 0.0, a, None)

    made = both(2.0, 3.0)
    assert (made.sum, made.total) == (5.0, 6.0)
    assert pair(1.0) == (2.0, 1.0) and pair(None) == (None, None) and pair(1.0)._fields == ("out0", "out1")


def line_of(text):
    return 1 + [text in line for line in pathlib.Path(__file__).read_text().splitlines()].index(True)


def test_errors_name_the_line_of_python():
    @cembra.function
    def ratio(x, y):
        more = x + 1
        return more // y  # the line

    with pytest.raises(cembra.EvaluationError) as raised:
        ratio(1, 0)
    if hasattr(raised.value, "__notes__"):
        assert re.search(rf"test_expressions.py\", line {line_of('# the ' + 'line')}, in ratio", raised.value.__notes__[0])
    with pytest.raises(cembra.TypesError):
        ratio("a", 0)

    @cembra.function
    def branches(x):
        if x > 1:
            return x
        return 0

    with pytest.raises(cembra.TracingError, match="where") as raised:
        branches(1)
    assert raised.traceback[-2].name == "branches"
    with pytest.raises(cembra.TracingError, match="None"):
        cembra.function(lambda x: None)(1)
    with pytest.raises(TypeError, match="args"):
        cembra.function(lambda *args: 1)
    # A function that raised is traced again, and others are as before.
    assert total(1.0, 1.0) == 1.0


def test_a_function_from_many_threads():
    @cembra.function
    def square(x):
        return x * x

    found = []
    threads = [threading.Thread(target=lambda at=at: found.append(square(float(at)))) for at in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(found) == [float(at * at) for at in range(8)]


def test_a_function_pickles_by_its_name_and_runs_over_tables():
    import polars as pl

    assert pickle.loads(pickle.dumps(total)) is total
    frame = pl.DataFrame({"price": [1.0, 2.0], "pieces": [3.0, 4.0], "discount": [0.0, 0.5]})
    assert total.table(frame)["result"].to_list() == [3.0, 4.0]
    made, _, _ = total.run({name: frame[name].to_numpy() for name in frame.columns}, threads=2)
    assert made.tolist() == [3.0, 4.0]
    with pytest.raises(TypeError, match="total: too many"):
        total(1.0, 2.0, 3.0, 4.0)


class Prices:
    def __init__(self, rate):
        self.rate = rate
        self.traces = 0

    @cembra.function
    def total(self, price, more=0.0):
        """The price with the rate."""
        self.traces += 1
        return price * (1.0 + self.rate) + more

    @cembra.function
    def twice(self, price):
        return self.total(price) * 2.0

    @staticmethod
    @cembra.function
    def half(price):
        return price / 2.0


class Others(Prices):
    def both(self, price):
        return super().total(price), self.total(price)

    @cembra.function
    def total(self, price, more=0.0):
        return price - self.rate


def test_a_method_has_a_model_for_each_instance():
    one, other = Prices(0.5), Prices(0.25)
    assert one.total(2.0) == 3.0 and other.total(2.0) == 2.5 and one.total(4.0, more=1.0) == 7.0 and one.total(more=1.0, price=4.0) == 7.0
    assert one.traces == 1 and list(one.total.model.inputs) == ["price", "more"] and "self" not in one.total.source
    assert one.total.model is one.total.model is not other.total.model
    assert one.total(np.array([2.0, 4.0])).tolist() == [3.0, 6.0] and one.total.run({"price": np.array([2.0]), "more": 1.0})[0].tolist() == [4.0]
    # The attributes are those of the first call.
    one.rate = 9.0
    assert one.total(2.0) == 3.0 and Prices(9.0).total(2.0) == 20.0
    assert one.half(3.0) == Prices.half(3.0) == 1.5
    assert Prices.total(other, 2.0) == 2.5 and Prices.total(other, 2.0, more=1.0) == 3.5
    assert str(inspect.signature(one.total)) == "(price, more=0.0)" and one.total.__doc__ == "The price with the rate."
    for wrong in [lambda: one.total(), lambda: one.total(1.0, 2.0, 3.0), lambda: one.total(1.0, price=1.0)]:
        with pytest.raises(TypeError, match="total: "):
            wrong()
    with pytest.raises(TypeError, match="each instance has its own model"):
        Prices.total.model


def test_methods_call_methods_and_those_above():
    assert Prices(0.5).twice(2.0) == 6.0 and Others(0.5).twice(2.0) == 3.0
    assert Others(0.5).both(2.0) == (3.0, 1.5)
    assert Prices.total is Prices.total and Others.total is not Prices.total
    prices = Prices(0.5)
    assert prices.total == prices.total != prices.twice and prices.total != Prices(0.5).total
    assert len({prices.total, prices.total, prices.twice}) == 2

    class Holder:
        total = total

    # A function of a module that a class has too is not a method alone.
    assert total(2.5, 4.0) == 10.0 and Holder.total(2.5, 4.0) == 10.0


def test_methods_pickle_with_their_instance():
    prices = Prices(0.5)
    assert prices.total(2.0) == 3.0
    again = pickle.loads(pickle.dumps(prices.total))
    assert again(2.0) == 3.0 and again.__self__ is not prices
    # A copy is another instance: its first call reads its own attributes.
    other = copy.copy(prices)
    other.rate = 0.0
    assert other.total(2.0) == 2.0 and prices.total(2.0) == 3.0


def test_a_model_of_a_method_ends_with_the_instance():
    kept = Prices.total._instances
    gc.collect()
    before = len(kept)
    for at in range(100):
        # New instances get addresses of those before.
        assert Prices(float(at)).total(1.0) == 1.0 + at
    gc.collect()
    assert len(kept) == before
    prices = Prices(1.0)
    ended = weakref.ref(prices)
    method = prices.total
    assert method(1.0) == 2.0
    del prices
    assert ended() is not None and method(3.0) == 6.0
    del method
    gc.collect()
    assert ended() is None and len(kept) == before


def test_a_method_of_what_has_no_weak_references_is_refused():
    class Slots:
        __slots__ = ("rate",)

        @cembra.function
        def total(self, price):
            return price * self.rate

    slots = Slots()
    slots.rate = 2.0
    with pytest.raises(TypeError, match="`__weakref__`"):
        slots.total(1.0)


def test_models_of_expressions_are_models():
    model = cembra.compile({"y": L.x * 2.0, "z": L.x + L.w})
    copied = pickle.loads(pickle.dumps(model))
    assert copied(x=1.0, w=2.0) == (2.0, 3.0)
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(L.x)
    with pytest.raises(TypeError, match="not a list"):
        cembra.compile([L.x])
    with pytest.raises(cembra.TracingError):
        cembra.compile({})
    with pytest.raises(cembra.TracingError, match="must have an expression"):
        cembra.where(True, 1, 2)


def test_the_line_of_an_error_is_found_behind_letters_of_several_bytes():
    @cembra.function
    def priced(x):
        shown = cembra.where(x > 0, "größer " + "ö" * 100, "")
        below = 1 // x
        return {"shown": shown, "below": below}

    with pytest.raises(cembra.EvaluationError) as raised:
        priced(0)
    assert "below = 1 // x" in raised.value.__notes__[0]
