"""The stubs: they are those of the registry, and a type checker finds the package and a program that uses it right."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]

PROGRAM = '''
import cembra
from cembra import L, M

model: cembra.Model = cembra.compile("x * 2", types={"x": "f64"})
expr: cembra.Expr = M.math.sqrt(L.x) + M.sum(L.y, into=L.e) * 2.0
compiled: cembra.Model = cembra.compile({"a": expr, "b": cembra.where(L.x > 1, L.x, 0)})
edge = cembra.Edge.from_sizes([1, 2])
groups: int = edge.parent_size

@cembra.function
def total(price: float, pieces: float) -> float:
    return price * pieces

text: str = total.source
wrong: int = total.source  # type: ignore[assignment]
M.math.sqrt()  # type: ignore[call-arg]
M.math.sqtr  # type: ignore[attr-defined]
'''


def test_the_stub_is_of_the_registry():
    # In a process of its own: other tests make operators.
    checked = subprocess.run([sys.executable, ROOT / "scripts/stubs.py", "--check"])
    assert checked.returncode == 0, "write the stub again: python crates/python/scripts/stubs.py"


def test_a_type_checker_finds_the_package_right(tmp_path):
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    package = str(ROOT / "python/cembra")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", f"--cache-dir={tmp_path}", package, str(program)],
        capture_output=True,
        text=True,
        cwd=ROOT / "python",
    )
    assert checked.returncode == 0, checked.stdout
