"""Typed expressions with missing values, compiled to native code.

>>> import cembra
>>> model = cembra.compile("price * pieces")
>>> model(price=2.5, pieces=4.0)
10.0
"""

from cembra._cembra import (
    Cancellation,
    DataError,
    Edge,
    Error,
    EvaluationError,
    LimitError,
    Model,
    ModelSet,
    Session,
    TextError,
    TypesError,
    __version__,
    format,
)
from cembra.expressions import Expr, L, TracingError, call
from cembra.functions import Function, compile, function, load
from cembra.operators import M, where
from cembra.user_operators import operator
from cembra.warning import ModelWarning

__all__ = [
    "Cancellation",
    "DataError",
    "Edge",
    "Error",
    "EvaluationError",
    "Expr",
    "Function",
    "L",
    "LimitError",
    "M",
    "Model",
    "ModelSet",
    "ModelWarning",
    "Session",
    "TextError",
    "TracingError",
    "TypesError",
    "__version__",
    "call",
    "compile",
    "format",
    "function",
    "load",
    "operator",
    "where",
]
