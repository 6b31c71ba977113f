"""Types of Arolla as the language writes them."""

from __future__ import annotations

from typing import Any

from arolla import arolla  # type: ignore[import-untyped]

from cembra._cembra import TextError, TypesError, _shown_type
from cembra.expressions import spelled as spelled_name

__all__ = ["Unsupported", "spelled"]


class Unsupported(TypesError, ValueError):
    """An operator, a type or a value of Arolla's that cembra has not. `what` names it."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what
        self.message = message
        self.code = "unsupported"
        self.span = self.row = self.element = self.operator = None


# Arolla's scalars, and what they are called here.
SCALARS: dict[Any, str] = {
    qtype: _shown_type(qtype.name) for qtype in (*arolla.types.SCALAR_QTYPES, arolla.types.UINT64)
}


def scalar_of(qtype: Any) -> str | None:
    """The scalar of an optional or an array; none of another type."""
    inner = qtype.value_qtype
    return None if inner is None else SCALARS.get(inner)


def fields_of(qtype: Any) -> list[Any]:
    """The types of the fields of a tuple or a named one."""
    # Arolla has no answer for a named tuple of none.
    is_empty = arolla.is_namedtuple_qtype(qtype) and not arolla.types.get_namedtuple_field_names(qtype)
    return [] if is_empty else list(arolla.abc.get_field_qtypes(qtype))


def row_dict_key(qtype: Any) -> str | None:
    """The scalar of the keys of a dictionary of rows, which Arolla's dictionaries are made with; none of another type."""
    if not arolla.types.is_key_to_row_dict_qtype(qtype):
        return None
    return SCALARS.get(arolla.abc.invoke_op("qtype._get_key_to_row_dict_key_qtype", (qtype,)))


def spelled(qtype: Any) -> str:
    """A type of Arolla's as the language writes it."""
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
