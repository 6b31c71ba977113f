"""Expressions of Arolla, compiled by cembra. It needs the package `arolla`.

>>> from arolla import arolla
>>> import cembra.arolla
>>> L, M = arolla.L, arolla.M
>>> cembra.arolla.eval(M.math.add(L.x, 1), x=2)
3

`compile` returns a model, which takes and returns values of Python. `eval` takes and returns values of Arolla, as `arolla.eval` does. An operator, a
type or a value of Arolla that cembra does not have raises `Unsupported`, which names it.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from arolla import arolla  # type: ignore[import-untyped]

from cembra._cembra import Error, Model, TextError, TypesError, _compile
from cembra.arolla.translation import Translation
from cembra.arolla.types import Unsupported, spelled
from cembra.arolla.values import from_value, to_value
from cembra.functions import Backend
from cembra.functions import compile as _compile_text
from cembra.statements import text_of

__all__ = ["EvaluationError", "Unsupported", "compile", "eval"]

# The most expressions whose models `eval` stores for later calls.
_MOST_MODELS = 1024


class EvaluationError(Error, ValueError):
    """Raised when an evaluation fails. It is also a `ValueError`, as Arolla's evaluations raise. Its cause is the error of the model."""


# The statement for Arolla's rule for operations on an integer and a float: the integer is converted to f32.
_NUMBERS = "numbers f32\n"


def compile(
    expr: Any, *, types: Mapping[str, Any] | None = None, backend: Backend | None = None, name: str | None = None
) -> Model:
    """Compiles an expression of Arolla to a model. Its leaves become the inputs of the model, in the order of their names. `types` is a dict with the
    Arolla types of leaves; an annotation `M.annotation.qtype(L.x, ..)` in the expression gives a leaf its type, too."""
    expr = arolla.as_expr(expr)
    known = {**arolla.abc.get_leaf_qtype_map(expr), **(types or {})}
    if known:
        expr = _typed(expr, known)
    translation = Translation(with_values=False)
    made = translation.of(expr)
    text = _NUMBERS + text_of({"result": made}, arolla.get_leaf_keys(expr)).text
    spelled_types = {leaf: spelled(known[leaf]) for leaf in arolla.get_leaf_keys(expr) if leaf in known}
    return _compile_text(text, types=spelled_types, backend=backend, name=name)


def _typed(expr: Any, types: Mapping[str, Any]) -> Any:
    """Returns the expression with a type annotation around each leaf in `types`, so that Arolla finds the types of all nodes."""
    leaves = {leaf: arolla.M.annotation.qtype(arolla.abc.leaf(leaf), qtype) for leaf, qtype in types.items()}
    return arolla.sub_leaves(expr, **{leaf: leaves[leaf] for leaf in arolla.get_leaf_keys(expr) if leaf in leaves})


class _Compiled:
    """A compiled expression: its model, and the values of those inputs that have the same value in every evaluation."""

    def __init__(self, expr: Any, types: dict[str, Any], backend: Backend | None) -> None:
        typed = _typed(expr, types)
        self.qtype = typed.qtype
        translation = Translation(with_values=True)
        made = translation.of(typed)
        inputs = {leaf: spelled(types[leaf]) for leaf in types} | translation.types
        text = _NUMBERS + text_of({"result": made}, inputs.items()).text
        try:
            self.model = _compile(text, backend=backend, name="the expression", is_quiet=True)
        except (TextError, TypesError) as error:
            # Arolla found the types of all nodes, so Arolla accepts the expression, and only cembra does not.
            what = f"result of {self.qtype}" if error.code == "untyped-output" else f"{error.operator or 'types'}: {error.code}"
            raise Unsupported(what, str(error)) from error
        self.values = tuple(from_value(value) for value in translation.values)
        (found,) = self.model._output_types()
        if self.qtype is None:
            raise Unsupported("no type", "Arolla does not know the type of the expression")
        # The type of a number that is an output is never `weak_float`; the element type of an array may be.
        wanted = spelled(self.qtype)
        if found not in (wanted, wanted.replace("weak_float", "f64")):
            raise Unsupported(f"{found} for {wanted}", f"the result is {found} in cembra, and {wanted} in Arolla")

    def __call__(self, leaves: list[Any]) -> Any:
        return to_value(self.model._row((*map(from_value, leaves), *self.values)), self.qtype)


_models: OrderedDict[Any, _Compiled] = OrderedDict()
_lock = threading.Lock()


def _compiled(expr: Any, types: dict[str, Any], backend: Backend | None) -> _Compiled:
    key = (expr.fingerprint, tuple(types.items()), backend)
    with _lock:
        found = _models.get(key)
        if found is not None:
            _models.move_to_end(key)
            return found
    made = _Compiled(expr, types, backend)
    with _lock:
        _models[key] = made
        while len(_models) > _MOST_MODELS:
            _models.popitem(last=False)
    return made


# Returns true for types whose values can only be written in the text of a model, not given to its inputs.
def _is_of_text(qtype: Any) -> bool:
    return qtype in _OF_TEXT or arolla.types.is_sequence_qtype(qtype)


_OF_TEXT = {
    arolla.QTYPE,
    arolla.UNSPECIFIED,
    arolla.OPERATOR,
    arolla.SCALAR_SHAPE,
    arolla.OPTIONAL_SCALAR_SHAPE,
    arolla.types.SCALAR_TO_SCALAR_EDGE,
}


def eval(expr: Any, /, *, _backend: Backend | None = None, **leaf_values: Any) -> Any:
    """Evaluates an expression of Arolla with cembra. Arguments and results are those of `arolla.eval`. The models of the last 1,024 expressions are
    stored for later calls."""
    expr = arolla.as_expr(expr)
    given = {name: arolla.as_qvalue(value) for name, value in leaf_values.items()}
    missing = [leaf for leaf in arolla.get_leaf_keys(expr) if leaf not in given]
    if missing:
        raise ValueError(f"leaves without values: {', '.join(missing)}")
    literals = {name: arolla.literal(value) for name, value in given.items() if _is_of_text(value.qtype)}
    if literals:
        expr = arolla.sub_leaves(expr, **literals)
    used = [leaf for leaf in arolla.get_leaf_keys(expr)]
    leaves = [given[leaf] for leaf in used]
    try:
        return _compiled(expr, {leaf: given[leaf].qtype for leaf in used}, _backend)(leaves)
    except Unsupported:
        raise
    except Error as error:
        raised = EvaluationError(str(error))
        for name in ("message", "code", "span", "row", "element", "operator"):
            setattr(raised, name, getattr(error, name))
        raise raised from error


eval_interpreted = functools.partial(eval, _backend="interpreter")
