"""Typed expressions with missing values, compiled to native code.

>>> import cembra
>>> model = cembra.compile("price * pieces")
>>> model(price=2.5, pieces=4.0)
10.0
"""

from cembra._cembra import (
    DataError,
    Edge,
    Error,
    EvaluationError,
    LimitError,
    Model,
    TextError,
    TypesError,
    __version__,
    format,
)
from cembra.expressions import Expr, L, TracingError
from cembra.functions import Function, compile, function
from cembra.operators import M, where

__all__ = [
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
    "TextError",
    "TracingError",
    "TypesError",
    "__version__",
    "compile",
    "format",
    "function",
    "where",
]
