"""The three rules of numbers, `numbers f64`, `numbers f32` and none: types and values of random expressions beside the table of `docs/language.md`.

The table is written down here once more, in Python: a type for each operator and its operands. Values are integers that wrap around, floats of
NumPy, and fractions where a quotient is rounded down. Operands are written numbers, and inputs of integers and floats of 32 and 64 bits, optional
ones too: declared and not, as rows, arrays, tensors and by `-s`, in both backends. `let` and `fn` stand between some operators, some results are
declared, and what `explain` prints of a model is read back. Other places where integers meet floats have their types in a list.

    PYTHON tests/outside/number_rules.py target/debug/cembra
"""

import dataclasses
import functools
import json
import math
import random
import re
from fractions import Fraction

import numpy

import division
from cases import RIGHT, WRONG, again, brief, cells, main, table

RNG = random.Random(69)
HEADS = {"none": "", "f64": "numbers f64\n", "f32": "numbers f32\n"}
INPUTS = {"a": "i32", "b": "i32", "c": "i32?", "n": "i64", "k": "i64?", "x": "f32", "z": "f32?", "y": "f64", "v": "f64?"}
INTEGERS = {"i32": 32, "i64": 64}
OF = {"f32": numpy.float32, "f64": numpy.float64, "weak": numpy.float64}
INFIX = ("+", "-", "*", "/", "//", "%", "**")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
FRACTIONS = ("0.1", "0.2", "0.5", "2.5", "1e-3", "3.7", "16777217.0")
# Operators whose results may differ from the exact one by some roundings; no other operator is applied to such a result.
INEXACT = ("exp", "sum", "mean", "**")
EXPRESSIONS, ROWS = 205, 8


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """An expression: an operator, its operands, and how it is named or declared where it stands."""

    operator: str
    operands: tuple = ()
    text: str = ""


@functools.cache
def written(node):
    """True of written integers, and of sums, products and powers of them."""
    return node.operator == "integer" or (node.operator in ("+", "-", "*", "**", "neg") and all(map(written, node.operands)))


def written_value(node):
    """The exact number of written integers; `None` if it is not a whole number."""
    if node.operator == "integer":
        return int(node.text.removesuffix("i64"))
    held = [written_value(one) for one in node.operands]
    if node.operator == "neg":
        return -held[0]
    if node.operator == "**":
        return held[0] ** held[1] if 0 <= held[1] <= 64 and abs(held[0]) <= 1 << 64 else None
    return {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}[node.operator](*held)


def common(kinds, rule):
    """The type of operands that meet, by the table."""
    whole, floats = [kind for kind in kinds if kind in INTEGERS], [kind for kind in kinds if kind in OF]
    if not floats:
        return "i64" if "i64" in whole else "i32"
    if whole:
        return "f32" if rule == "f32" and "f64" not in floats else "f64"
    return next(kind for kind in ("f64", "f32", "weak") if kind in floats)


def floating(kind, rule):
    """What an operand becomes by operators that make floats of integers."""
    return ("f32" if rule == "f32" else "f64") if kind in INTEGERS else kind


def is_named(node):
    """True if the expression is behind a name: of a `let`, or of a function that applies its operator."""
    return node.text == "let" or (node.text == "fn" and node.operator in INFIX)


def is_integer_power(node, rule):
    return node.operator == "**" and rule != "f64" and written(node) and written_value(node.operands[1]) >= 0


@functools.cache
def work(node, rule):
    """The type that an operator computes in."""
    own = [kind for kind, _ in (typed(one, rule) for one in node.operands)]
    if node.operator in ("if", "where"):
        own = own[1:]
    if node.operator in ("/", "**", "sqrt", "exp", "mean") and not is_integer_power(node, rule):
        own = [floating(kind, rule) for kind in own] if rule != "f32" else own
        return floating(common(own, rule), rule)
    return common(own, rule)


@functools.cache
def typed(node, rule):
    """The type of an expression, and whether its value may be missing."""
    operator, operands = node.operator, node.operands
    if operator == "input":
        return INPUTS[node.text].removesuffix("?"), INPUTS[node.text].endswith("?")
    if operator == "integer":
        return ("i64" if node.text.endswith("i64") else "i32"), False
    if operator == "fraction":
        return ("f64" if rule == "f64" or node.text.endswith("f64") else "weak"), False
    optional = [is_optional for _, is_optional in (typed(one, rule) for one in operands)]
    if operator in COMPARISONS or operator == "in":
        return "mask", True
    kind = work(node, rule)
    if operator in ("if", "where"):
        return kind, optional[1] or optional[2]
    if operator == "??":
        return kind, all(optional)
    if operator in ("mean", "largest", "first"):
        return kind, True
    return kind, operator != "sum" and any(optional)


