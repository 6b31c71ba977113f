"""Conversion of Arolla's types to their spelling in the language, such as `dict[text, f64]`, and the error for a type that cembra does not have."""

from __future__ import annotations

from typing import Any

from arolla import arolla  # type: ignore[import-untyped]

from cembra._cembra import TextError, TypesError, _shown_type
from cembra.expressions import spelled as spelled_name

__all__ = ["Unsupported", "spelled"]


class Unsupported(TypesError, ValueError):
    """Raised when an expression has an operator, a type or a value of Arolla that cembra does not have. `what` names it."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what
        self.message = message
        self.code = "unsupported"
        self.span = self.row = self.element = self.operator = None


# The scalar types of Arolla, with their names in the language.
SCALARS: dict[Any, str] = {
    qtype: _shown_type(qtype.name) for qtype in (*arolla.types.SCALAR_QTYPES, arolla.types.UINT64)
}


def scalar_of(qtype: Any) -> str | None:
    """Returns the name of the scalar type of an optional or array type; `None` for other types."""
    inner = qtype.value_qtype
    return None if inner is None else SCALARS.get(inner)


def fields_of(qtype: Any) -> list[Any]:
    """Returns the types of the fields of a tuple or named tuple type."""
    # Arolla's function fails for a named tuple without fields.
    is_empty = arolla.is_namedtuple_qtype(qtype) and not arolla.types.get_namedtuple_field_names(qtype)
    return [] if is_empty else list(arolla.abc.get_field_qtypes(qtype))


def row_dict_key(qtype: Any) -> str | None:
    """Returns the name of the key type of a dictionary from keys to rows, which is a part of Arolla's dictionaries; `None` for other types."""
    if not arolla.types.is_key_to_row_dict_qtype(qtype):
        return None
    return SCALARS.get(arolla.abc.invoke_op("qtype._get_key_to_row_dict_key_qtype", (qtype,)))


def spelled(qtype: Any) -> str:
    """Returns the spelling of an Arolla type in the language."""
    if arolla.is_namedtuple_qtype(qtype):
        names = arolla.types.get_namedtuple_field_names(qtype)
        named = zip(names, fields_of(qtype))
        return "{" + ", ".join(f"{spelled_name(name)}: {spelled(field)}" for name, field in named) + "}"
    if arolla.is_tuple_qtype(qtype):
        fields = [spelled(field) for field in fields_of(qtype)]
        return f"({fields[0]},)" if len(fields) == 1 else f"({', '.join(fields)})"
    if arolla.is_dict_qtype(qtype):
        key = arolla.abc.invoke_op("qtype.get_dict_key_qtype", (qtype,))
        value = arolla.abc.invoke_op("qtype.get_dict_value_qtype", (qtype,))
        if key in SCALARS and value in SCALARS:
            return f"dict[{SCALARS[key]}, {SCALARS[value]}]"
    key = row_dict_key(qtype)
    if key is not None:
        return f"dict[{key}, i64]"
    try:
        return _shown_type(qtype.name)
    except TextError as error:
        raise Unsupported(f"type {qtype}", f"cembra has no type for Arolla's {qtype}") from error
