"""Gradients of random expressions with branches inside of branches, beside dual numbers that follow the branches taken.

Some elements are outside of the domain of a branch that is not taken: the branch has a pole there, is not a number, or rises without bound. A dual
number of Python is a value with its derivatives, and computes only what is taken. Elements at an edge of what is taken, such as a tie, are left out:
`tests/gradients.toml` lists what is right there. Both backends, `if` and `where` on whole tensors.

    PYTHON tests/outside/branch_gradients.py target/debug/cembra
"""

import math
import random
import re

import numpy

from cases import RIGHT, WRONG, again, brief, main

RNG = random.Random(69)
POINTS = [-7.5, -2.0, -1.0, -0.5, -1e-300, 0.0, 1e-300, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0, 80.0, 800.0]
UNARY = {
    "-({})": lambda v: (-v, -1.0),
    "exp({})": lambda v: (math.exp(v), math.exp(v)),
    "log({})": lambda v: (math.log(v), 1 / v),
    "sqrt({})": lambda v: (math.sqrt(v), 0.5 / math.sqrt(v)),
    "abs({})": lambda v: (abs(v), math.copysign(1.0, v)),
    "sin({})": lambda v: (math.sin(v), math.cos(v)),
    "tanh({})": lambda v: (math.tanh(v), 1 - math.tanh(v) ** 2),
    "(({}) ** 2)": lambda v: (v * v, 2 * v),
    "(1.0 / ({}))": lambda v: (1 / v, -1 / (v * v)),
    "(({}) ** 0.5)": lambda v: (v**0.5, 0.5 * v**-0.5),
    "log1p({})": lambda v: (math.log1p(v), 1 / (1 + v)),
    "sigmoid({})": lambda v: (1 / (1 + math.exp(-v)), math.exp(-v) / (1 + math.exp(-v)) ** 2),
    "tensor.relu({})": lambda v: (max(v, 0.0), float(v > 0)),
    "tensor.square({})": lambda v: (v * v, 2 * v),
}
BINARY = {
    "({} + {})": lambda v, w: (v + w, 1.0, 1.0),
    "({} - {})": lambda v, w: (v - w, 1.0, -1.0),
    "({} * {})": lambda v, w: (v * w, w, v),
    "({} / {})": lambda v, w: (v / w, 1 / w, -v / (w * w)),
    "max({}, {})": lambda v, w: (max(v, w), float(v > w), float(w > v)),
    "min({}, {})": lambda v, w: (min(v, w), float(v < w), float(w < v)),
}
# Operators with an edge at 0, or where both operands are equal.
EDGES = ("abs({})", "tensor.relu({})", "max({}, {})", "min({}, {})", "sqrt({})", "(({}) ** 0.5)")


# `sigmoid` and `tanh` have slopes that cancel where they are flat.
SATURATED = 1e-15


class Edge(Exception):
    """The value is at an edge, or outside of a domain, on the branch that is taken."""


def grown(depth):
    if depth == 0 or RNG.random() < 0.1:
        return RNG.choice(["x", "x", "z", 0.5, 2.0, -1.0])
    choice = RNG.random()
    if choice < 0.4:
        condition = (RNG.choice(["<", ">", "<=", ">="]), RNG.choice(["x", "z"]), RNG.choice([-1.25, 0.0, 0.75, 2.5]))
        return (RNG.choice(["if {} then {} else {}", "where({}, {}, {})"]), condition, grown(depth - 1), grown(depth - 1))
    if choice < 0.7:
        operand = grown(depth - 1)
        # A function of a written number by itself is computed in the type of that number, which is a matter of `number_rules.py`.
        return (RNG.choice(list(UNARY)), operand) if re.search("[xz](?!p)", spelled(operand)) else operand
    return (RNG.choice(list(BINARY)), grown(depth - 1), grown(depth - 1))


