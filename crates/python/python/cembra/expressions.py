"""Expressions in Python: `L.x * 2.0 + L.y` is not computed at once, but builds an expression that can be compiled to a model.

An expression has its form in the language and its operands. It has no types: those are found when it is compiled. `statements` writes the text of
whole expressions, `operators` has the functions that make expressions, and `functions` makes expressions of Python functions.
"""

from __future__ import annotations

import datetime
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import numpy as np

from cembra._cembra import Error, LimitError, TypesError, _is_plain_name

__all__ = ["Expr", "L", "TracingError", "call"]

# The most elements of a literal. Each takes at least two bytes of the text, which has at most 16 MiB.
_MOST_ELEMENTS = 1 << 23

# The place in Python where a node is made is only looked up while a function is traced, because that takes longer than making the node.
_tracing = threading.local()


class TracingError(TypesError):
    """Raised when an operation on an expression needs the value of the expression, which is not known before the model runs."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.code = "tracing"
        _without_place(self)


def _without_place(error: Error) -> None:
    """Sets the attributes that every error of the package has, such as `span` and `row`, to `None`."""
    error.span = error.row = error.element = error.operator = error.filename = error.errno = None


def quoted(text: str) -> str:
    """Returns the text as a literal of the language."""
    made = []
    for character in text:
        if character in '"\\':
            made.append("\\" + character)
        elif character.isprintable():
            made.append(character)
        elif 0xD800 <= ord(character) <= 0xDFFF:
            raise ValueError("a string with an unpaired surrogate is not a text")
        else:
            made.append(f"\\u{{{ord(character):x}}}")
    return '"' + "".join(made) + '"'


def quoted_bytes(value: bytes) -> str:
    """Returns the bytes as a literal of the language."""
    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in value)
    return 'b"' + "".join(plain) + '"'


def number(value: float, suffix: str = "") -> str:
    """Returns the float as a literal of the language, in brackets if it is negative. The suffix, such as `f32`, gives it a type."""
    if not math.isfinite(value):
        sign, name = ("-" if value < 0 else ""), ("nan" if math.isnan(value) else "inf")
        return f"{suffix or 'f64'}{{{sign}{name}}}" if suffix else f"({sign}{name})"
    written = repr(float(value)) + suffix
    return f"({written})" if written.startswith("-") else written


class Expr:
    """An expression of a model: an input, a literal, or an operator with its operands.

    Python's operators on an expression make larger expressions, `expr.name` is a field of a struct, and `expr[i]` is an element. `==`, `<` and
    so on are comparisons in the model. An expression has no truth value, no length, no elements and no text before the model runs; `repr` shows
    its form in the language.
    """

    __slots__ = ("__weakref__", "_form", "_operands", "_place")
    __hash__ = object.__hash__
    # In an operation with a NumPy array, the expression decides what the result is.
    __array_priority__ = 1000

    def __init__(self, form: tuple[str, ...], operands: tuple[Expr, ...] = ()) -> None:
        self._form = form
        self._operands = operands
        self._place = _place_of_caller() if getattr(_tracing, "on", False) else None

    # Operators that make larger expressions.

    def __add__(self, other: Any) -> Expr:
        return infix("+", self, other)

    def __radd__(self, other: Any) -> Expr:
        return infix("+", other, self)

    def __sub__(self, other: Any) -> Expr:
        return infix("-", self, other)

    def __rsub__(self, other: Any) -> Expr:
        return infix("-", other, self)

    def __mul__(self, other: Any) -> Expr:
        return infix("*", self, other)

    def __rmul__(self, other: Any) -> Expr:
        return infix("*", other, self)

    def __truediv__(self, other: Any) -> Expr:
        return infix("/", self, other)

    def __rtruediv__(self, other: Any) -> Expr:
        return infix("/", other, self)

    def __floordiv__(self, other: Any) -> Expr:
        return infix("//", self, other)

    def __rfloordiv__(self, other: Any) -> Expr:
        return infix("//", other, self)

    def __mod__(self, other: Any) -> Expr:
        return infix("%", self, other)

    def __rmod__(self, other: Any) -> Expr:
        return infix("%", other, self)

    def __pow__(self, other: Any) -> Expr:
        return infix("**", self, other)

    def __rpow__(self, other: Any) -> Expr:
        return infix("**", other, self)

    def __and__(self, other: Any) -> Expr:
        return infix("&", self, other)

    def __rand__(self, other: Any) -> Expr:
        return infix("&", other, self)

    def __or__(self, other: Any) -> Expr:
        return infix("|", self, other)

    def __ror__(self, other: Any) -> Expr:
        return infix("|", other, self)

    def __lt__(self, other: Any) -> Expr:
        return infix("<", self, other)

    def __le__(self, other: Any) -> Expr:
        return infix("<=", self, other)

    def __gt__(self, other: Any) -> Expr:
        return infix(">", self, other)

    def __ge__(self, other: Any) -> Expr:
        return infix(">=", self, other)

    def __eq__(self, other: Any) -> Expr:  # type: ignore[override]
        return infix("==", self, other)

    def __ne__(self, other: Any) -> Expr:  # type: ignore[override]
        return infix("!=", self, other)

    def __neg__(self) -> Expr:
        return Expr(("prefix", "-"), (self,))

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        return Expr(("prefix", "not "), (self,))

    def __abs__(self) -> Expr:
        return call("math.abs", self)

    def __round__(self, digits: Any = None) -> Expr:
        return _rounded(self, 0 if digits is None else digits)

    def __trunc__(self) -> Expr:
        return call("math.trunc", self)

    def __floor__(self) -> Expr:
        return call("math.floor", self)

    def __ceil__(self) -> Expr:
        return call("math.ceil", self)

    def __getitem__(self, at: Any) -> Expr:
        if isinstance(at, (slice, tuple)):
            raise TracingError("an expression must be indexed by a number or an expression: call M.array.slice for a slice")
        if isinstance(at, str):
            return Expr(("field", at), (self,))
        return Expr(("element",), (self, as_expr(at)))

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):
            raise AttributeError(name)
        return Expr(("field", name), (self,))

    # Operations that need the value of an expression, and raise an error.

    def __bool__(self) -> NoReturn:
        raise TracingError(
            "an expression is neither true nor false before the model runs: use cembra.where(condition, a, b) for `if`, and `&`, `|`, `~` for"
            " `and`, `or`, `not`"
        )

    def __iter__(self) -> Iterator[Any]:
        raise TracingError("an expression has no elements before the model runs: use an operator on arrays, such as M.sum, in place of a loop")

    def __len__(self) -> NoReturn:
        raise TracingError("an expression has no length before the model runs: use M.array.size or M.strings.length")

    def __contains__(self, item: Any) -> NoReturn:
        raise TracingError("`in` needs the value of an expression, which is known only when the model runs: use comparisons, joined by `|`")

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        name = self._form[1] if self._form[0] == "field" else "f"
        raise TracingError(
            f"an expression has fields, but no methods such as `{name}(..)`: call an operator of `M`, as in M.sum(x) for x.sum()"
        )

    def __float__(self) -> NoReturn:
        raise TracingError("an expression is not a number before the model runs: use M.math.sqrt or np.sqrt in place of math.sqrt, and an operator on arrays in place of a loop")

    __int__ = __index__ = __complex__ = __float__

    def __format__(self, spec: str) -> NoReturn:
        raise TracingError(_NO_TEXT)

    def __str__(self) -> str:
        if getattr(_tracing, "on", False):
            raise TracingError(_NO_TEXT)
        return repr(self)

    # NumPy's functions with an expression as an argument.

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Expr:
        name = _UFUNCS.get(ufunc.__name__)
        if name is None or method != "__call__" or options:
            raise TracingError(f"np.{ufunc.__name__} cannot be used on an expression: call an operator of `M`")
        if name == "math.round_even":
            inputs = (*inputs, 0)
        return infix(name, *inputs) if name in _SIGNS else call(name, *inputs)

    def __array_function__(self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expr:
        special = _SPECIAL_FUNCTIONS.get(function.__name__)
        if special is not None:
            try:
                return special(*args, **kwargs)
            except TracingError:
                raise
            except TypeError as error:
                raise TracingError(f"np.{function.__name__} of an expression: {error}") from None
        name = _FUNCTIONS.get(function.__name__)
        if name is None or kwargs:
            raise TracingError(f"np.{function.__name__} cannot be used on an expression: call an operator of `M`")
        return call(name, *args)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TracingError("an expression is not an array before the model runs: call an operator of `M`")

    def __repr__(self) -> str:
        from cembra.statements import shown

        return f"<cembra.Expr {shown(self)}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an expression cannot be pickled: compile it, and pickle the model")


_NO_TEXT = (
    "an expression has no text before the model runs: use M.strings.as_text(x) and M.strings.join(a, b) for f-strings and str(), and repr(x) or"
    " `{x!r}` to show the expression itself"
)

# The operators that stand for NumPy's elementwise functions.
_UFUNCS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "floor_divide": "//",
    "remainder": "%",
    "power": "**",
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "equal": "==",
    "not_equal": "!=",
    "negative": "math.neg",
    "absolute": "math.abs",
    "hypot": "math.hypot",
    "arctan2": "math.trig.atan2",
    "maximum": "math.maximum",
    "minimum": "math.minimum",
    "fmod": "math.fmod",
    "sign": "math.sign",
    "sqrt": "math.sqrt",
    "exp": "math.exp",
    "exp2": "math.exp2",
    "expm1": "math.expm1",
    "log": "math.log",
    "log2": "math.log2",
    "log10": "math.log10",
    "log1p": "math.log1p",
    "floor": "math.floor",
    "ceil": "math.ceil",
    "rint": "math.round_even",
    "trunc": "math.trunc",
    "sin": "math.trig.sin",
    "cos": "math.trig.cos",
    "sinh": "math.trig.sinh",
    "tanh": "math.tanh",
    "arctan": "math.trig.atan",
    "isnan": "math.is_nan",
    "isinf": "math.is_inf",
    "isfinite": "math.is_finite",
}
_SIGNS = {sign for sign in _UFUNCS.values() if not sign[0].isalpha()}
_FUNCTIONS = {
    "where": "where",
    "clip": "math.clamp",
    "sum": "sum",
    "mean": "math.mean",
    "median": "median",
    "quantile": "quantile",
    "cumsum": "math.cum_sum",
    "cumprod": "math.cum_prod",
    "sort": "array.sort",
}


def _rounded(a: Any, decimals: Any = 0) -> Expr:
    """`np.round` and `round`: halves are rounded to the even digit. The digits must be a number, because the operator is made for that number."""
    if isinstance(decimals, Expr):
        raise TracingError("the digits of round() must be a number, not an expression")
    return call("math.round_even", a, operator.index(decimals))


def _selected(condlist: Any, choicelist: Any, default: Any = 0) -> Expr:
    """`np.select`: returns the choice that belongs to the first condition that is true, or the default if no condition is true."""
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise TracingError(f"np.select must have a choice for each condition: there are {len(conditions)} conditions and {len(choices)} choices")
    chosen = as_expr(default)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        chosen = call("where", condition, choice, chosen)
    return chosen


# NumPy functions that are not a single call of an operator.
_SPECIAL_FUNCTIONS: dict[str, Callable[..., Expr]] = {"round": _rounded, "around": _rounded, "round_": _rounded, "select": _selected}


def infix(sign: str, left: Any, right: Any) -> Expr:
    """Makes the expression of two operands with an operator sign, such as `+`, between them."""
    return Expr(("infix", sign), (as_expr(left), as_expr(right)))


def call(name: str, *operands: Any, **named: Any) -> Expr:
    """Makes an expression that calls an operator by its full or short name. The operator may be one of the user's. Operands may be given by the names
    of parameters."""
    return Expr(("call", name, *named), tuple(as_expr(operand) for operand in (*operands, *named.values())))


def _place_of_caller() -> tuple[str, int, str] | None:
    """Returns the file, line and function of the innermost call from outside of the package; `None` if there is none."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cembra":
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def literal(value: Any) -> str | None:
    """Returns a Python value as a literal of the language; `None` if it is not a scalar."""
    if value is None:
        return "missing"
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, np.generic):
        kind = value.dtype.str[1:]
        if kind in ("f4", "f2"):
            return number(float(value), "f32")
        if kind == "f8":
            return number(float(value), "f64")
        if value.dtype.kind in "iu":
            suffix = "i64" if kind in ("i8", "u4") else "i32"
            written = f"u64{{{int(value)}}}" if kind == "u8" else f"{int(value)}{suffix}"
            return f"({written})" if written.startswith("-") else written
        if isinstance(value, (np.datetime64, np.timedelta64)):
            raise TypeError("a date or time of NumPy cannot be a literal: give one of `datetime`")
        return literal(value.item())
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    if isinstance(value, float):
        return number(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return quoted_bytes(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise TypeError("a datetime without a time zone: add a time zone, as in `.replace(tzinfo=timezone.utc)`")
        utc = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        return f'timestamp"{utc.isoformat()}Z"'
    if isinstance(value, datetime.date):
        return f'date"{value.isoformat()}"'
    if isinstance(value, datetime.timedelta):
        microseconds = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        return f"duration{{{microseconds}us}}"
    return None


def as_expr(value: Any) -> Expr:
    """Returns an expression as it is, and converts another value: a number, a string, a date or `None` to a literal, a list or a NumPy array with
    one axis to an array, a tuple to a tuple, and a dict to a struct."""
    if isinstance(value, Expr):
        return value
    written = literal(value)
    if written is not None:
        return Expr(("literal", written))
    count = value.size if isinstance(value, np.ndarray) else len(value) if isinstance(value, (list, tuple)) else 0
    if count > _MOST_ELEMENTS:
        error = LimitError(f"a literal has {count} elements, but can have at most {_MOST_ELEMENTS}: make it an input")
        error.message, error.code = str(error), "limit"
        _without_place(error)
        raise error
    if isinstance(value, np.ma.MaskedArray) or (isinstance(value, np.ndarray) and value.ndim == 1):
        return Expr(("array",), tuple(as_expr(None if one is np.ma.masked else one) for one in value))
    if isinstance(value, list):
        return Expr(("array",), tuple(map(as_expr, value)))
    if isinstance(value, tuple):
        return Expr(("tuple",), tuple(map(as_expr, value)))
    if isinstance(value, Mapping):
        return Expr(("struct", *map(str, value)), tuple(map(as_expr, value.values())))
    raise TypeError(f"a {type(value).__qualname__} cannot be a value in an expression")


class Inputs:
    """The inputs of expressions: `L.price`, or `L["net price"]` if Python cannot write the name."""

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return Expr(("leaf", name))

    def __getitem__(self, name: str) -> Expr:
        return Expr(("leaf", name))

    def __repr__(self) -> str:
        return "cembra.L"


L = Inputs()


def spelled(name: str) -> str:
    """Returns a name as the language writes it: in quotes if it is a word of the language, or not a plain name."""
    return name if _is_plain_name(name) else quoted(name)
