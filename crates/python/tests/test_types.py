"""Tests of the stubs: they must match the registry. Type checkers must find no mistake in a correct program, and ten in one with ten mistakes."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

RIGHT = '''
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import cembra
from cembra import L, M

model: cembra.Model = cembra.compile("x * 2", types={"x": "f64"}, backend="native", limits={"nodes": 10_000, "compile_time": 0.5})
expr: cembra.Expr = M.math.sqrt(L.x) + M.sum(L.y, into=L.e) * 2.0
compiled: cembra.Model = cembra.compile({"a": expr, "b": cembra.where(L.x > 1, L.x, 0)})
loaded: cembra.Model = cembra.load(pathlib.Path("a.cem"), types={"x": "f64"})
edge = cembra.Edge.from_sizes([1, 2])
groups: int = edge.parent_size
inputs: Mapping[str, str | None] = model.inputs


@cembra.function
def total(price: float, pieces: float, discount: float = 0.0) -> float:
    return price * pieces * (1.0 - discount)


@cembra.function(types={"x": "f64"}, backend="interpreter")
def root(x: cembra.Expr) -> cembra.Expr:
    return M.math.sqrt(x)


@cembra.function
def first(values: npt.NDArray[np.float64] | float, at: int) -> Any:
    return M.array.at(values, at)


class Prices:
    rate = 0.5

    @cembra.function
    def total(self, price: float) -> float:
        return price * self.rate


text: str = total.source
price: float = total(2.5, pieces=4.0) + total(2.5, 4.0, 0.5) + Prices().total(2.0)
of_value = root(4.0)
of_array = first(np.ones(3), 1)
made, failed, messages = model.run({"x": np.ones(3)}, threads=2, on_error="missing", time_limit=0.5)
rows: list[int] = failed
words: list[str] = messages
token = cembra.Cancellation()
table: npt.NDArray[np.float64] = model.table(np.ones(3), threads=2, on_error="skip", time_limit=1.0, cancellation=token)
same: npt.NDArray[np.float64] = total.table(np.ones(3), on_error="skip")

with model.session(threads=2, time_limit=0.5, cancellation=token, limits={"loop_iterations": 1000}) as session:
    value = session(1.0) + session(x=2.0)
    held: int = session.memory_bytes
other = cembra.Session(model, threads=1)


@cembra.operator("risk.cap", "f64", "f64?", pure=False)
def cap(x: float) -> float | None:
    return min(x, 100.0) if x >= 0.0 else None


@cembra.operator("text.repeat", ["text", "i64"], "text", columns=False)
def repeat(text: str, count: int) -> str:
    return text * count


capped: float | None = cap(7.0)
try:
    cembra.compile("x +")
except cembra.Error as error:
    span: tuple[int, int] | None = error.span
    name: str | None = error.filename
    number: int | None = error.errno
    code: str = error.code
html: str = model._repr_html_()
parameters = list(model.__signature__.parameters)
'''

# A line of each is wrong: the mark is cut off before a checker reads it.
WRONG = '''
import numpy as np

import cembra

model = cembra.compile("x * 2", type={"x": "f64"})  # wrong: the name of an argument
other = cembra.compile("x * 2", backend="jit")  # wrong: a backend
loaded = cembra.load("a.cem", types=["f64"])  # wrong: the types of inputs
made = other.run({"x": np.ones(3)}, on_error="skip")  # wrong: what `run` does with rows that fail
table: list[int] = other.table(np.ones(3))  # wrong: the table is as the frame
session = other.session(threads="2")  # wrong: the type of an argument


@cembra.operator("risk.cap", "f32", "f64")  # wrong: the type of a parameter
def cap(x: float) -> float:
    return min(x, 100.0)


@cembra.function
def total(price: float, pieces: float) -> float:
    return price * pieces


rows: list[str] = other.run({"x": np.ones(3)})[1]  # wrong: rows that fail are numbers
text = total(2.5, "4")  # wrong: the type of an argument of a traced function
few = total(2.5)  # wrong: the count of arguments of a traced function
'''

# Functions without annotations take any values.
UNTYPED = """
import cembra


@cembra.function
def total(price, pieces):
    return price * pieces


text: str = total.source
made = [total(2.5, 1), total("a", None), total(price=[1.0], pieces=None)]
"""


def test_the_stub_is_of_the_registry():
    # In a process of its own: other tests make operators.
    checked = subprocess.run([sys.executable, ROOT / "scripts/stubs.py", "--check"])
    assert checked.returncode == 0, "write the stub again: python crates/python/scripts/stubs.py"


def by_mypy(program, folder, is_strict=True):
    """Returns the lines of a program in which mypy finds mistakes, with its messages. With `is_strict`, mypy checks strictly, and the package too."""
    pytest.importorskip("mypy")
    strict = ["--strict", "--warn-unused-ignores", str(ROOT / "python/cembra")] if is_strict else []
    command = [sys.executable, "-m", "mypy", f"--cache-dir={folder}", *strict, str(program)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "python")
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    found = {}
    for line in checked.stdout.splitlines():
        if ": error: " in line:
            assert line.startswith(str(program)), line
            found.setdefault(int(line.split(":")[1]), []).append(line)
    return found


def by_pyright(program, folder, is_strict=True):
    """Returns the lines of a program in which pyright finds mistakes, with its messages. Only the program is checked."""
    pytest.importorskip("pyright")
    config = {"include": [program.name], "extraPaths": [str(ROOT / "python")], "typeCheckingMode": "strict" if is_strict else "standard"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    # pyright runs on Node, which comes with the package `pyright[nodejs]` or is loaded at the first start.
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(folder)]
    checked = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if not checked.stdout.lstrip().startswith("{"):
        pytest.skip(f"pyright does not start here: {(checked.stdout + checked.stderr).strip()[-200:]}")
    found = {}
    for one in json.loads(checked.stdout)["generalDiagnostics"]:
        if one["severity"] == "error":
            assert pathlib.Path(one["file"]) == program, one
            found.setdefault(one["range"]["start"]["line"] + 1, []).append(one["message"])
    return found


@pytest.mark.parametrize("checker", [by_mypy, by_pyright])
def test_a_right_program_has_no_mistakes(checker, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RIGHT)
    assert checker(program, tmp_path) == {}


@pytest.mark.parametrize("checker", [by_mypy, by_pyright])
def test_ten_of_ten_mistakes_are_found(checker, tmp_path):
    lines = WRONG.splitlines()
    planted = [at for at, line in enumerate(lines, 1) if "# wrong: " in line]
    program = tmp_path / "program.py"
    program.write_text("\n".join(line.split("  # wrong: ")[0] for line in lines))
    found = checker(program, tmp_path)
    assert len(planted) == 10 and sorted(found) == planted, found


@pytest.mark.parametrize("checker", [by_mypy, by_pyright])
def test_a_function_without_annotations_takes_anything(checker, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(UNTYPED)
    # In their strict modes the checkers ask for annotations, as of any function.
    found = checker(program, tmp_path, is_strict=False)
    assert found == {}
