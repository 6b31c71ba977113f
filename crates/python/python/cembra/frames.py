"""Columns and frames of pandas, Polars and pyarrow: functions that take their arrays for a model, and make columns and frames of its outputs. Only
columns that a model reads are taken.

The compiled half of the package calls these functions with NumPy arrays, with masks if elements are missing, and with Arrow arrays.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from cembra._cembra import _data_error, _families

__all__ = ["ARROW", "NULLABLE", "NUMPY", "Frame", "carried", "carried_with_gaps", "common_index", "kept_rows", "made_array", "made_of_arrow", "made_series", "opened", "pandas_parts", "tensor_array"]

# The families of types that pandas columns have: NumPy's types, nullable types (a mask beside a NumPy array), and Arrow's types.
NUMPY, NULLABLE, ARROW = _families()


def _module(name: str) -> Any:
    """Imports a package that this one does not depend on: the caller has objects of it."""
    return importlib.import_module(name)


def pandas_parts(column: Any) -> tuple[Any, int] | None:
    """Returns the array of a Series, an Index or an array of pandas, and its family. The array is a NumPy array, in which NaN and NaT are missing
    values, or an Arrow array. `None` if no input can have values of its type."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype):
        return column.to_numpy(), NUMPY
    pandas = sys.modules["pandas"]
    if isinstance(dtype, pandas.ArrowDtype):
        family = ARROW
    elif isinstance(dtype, pandas.StringDtype):
        family = NUMPY if dtype.na_value is np.nan else NULLABLE
    elif isinstance(dtype, (pandas.CategoricalDtype, pandas.DatetimeTZDtype)):
        family = NUMPY
    elif hasattr(dtype, "numpy_dtype"):
        family = NULLABLE
    else:
        return None
    pyarrow = _module("pyarrow")

    array = getattr(column, "array", column)
    if isinstance(dtype, pandas.CategoricalDtype) and not len(dtype.categories):
        # Without categories their type is not known, and all values are missing.
        return pyarrow.nulls(len(array)), family
    try:
        return pyarrow.array(array, from_pandas=True), family
    except (TypeError, ValueError, NotImplementedError):
        # The categories have several types.
        return None


def common_index(columns: list[tuple[str, Any]]) -> Any:
    """Returns the index that all Series among pandas columns share; `None` if there is no Series. Raises a `DataError` if two indices differ."""
    first: tuple[str, Any] | None = None
    for name, column in columns:
        index = getattr(column, "index", None)
        if index is None or not hasattr(index, "equals"):
            continue
        if first is None:
            first = name, index
        elif not (index.is_(first[1]) or index.equals(first[1])):
            raise _data_error(
                f"inputs `{first[0]}` and `{name}` are Series with different indices: align them first, as in"
                f" `a.align(b)`, or give `.to_numpy()` to pair rows by position"
            )
    return None if first is None else first[1]


def carried(column: Any, name: str, index: Any) -> Any:
    """Returns an input column as an output called `name`, with the same values in the same type. `index` is the index of the rows in pandas."""
    if isinstance(column, np.ndarray):
        return column.copy()
    package = type(column).__module__.partition(".")[0]
    if package == "pyarrow":
        return column
    if package == "polars" or hasattr(column, "index"):
        return column.rename(name)
    # An Index, or an array of pandas.
    return made_series(getattr(column, "array", column), index, name)


def carried_with_gaps(column: Any, name: str, index: Any, kept: Any) -> Any:
    """Returns an input column as an output called `name`, with missing values where `kept` is false. `None` if its type has no missing values."""
    package = type(column).__module__.partition(".")[0]
    if package == "polars":
        polars = _module("polars")

        nulls = polars.Series([None], dtype=column.dtype).extend_constant(None, len(column) - 1) if len(column) else column
        return column.zip_with(polars.Series(kept), nulls).rename(name)
    if package != "pyarrow" and (not isinstance(column.dtype, np.dtype) or column.dtype.kind in "fmMO"):
        made = carried(column, name, index)
        return made.where(kept)
    return None