def cast(value, kind):
    """The value as another type, rounded once."""
    if value is None or kind == "mask":
        return value
    if kind in INTEGERS:
        half = 1 << (INTEGERS[kind] - 1)
        return (int(value) + half) % (2 * half) - half
    if isinstance(value, int):
        return OF[kind](division.rounded(Fraction(value), "f32" if kind == "f32" else "f64", 1))
    return OF[kind](value)


def valued(node, rule, row, want=None):
    """The value of an expression; `want` is a declared type that reaches it."""
    is_reached = node.operator in ("+", "-", "*", "neg", "if", "where", "??") or (node.operator, want) == ("/", "f64")
    if want and written(node) and (rule != "f64" or all(one.operator != "**" for one in nodes_of(node))):
        return cast(written_value(node), want)
    if want and not (is_reached and not is_named(node)):
        return cast(valued(node, rule, row), want)
    operator, operands = node.operator, node.operands
    if operator == "input":
        return row[node.text]
    if operator == "integer":
        return written_value(node)
    if operator == "fraction":
        return numpy.float64(node.text.removesuffix("f64"))
    if operator in ("if", "where"):
        taken = operands[1] if valued(operands[0], rule, row) else operands[2]
        return valued(taken, rule, row, want) if want else cast(valued(taken, rule, row), work(node, rule))
    kind = want or work(node, rule)
    held = [valued(one, rule, row, want) for one in operands]
    if operator == "??":
        return cast(held[0] if held[0] is not None else held[1], kind)
    if operator in ("in", "sum", "mean", "largest", "first"):
        return of_list(node, held, rule)
    if any(one is None for one in held):
        return None
    if is_integer_power(node, rule):
        return cast(written_value(node), kind)
    return computed(operator, [cast(one, kind) for one in held], kind)


def of_list(node, held, rule):
    """A list of written numbers or inputs: what is in it, or what it comes to."""
    kind = work(node, rule)
    if node.operator == "in":
        # What is asked for is compared with each element by itself, as `x == a or x == b` has it.
        kinds = [typed(one, rule)[0] for one in node.operands]
        pairs = [(held[0], one, common([kinds[0], kind], rule)) for one, kind in zip(held[1:], kinds[1:]) if None not in (held[0], one)]
        return True if any(cast(x, kind) == cast(one, kind) for x, one, kind in pairs) else None
    elements = [cast(one, kind) for one in held]
    if node.operator == "first":
        return elements[0]
    present = [one for one in elements if one is not None]
    if node.operator == "largest":
        return max(present, default=None)
    if kind in INTEGERS:
        return cast(sum(present), kind)
    total = sum(map(float, present))
    return OF[kind](total if node.operator == "sum" else total / len(present)) if present or node.operator == "sum" else None


