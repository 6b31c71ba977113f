"""Tests of calls with one row: numbers, strings, dates, structs, lists and dictionaries; inputs that get their types from a call; errors."""

import copy
import datetime
import json
import pickle
import threading

import numpy as np
import pytest

import cembra

BACKENDS = ["native", "interpreter"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_values_by_name_by_position_and_as_a_row(backend):
    model = cembra.compile("input x: f64, y: f64? = 2.0; x * y", backend=backend)
    assert model(x=1.5, y=3.0) == 4.5
    assert model(1.5, 3) == 4.5
    assert model({"x": 1.5, "y": 3.0}) == 4.5
    assert model(x=1.5, y=None) == 3.0
    assert model(1.5) == 3.0


def test_missing_comes_out_as_none_and_several_outputs_as_a_named_tuple():
    model = cembra.compile("input x: f64?; output root = math.sqrt(x); output is_large = x > 10; output flag = x == 4.0")
    made = model(4.0)
    assert (made.root, made.is_large, made.flag) == (2.0, False, True)
    assert model(None) == (None, False, False)
    assert made._fields == ("root", "is_large", "flag")


def test_outputs_have_the_names_of_the_model_whatever_they_are():
    names = ["a b", "class", "_y", "1", "count", "index", "_fields", "_asdict", "__class__", "_0", "ﬁ", "fi", "größe"]
    model = cembra.compile("input x: i64\n" + "\n".join(f'output "{name}" = x + {at}' for at, name in enumerate(names)))
    made = model(10)
    expected = {name: 10 + at for at, name in enumerate(names)}
    assert made._asdict() == expected and list(made._asdict()) == names
    assert json.loads(json.dumps(made._asdict(), ensure_ascii=False)) == expected
    assert (made.count, made.index, made.fi, made.größe) == (14, 15, 21, 22) and tuple(made) == tuple(range(10, 23))
    # Names that Python cannot write, or has a use for, are positions.
    assert made._fields == ("_0", "_1", "_2", "_3", "count", "index", "_6", "_7", "_8", "_9", "_10", "fi", "größe")
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made), made._replace(_0=10)):
        assert again == made and type(again) is type(made) and again._asdict() == expected
    columns = model(np.array([10, 20]))
    assert {name: column.tolist() for name, column in columns._asdict().items()} == {name: [10 + at, 20 + at] for at, name in enumerate(names)}


def test_a_mask_is_whether_it_holds():
    model = cembra.compile("input m: unit?, x: f64; output kept = x & m; output mask = m")
    assert model(True, 1.5) == (1.5, True) and model(False, 1.5) == (None, False) and model(None, 1.5) == (None, False)


def test_inputs_have_the_types_of_the_first_call():
    model = cembra.compile("output y = a * b")
    assert model.inputs == {"a": None, "b": None}
    assert model(a=2, b=3) == 6 and isinstance(model(a=2, b=3), int)
    assert model(a=2.0, b=3.5) == 7.0
    assert [signature["inputs"] for signature in model.signatures] == [
        {"a": "i64", "b": "i64"},
        {"a": "f64", "b": "f64"},
    ]
    typed = cembra.compile("a * b", types={"a": "f64?", "b": "f64"})
    assert typed(a=None, b=1.0) is None
    with pytest.raises(cembra.TypesError, match="`a` has no type, because the argument None does not give it one"):
        model(a=None, b=1)


def test_there_are_not_more_signatures_than_one_may_have():
    model = cembra.compile("where(has(a), 1, 2) + where(has(b), 1, 2)")
    values = [1, 1.0, "t", b"t", True]
    with pytest.raises(cembra.TypesError, match="at most 16 signatures"):
        for a in values:
            for b in values:
                model(a=a, b=b)
    assert len(model.signatures) == 16


DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 5, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
LENGTH = datetime.timedelta(days=-3, seconds=5, microseconds=7)