def spelled(node):
    if isinstance(node, (str, float)):
        return str(node)
    if node[0].startswith(("if", "where")):
        operator, left, right = node[1]
        return "(" + node[0].format(f"{left} {operator} {right}", spelled(node[2]), spelled(node[3])) + ")"
    return node[0].format(*map(spelled, node[1:]))


def dual(node, x, z):
    """The value and its derivatives by `x` and `z`."""
    if node == "x":
        return x, 1.0, 0.0
    if node == "z":
        return z, 0.0, 1.0
    if isinstance(node, float):
        return node, 0.0, 0.0
    if node[0].startswith(("if", "where")):
        operator, left, right = node[1]
        held = {"x": x, "z": z}[left]
        if held == right:
            raise Edge
        return dual(node[2] if (held < right) == (operator in ("<", "<=")) else node[3], x, z)
    parts = [dual(one, x, z) for one in node[1:]]
    values = [value for value, *_ in parts]
    if node[0] in EDGES and (values[0] == 0 if len(values) == 1 else values[0] == values[1]):
        raise Edge
    try:
        made, *slopes = (UNARY if len(parts) == 1 else BINARY)[node[0]](*values)
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise Edge from error
    if isinstance(made, complex) or not all(map(math.isfinite, (made, *slopes))):
        raise Edge
    by = [sum(slope * part[at] for slope, part in zip(slopes, parts)) for at in (1, 2)]
    return made, *by


def size(node, x, z):
    """What is added up on the way to the derivatives, for the rounding of sums that cancel."""
    if isinstance(node, (str, float)):
        return 1.0
    if node[0].startswith(("if", "where")):
        operator, left, right = node[1]
        held = {"x": x, "z": z}[left]
        return size(node[2] if (held < right) == (operator in ("<", "<=")) else node[3], x, z)
    values = [dual(one, x, z)[0] for one in node[1:]]
    _, *slopes = (UNARY if len(values) == 1 else BINARY)[node[0]](*values)
    return sum(abs(slope) * size(one, x, z) for slope, one in zip(slopes, node[1:]))


def branches(bench):
    pairs = [(x, RNG.choice(POINTS)) for x in POINTS for _ in range(3)]
    inputs = {"x": numpy.array([x for x, _ in pairs]), "z": numpy.array([z for _, z in pairs])}
    numpy.savez(bench.folder / "x.npz", **inputs)
    for _ in range(18):
        nodes = [node for node in (grown(4) for _ in range(40)) if "if" in spelled(node) or "where" in spelled(node)][:12]
        lines = ["input x, z: tensor[f64, 1]"]
        for at, node in enumerate(nodes):
            lines += [f"let f{at} = tensor.sum({spelled(node)} + 0.0 * x + 0.0 * z)"]
            lines += [f"output x{at} = tensor.grad(f{at}, x)", f"output z{at} = tensor.grad(f{at}, z)"]
        text = "\n".join(lines) + "\n"
        bench.file("m.cem", text)
        for backend in ("native", "interp"):
            done = bench.run("eval", "m.cem", "x.npz", "-o", "made.npz", "--backend", backend, "--quiet")
            if done.status != 0:
                bench.tally("gradients in branches", WRONG, brief(done.err, 600), again("eval", "m.cem", "x.npz", m_cem=text))
                continue
            made = numpy.load(bench.folder / "made.npz")
            for at, node in enumerate(nodes):
                for index, (x, z) in enumerate(pairs):
                    try:
                        _, *by = dual(node, x, z)
                        scale = size(node, x, z)
                    except Edge:
                        continue
                    for name, wanted in zip("xz", by):
                        found = float(made[f"{name}{at}"][index])
                        is_right = found == wanted or abs(found - wanted) <= 1e-11 * max(abs(wanted), scale) + SATURATED
                        said = f"by {name} at x={x}, z={z}: {found}, not {wanted}"
                        bench.tally("gradients in branches", RIGHT if is_right else WRONG, f"{spelled(node)} {said}", "")


main("gradients in branches", branches)