def made_array(values: Any, missing: Any, family: int) -> Any:
    """Converts a NumPy array to one that a Series of the family can have. `missing` is true where an element is missing; `None` if none is."""
    pandas = _module("pandas")

    kind = values.dtype.kind
    if kind in "iub" and (family == NULLABLE or missing is not None):
        made = pandas.arrays.BooleanArray if kind == "b" else pandas.arrays.IntegerArray
        return made(values, np.zeros(len(values), "?") if missing is None else missing)
    if kind == "f" and family == NULLABLE:
        return pandas.arrays.FloatingArray(values, np.zeros(len(values), "?") if missing is None else missing)
    if kind == "f" and missing is not None:
        values[missing] = np.nan
    if kind == "M":
        # Missing elements are `NaT` already.
        return values.astype("M8[s]") if values.dtype == "M8[D]" else pandas.DatetimeIndex(values).tz_localize("UTC").array
    return values


def made_of_arrow(array: Any, family: int) -> Any:
    """Converts an Arrow array to one that a Series of the family can have. Nested types stay those of Arrow."""
    pandas = _module("pandas")
    pyarrow = _module("pyarrow")

    made = pyarrow.array(array)
    if family == ARROW or pyarrow.types.is_nested(made.type):
        return pandas.arrays.ArrowExtensionArray(pyarrow.chunked_array([made]))
    if family == NULLABLE and pyarrow.types.is_string(made.type):
        return pandas.StringDtype().__from_arrow__(made)
    return made.to_pandas().array


def made_series(values: Any, index: Any, name: str) -> Any:
    """Makes the Series of an output."""
    pandas = _module("pandas")

    return pandas.Series(values, index=index, name=name, copy=False)


def kept_rows(column: Any, kept: Any) -> Any:
    """Returns the elements of a column for which `kept` is true."""
    package = type(column).__module__.partition(".")[0]
    if package in ("polars", "pyarrow"):
        return column.filter(sys.modules[package].array(kept) if package == "pyarrow" else sys.modules[package].Series(kept))
    if isinstance(column, list):
        return [element for element, is_kept in zip(column, kept.tolist()) if is_kept]
    return column[kept]


def tensor_array(values: Any) -> Any:
    """Converts a Series or a frame to a NumPy array for a tensor. `None` if elements are missing, because those of a tensor never are."""
    package = type(values).__module__.partition(".")[0]
    if package == "pyarrow":
        return None if any(column.null_count for column in values.columns) else np.asarray(values)
    made = values.to_numpy()
    if package == "polars":
        nulls = values.null_count()
        is_missing = nulls.sum_horizontal().item() > 0 if hasattr(nulls, "sum_horizontal") and nulls.width else bool(nulls)
        return None if is_missing else made
    # NaN in a column of NumPy's floats is not a missing value here.
    types = values.dtypes if values.ndim > 1 else [values.dtype]
    has_masks = [not isinstance(dtype, np.dtype) or dtype == object for dtype in types]
    gaps = np.asarray(values.isna()).reshape(len(values), -1)
    if gaps[:, has_masks].any():
        return None
    if made.dtype == object and values.ndim > 1:
        # For columns of other types than NumPy's, pandas makes an array of objects.
        return np.stack([values.iloc[:, at].to_numpy() for at in range(values.shape[1])], axis=1)
    return made


