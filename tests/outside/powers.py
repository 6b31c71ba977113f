"""Powers of integers: written ones beside Python's integers, of data and of declared types beside NumPy and exact integers.

A power of two written integers is exact, or the error `literal`, whose help is followed here: what it says to write must give the power. Under a
declared `i64` or `f64` a power is that of 64 bits, or the fault `cast-range`; under `numbers f64` and of data it is an `f64`.

    PYTHON tests/outside/powers.py target/debug/cembra
"""

import ast
import json
import math
import random
import re

from cases import REFUSED, RIGHT, WRONG, again, brief, main, table

RNG = random.Random(69)
HEADS = {"none": "", "f32": "numbers f32\n", "f64": "numbers f64\n"}
LIMITS = {"i32": 2**31, "i64": 2**63}


def texts():
    """Texts of powers, each with its exact number as an integer and the type that its operands have."""
    found = [
        ("3 ** 17", 3**17, "i32"),
        ("7 ** 20", 7**20, "i32"),
        ("2 ** 31", 2**31, "i32"),
        ("2 ** 30 * 2 - 1", 2**31 - 1, "i32"),
        ("-2 ** 2", -4, "i32"),
        ("(-2) ** 2", 4, "i32"),
        ("-(2 ** 31)", -(2**31), "i32"),
        ("(-2) ** 31", -(2**31), "i32"),
        ("2 ** 3 ** 2", 512, "i32"),
        ("(2 ** 3) ** 2", 64, "i32"),
        ("2 ** 10 ** 2", 2**100, "i32"),
        ("0 ** 0", 1, "i32"),
        ("(1 + 2) ** (3 * 4)", 3**12, "i32"),
        ("2 ** 62 + 2 ** 62", 2**63, "i32"),
        ("10 ** 18 * 10", 10**19, "i32"),
        ("7i64 ** 20", 7**20, "i64"),
        ("7 ** 20i64", 7**20, "i64"),
        ("2i64 ** 63", 2**63, "i64"),
        ("(-2i64) ** 63", -(2**63), "i64"),
        ("2i64 ** 62 - 1", 2**62 - 1, "i64"),
        ("1 ** 1000000", 1, "i32"),
        ("(-1) ** 999999", -1, "i32"),
        ("0 ** 7", 0, "i32"),
    ]
    for _ in range(140):
        base, exponent = (
            RNG.choice([RNG.randrange(-12, 13), RNG.randrange(2, 100), RNG.randrange(2, 50000)]),
            RNG.randrange(0, RNG.choice([4, 12, 40, 64])),
        )
        kind = RNG.choice(["i32", "i32", "i64"])
        suffix = "i64" if kind == "i64" else ""
        written = f"{base}{suffix}" if base >= 0 else f"({base}{suffix})"
        text, value = f"{written} ** {exponent}", base**exponent
        shape = RNG.random()
        if shape < 0.15:
            other = RNG.randrange(1, 20)
            text, value = f"{text} + {other}", value + other
        elif shape < 0.25:
            text, value = f"-{text}", -value
        elif shape < 0.35:
            other = RNG.randrange(1, 4)
            text, value = f"{other} * {text}", value * other
        found.append((text, value, kind))
    return found


def holds(value, kind):
    return -LIMITS[kind] <= value < LIMITS[kind]


def parts(text):
    """Each number and operator of the text: its exact value, its type, and whether it is a power."""
    found = []

    def of(node):
        if isinstance(node, ast.Call):
            made, operator = (node.args[0].value, "i64"), ""
        elif isinstance(node, ast.Constant):
            made, operator = (node.value, "i32"), ""
        elif isinstance(node, ast.UnaryOp):
            value, kind = of(node.operand)
            made, operator = (-value, kind), "-"
        else:
            (x, a), (y, b) = of(node.left), of(node.right)
            value = {ast.Add: x + y, ast.Sub: x - y, ast.Mult: x * y}.get(type(node.op))
            made, operator = (x**y if value is None else value, max(a, b)), "**" if value is None else "+"
        found.append((*made, operator))
        return made

    of(ast.parse(re.sub(r"(\d+)i64", r"L(\1)", text), mode="eval").body)
    return found


def evaluated(bench, text, *arguments):
    done = bench.run("eval", "-e", text, "--format", "jsonl", *arguments)
    made = list(json.loads(done.out).values())[0] if done.status == 0 and done.out.strip() else None
    return (float(made) if isinstance(made, str) else made), done


def followed(text, help_text):
    """The text with what the help says to write; `None` if it says nothing of that kind."""
    if said := re.search(r"write `([^`]+)` for `([^`]+)`", help_text):
        return re.sub(rf"(?<![\w.]){re.escape(said[2])}(?![\w.])", said[1], text, count=1)
    if re.search("first number (with a fraction|the suffix `f64`)", help_text):
        told = re.search(r"error\[literal\]: `([^`]+)`", help_text)[1]
        return text.replace(told, re.sub(r"(\d+)(i64)?", r"\1f64", told, count=1), 1)
    return None


def is_near(found, wanted):
    return found == wanted or (isinstance(found, float) and math.isfinite(wanted) and abs(found - wanted) <= 2 * math.ulp(wanted))


def is_single(found, wanted):
    """True of the float of 32 bits next to the number, which `numbers f32` makes of a fraction, if that is a number."""
    return abs(found - wanted) <= abs(wanted) * 2.0**-22


