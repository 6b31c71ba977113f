"""Typed expressions with missing values, compiled to native code.

>>> import cembra
>>> model = cembra.compile("price * pieces")
>>> model(price=2.5, pieces=4.0)
10.0
"""

from cembra._cembra import (
    DataError,
    Error,
    EvaluationError,
    LimitError,
    Model,
    TextError,
    TypesError,
    __version__,
    compile,
    format,
)

__all__ = [
    "DataError",
    "Error",
    "EvaluationError",
    "LimitError",
    "Model",
    "TextError",
    "TypesError",
    "__version__",
    "compile",
    "format",
]