class Frame:
    """A frame of pandas, Polars or pyarrow. It finds columns by name, and makes the frame of outputs."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    rows: int
    # The index of the rows in pandas; `None` for other packages.
    index: Any = None

    def column(self, name: str) -> Any:
        """Returns the column of this name; `None` if the frame has none."""
        raise NotImplementedError

    def names(self) -> list[str]:
        """Returns the names of the first columns, at most 8, for messages."""
        return [str(name) for name in list(self.frame.columns)[:8]]

    def made(self, outputs: dict[str, Any], index: Any) -> Any:
        """Makes the frame of the outputs, which are columns by name."""
        raise NotImplementedError


def _twice(name: str, count: int) -> Exception:
    return _data_error(f"`{name}` is the name of {count} columns of the table: give them different names")


class PandasFrame(Frame):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.index = frame.index
        self.rows = len(self.index)

    def column(self, name: str) -> Any:
        label: Any = name
        if name not in self.frame.columns:
            # A label that is not a string is found by its text.
            labels = [label for label in self.frame.columns if not isinstance(label, str) and str(label) == name]
            if not labels:
                return None
            label = labels[0]
        if self.frame.columns.nlevels > 1:
            raise _data_error(f"`{name}` is a name in columns of several levels: flatten them, as in `frame.columns = frame.columns.map(\".\".join)`")
        found = self.frame[label]
        if found.ndim != 1:
            raise _twice(name, found.shape[1])
        return found

    def made(self, outputs: dict[str, Any], index: Any) -> Any:
        pandas = _module("pandas")

        return pandas.DataFrame(outputs, index=index, copy=False)


class PolarsFrame(Frame):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.rows = frame.height

    def column(self, name: str) -> Any:
        return self.frame.get_column(name, default=None)

    def made(self, outputs: dict[str, Any], index: Any) -> Any:
        polars = _module("polars")

        return polars.DataFrame(list(outputs.values()))


class ArrowFrame(Frame):
    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.rows = frame.num_rows

    def column(self, name: str) -> Any:
        places = self.frame.schema.get_all_field_indices(name)
        if len(places) > 1:
            raise _twice(name, len(places))
        return self.frame.column(places[0]) if places else None

    def names(self) -> list[str]:
        return list(self.frame.schema.names[:8])

    def made(self, outputs: dict[str, Any], index: Any) -> Any:
        pyarrow = _module("pyarrow")

        # `pyarrow.table` would check for each output whether it is a Series of pandas.
        return pyarrow.Table.from_arrays(list(outputs.values()), names=list(outputs))


def opened(frame: Any) -> Frame | None:
    """Returns a frame of pandas, Polars or pyarrow as a `Frame`; `None` for another object. Raises a `DataError` with a hint for a dict, a column or
    a lazy frame."""
    root = type(frame).__module__.partition(".")[0]
    if root == "narwhals":
        return opened(frame.to_native())
    if isinstance(frame, Mapping):
        raise _data_error("a table must be a frame, but a dict of columns is given: call `model(columns)` or `model.run(columns)`")
    for package, name, opener in _FRAMES:
        found = getattr(sys.modules.get(package), name, None)
        if found is not None and isinstance(frame, found):
            return opener(frame)
    for package, names, way in _OTHERS:
        found = tuple(getattr(sys.modules[package], name) for name in names) if package in sys.modules else ()
        if isinstance(frame, found):
            raise _data_error(f"a table must be a frame, but a {type(frame).__module__}.{type(frame).__qualname__} is given: {way}")
    return None


_FRAMES = (
    ("pandas", "DataFrame", PandasFrame),
    ("polars", "DataFrame", PolarsFrame),
    ("pyarrow", "Table", ArrowFrame),
    ("pyarrow", "RecordBatch", ArrowFrame),
)

# Types that are not frames, with a hint for the caller.
_OTHERS = (
    ("polars", ("LazyFrame",), "collect it first, as in `frame.collect()`"),
    ("polars", ("Series",), "call the model with it, as in `model(x=series)`, or give `series.to_frame()`"),
    ("pandas", ("Series",), "call the model with it, as in `model(x=series)`, or give `series.to_frame()`"),
    ("pyarrow", ("ChunkedArray",), "call the model with it, as in `model(x=array)`"),
)
