"""Tests of the signatures of models, as `inspect` and editors read them."""

import inspect
import keyword

import pytest

import cembra
from cembra.signatures import signature_of, type_of


def test_inputs_are_parameters_and_types_are_annotations():
    made = signature_of([("price", "f64", False), ("pieces", "i64", False), ("note", None, False), ("rate", "f64?", True)])
    assert str(made) == "(price: 'float', pieces: 'int', note, rate: 'float | None' = None)"
    assert made.bind(1.0, 2, "a").arguments == {"price": 1.0, "pieces": 2, "note": "a"}
    assert made.bind(pieces=2, note="a", price=1.0, rate=0.5).args == (1.0, 2, "a", 0.5)
    for wrong in [(1.0, 2), (1.0, 2, "a", 0.5, 0.5)]:
        with pytest.raises(TypeError):
            made.bind(*wrong)
    with pytest.raises(TypeError, match="tax"):
        made.bind(1.0, 2, "a", tax=0.5)
    assert str(signature_of([])) == "()"


def test_an_input_behind_a_default_that_must_be_given_is_by_name():
    # The model takes `model(1.0, 2.0)` too, which no signature can say.
    made = signature_of([("a", "f64", True), ("b", "f64", False), ("c", "f64", True)])
    assert str(made) == "(a: 'float' = None, *, b: 'float', c: 'float' = None)"
    assert made.bind(b=2.0).arguments == {"b": 2.0}


def test_a_name_that_python_cannot_write_is_among_the_others():
    # The position of `b` is 2: an argument at position 1 is `net price`.
    made = signature_of([("a", "f64", False), ("net price", "f64", False), ("b", "f64", False), ("inputs", "f64", True)])
    assert str(made) == "(a: 'float', *, b: 'float', inputs: 'float' = None, **inputs_)"
    assert made.bind(1.0, b=2.0, **{"net price": 3.0}).kwargs == {"b": 2.0, "net price": 3.0}
    with pytest.raises(TypeError):
        made.bind(1.0, 2.0)
    # A ligature is an identifier, but arrives as two letters.
    for name in ["1", "", "a b", "ﬁ", "__debug__", *keyword.kwlist]:
        assert str(signature_of([(name, "f64", False)])) == "(**inputs)", name
    for name in ["self", "cls", "args", "kwargs", "match", "_", "_0", "größe"]:
        assert list(signature_of([(name, "f64", False)]).parameters) == [name]


@pytest.mark.parametrize(
    ("qtype", "expected"),
    [
        ("f32", "float"),
        ("u64?", "int | None"),
        ("unit?", "bool | None"),
        ("date", "datetime.date"),
        ("timestamp?", "datetime.datetime | None"),
        ("[i32?]", "list[int | None]"),
        ("[{a: f64, \"b, c\": (i32, text)}]", "list[dict[str, object]]"),
        ("{a: f64}?", "dict[str, object] | None"),
        ("dict[text, f64]", "dict[str, float]"),
        ("(i32, (text, {\"a, b)\": f64}), bytes?)", "tuple[int, tuple[str, dict[str, object]], bytes | None]"),
        ("(i32,)", "tuple[int]"),
        ("()", "tuple[()]"),
        ("tensor[f64, 2]", "numpy.ndarray"),
        ("edge", "cembra.Edge"),
        ("(i32, soup)", None),
        ("[soup?]", None),
    ],
)
def test_types_of_python(qtype, expected):
    assert type_of(qtype) == expected
    made = signature_of([("x", qtype, False)]).parameters["x"].annotation
    assert made == (inspect.Parameter.empty if expected is None else expected)


def test_a_model_has_a_signature():
    model = cembra.compile("input a: f64, b: i64? = 2, c: text; output y = a; output z = b; output w = c; output v = d")
    assert str(inspect.signature(model)) == "(a: 'float', b: 'int | None' = None, *, c: 'str', d)"
    for name in inspect.signature(model).bind(1.0, 2, c="a", d=True).arguments:
        assert name in model.inputs
    # A model says its types as far as the text or `types` declare them.
    assert str(inspect.signature(cembra.compile("x * y", types={"y": "f64?"}))) == "(x, y: 'float | None' = None)"
    odd = cembra.compile('input "net price": f64, b: f64; output y = L["net price"] - b')
    bound = inspect.signature(odd).bind(**{"net price": 3.0}, b=2.0)
    assert odd(*bound.args, **bound.kwargs) == 1.0


def test_a_function_has_that_of_python():
    def total(price: float, pieces: float, *, discount: float = 0.0) -> float:
        return price * pieces * (1.0 - discount)

    assert inspect.signature(cembra.function(total)) == inspect.signature(total)
