"""The named tuples of models with several outputs. They pickle, whatever their names are."""

from __future__ import annotations

import collections
import functools
from typing import Any

__all__ = ["class_of"]


@functools.lru_cache(maxsize=1024)
def class_of(names: tuple[str, ...]) -> Any:
    """The class of outputs with these names. What is no name in Python becomes `_0`, `_1`."""
    made = collections.namedtuple("Outputs", names, rename=True)  # type: ignore[misc]
    setattr(made, "__reduce__", lambda outputs: (_again, (names, tuple(outputs))))
    return made


def _again(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return class_of(names)(*values)
