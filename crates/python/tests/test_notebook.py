"""The cells of the notebook give the outputs that are stored in it."""

import ast
import contextlib
import io
import json
import pathlib

import pytest

pytest.importorskip("polars")

NOTEBOOK = pathlib.Path(__file__).parents[3] / "docs/examples/python/tour.ipynb"


def run(source, known):
    """What a cell prints, and its last expression as it is shown; none if it has none."""
    tree, printed, shown = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, NOTEBOOK.name, "exec"), known)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), known)
            shown = None if value is None else repr(value)
    return printed.getvalue(), shown


def stored(cell):
    """The same as the notebook has it."""
    printed, shown = "", None
    for output in cell["outputs"]:
        if output["output_type"] == "stream":
            printed += "".join(output["text"])
        else:
            assert output["output_type"] == "execute_result"
            shown = "".join(output["data"]["text/plain"])
    return printed, shown


def test_cells_give_what_is_stored():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    known = {}
    for at, cell in enumerate(cells):
        assert cell["execution_count"] == at + 1
        source = "".join(cell["source"])
        assert run(source, known) == stored(cell), source
    assert len(cells) > 15
