"""Conversion of Arolla's values to the values that models take, and of results to values of Arolla. Arrays of numbers and truth values are
converted by their buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from arolla import arolla  # type: ignore[import-untyped]
from arolla.experimental import clib  # type: ignore[import-untyped]

from cembra._cembra import Edge
from cembra.arolla.types import SCALARS, Unsupported, fields_of, row_dict_key, scalar_of

__all__ = ["from_value", "to_value"]

_DTYPES = {"bool": "bool", "i32": "int32", "i64": "int64", "u64": "uint64", "f32": "float32", "f64": "float64", "weak_float": "float64"}

_TO_SCALAR: dict[str, Callable[[Any], Any]] = {
    "unit": lambda _: arolla.unit(),
    "bool": arolla.boolean,
    "i32": arolla.int32,
    "i64": arolla.int64,
    "u64": arolla.types.uint64,
    "f32": arolla.float32,
    "f64": arolla.float64,
    "weak_float": arolla.weak_float,
    "text": arolla.text,
    "bytes": arolla.bytes,
}

_TO_OPTIONAL: dict[str, Callable[[Any], Any]] = {
    "unit": lambda holds: arolla.optional_unit(holds or None),
    "bool": arolla.optional_boolean,
    "i32": arolla.optional_int32,
    "i64": arolla.optional_int64,
    "u64": arolla.types.optional_uint64,
    "f32": arolla.optional_float32,
    "f64": arolla.optional_float64,
    "weak_float": arolla.optional_weak_float,
    "text": arolla.optional_text,
    "bytes": arolla.optional_bytes,
}

_TO_ARRAY: dict[str, Callable[[Any], Any]] = {
    "bool": arolla.dense_array_boolean,
    "i32": arolla.dense_array_int32,
    "i64": arolla.dense_array_int64,
    "u64": arolla.types.dense_array_uint64,
    "f32": arolla.dense_array_float32,
    "f64": arolla.dense_array_float64,
    "weak_float": arolla.dense_array_weak_float,
    "text": arolla.dense_array_text,
    "bytes": arolla.dense_array_bytes,
}


def _op(name: str, *operands: Any) -> Any:
    return arolla.abc.invoke_op(name, operands)


def _present(array: Any) -> np.ndarray[Any, Any]:
    """Returns one truth value per element of a dense array, true if the element is present."""
    holds = _op("core.presence_and", _op("core.const_like", _op("core.has", array), arolla.unit()), _op("core.has", array))
    held = _op("core.presence_or", _op("core.presence_and", arolla.boolean(True), holds), arolla.boolean(False))
    return np.frombuffer(clib.get_dense_array_memoryview(held), "bool")


def from_array(array: Any, scalar: str) -> Any:
    """Converts a dense array to a NumPy array, which is masked where an element is missing. Strings become a list, and an array of masks becomes
    truth values."""
    if scalar == "unit":
        return _present(array)
    dtype = _DTYPES.get(scalar)
    if dtype is None:
        return array.py_value()
    if array.present_count == array.size:
        return np.frombuffer(clib.get_dense_array_memoryview(array), dtype)
    zero = _TO_SCALAR[scalar](False if scalar == "bool" else 0)
    full = np.frombuffer(clib.get_dense_array_memoryview(_op("core.presence_or", array, zero)), dtype)
    return np.ma.MaskedArray(full, ~_present(array))


def to_array(values: Any, scalar: str) -> Any:
    """Converts an array that a model returned to a dense array."""
    if scalar == "unit":
        return _op("core.equal", arolla.dense_array_boolean(np.asarray(values)), arolla.boolean(True))
    if scalar not in _DTYPES:
        return _TO_ARRAY[scalar](list(values))
    made = _TO_ARRAY[scalar](np.ascontiguousarray(np.ma.getdata(values)))
    if not np.ma.is_masked(values):
        return made
    holds = arolla.dense_array_boolean(~np.ma.getmaskarray(values))
    return _op("core.presence_and", made, _op("core.equal", holds, arolla.boolean(True)))


# The most elements that a sparse array may have to be converted to a dense one: as many 64-bit integers as the default limit `array_bytes` allows.
_MOST_ELEMENTS = 1 << 29


def _dense(array: Any) -> Any:
    """Converts a sparse array to a dense array, in which a missing element takes memory too."""
    if array.size > _MOST_ELEMENTS:
        raise Unsupported(f"array of more than {_MOST_ELEMENTS} elements", f"cembra keeps each of the {array.size} elements in memory")
    return _op("array.as_dense_array", array)


def _edge_from(edge: Any) -> Edge:
    mapping, parents = from_array(_dense(edge.mapping()), "i64"), edge.parent_size
    if not np.ma.is_masked(mapping) and bool(np.all(mapping[1:] >= mapping[:-1])):
        # Contiguous groups become split points, which take less memory than a group for each element.
        return Edge.from_split_points(np.searchsorted(mapping, np.arange(parents + 1)))
    return Edge.from_mapping(mapping, parents)


def _edge_to(edge: Edge, array: Callable[[Any], Any]) -> Any:
    if edge.split_points is not None:
        return _op("edge.from_split_points", array(to_array(np.array(edge.split_points, "int64"), "i64")))
    return _op("edge.from_mapping", array(to_array(edge.mapping, "i64")), arolla.int64(edge.parent_size))


def _sparse(array: Any) -> Any:
    return _op("array.as_array", array)


def from_value(value: Any) -> Any:
    """Converts a value of Arolla to the value that a model takes."""
    qtype = value.qtype
    if qtype in SCALARS:
        return True if qtype == arolla.UNIT else value.py_value()
    if qtype == arolla.OPTIONAL_UNIT:
        return bool(value.is_present)
    if arolla.is_optional_qtype(qtype):
        return value.py_value()
    scalar = scalar_of(qtype)
    if arolla.is_dense_array_qtype(qtype) and scalar:
        return from_array(value, scalar)
    if arolla.is_array_qtype(qtype) and scalar:
        return from_array(_dense(value), scalar)
    if qtype in (arolla.DENSE_ARRAY_EDGE, arolla.ARRAY_EDGE):
        return _edge_from(value)
    if qtype in (arolla.DENSE_ARRAY_SHAPE, arolla.ARRAY_SHAPE):
        return value.size
    if qtype in (arolla.DENSE_ARRAY_TO_SCALAR_EDGE, arolla.ARRAY_TO_SCALAR_EDGE):
        return value.child_size
    if arolla.is_namedtuple_qtype(qtype):
        return {name: from_value(value[name]) for name in arolla.types.get_namedtuple_field_names(qtype)}
    if arolla.is_tuple_qtype(qtype):
        return tuple(from_value(field) for field in value)
    if arolla.is_dict_qtype(qtype):
        return dict(zip(value.keys().py_value(), value.values().py_value()))
    if row_dict_key(qtype) is not None:
        return {key: row for row, key in enumerate(_op("dict._keys", value).py_value())}
    raise Unsupported(f"value of {qtype}", f"cembra takes no value of Arolla's {qtype}")


def to_value(made: Any, qtype: Any) -> Any:
    """Converts a result of a model to the value of Arolla of the type `qtype`."""
    if qtype in SCALARS:
        return _TO_SCALAR[SCALARS[qtype]](made)
    scalar = scalar_of(qtype)
    if arolla.is_optional_qtype(qtype) and scalar:
        return _TO_OPTIONAL[scalar](made)
    if arolla.is_dense_array_qtype(qtype) and scalar:
        return to_array(made, scalar)
    if arolla.is_array_qtype(qtype) and scalar:
        return _sparse(to_array(made, scalar))
    if qtype == arolla.DENSE_ARRAY_EDGE:
        return _edge_to(made, lambda array: array)
    if qtype == arolla.ARRAY_EDGE:
        return _edge_to(made, _sparse)
    one = _ONE.get(qtype)
    if one is not None:
        return one(made)
    if arolla.is_namedtuple_qtype(qtype):
        fields = zip(arolla.types.get_namedtuple_field_names(qtype), fields_of(qtype))
        return arolla.namedtuple(**{name: to_value(made[name], field) for name, field in fields})
    if arolla.is_tuple_qtype(qtype):
        return arolla.tuple(*map(to_value, made, fields_of(qtype)))
    raise Unsupported(f"result of {qtype}", f"cembra gives no value of Arolla's {qtype}")


# The makers of values of those types for which a model returns only a size, or nothing.
_ONE: dict[Any, Callable[[Any], Any]] = {
    arolla.DENSE_ARRAY_SHAPE: arolla.types.DenseArrayShape,
    arolla.ARRAY_SHAPE: arolla.types.ArrayShape,
    arolla.DENSE_ARRAY_TO_SCALAR_EDGE: arolla.types.DenseArrayToScalarEdge,
    arolla.ARRAY_TO_SCALAR_EDGE: arolla.types.ArrayToScalarEdge,
    arolla.SCALAR_SHAPE: lambda _: _op("qtype._const_scalar_shape"),
    arolla.OPTIONAL_SCALAR_SHAPE: lambda _: _op("qtype._const_optional_scalar_shape"),
    arolla.types.SCALAR_TO_SCALAR_EDGE: lambda _: _op("edge.from_shape", _op("qtype._const_scalar_shape")),
}
