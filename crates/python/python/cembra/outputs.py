"""The named tuples of models with several outputs. They pickle, whatever their names are."""

from __future__ import annotations

import collections
import functools
import unicodedata
from typing import Any

__all__ = ["class_of"]


@functools.lru_cache(maxsize=1024)
def class_of(names: tuple[str, ...]) -> Any:
    """The class of outputs with these names. What is no name in Python becomes `_0`, `_1`."""
    # Python takes names for one that have the same NFKC form: the one that is in this form keeps it.
    forms = [unicodedata.normalize("NFKC", name) for name in names]
    count = collections.Counter(forms)
    names_of_python = [name if name == form or count[form] == 1 else "_" for name, form in zip(names, forms)]
    made = collections.namedtuple("Outputs", names_of_python, rename=True)  # type: ignore[misc]
    setattr(made, "__reduce__", lambda outputs: (_again, (names, tuple(outputs))))
    return made


def _again(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return class_of(names)(*values)
