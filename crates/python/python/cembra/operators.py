"""The operators of the language as Python functions: `M.math.sqrt(L.x)`, or by the short name `M.sqrt(L.x)`.

The functions are made when the first one is used. Their parameters and docstrings are those of the operators.
"""

from __future__ import annotations

import inspect
import keyword
from typing import Any

from cembra._cembra import _operators
from cembra.expressions import Expr, TracingError, call

__all__ = ["M", "where"]


def parameter(name: str) -> str:
    """Returns the name that a parameter of an operator has in Python: without `*`, and with `_` after a keyword."""
    name = name.lstrip("*")
    return name + "_" if keyword.iskeyword(name) else name


class Operator:
    """An operator of the language. Calling it with expressions or values makes an expression."""

    def __init__(self, name: str, parameters: list[tuple[str, bool]], is_variadic: bool, doc: str) -> None:
        self.__name__ = name
        self.__doc__ = doc
        # The names of the parameters by their names in Python, which differ for keywords.
        self._named = {parameter(name): name for name, _ in parameters}
        kinds = []
        for at, (name, may_be_left_out) in enumerate(parameters):
            if is_variadic and at == len(parameters) - 1:
                kinds.append(inspect.Parameter(parameter(name), inspect.Parameter.VAR_POSITIONAL))
                continue
            default = None if may_be_left_out else inspect.Parameter.empty
            kinds.append(inspect.Parameter(parameter(name), inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
        self.__signature__ = inspect.Signature(kinds)

    def __call__(self, *operands: Any, **named: Any) -> Expr:
        try:
            self.__signature__.bind(*operands, **named)
        except TypeError as error:
            raise TypeError(f"M.{self.__name__}: {error}") from None
        return call(self.__name__, *operands, **{self._named[name]: value for name, value in named.items()})

    def __repr__(self) -> str:
        return f"<operator M.{self.__name__}>"


class Operators:
    """A family of operators, whose names begin with the same part: `M.math`."""

    def __init__(self, name: str, members: dict[str, Operator | Operators]) -> None:
        self._name = name
        self._members = members

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._members.get(name)
        if found is None:
            raise AttributeError(f"{self._name} has no operator `{name}`")
        return found

    def __dir__(self) -> list[str]:
        return sorted(self._members)

    def __repr__(self) -> str:
        return f"<operators of {self._name}>"


def _all() -> Operators:
    root: dict[str, Operator | Operators] = {}
    made = Operators("cembra.M", root)
    short: dict[str, Operator] = {}
    for name, aliases, parameters, is_variadic, doc in _operators():
        # Some operators have only short names that a model may write.
        spelled = name if "._" not in name else next(iter(aliases), None)
        if spelled is None:
            continue
        operator = Operator(spelled, parameters, is_variadic, doc)
        *families, last = spelled.split(".")
        members, path = root, "cembra.M"
        for family in families:
            path += "." + family
            inner = members.setdefault(family, Operators(path, {}))
            assert isinstance(inner, Operators)
            members = inner._members
        members[last] = operator
        short.update({alias: operator for alias in aliases if alias not in short})
    for alias, operator in short.items():
        # Some short names are the names of families, which come first.
        *of, name = alias.split(".")
        family = root.get(of[0]) if of else made
        if isinstance(family, Operators):
            family._members.setdefault(name, operator)
    return made


class _Lazy(Operators):
    """All operators. They are made when the first one is used, so that a program without expressions does not wait for them."""

    def __init__(self) -> None:
        self._name = "cembra.M"

    def __getattr__(self, name: str) -> Any:
        if name == "_members":
            self._members = _all()._members
            return self._members
        return super().__getattr__(name)


M = _Lazy()


def where(condition: Any, then: Any, otherwise: Any) -> Expr:
    """Makes the expression that is `then` where the condition is true, else `otherwise`: the `if` of expressions. A value that only the other
    branch needs is not computed."""
    if not any(isinstance(operand, Expr) for operand in (condition, then, otherwise)):
        raise TracingError("where() must have an expression among its arguments: for values, use Python's `a if condition else b`")
    return call("where", condition, then, otherwise)