def computed(operator, held, kind):
    """An operator on present operands of one type."""
    x, y = held[0], held[-1]
    if operator in COMPARISONS:
        test = {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}
        return True if test[operator] else None
    if operator == "clamp":
        return max(min(x, held[2]), held[1])
    if operator in ("min", "max"):
        return next((one for one in (x, y) if one != one), min(x, y) if operator == "min" else max(x, y))
    if operator in ("neg", "abs"):
        return cast(-x if operator == "neg" else abs(x), kind)
    if kind not in INTEGERS and operator in ("//", "%"):
        return OF[kind](division.expected(float(x), float(y), "f32" if kind == "f32" else "f64")[operator == "%"])
    with numpy.errstate(all="ignore"):
        if operator == "exp" or operator == "**":
            value = numpy.exp(numpy.float64(x)) if operator == "exp" else numpy.float64(x) ** numpy.float64(y)
            return OF[kind](value)
        if operator == "sqrt":
            return numpy.sqrt(x)
        if operator == "/":
            return x / y
        made = {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "//": lambda: x // y, "%": lambda: x % y}[operator]()
    return cast(made, kind)


def spelled(node, rule_lines):
    """The text of an expression. Definitions that it needs are appended to the lines."""
    operator = node.operator
    if operator in ("input", "integer", "fraction"):
        return node.text
    parts = [spelled(one, rule_lines) for one in node.operands]
    if node.text != "let" and is_named(node):
        name = f"of{len(rule_lines)}"
        rule_lines.append(f"fn {name}(p, q) = p {operator} q")
        return f"{name}({parts[0]}, {parts[1]})"
    if operator in INFIX or operator in COMPARISONS or operator == "??":
        text = f"({parts[0]} {operator} {parts[1]})"
    elif operator == "neg":
        text = f"(-{parts[0]})"
    elif operator == "in":
        text = f"({parts[0]} in [{', '.join(parts[1:])}])"
    elif operator == "if":
        text = f"(if {parts[0]} then {parts[1]} else {parts[2]})"
    elif operator in ("sum", "mean"):
        text = f"{operator}([{', '.join(parts)}])"
    elif operator == "largest":
        text = f"max([{', '.join(parts)}])"
    elif operator == "first":
        text = f"array.at([{', '.join(parts)}], 0)"
    else:
        text = f"{operator}({', '.join(parts)})"
    if node.text == "let":
        name = f"t{len(rule_lines)}"
        rule_lines.append(f"let {name} = {text}")
        return name
    return text


def leaf(of=""):
    choice = RNG.random()
    if of == "divisor":
        return RNG.choice(
            [Node("input", text=RNG.choice(list(INPUTS))), Node("integer", text=RNG.choice("237")), Node("fraction", text=RNG.choice(FRACTIONS))]
        )
    if choice < 0.55:
        return Node("input", text=RNG.choice(list(INPUTS)))
    if choice < 0.75:
        return Node("integer", text=str(RNG.choice([0, 1, 2, 3, 7, 10, 100, 365, 16777217])) + RNG.choice(["", "", "i64"]))
    return Node("fraction", text=RNG.choice(FRACTIONS) + RNG.choice(["", "", "", "f64"]))


def condition(depth, arrays):
    if not arrays and RNG.random() < 0.2:
        return Node("in", (leaf(), *(leaf("divisor") if RNG.random() < 0.2 else number() for _ in range(3))))
    return Node(RNG.choice(COMPARISONS), (grown(depth - 1, arrays), grown(depth - 1, arrays)))


def number():
    return Node("integer", text=RNG.choice(["1", "2", "16777216"])) if RNG.random() < 0.5 else Node("fraction", text=RNG.choice(FRACTIONS))


def grown(depth, arrays):
    """A random expression whose value is exact."""
    if depth == 0 or RNG.random() < 0.15:
        return leaf()
    if RNG.random() < 0.06:
        return Node("**", (Node("integer", text=RNG.choice(["2", "3", "7", "10i64"])), Node("integer", text=RNG.choice("2359"))))
    operator = RNG.choice(["+", "-", "*", "/", "+", "-", "*", "/", "//", "%", "neg", "abs", "sqrt", "min", "max", "clamp", "??", "if", "where"])
    name = RNG.choice(["", "", "", "let", "fn"])
    if operator in ("//", "%"):
        return Node(operator, (grown(depth - 1, arrays), leaf("divisor")), name)
    if operator == "sqrt":
        return Node("sqrt", (Node("abs", (grown(depth - 1, arrays),)),), name)
    if operator in ("neg", "abs"):
        return Node(operator, (grown(depth - 1, arrays),), name)
    if operator == "clamp":
        low = RNG.choice("0123")
        return Node("clamp", (grown(depth - 1, arrays), Node("integer", text=low), Node("fraction", text=low + ".5")))
    if operator in ("if", "where"):
        operator = "where" if arrays else operator
        return Node(operator, (condition(depth, arrays), grown(depth - 1, arrays), grown(depth - 1, arrays)), name)
    return Node(operator, (grown(depth - 1, arrays), grown(depth - 1, arrays)), name)


def rooted(arrays):
    """A random expression; its outermost operator may be one that is not exact."""
    choice = RNG.random()
    if choice < 0.08:
        return Node("**", (grown(1, arrays), RNG.choice([Node("integer", text=RNG.choice("23")), Node("fraction", text="0.5"), leaf()])))
    if choice < 0.12:
        return Node("exp", (Node("/", (leaf("divisor"), leaf("divisor"))),))
    if choice < 0.3 and not arrays:
        return Node(RNG.choice(["sum", "mean", "largest", "first"]), tuple(RNG.choice([leaf(), grown(1, arrays)]) for _ in range(RNG.choice([2, 3]))))
    if choice < 0.36:
        return condition(2, arrays)
    return grown(3, arrays)


def nodes_of(node):
    return [node, *(one for part in node.operands for one in nodes_of(part))]


def is_usable(node, arrays):
    """False if a written number is too large for its type, or a weak float meets one that may be missing, or nothing is an input."""
    for one in nodes_of(node):
        if written(one) and one.operator != "integer":
            value = written_value(one)
            if one.text in ("let", "fn") or value is None or not -(2**31) < value < 2**31:
                return False
        if any(rule_of_weak(one, rule) for rule in HEADS):
            return False
        # A sum of `i32` fails where it is too large.
        if one.operator == "sum" and work(one, "none") == "i32":
            return False
        if one.operator == "//" and one.operands[1].operator == "integer" and written(one.operands[0]):
            return False
    names = {one.text for one in nodes_of(node) if one.operator == "input"}
    return bool(names) and not (arrays and written(node))


def rule_of_weak(node, rule):
    """True if a fraction that may be missing meets another one: rare, and tried one by one in `fractions_that_may_be_missing`."""
    if node.operator in ("input", "integer", "fraction"):
        return False
    own = [typed(one, rule) for one in node.operands]
    return sum(kind == "weak" for kind, _ in own) > 1 and any(is_optional for kind, is_optional in own if kind == "weak")


def expressions(count, arrays=False):
    found = []
    while len(found) < count:
        node = rooted(arrays)
        if is_usable(node, arrays) and typed(node, "none")[0] != "weak":
            found.append(node)
    return found


def any_number(kind):
    """A value that no divisor has trouble with."""
    if kind in INTEGERS:
        bits = INTEGERS[kind] - 1
        usual = [
            RNG.randrange(1, 12),
            RNG.randrange(1, 4000),
            16777216 + RNG.randrange(1, 9),
            RNG.randrange(1, 1 << RNG.randrange(1, bits)),
            (1 << bits) - 1,
        ]
        return RNG.choice([1, 1, 1, -1]) * RNG.choice(usual)
    value = RNG.choice([RNG.randrange(1, 100) / 10, RNG.uniform(0.1, 50), RNG.randrange(1, 9), 16777216.0, 10.0 ** RNG.randrange(-6, 7)])
    return OF[kind](RNG.choice([1, 1, -1]) * value)


def any_rows(count):
    rows = []
    for _ in range(count):
        rows.append(
            {name: None if kind.endswith("?") and RNG.random() < 0.3 else any_number(kind.removesuffix("?")) for name, kind in INPUTS.items()}
        )
    return rows


def shown(value):
    """A value as a field of CSV."""
    return "" if value is None else str(value)


def same(found, wanted, kind, digits_of=""):
    """True if the field of CSV or the value of JSON is the number that is wanted, but for four units in the last place of the type `digits_of`."""
    if wanted is None or found in ("", None):
        return wanted is None and found in ("", None)
    if kind == "mask":
        return str(found) in ("true", "True")
    if kind in INTEGERS:
        return int(found) == wanted
    made = OF[kind](float(found))
    if made == wanted or (math.isnan(made) and math.isnan(wanted)):
        return True
    return bool(digits_of) and math.isfinite(wanted) and abs(float(made) - float(wanted)) <= 4 * float(numpy.spacing(abs(OF[digits_of](wanted))))


def model(nodes, rule, inputs, declared=()):
    """A model with an output for each expression."""
    lines, outputs = [], []
    for at, node in enumerate(nodes):
        outputs.append(f"output o{at}{': ' + declared[at] if declared else ''} = {spelled(node, lines)}")
    return HEADS[rule] + "".join(line + "\n" for line in [*inputs, *lines, *outputs])


def said_types(bench, name):
    """The types that `check` says of the outputs."""
    done = bench.run("check", name)
    return dict(re.findall(r"^output (\w+): (\S+)$", done.out, re.M)), done


def declared_inputs(form="{}"):
    return [f"input {name}: {form.format(kind)}" for name, kind in INPUTS.items()]


def printed(kind, is_optional):
    return "unit?" if kind == "mask" else ("f64" if kind == "weak" else kind) + "?" * is_optional


def judge_types(bench, title, nodes, rule, types, text):
    for at, node in enumerate(nodes):
        kind, is_optional = typed(node, rule)
        one = model([node], rule, declared_inputs())
        bench.value(title, types.get(f"o{at}"), printed(kind, is_optional), again("check", "m.cem", m_cem=one))


def by_rows(bench):
    nodes, rows = expressions(EXPRESSIONS), any_rows(ROWS)
    bench.file("rows.csv", table(list(INPUTS), [[shown(row[name]) for name in INPUTS] for row in rows]))
    for rule in HEADS:
        text = model(nodes, rule, declared_inputs())
        bench.file("m.cem", text)
        types, done = said_types(bench, "m.cem")
        judge_types(bench, f"types, {rule}", nodes, rule, types, text)
        if not types:
            bench.tally(f"types, {rule}", WRONG, brief(done.err), "")
            continue
        for backend in ("native", "interp"):
            done = bench.run("eval", "m.cem", "rows.csv", "--format", "csv", "--backend", backend, "--quiet")
            judge_rows(bench, f"values, {rule}, {backend}", nodes, rule, rows, cells(done.out), done)
    # The same once by `-s`, whose values are those of a row.
    for rule in HEADS:
        bench.file("m.cem", model(nodes, rule, declared_inputs()))
        for row in rows[:2]:
            values = [word for name in INPUTS for word in ("-s", f"{name}={'missing' if row[name] is None else row[name]}")]
            done = bench.run("eval", "m.cem", *values, "--format", "csv", "--quiet")
            judge_rows(bench, f"values, {rule}, by -s", nodes, rule, [row], cells(done.out), done)


def judge_rows(bench, title, nodes, rule, rows, found, done):
    if len(found) != len(rows):
        bench.tally(title, WRONG, f"{len(found)} of {len(rows)} rows: {brief(done.err)}", "")
        return
    for row, fields in zip(rows, found):
        for node, field in zip(nodes, fields):
            judge_value(bench, title, node, rule, row, field)


def inexact(node, rule):
    """The type in whose digits the value of the expression is right, if it may differ from the exact one."""
    kind = typed(node, rule)[0]
    return kind if node.operator in INEXACT and kind in OF else ""


def judge_value(bench, title, node, rule, row, field):
    wanted, kind = valued(node, rule, row), typed(node, rule)[0]
    is_right = same(field, wanted, kind, inexact(node, rule))
    values = [word for name in INPUTS for word in ("-s", f"{name}={'missing' if row[name] is None else row[name]}")]
    one = "" if is_right else again("eval", "m.cem", *values, m_cem=model([node], rule, declared_inputs()))
    bench.tally(title, RIGHT if is_right else WRONG, f"{field}, not {wanted!r}", one)


def undeclared(bench):
    """Inputs without a type: whole numbers of data are `i64`, others `f64`, in CSV, JSON and `-s`."""
    global INPUTS
    before, INPUTS = INPUTS, {"a": "i64", "n": "i64", "y": "f64", "v": "f64"}
    nodes, rows = expressions(60), any_rows(ROWS)
    for row in rows:
        row |= {name: row[name] + numpy.float64(0.5) for name in "yv"}
    bench.file("rows.csv", table(list(INPUTS), [[shown(row[name]) for name in INPUTS] for row in rows]))
    bench.file("rows.jsonl", "".join(json.dumps({name: row[name].item() if name in "yv" else row[name] for name in INPUTS}) + "\n" for row in rows))
    for rule in HEADS:
        bench.file("m.cem", model(nodes, rule, []))
        for data in ("rows.csv", "rows.jsonl"):
            done = bench.run("eval", "m.cem", data, "--format", "csv", "--quiet")
            judge_rows(bench, f"undeclared, {rule}, {data[5:]}", nodes, rule, rows, cells(done.out), done)
        for row in rows[:2]:
            values = [word for name in INPUTS for word in ("-s", f"{name}={row[name]}")]
            done = bench.run("eval", "m.cem", *values, "--format", "csv", "--quiet")
            judge_rows(bench, f"undeclared, {rule}, by -s", nodes, rule, [row], cells(done.out), done)
    INPUTS = before


def of_arrays(bench):
    """The same operators on arrays, element by element."""
    nodes, rows = [node for node in expressions(100, arrays=True)], any_rows(25)
    line = {
        name: [None if row[name] is None else row[name] if kind[0] == "i" else float(str(row[name])) for row in rows] for name, kind in INPUTS.items()
    }
    bench.file("arrays.jsonl", json.dumps(line) + "\n")
    for rule in HEADS:
        bench.file("m.cem", model(nodes, rule, declared_inputs("[{}]")))
        for backend in ("native", "interp"):
            done = bench.run("eval", "m.cem", "arrays.jsonl", "--format", "jsonl", "--backend", backend, "--quiet")
            if done.status != 0:
                bench.tally(f"arrays, {rule}, {backend}", WRONG, brief(done.err, 600), "")
                continue
            made = json.loads(done.out)
            for at, node in enumerate(nodes):
                found = made[f"o{at}"]
                for row, field in zip(rows, found):
                    judge_value(bench, f"arrays, {rule}, {backend}", node, rule, row, field)


def of_tensors(bench):
    """The same operators on tensors, whose types are those of the arrays that NumPy reads."""
    global INPUTS
    before, INPUTS = INPUTS, {"a": "i32", "b": "i32", "n": "i64", "x": "f32", "y": "f64"}
    nodes, rows = [node for node in expressions(130, arrays=True) if not any(one.operator == "??" for one in nodes_of(node))], any_rows(25)
    nodes = [node for node in nodes if typed(node, "none")[0] != "mask"]
    kinds = {"i32": numpy.int32, "i64": numpy.int64, **OF}
    numpy.savez(bench.folder / "t.npz", **{name: numpy.array([row[name] for row in rows], kinds[kind]) for name, kind in INPUTS.items()})
    for rule in HEADS:
        bench.file("m.cem", model(nodes, rule, declared_inputs("tensor[{}, 1]")))
        for backend in ("native", "interp"):
            (bench.folder / "made.npz").unlink(missing_ok=True)
            done = bench.run("eval", "m.cem", "t.npz", "-o", "made.npz", "--backend", backend, "--quiet")
            title = f"tensors, {rule}, {backend}"
            if done.status != 0:
                bench.tally(title, WRONG, brief(done.err, 600), "")
                continue
            made = numpy.load(bench.folder / "made.npz")
            for at, node in enumerate(nodes):
                kind = typed(node, rule)[0]
                one = again("eval", "m.cem", "t.npz", m_cem=model([node], rule, declared_inputs("tensor[{}, 1]")))
                if not bench.value(title, str(made[f"o{at}"].dtype), str(numpy.dtype(kinds[kind])), one):
                    continue
                for row, field in zip(rows, made[f"o{at}"].tolist()):
                    judge_value(bench, title, node, rule, row, field)
    INPUTS = before


def declared(bench):
    """Results that are declared: the type reaches sums, products and branches below it."""
    nodes, rows = [node for node in expressions(140) if typed(node, "none")[0] != "mask"], any_rows(ROWS)
    for of in ("f64?", "i64?"):
        kind = of[:-1]
        own = [node for node in nodes if kind == "f64" or all(typed(node, rule)[0] in INTEGERS for rule in HEADS)]
        if kind == "i64":
            own += whole_expressions(60)
        bench.file("rows.csv", table(list(INPUTS), [[shown(row[name]) for name in INPUTS] for row in rows]))
        for rule in HEADS:
            text = model(own, rule, declared_inputs(), [of] * len(own))
            bench.file("m.cem", text)
            done = bench.run("eval", "m.cem", "rows.csv", "--format", "csv", "--quiet")
            found = cells(done.out)
            if len(found) != len(rows):
                bench.tally(f"declared {of}, {rule}", WRONG, f"{len(found)} rows: {brief(done.err, 600)}", "")
                continue
            for row, fields in zip(rows, found):
                for node, field in zip(own, fields):
                    wanted = valued(node, rule, row, kind)
                    is_right = same(field, wanted, kind, inexact(node, rule))
                    one = "" if is_right else again("eval", "m.cem", *set_row(row), m_cem=model([node], rule, declared_inputs(), [of]))
                    bench.tally(f"declared {of}, {rule}", RIGHT if is_right else WRONG, f"{field}, not {wanted!r}", one)


def set_row(row):
    return [word for name in INPUTS for word in ("-s", f"{name}={'missing' if row[name] is None else row[name]}")]


def whole_expressions(count):
    """Expressions of integers alone, whose sums and products are those of 64 bits where `i64` is declared."""

    def whole(depth):
        if depth == 0:
            return Node("input", text=RNG.choice("abcnk")) if RNG.random() < 0.7 else Node("integer", text=RNG.choice(["2", "1000", "2147483647"]))
        operator = RNG.choice(["+", "-", "*", "neg", "if", "??", "min", "//", "%", "abs"])
        if operator in ("neg", "abs"):
            return Node(operator, (whole(depth - 1),))
        if operator == "if":
            return Node("if", (Node("<", (whole(depth - 1), whole(depth - 1))), whole(depth - 1), whole(depth - 1)))
        if operator in ("//", "%"):
            return Node(operator, (whole(depth - 1), Node("input", text=RNG.choice("abn"))))
        return Node(operator, (whole(depth - 1), whole(depth - 1)))

    found = []
    while len(found) < count:
        node = whole(3)
        if not any(written(one) and one.operator != "integer" for one in nodes_of(node)):
            found.append(node)
    return found


def printed_back(bench):
    """A model that `explain` prints is read back as the same one: the same types, the same values, and printed once more the same text."""
    nodes, rows = expressions(120), any_rows(6)
    bench.file("rows.csv", table(list(INPUTS), [[shown(row[name]) for name in INPUTS] for row in rows]))
    for rule in HEADS:
        # All in one model, then one by one: a head is for the whole text.
        for part in [nodes, *([node] for node in nodes[:8])]:
            text = model(part, rule, declared_inputs())
            bench.file("m.cem", text)
            done = bench.run("explain", "m.cem", "--stage", "expr")
            bench.file("p.cem", done.out)
            title, command = f"printed, {rule}", again("explain", "m.cem", "--stage", "expr", m_cem=text)
            if done.status != 0:
                bench.tally(title, WRONG, brief(done.err), command)
                continue
            if rule != "f32":
                bench.value(
                    title + ", without head and marks",
                    (done.out.startswith("numbers"), any(mark in done.out for mark in ("core._wide", "core._beside"))),
                    (False, False),
                    command,
                )
            bench.value(title + " twice", bench.run("explain", "p.cem", "--stage", "expr").out, done.out, command)
            types, check = said_types(bench, "p.cem")
            for at, node in enumerate(part):
                bench.value(title + ", types", types.get(f"o{at}"), printed(*typed(node, rule)), command + brief(check.err))
            done = bench.run("eval", "p.cem", "rows.csv", "--format", "csv", "--quiet")
            judge_rows(bench, title + ", values", part, rule, rows, cells(done.out), done)


def fractions_that_may_be_missing(bench):
    """Written fractions that meet one that may be missing, in each of the rules."""
    lines = ["input x: f32", "input m: unit?"]
    asked = {
        "x * (0.1 & m)": ("f32?", "f64?", "f32?"),
        "0.1 == (0.1 & m)": ("unit?", "unit?", "unit?"),
        "16777217.0 == (16777216.0 & m)": ("unit?", "unit?", "unit?"),
        "(0.1 & m) == x": ("unit?", "unit?", "unit?"),
        "0.5 & m": ("f64?", "f64?", "f64?"),
        "1 * (0.1 & m)": ("f64?", "f64?", "f32?"),
    }
    values = {
        "x * (0.1 & m)": [
            float(numpy.float32(0.1) * numpy.float32(0.1)),
            float(numpy.float32(0.1)) * 0.1,
            float(numpy.float32(0.1) * numpy.float32(0.1)),
        ],
        "0.1 == (0.1 & m)": [True, True, True],
        "16777217.0 == (16777216.0 & m)": [None, None, True],
        "(0.1 & m) == x": [True, None, True],
        "0.5 & m": [0.5, 0.5, 0.5],
        "1 * (0.1 & m)": [0.1, 0.1, float(numpy.float32(0.1))],
    }
    for at, rule in enumerate(HEADS):
        bench.file("m.cem", HEADS[rule] + "\n".join(lines + [f"output o{i} = {text}" for i, text in enumerate(asked)]) + "\n")
        types, _ = said_types(bench, "m.cem")
        done = bench.run("eval", "m.cem", "-s", "x=0.1", "-s", "m=present", "--format", "csv", "--quiet")
        found = (cells(done.out) or [[""] * len(asked)])[0]
        for i, text in enumerate(asked):
            bench.value("fractions that may be missing", types.get(f"o{i}"), asked[text][at], f"{rule}: {text}")
            kind = asked[text][at].removesuffix("?")
            wanted = values[text][at]
            is_right = same(found[i], wanted if kind == "unit" or wanted is None else OF[kind](wanted), "mask" if kind == "unit" else kind)
            bench.tally("fractions that may be missing", RIGHT if is_right else WRONG, f"{text}: {found[i]}, not {wanted}", rule)


# Texts in which integers meet floats elsewhere than by an operator, or fractions are alone: the type by the rule without a head, then the one by
# `numbers f64` if it is another, and the type by `numbers f32`.
# The type of each without a head, or without one and by `numbers f64`, and by `numbers f32`. Fields of tuples have what Arolla makes of them.
PLACES = """
lookup(k, {1: 0.1, 2: 1.5}, 1) | f64 | f64
lookup(k, {1: 1, 2: 0.5}) | f64? | f64?
lookup(k, {1: 5, 2: 7}, 0.5) | f64 | f64
lookup(k, {1: 0.1, 2: 0.2}, 0.5) | f64 | f64
lookup(k, {1: 0.1}, 0.5) * x | f32, f64 | f32
lookup(k, {1: 5, 2: 7}, 3) | i32 | i32
lookup(k, {1: 5, 2: 7}) / 2 | f64? | f32?
lookup(k, {1: 0.1, 2: 1.5}) ?? 1 | f64 | f32
(if k > 1 then (n, 0.5) else (0.5, n)).0 | f32, f64 | f32
(if k > 1 then {p: n} else {p: x}).p | f32, f32 | f32
(n, 0.5).1 * x | f32, f64 | f32
{p: n / 3, q: n}.p | f64 | f32
(let t = n / 3 in t * x) | f64 | f32
array.interleave(l, [0.5]).0 | [f64?] | [f32?]
map(fn(v) = v / 3, l) | [f64?] | [f32?]
map(fn(r) = r.n * r.w, items) | [f64] | [f32]
map(fn(r) = {p: r.n / 3, q: r.w * 0.5}, items).p | [f64] | [f32]
sum(items.n * items.price) | f64 | f64
items.n ?? items.w | [f64] | [f32]
seq.reduce(fn(u, v) = u + v * 0.5, seq.range(n), 0) | f64 | f32
core.reduce_tuple(fn(u, v) = u + v, (n, 0.5, x)) | f64 | f32
core.map_tuple(fn(u) = u / 2, (n, x)).1 | f64 | f32
core.apply(fn(u, v) = u * v, n, x) | f64 | f32
math.add(n, 0.5) | f64 | f32
math.divide(n, 3) | f64 | f32
math.pow(3, 17) | f64 | f32
core.where(k > 1, n, 0.5) | f64 | f32
array.size(l) / 2 | f64 | f32
strings.length("abc") * 0.5 | f64 | f32
date.year(d) / 4 | f64 | f32
(d - date"2026-01-01") / 365 | f64 | f32
math.weighted_average(l, [0.5, 1.5]) | f64 | f32
cum_sum(l) / 2 | [f64] | [f32]
softmax(l) | [f64?] | [f32?]
round_decimal(n / 3, 2) | f64 | f32
sigmoid(0.5) | f64 | f32
sigmoid(0.5, 0.25) | f64 | f32
math.cdf([0.5], [1.5]) | [f32?], [f64] | [f32?]
to_float32(n) * 0.1 | f32, f64 | f32
1h / 7min | f64 | f64
sum([n, x]) / 2 | f64 | f32
(if k > 1 then 1 else 2) / 4 | f64 | f32
"""


def places(bench):
    given = "input k: i32, n: i64, x: f32, d: date, l: [i64], items: [{n: i64, w: f32, price: f64}]\n"
    for line in PLACES.strip().splitlines():
        text, own, narrow = (part.strip() for part in line.split(" | "))
        wanted = dict(zip(HEADS, [*(own.split(", ") * 2)[:2], narrow]))
        for rule in HEADS:
            model = f"{HEADS[rule]}{given}output r = {text}\n"
            bench.file("m.cem", model)
            types, done = said_types(bench, "m.cem")
            bench.value(f"other places, {rule}", types.get("r", brief(done.err, 80)), wanted[rule], again("check", "m.cem", m_cem=model))
    for text, own, narrow in (
        ("tensor.where(t > 1, t, x)", "float64", "float32"),
        ("tensor.concat((t, x), 0)", "float64", "float64"),
        ("tensor.softmax(t, 0)", "float64", "float32"),
        ("tensor.logsumexp(t, 0)", "float64", "float32"),
        ("tensor.maximum(t, x)", "float64", "float32"),
        ("tensor.recip(t)", "float64", "float32"),
    ):
        numpy.savez(bench.folder / "t.npz", t=numpy.arange(3), x=numpy.ones(3, numpy.float32))
        for rule in HEADS:
            model = f"{HEADS[rule]}input t: tensor[i64, 1], x: tensor[f32, 1]\noutput r = {text}\n"
            bench.file("m.cem", model)
            done = bench.run("eval", "m.cem", "t.npz", "-o", "made.npz", "--quiet")
            made = str(numpy.load(bench.folder / "made.npz")["r"].dtype) if done.status == 0 else brief(done.err)
            bench.value(f"other places of tensors, {rule}", made, narrow if rule == "f32" else own, again("eval", "m.cem", "t.npz", m_cem=model))


def files(bench):
    """A function and a constant keep the rule of the file that defines them, whoever uses it; all of it prints as one model that is read back."""
    for rule, head in HEADS.items():
        text = f"fn third_{rule}(p) = p / 3\nfn half_{rule}(p) = p * 0.5\nfn power_{rule}() = 3 ** 17\n"
        text += f"let tenth_{rule} = 1 / 10\nlet weak_{rule} = 0.1\n"
        bench.file(f"{rule}.cem", head + text)
    n, x = 1999999999, numpy.float32(0.1)
    single, double = numpy.float32, numpy.float64
    for user, head in HEADS.items():
        wanted = []
        lines = ["input n: i64, x: f32"]
        for rule in HEADS:
            of = single if rule == "f32" else double
            wide = double if rule == "f64" else single
            added = double if user != "f32" or rule != "f32" else single
            wanted += [
                (f"third_{rule}(n)", of(n) / of(3)),
                (f"half_{rule}(n)", of(n) * of(0.5)),
                (f"half_{rule}(x)", wide(x) * wide(0.5)),
                (f"tenth_{rule}", of(1) / of(10)),
                (f"weak_{rule}", double(0.1)),
                (f"weak_{rule} * x", wide(0.1) * wide(x)),
                (f"power_{rule}()", double(3**17) if rule == "f64" else 3**17),
                (f"third_{rule}(x) + n", added(of(x) / of(3)) + added(n)),
            ]
        lines += [f"output o{at} = {text}" for at, (text, _) in enumerate(wanted)]
        bench.file("m.cem", head + "".join(f'use "{rule}.cem"\n' for rule in HEADS) + "\n".join(lines) + "\n")
        bench.file("p.cem", bench.run("explain", "m.cem", "--stage", "expr").out)
        for name, title in (("m.cem", "files"), ("p.cem", "files, printed")):
            types, done = said_types(bench, name)
            done = bench.run("eval", name, "-s", f"n={n}", "-s", "x=0.1", "--format", "csv", "--quiet")
            fields = (cells(done.out) or [[""] * len(wanted)])[0]
            for at, ((text, value), field) in enumerate(zip(wanted, fields)):
                kind = {int: "i32", single: "f32", double: "f64"}[type(value)]
                is_right = types.get(f"o{at}") == kind and same(field, value, kind)
                bench.tally(
                    f"{title}, {user}",
                    RIGHT if is_right else WRONG,
                    f"{text}: {types.get(f'o{at}')} {field} {brief(done.err)}, not {kind} {value}",
                    "",
                )


if __name__ == "__main__":
    main("rules of numbers", by_rows, undeclared, of_arrays, of_tensors, declared, printed_back, fractions_that_may_be_missing, places, files)
