"""The text of expressions. A part that is used more than once, or that is nested deeply, becomes a definition; other parts are written where they are
used.

No function here is recursive, so expressions can be nested as deeply as memory allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cembra._cembra import _is_plain_name
from cembra.expressions import Expr, quoted, spelled

__all__ = ["Text", "shown", "text_of"]

# The deepest nesting in one definition: deeper expressions are cut into several.
_DEEPEST = 6


class Text:
    """The text of a model, and the position in it of each statement with its node."""

    def __init__(self, text: str, starts: list[int], nodes: list[Expr]) -> None:
        self.text = text
        self._starts = starts
        self._nodes = nodes

    def place(self, at: int) -> tuple[str, int, str] | None:
        """Returns the file, line and function of Python that made the statement at a character of the text; `None` if they are not known."""
        found = None
        for start, node in zip(self._starts, self._nodes):
            if start > at:
                break
            found = node
        return None if found is None else found._place


def _input(name: str) -> str:
    return f"L.{name}" if _is_plain_name(name) else f"L[{quoted(name)}]"


def _written(form: tuple[str, ...], operands: list[str]) -> str:
    """Returns the text of a node. Its operands are texts that are names, literals, calls, or in brackets."""
    kind = form[0]
    if kind == "call":
        named = form[2:]
        plain = len(operands) - len(named)
        given = operands[:plain] + [f"{name}={operand}" for name, operand in zip(named, operands[plain:])]
        return f"M.{form[1]}({', '.join(given)})"
    if kind == "infix":
        return f"({operands[0]} {form[1]} {operands[1]})"
    if kind == "prefix":
        return f"({form[1]}{operands[0]})"
    if kind == "leaf":
        return _input(form[1])
    if kind == "literal":
        return form[1]
    if kind == "field":
        return f"{operands[0]}.{form[1]}" if _is_plain_name(form[1]) else f"M.namedtuple.get_field({operands[0]}, {quoted(form[1])})"
    if kind == "element":
        return f"{operands[0]}[{operands[1]}]"
    if kind == "array":
        return f"[{', '.join(operands)}]"
    if kind == "tuple":
        return f"({operands[0]},)" if len(operands) == 1 else f"({', '.join(operands)})"
    if kind == "struct":
        return "{" + ", ".join(f"{spelled(name)}: {operand}" for name, operand in zip(form[1:], operands)) + "}"
    if kind == "operator":
        return f"M.{form[1]}"
    if kind == "function":
        return f"(fn({', '.join(form[1:])}) = {operands[0]})"
    if kind == "parameter":
        return form[1]
    raise AssertionError(kind)


def _bare(node: Expr, line: str) -> str:
    """Returns the text of a whole expression, without the brackets that an operand would need."""
    has_brackets = node._form[0] in ("infix", "prefix") and line.startswith("(") and line.endswith(")")
    return line[1:-1] if has_brackets else line


def _in_order(roots: Iterable[Expr]) -> tuple[list[Expr], dict[int, int]]:
    """Returns all nodes, operands before the nodes that use them, and the number of uses of each node by its `id`."""
    order: list[Expr] = []
    uses: dict[int, int] = {}
    for root in roots:
        open_: list[tuple[Expr, bool]] = [(root, False)]
        while open_:
            node, is_done = open_.pop()
            if is_done:
                order.append(node)
                continue
            count = uses.get(id(node), 0)
            uses[id(node)] = count + 1
            if count == 0:
                open_.append((node, True))
                open_.extend((operand, False) for operand in reversed(node._operands))
    return order, uses


def _parametric(order: list[Expr]) -> set[int]:
    """Returns the `id` of each node that depends on a parameter of a function inside of the expression. Such a node must not become a definition."""
    found = set()
    for node in order:
        kind = node._form[0]
        if kind == "parameter" or (kind != "function" and any(id(operand) in found for operand in node._operands)):
            found.add(id(node))
    return found


def _unused_prefix(names: Iterable[str]) -> str:
    """Returns a prefix for the names of definitions with which none of these names begins."""
    longest = max((len(name) - len(name.lstrip("_")) for name in names), default=0)
    return "_" * (longest + 1)


def text_of(outputs: Mapping[str, Expr], inputs: Iterable[str | tuple[str, str]] = (), *, is_traced: bool = False) -> Text:
    """Writes the text of a model with these outputs. `inputs` is the order of inputs, each a name or a pair of name and type; other inputs follow.
    With `is_traced` every operator has a line of its own, so that an error in the text leads to a line of Python."""
    order, uses = _in_order(outputs.values())
    inner = _parametric(order)
    declared = [(given, None) if isinstance(given, str) else given for given in inputs]
    leaves = [node._form[1] for node in order if node._form[0] == "leaf"]
    prefix = _unused_prefix([*(name for name, _ in declared), *leaves, *outputs])
    lines: list[str] = []
    starts: list[int] = []
    nodes: list[Expr] = []
    at = 0

    def add(line: str, node: Expr | None) -> None:
        nonlocal at
        lines.append(line)
        if node is not None:
            starts.append(at)
            nodes.append(node)
        at += len(line) + 1

    for name, qtype in declared:
        add(f"input {spelled(name)}" + (f": {qtype}" if qtype else ""), None)
    written: dict[int, str] = {}
    depth: dict[int, int] = {}
    for node in order:
        line = _written(node._form, [written[id(operand)] for operand in node._operands])
        level = 1 + max((depth[id(operand)] for operand in node._operands), default=-1)
        is_shared = uses[id(node)] > 1 and bool(node._operands)
        is_cut = level > _DEEPEST or is_shared or (is_traced and bool(node._operands))
        if is_cut and id(node) not in inner and node._form[0] != "function":
            name = f"{prefix}{len(nodes)}"
            add(f"let {name} = {_bare(node, line)}", node)
            line, level = name, 0
        written[id(node)] = line
        depth[id(node)] = level
    for name, node in outputs.items():
        add(f"output {spelled(name)} = {_bare(node, written[id(node)])}", node)
    return Text("\n".join(lines), starts, nodes)


def shown(expr: Expr, most: int = 200) -> str:
    """Returns the expression as one line. Texts of more than `most` characters are cut."""
    order, _ = _in_order([expr])
    if len(order) > 1000:
        return f"of {len(order)} nodes"
    written: dict[int, str] = {}
    for node in order:
        line = _written(node._form, [written[id(operand)] for operand in node._operands])
        written[id(node)] = line if len(line) <= most else line[:most] + " .."
    return _bare(expr, written[id(expr)])
