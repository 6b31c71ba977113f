"""Translation of Arolla's expressions to expressions of cembra. An operator becomes the operator of the same name, a leaf becomes an input, and a
literal becomes a literal. A call of a lambda is replaced by the lambda's body."""

from __future__ import annotations

from typing import Any

from arolla import arolla  # type: ignore[import-untyped]

from cembra._cembra import _has_operator
from cembra.arolla.types import SCALARS, Unsupported, row_dict_key, scalar_of, spelled
from cembra.expressions import Expr, call, number, quoted, quoted_bytes

__all__ = ["Translation"]

# Types whose literals become inputs of the model, because their text would be long.
_LARGE = {arolla.DENSE_ARRAY_EDGE, arolla.ARRAY_EDGE}


def _scalar(value: Any, scalar: str) -> str:
    """Returns a scalar of Arolla as a literal of the language."""
    if scalar == "unit":
        return "unit{}"
    plain = value.py_value()
    if scalar == "bool":
        return "true" if plain else "false"
    if scalar in ("i32", "i64"):
        return f"({plain}{scalar})" if plain < 0 else f"{plain}{scalar}"
    if scalar == "u64":
        return f"u64{{{plain}}}"
    if scalar in ("f32", "f64", "weak_float"):
        return number(plain, "" if scalar == "weak_float" else scalar)
    return quoted(plain) if scalar == "text" else quoted_bytes(plain)


class Translation:
    """The translation of one expression. With `with_values`, literals that are arrays or edges become inputs of the model; `values` has their values,
    in order, and `types` their types by the names of the inputs. Without `with_values`, such a literal raises `Unsupported`."""

    def __init__(self, *, with_values: bool) -> None:
        self._with_values = with_values
        self.values: list[Any] = []
        self.types: dict[str, str] = {}

    def of(self, expr: Any) -> Expr:
        """Translates an expression of Arolla. An operator that cembra does not have is first replaced by its definition, if it has one."""
        return self._of(arolla.abc.deep_transform(expr, _lowered))

    def _of(self, expr: Any) -> Expr:
        made: dict[Any, Expr] = {}
        for node in arolla.abc.post_order(expr):
            made[node.fingerprint] = self._node(node, [made[dep.fingerprint] for dep in node.node_deps])
        return made[expr.fingerprint]

    def _node(self, node: Any, operands: list[Expr]) -> Expr:
        if node.is_leaf:
            return Expr(("leaf", node.leaf_key))
        if node.is_literal:
            return self.literal(node.qvalue)
        if node.is_placeholder:
            return Expr(("parameter", _parameter(node.placeholder_key)))
        name = node.op.display_name
        if name in _OF_FORMATS and self._with_values and node.node_deps[0].is_literal:
            # cembra checks a literal format against its arguments at compile time, Arolla only if all arguments are present. So it becomes an input.
            operands[0] = self._value(node.node_deps[0].qvalue)
        if _is_known(node.op):
            return call(_OF_ROWS.get(name, name), *operands)
        raise Unsupported(f"operator {name}", f"cembra has no operator {name}")

    def literal(self, value: Any) -> Expr:
        """Translates a value to a literal, or to an input that has this value in every evaluation."""
        qtype = value.qtype
        if qtype in SCALARS:
            return Expr(("literal", _scalar(value, SCALARS[qtype])))
        if qtype == arolla.QTYPE:
            return Expr(("literal", f"QTYPE{{{spelled(value)}}}"))
        if qtype == arolla.UNSPECIFIED:
            return Expr(("literal", "UNSPECIFIED{}"))
        if qtype == arolla.OPERATOR:
            return self._operator(value)
        scalar = scalar_of(qtype)
        if arolla.is_optional_qtype(qtype) and scalar:
            if not value.is_present:
                return Expr(("literal", f"missing[{scalar}]"))
            # A negative number has brackets only for use as an operand, so they are removed here.
            inside = _scalar(_value_of(value), scalar)
            if scalar == "unit":
                return Expr(("literal", "present"))
            plain = inside[1:-1] if inside.startswith("(") else inside
            return Expr(("literal", f"{scalar}?{{{_without_suffix(plain, scalar)}}}"))
        is_array = scalar is not None and (arolla.is_dense_array_qtype(qtype) or arolla.is_array_qtype(qtype))
        if is_array or qtype in _LARGE:
            return self._value(value)
        if arolla.is_namedtuple_qtype(qtype):
            names = arolla.types.get_namedtuple_field_names(qtype)
            return Expr(("struct", *names), tuple(self.literal(value[name]) for name in names))
        if arolla.is_tuple_qtype(qtype):
            return Expr(("tuple",), tuple(self.literal(field) for field in value))
        if arolla.is_dict_qtype(qtype) or row_dict_key(qtype) is not None:
            return self._value(value)
        if arolla.types.is_sequence_qtype(qtype) and len(value) > 0:
            return call("seq.make", *(self.literal(element) for element in value))
        written = _SINGLE.get(qtype)
        if written is not None:
            return Expr(("literal", written))
        if qtype in (arolla.DENSE_ARRAY_SHAPE, arolla.ARRAY_SHAPE):
            return Expr(("literal", f"{qtype.name}{{{value.size}}}"))
        if qtype in (arolla.DENSE_ARRAY_TO_SCALAR_EDGE, arolla.ARRAY_TO_SCALAR_EDGE):
            return Expr(("literal", f"{qtype.name}{{{value.child_size}}}"))
        raise Unsupported(f"literal of {qtype}", f"cembra has no literal of Arolla's {qtype}")

    def _value(self, value: Any) -> Expr:
        if not self._with_values:
            what = f"literal of {value.qtype}"
            raise Unsupported(what, f"a {what} cannot be part of a model: make it a leaf, and give it with each call")
        name = f"literal {len(self.values)}"
        self.types[name] = spelled(value.qtype)
        self.values.append(value)
        return Expr(("leaf", name))

    def _operator(self, operator: Any) -> Expr:
        """Translates an operator that is an operand, such as the function of a map."""
        if _is_known(operator):
            return Expr(("operator", operator.display_name))
        if isinstance(operator, arolla.types.RegisteredOperator):
            operator = arolla.abc.decay_registered_operator(operator)
        if isinstance(operator, arolla.types.LambdaOperator):
            parameters = arolla.abc.get_operator_signature(operator).parameters
            if all(parameter.kind == "positional-or-keyword" for parameter in parameters):
                names = (_parameter(parameter.name) for parameter in parameters)
                return Expr(("function", *names), (self.of(operator.lambda_body),))
        what = f"operator {operator.display_name} as an operand"
        raise Unsupported(what, f"cembra has no {what}")