@pytest.mark.parametrize(
    ("qtype", "value"),
    [
        ("f64", 0.1),
        ("f64", float("inf")),
        ("i32", -(2**31)),
        ("i64", 2**63 - 1),
        ("u64", 2**64 - 1),
        ("bool", True),
        ("bool", False),
        ("text", "zwölf €"),
        ("bytes", b"\x00\xff"),
        ("date", DAY),
        ("date", datetime.date.min),
        ("date", datetime.date.max),
        ("timestamp", MOMENT),
        ("timestamp", datetime.datetime.max.replace(tzinfo=datetime.timezone.utc)),
        ("duration", LENGTH),
        ("[i64?]", [1, None, 3]),
        ("[text?]", ["a", None]),
        ("{x: f64, y: {z: text?}}", {"x": 1.0, "y": {"z": None}}),
        ("{x: f64}?", {"x": 1.0}),
        ("{x: f64}?", None),
        ("[{x: f64, y: text?}]", [{"x": 1.0, "y": "a"}, {"x": 2.0, "y": None}]),
        ("[{x: f64, y: text?}]", []),
        ("(i32, text)", (1, "a")),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_values_come_back_as_they_went(qtype, value, backend):
    made = cembra.compile(f"input x: {qtype}; output y = x", backend=backend)(value)
    assert made == value
    assert type(made) is type(value)


@pytest.mark.parametrize(
    ("text", "days", "found"),
    [
        ("input d: date, n: i64; output y = d + n", 3_000_000, "the result is 3019782 days from 1970-01-01"),
        ("input d: date, n: i64; output y = [d + n]", 3_000_000, "3019782 days"),
        ("input d: timestamp, n: duration; output y = d + n", datetime.timedelta(days=3_000_000), "microseconds from 1970-01-01"),
    ],
)
def test_results_that_datetime_does_not_have_are_refused_with_the_way_out(text, days, found):
    given = MOMENT if "timestamp" in text else DAY
    with pytest.raises(cembra.DataError, match=f"{found}.*give the inputs as NumPy arrays"):
        cembra.compile(text)(given, days)


def test_scalars_of_numpy_are_numbers():
    model = cembra.compile("a + b")
    assert model(np.float32(1.5), np.float32(0.25)) == 1.75
    assert model.signatures[0]["inputs"] == {"a": "f32", "b": "f32"}
    assert model(np.int32(1), np.int32(2)) == 3
    assert cembra.compile("input x: f64; x")(np.float64(0.5)) == 0.5


def test_structs_are_also_objects_with_attributes():
    class Customer:
        name = "Ann"
        age = None

    model = cembra.compile("input c: {name: text, age: i32?}; output y = c.name + where(has(c.age), '!', '?')")
    assert model(Customer()) == "Ann?"
    assert model({"name": "Bob", "age": 3}) == "Bob!"
    assert model(c={"name": "Bob"}) == "Bob?"


def test_dictionaries():
    model = cembra.compile("input rates: dict[text, f64], key: text; output rate = lookup(key, rates)")
    assert model({"CH": 1.08, "DE": 0.5}, "DE") == 0.5
    assert model({"CH": 1.08}, "DE") is None
    with pytest.raises(cembra.DataError, match=r"input `rates`\['a'\] is f64, found str"):
        model({"a": "b"}, "a")


@pytest.mark.parametrize(
    ("qtype", "value", "message"),
    [
        ("f64", "1.5", "input `x` is f64, found str"),
        ("f64", True, "input `x` is f64, found bool"),
        ("f64", None, "input `x` is f64, found None"),
        ("i64", 1.0, "input `x` is i64, found float"),
        ("i64", True, "input `x` is i64, found bool"),
        ("i32", 2**31, "input `x` is i32, found the integer 2147483648"),
        ("i64", 2**200, "input `x` is i64, found a larger integer"),
        ("u64", -1, "input `x` is u64, found the integer -1"),
        ("text", b"a", "input `x` is text, found bytes"),
        ("text", "\ud800", "input `x` is text, found a string with an unpaired surrogate"),
        ("date", MOMENT, "input `x` is date, found a datetime that has a time zone or is not midnight"),
        ("timestamp", datetime.datetime(2024, 1, 1), "input `x` is timestamp, found a datetime without a time zone"),
        ("[i64]", [1, "a"], r"input `x`\[1\] is i64, found str"),
        ("[i64]", "ab", r"input `x` is \[i64\], found str"),
        ("{x: f64, y: {z: text}}", {"x": 1.0, "y": {"z": 1}}, "input `x`.y.z is text, found int"),
        ("{x: f64}", {}, "input `x`.x is f64, found None"),
        ("[{x: f64}]", [{"x": 1.0}, {"x": "a"}], r"input `x`\[1\].x is f64, found str"),
        ("tensor[f64, 2]", np.zeros(3), r"found an array of 1 axes"),
        ("tensor[f64, 1]", np.zeros(3, "c8"), r"found an array of complex64"),
    ],
)
def test_values_that_do_not_fit_are_errors_that_say_where(qtype, value, message):
    model = cembra.compile(f"input x: {qtype}; output y = x")
    with pytest.raises(cembra.DataError, match=message) as caught:
        model(value)
    assert caught.value.code == "values"


def test_wrong_arguments_are_type_errors_as_of_functions():
    model = cembra.compile("input x: f64, y: f64; x + y")
    with pytest.raises(TypeError, match="no input `z`: it has x, y"):
        model(x=1.0, z=1.0)
    with pytest.raises(TypeError, match="`x` is given twice"):
        model(1.0, x=1.0)
    with pytest.raises(TypeError, match="2 inputs, but 3 values are given"):
        model(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="input `y` is not given: it must be given, because its type is f64"):
        model(1.0)


def test_errors_say_what_is_wrong_and_where():
    with pytest.raises(cembra.TextError) as caught:
        cembra.compile("1 + (2", name="price.cem")
    error = caught.value
    assert (error.code, error.message, error.span) == ("bracket", "this bracket is never closed", (4, 5))
    assert "price.cem:1:5" in str(error)
    with pytest.raises(cembra.TypesError) as caught:
        cembra.compile("input x: text; x * 2")
    assert caught.value.code == "type-mismatch"
    with pytest.raises(cembra.EvaluationError) as caught:
        cembra.compile("input x: i64; 1 // x")(0)
    error = caught.value
    assert (error.code, error.operator, error.span, error.row) == ("div-by-zero", "math.floor_divide", (14, 20), None)
    assert all(issubclass(kind, cembra.Error) for kind in (cembra.TextError, cembra.LimitError, cembra.DataError))


def test_a_model_runs_its_tests():
    text = 'input x: f64; output y = x * 2.0; test "twice" { x => y; 1.0 => 2.0; 3.0 => 6.0 }'
    assert cembra.compile(text).run_tests() == 2
    with pytest.raises(cembra.EvaluationError, match="twice") as caught:
        cembra.compile(text.replace("6.0", "7.0")).run_tests()
    assert caught.value.code == "failed-test"


def test_models_pickle_and_copy():
    model = cembra.compile("a * x", types={"a": "f64?"}, backend="interpreter", name="m.cem")
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        assert (other.source, other.inputs) == (model.source, model.inputs)
        assert other(a=2.0, x=1.5) == 3.0


def test_threads_use_one_model_at_once():
    model = cembra.compile("input x: f64, n: text; output y = math.sqrt(x); output t = n + '!'")
    wrong = []

    def work(start):
        for at in range(2_000):
            x = float(start + at)
            made = model(x * x, str(at))
            if made != (x, f"{at}!"):
                wrong.append((x, made))

    threads = [threading.Thread(target=work, args=(start,)) for start in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_threads_compile_for_a_call_once_at_least_and_keep_it_once():
    for _ in range(20):
        model = cembra.compile("a * b")
        start, found = threading.Barrier(8), []

        def work():
            start.wait()
            found.append(model(1.5, 2.0))
            model.signatures

        threads = [threading.Thread(target=work) for _ in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert found == [3.0] * 8 and len(model.signatures) == 1


def test_a_model_says_what_it_is():
    model = cembra.compile("input x: f64; output y = x * 2.0")
    assert repr(model) == "<cembra.Model (x: f64) -> y>"
    assert (model.source, model.outputs) == ("input x: f64; output y = x * 2.0", ["y"])
    assert "multiply" in model.explain("prepared")
    with pytest.raises(ValueError, match="the stage must be one of expr, "):
        model.explain("soup")
    assert cembra.format("a+b") == "a + b\n"
