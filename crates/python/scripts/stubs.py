"""Writes the stub of `cembra.operators`, which gives editors and type checkers every operator of the registry.

    python crates/python/scripts/stubs.py

A test fails if the stub must be written again.
"""

import pathlib
import sys

from cembra._cembra import _operators
from cembra.operators import M, Operator, Operators

STUB = pathlib.Path(__file__).parents[1] / "python/cembra/operators.pyi"

HEAD = '''"""The operators of the registry as functions. Made by `scripts/stubs.py`; do not edit."""

from typing import Any

from cembra.expressions import Expr

'''


def method(name: str, operator: Operator) -> list[str]:
    """Returns the lines of the method of an operator, with the first sentence of its documentation."""
    parameters = ["self"]
    for parameter in operator.__signature__.parameters.values():
        is_last = parameter.kind is parameter.VAR_POSITIONAL
        may_be_left_out = parameter.default is not parameter.empty
        parameters.append(f"{'*' if is_last else ''}{parameter.name}: Any" + (" = ..." if may_be_left_out else ""))
    # The first line of the documentation is the call, the second describes the operator.
    says = operator.__doc__.splitlines()[1].strip().replace("\\", "\\\\").replace('"', "'")
    return [f"    def {name}({', '.join(parameters)}) -> Expr:", f'        """{says}"""', "        ..."]


def classes(path: str, members: dict) -> tuple[str, list[str]]:
    """Returns the name of the class of a family of operators, and the lines of the classes inside of it and of the class itself."""
    name = "_" + "".join(part.capitalize() for part in path.split(".")) + "Operators"
    inner, lines = [], [f"class {name}:"]
    for member in sorted(members):
        found = members[member]
        if isinstance(found, Operators):
            of, more = classes(f"{path}.{member}" if path else member, found._members)
            inner += more
            lines.append(f"    {member}: {of}")
        else:
            lines += method(member, found)
    return name, [*inner, *lines, ""]


def made() -> str:
    """The whole stub."""
    assert _operators()
    name, lines = classes("", M._members)
    end = [f"M: {name}", "", "def where(condition: Any, then: Any, otherwise: Any) -> Expr: ..."]
    return HEAD + "\n".join([*lines, *end]) + "\n"


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(STUB.read_text() != made())
    STUB.write_text(made())