_SINGLE = {
    arolla.SCALAR_SHAPE: "SCALAR_SHAPE{}",
    arolla.OPTIONAL_SCALAR_SHAPE: "OPTIONAL_SCALAR_SHAPE{}",
    arolla.types.SCALAR_TO_SCALAR_EDGE: "SCALAR_TO_SCALAR_EDGE{}",
}


def _parameter(key: str) -> str:
    """Returns a name for a parameter of a function. It differs from all words of the language."""
    return f"p_{key}"


def _value_of(optional: Any) -> Any:
    return arolla.abc.invoke_op("core.get_optional_value", (optional,))


def _without_suffix(literal: str, scalar: str) -> str:
    """Returns the number in a literal, without its type, for use inside of braces after a type."""
    if literal.startswith(scalar + "{"):
        return literal[len(scalar) + 1 : -1]
    return literal.removesuffix(scalar) if scalar in ("i32", "i64", "f32", "f64") else literal


def _is_known(operator: Any) -> bool:
    name = operator.display_name
    return isinstance(operator, arolla.types.RegisteredOperator) and (name in _OF_ROWS or _has_operator(name))


# The operators for Arolla's operators on dictionaries from keys to rows, which cembra has as dictionaries of integers.
_OF_ROWS = {"dict._get_row": "dict.get", "dict._contains": "dict.contains", "dict._keys": "dict.keys"}

# Operators whose first operand is a format.
_OF_FORMATS = ("strings.format", "strings.printf")


def _lowered(node: Any) -> Any:
    """Returns the node, or if cembra does not have its operator, the definition of the operator: the body of a lambda."""
    if not node.is_operator or _is_known(node.op):
        return node
    return arolla.abc.to_lower_node(node)
