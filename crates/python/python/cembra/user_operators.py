"""Operators of the user: functions of Python on scalars, which models call by name for each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TypeVar

from cembra._cembra import _register

__all__ = ["operator"]

F = TypeVar("F", bound=Callable[..., object])


def operator(
    name: str, parameters: str | Iterable[str], result: str, *, pure: bool = True
) -> Callable[[F], F]:
    """Makes an operator of a function of Python, for models that are compiled from then on.

    >>> @cembra.operator("risk.cap", "f64", "f64")
    ... def cap(x):
    ...     return min(x, 100.0)
    >>> cembra.compile("risk.cap(x) + 1.0")(250.0)
    101.0

    `name` has two parts with a dot between them. `parameters` is the type of the only parameter, or one for each; `result` may have a `?`, and
    `None` is missing then. Types are `f64`, `i64`, `bool` and `text`; three and four parameters are all `f64` or all `i64`. Where an operand is
    missing the result is, without a call. A function that may give something else for equal operands is not `pure`.

    A call takes many times what an operator of the language takes, and threads wait for each other: it is for what the language has not. An
    exception of the function ends the evaluation. It is the cause of the `EvaluationError` where the calling thread evaluates, which is so but for
    many rows. The process has an operator as long as it lives, and at
    most 256 of them.
    """
    of = [parameters] if isinstance(parameters, str) else list(parameters)

    def register(function: F) -> F:
        doc = inspect.getdoc(function) or f"The function `{getattr(function, '__name__', name)}` of Python."
        _register(name, function, of, result, doc, pure)
        return function

    return register
