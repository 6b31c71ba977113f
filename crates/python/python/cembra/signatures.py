"""The signatures of models for `inspect.signature`."""

from __future__ import annotations

import inspect
import keyword
import re
import unicodedata

__all__ = ["signature_of"]

_SCALARS = {
    "f64": "float",
    "f32": "float",
    "i64": "int",
    "i32": "int",
    "u64": "int",
    "bool": "bool",
    "unit": "bool",
    "text": "str",
    "bytes": "bytes",
    "date": "datetime.date",
    "timestamp": "datetime.datetime",
    "duration": "datetime.timedelta",
    "edge": "cembra.Edge",
}


def signature_of(inputs: list[tuple[str, str | None, bool]]) -> inspect.Signature:
    """Returns the signature of a model. Each input is a name, a type as the language writes it (`None` if it has none), and `True` if the input may
    be left out.

    The model accepts every call that fits the signature. An input that may be left out has the default `None`. An input whose name a call cannot
    write (`net price`, `if`) is part of `**inputs` at the end. The inputs after it are keyword-only, because the model counts its position too. If an
    input that must be given comes after one that may be left out, that input and those after it are keyword-only as well, because no parameter
    without a default can follow one with a default.
    """
    parameters: list[inspect.Parameter] = []
    by_name = has_default = is_open = False
    for name, qtype, may_be_left_out in inputs:
        if not _is_written(name):
            by_name = is_open = True
            continue
        by_name = by_name or (has_default and not may_be_left_out)
        has_default = has_default or may_be_left_out
        kind = inspect.Parameter.KEYWORD_ONLY if by_name else inspect.Parameter.POSITIONAL_OR_KEYWORD
        annotation = (qtype and type_of(qtype)) or inspect.Parameter.empty
        default = None if may_be_left_out else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    if is_open:
        others = "inputs"
        while any(parameter.name == others for parameter in parameters):
            others += "_"
        parameters.append(inspect.Parameter(others, inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _is_written(name: str) -> bool:
    """Returns true if a call can write the name before `=`. Python converts names to NFKC form, so a name in another form cannot be written."""
    is_name = name.isidentifier() and not keyword.iskeyword(name) and name != "__debug__"
    return is_name and unicodedata.normalize("NFKC", name) == name


def type_of(qtype: str) -> str | None:
    """Returns the Python type for one value of a type of the language, as an annotation; `None` for a type without Python values."""
    if qtype.endswith("?"):
        inner = type_of(qtype[:-1])
        return inner and f"{inner} | None"
    if qtype.startswith("{"):
        return "dict[str, object]"
    if qtype.startswith("tensor["):
        return "numpy.ndarray"
    if qtype.startswith("dict[") or qtype.startswith("("):
        inside = qtype[qtype.index("[") + 1 : -1] if qtype.startswith("dict[") else qtype[1:-1]
        parts = [type_of(part) for part in _parts(inside)]
        if None in parts:
            return None
        name = "dict" if qtype.startswith("dict[") else "tuple"
        return f"{name}[{', '.join(map(str, parts)) or '()'}]"
    if qtype.startswith("["):
        inner = type_of(qtype[1:-1])
        return inner and f"list[{inner}]"
    return _SCALARS.get(qtype)


def _parts(inside: str) -> list[str]:
    """Splits a list of types at its commas, except those inside of brackets or quoted names."""
    parts, depth, start = [], 0, 0
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[\](){},]', inside):
        sign = found.group()
        depth += (sign in "[({") - (sign in "])}")
        if sign == "," and depth == 0:
            parts.append(inside[start : found.start()])
            start = found.end()
    return [part.strip() for part in [*parts, inside[start:]] if part.strip()]
