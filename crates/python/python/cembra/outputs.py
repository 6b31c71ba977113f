"""The named tuples that models with several outputs return. They can be pickled, whatever the names of the outputs are."""

from __future__ import annotations

import collections
import functools
import unicodedata
from typing import Any

__all__ = ["class_of"]


@functools.lru_cache(maxsize=1024)
def class_of(names: tuple[str, ...]) -> Any:
    """Returns the named tuple class for outputs with these names. The attribute of an output has its name if Python can write the name; else it is
    `_0`, `_1` and so on, by the output's position. `_asdict` has the names of the model. An output called `count` or `index` hides that method of
    tuples."""
    # For Python, two names with the same NFKC form are one name. It is the attribute of the output whose name is in this form.
    forms = [unicodedata.normalize("NFKC", name) for name in names]
    count = collections.Counter(forms)
    names_of_python = [name if name == form or count[form] == 1 else "_" for name, form in zip(names, forms)]
    made = collections.namedtuple("Outputs", names_of_python, rename=True)  # type: ignore[misc]

    def _asdict(outputs: Any) -> dict[str, Any]:
        """Returns the outputs as a dict, by their names in the model."""
        return dict(zip(names, outputs))

    setattr(made, "_asdict", _asdict)
    setattr(made, "__reduce__", lambda outputs: (_again, (names, tuple(outputs))))
    return made


def _again(names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return class_of(names)(*values)
