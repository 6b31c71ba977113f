"""Operators of the user: Python functions on scalars, which models call by name for each row, and functions on whole columns."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import numpy as np

from cembra._cembra import _register
from cembra.operators import M

__all__ = ["operator"]

F = TypeVar("F", bound=Callable[..., object])
Parameter = Literal["f64", "i64", "bool", "text"]
Result = Literal["f64", "i64", "bool", "text", "f64?", "i64?", "bool?", "text?"]

# NumPy's names of the types that functions over columns take and return.
_DTYPES = {"f64": "f8", "i64": "i8", "bool": "?"}


def operator(
    name: str,
    parameters: Parameter | Iterable[Parameter],
    result: Result,
    *,
    pure: bool = True,
    columns: bool = False,
) -> Callable[[F], F]:
    """Makes an operator of a Python function. Models that are compiled later can call it.

    >>> @cembra.operator("risk.cap", "f64", "f64")
    ... def cap(x):
    ...     return min(x, 100.0)
    >>> cembra.compile("risk.cap(x) + 1.0")(250.0)
    101.0

    The types of two or more parameters are a list:

    >>> @cembra.operator("text.repeat", ["text", "i64"], "text?")
    ... def repeat(text, count):
    ...     return text * count if count >= 0 else None
    >>> cembra.compile('text.repeat("ab", 2i64)')()
    'abab'

    `name` has two parts with a dot between them. `cembra.M` has the operator under this name too: `M.risk.cap(L.x)`. `parameters` is the type of the
    only parameter, or a list with the type of each: one or two of `f64`, `i64`, `bool` and `text`, or three or four that are all `f64` or all `i64`.
    `result` is one of these types. With a `?` after the type, the function may return `None` for a missing result. If an operand is missing, the
    result is missing too, and the function is not called. A function that may return different results for equal operands must be registered with
    `pure=False`.

    A call takes many times as long as an operator of the language, and threads wait for each other, so write a function only if the language does not
    have the operator. An exception that the function raises ends the evaluation with an `EvaluationError`, whose cause is that exception.
    `KeyboardInterrupt` and `SystemExit` are raised as they are.

    An operator that is defined again replaces the previous one for models that are compiled later. A model that was compiled before keeps the
    function that it was compiled with. Every definition takes memory until the process ends, and a process can have at most 256 names of operators.

    With `columns=True` the function gets a NumPy array for each parameter, and must return an array with a result for each element, masked where a
    result is missing. The types can then be `f64`, `i64` and `bool`. The arrays have only the rows in which no operand is missing. If the model is
    called with columns, the function gets all these rows at once, or is not called if there are none; if it is called with values, the only row.

    >>> @cembra.operator("stats.share", "f64", "f64", columns=True)
    ... def share(x):
    ...     return x / x.sum()
    >>> cembra.compile("stats.share(x) * 100.0")(np.array([1.0, 3.0]))
    array([25., 75.])

    The operands of such a call are evaluated in every row, even if a branch does not need the result, and a row in which they fail ends the
    evaluation. A call inside of a loop is evaluated row by row, and so is a call that is nested in more than 15 others.
    """
    of = [parameters] if isinstance(parameters, str) else list(parameters)

    def register(function: F) -> F:
        _check(name, function, of)
        called = getattr(function, "__name__", name)
        doc = inspect.getdoc(function) or f"The function `{called}` of Python."
        if not columns:
            _added(name, function, of, result, doc, pure, None)
            return function
        kinds, kind, may_be_missing = [_dtype(one) for one in of], _dtype(result.removesuffix("?")), result.endswith("?")

        def of_columns(operands: list[Any]) -> Any:
            return _over_columns(function, operands, kinds, kind, may_be_missing)

        def of_one_row(*operands: object) -> object:
            return of_columns([np.array([operand], one) for operand, one in zip(operands, kinds)]).tolist()[0]

        _added(name, of_one_row, of, result, doc, pure, of_columns)
        return function

    return register


def _check(name: str, function: Any, of: list[Any]) -> None:
    """Raises a `TypeError` if the function cannot be called with an operand for each of the operator's parameters."""
    if not callable(function):
        raise TypeError(f"operator {name}: a {type(function).__qualname__} is not a function")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Some functions that are not written in Python have no signature.
        return
    try:
        signature.bind(*of)
    except TypeError as error:
        called = getattr(function, "__name__", type(function).__qualname__)
        has = f"{len(of)} parameter{'' if len(of) == 1 else 's'} ({', '.join(map(str, of))})"
        raise TypeError(f"operator {name} has {has}, and `{called}{signature}` cannot be called with that many values: {error}") from None


def _added(name: str, *parts: Any) -> None:
    """Registers an operator. `M` makes its operators anew when it is next used."""
    _register(name, *parts)
    vars(M).pop("_members", None)


def _dtype(spelled: str) -> str:
    if spelled not in _DTYPES:
        raise TypeError(f"the parameters and the result of an operator over columns must be of {', '.join(_DTYPES)}, not {spelled}")
    return _DTYPES[spelled]


def _over_columns(function: Any, operands: list[Any], kinds: list[str], kind: str, may_be_missing: bool) -> Any:
    """Returns the results of a function over columns for all rows. The function gets only the rows in which no operand is missing."""
    masks = [np.ma.getmaskarray(operand) for operand in operands if isinstance(operand, np.ma.MaskedArray)]
    missing = np.logical_or.reduce(masks) if masks else None
    given = [np.ma.getdata(operand).astype(one, copy=False) for operand, one in zip(operands, kinds)]
    if missing is not None:
        given = [one[~missing] for one in given]
    made = np.ma.asanyarray(function(*given) if len(given[0]) else np.zeros(0, kind))
    if made.shape != given[0].shape:
        raise TypeError(f"the function returned an array of shape {made.shape} for {len(given[0])} rows")
    if not np.can_cast(made.dtype, kind):
        raise TypeError(f"the function returned an array of {made.dtype}, not of {np.dtype(kind)}")
    absent = np.ma.getmaskarray(made)
    if absent.any() and not may_be_missing:
        raise TypeError("the function returned missing elements, but the result is declared without `?`: declare the result with `?`")
    if missing is None:
        data = np.ascontiguousarray(np.ma.getdata(made), kind)
        return np.ma.MaskedArray(data, absent) if may_be_missing else data
    every, mask = np.zeros(len(missing), kind), missing.copy()
    every[~missing], mask[~missing] = np.ma.getdata(made), absent
    return np.ma.MaskedArray(every, mask)
