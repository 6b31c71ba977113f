"""The named tuples of models with several outputs. They pickle, whatever their names are."""

from __future__ import annotations

import collections
import functools
import unicodedata
from typing import Any

__all__ = ["class_of"]


@functools.lru_cache(maxsize=1024)
def class_of(names: tuple[str, ...]) -> Any:
    """The class of outputs with these names. An output is an attribute by its name if Python can write the name; else it is `_0`, `_1`, by its
    position. `_asdict` has the names as the model has them. An output called `count` or `index` hides that method of tuples."""
    # Python takes two names with the same NFKC form for one name: it belongs to the name that is written in this form.
    forms = [unicodedata.normalize("NFKC", name) for name in names]
    count = collections.Counter(forms)
    names_of_python = [name if name == form or count[form] == 1 else "_" for name, form in zip(names, forms)]
    made = collections.namedtuple("Outputs", names_of_python, rename=True)  # type: ignore[misc]

    def _asdict(outputs: Any) -> dict[str, Any]:
        """The outputs by their names in the model."""
        return dict(zip(names, outputs))

    setattr(made, "_asdict", _asdict)
    setattr(made, "__reduce__", lambda outputs: (_again, (names, tuple(outputs))))
    return made


def _again(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return class_of(names)(*values)