def written(bench):
    for text, value, kind in texts():
        for rule in ("none", "f32"):
            title = f"written, {rule}"
            made, done = evaluated(bench, HEADS[rule] + text)
            model = again("eval", "-e", HEADS[rule] + text)
            if all(holds(one, own) for one, own, _ in parts(text)):
                bench.tally(
                    title + ", held", RIGHT if made == value and isinstance(made, int) else WRONG, f"{made!r} {brief(done.err)}, not {value}", model
                )
                continue
            if not bench.refusal(title + ", too large", done, ("error[literal]", "is too large for i"), model):
                continue
            # The help is followed, and again where the `i64` that it says is too small for the next operator.
            now = text
            for _ in range(3):
                now = followed(now, done.err)
                if now is None:
                    break
                made, done = evaluated(bench, HEADS[rule] + now)
                if done.status == 0:
                    break
            fits = all(holds(one, "i64") for one, *_ in parts(text))
            wanted = float(value)
            is_right = (
                made == value
                if isinstance(made, int)
                else made is not None and (is_near(made, wanted) or (rule == "f32" and is_single(made, wanted)))
            )
            is_right = is_right and (isinstance(made, int) or not fits)
            bench.tally(title + ", the help followed", RIGHT if is_right else WRONG, f"{now}: {made!r} {brief(done.err)}, not {value}", model)


def headed(bench):
    """By `numbers f64` a power is a float."""
    asked = [one for one in texts() if "i64" not in one[0]]
    bench.file("m.cem", HEADS["f64"] + "".join(f"output o{at} = {text}\n" for at, (text, *_) in enumerate(asked)))
    done = bench.run("eval", "m.cem", "--format", "jsonl")
    made = json.loads(done.out) if done.status == 0 else {}
    for at, (text, value, _) in enumerate(asked):
        found, wanted = made.get(f"o{at}"), float(value)
        is_right = isinstance(found, float) and is_near(found, wanted)
        bench.tally(
            "numbers f64",
            RIGHT if is_right else WRONG,
            f"{text}: {found!r}, not {wanted!r} {brief(done.err)}",
            again("eval", "-e", "numbers f64\n" + text),
        )


def declared(bench):
    for of in ("i64", "f64"):
        for rule in ("none", "f32"):
            for text, value, _ in texts()[:60]:
                model = f"{HEADS[rule]}output y: {of} = {text}"
                (bench.folder / "errors.csv").unlink(missing_ok=True)
                made, done = evaluated(bench, model, "--on-error", "missing", "--errors", "errors.csv")
                codes = [row["code"] for row in bench.failures().values()]
                # Sums of powers that are declared to be floats are floats, of whatever size.
                fits = all(holds(one, "i64") for one, _, operator in parts(text) if of == "i64" or operator == "**")
                title = f"declared {of}, {rule}"
                if fits:
                    is_right = made == value if of == "i64" else is_near(made, float(value))
                    bench.tally(title, RIGHT if is_right else WRONG, f"{made!r} {brief(done.err)}, not {value}", again("eval", "-e", model))
                else:
                    is_right = codes == ["cast-range"] or done.refuses("literal")
                    said = f"{made!r} {codes} {brief(done.err)}, not cast-range"
                    bench.tally(title + ", too large", REFUSED if is_right else WRONG, said, again("eval", "-e", model))


def of_data(bench):
    """Powers of columns are floats, as quotients are; where the power is a float, it is that one."""
    rows = [[RNG.randrange(-2000, 2000) or 1, RNG.randrange(0, 9), RNG.choice([0.5, 2.0, -1.0, 3.0, 1.5])] for _ in range(200)]
    bench.file("d.csv", table(["n", "e", "y"], rows))
    for rule, digits in (("none", 52), ("f64", 52), ("f32", 23)):
        for declares in ("input y: f64\n", "input n, e: i64, y: f64\n", "input n, e: i32, y: f64\n"):
            model = (
                f"{HEADS[rule]}{declares}output a = n ** e\noutput b = n ** 2\noutput c = 2 ** e\noutput d = abs(n) ** y\noutput s: f64? = n ** 3\n"
            )
            bench.file("m.cem", model)
            done = bench.run("eval", "m.cem", "d.csv", "--format", "jsonl", "--quiet")
            made = [json.loads(line) for line in done.out.splitlines()]
            if len(made) != len(rows):
                bench.tally("of data", WRONG, brief(done.err), again("eval", "m.cem", "d.csv", m_cem=model))
                continue
            for (n, e, y), found in zip(rows, made):
                wide = rule != "f32"
                wanted = {"a": n**e, "b": n**2, "c": 2**e, "d": float(abs(n)) ** y, "s": n**3}
                for name, value in wanted.items():
                    near = abs(found[name] - value) <= abs(value) * 2.0 ** (1 - (52 if name == "d" else digits))
                    exact = name == "d" or not (wide and abs(value) < 2**53) or found[name] == value
                    title = f"of data, {rule}"
                    bench.tally(
                        title,
                        RIGHT if near and exact else WRONG,
                        f"{n} {e} {y} {name}: {found[name]!r}, not {value!r}",
                        again("eval", "m.cem", "d.csv", m_cem=model),
                    )


main("powers of integers", written, headed, declared, of_data)
