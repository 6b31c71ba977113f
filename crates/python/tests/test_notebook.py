"""Tests of the tour notebook: its cells must give the outputs that it stores, also when it runs twice in one kernel. Models are shown as HTML."""

import ast
import contextlib
import html
import io
import json
import pathlib

import pytest

import cembra

pytest.importorskip("polars")

NOTEBOOK = pathlib.Path(__file__).parents[3] / "docs/examples/python/tour.ipynb"


def run(source, known):
    """Returns the text that a cell prints, and the displayed form of its last expression; `None` if it has no displayed form."""
    tree, printed, shown = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, NOTEBOOK.name, "exec"), known)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), known)
            shown = None if value is None else repr(value)
    return printed.getvalue(), shown


def stored(cell):
    """Returns the printed text and the displayed form that the notebook stores for a cell."""
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


CELLS = [
    "import cembra, polars as pl\nfrom cembra import L, M",
    '''
@cembra.operator("notebook.cap", "f64", "f64")
def cap(x):
    return min(x, 100.0)
''',
    '''
@cembra.operator("notebook.rank", "f64", "i64", columns=True)
def rank(x):
    return x.argsort().argsort()
''',
    '''
@cembra.function
def total(price, pieces):
    return M.notebook.cap(price) * pieces

total(250.0, 2.0)
''',
    '''
model = cembra.compile("""
    input price: f64?, pieces: f64
    let nobody = price * 2.0
    output total = notebook.cap(price) * pieces
    output rank = notebook.rank(price)
""")
model
''',
    "frame = pl.DataFrame({'price': [250.0, None, 2.5], 'pieces': [1.0, 2.0, 4.0]})\nmodel.table(frame).to_dicts()",
    "with model.session() as session:\n    print(session(2.0, 3.0).total)",
]


def test_a_notebook_runs_twice_in_one_kernel():
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    with client.setup_kernel():
        for run in range(2):
            for at, cell in enumerate(notebook.cells):
                # A cell that raises is an error of the client.
                client.execute_cell(cell, at)
            shown = [{kind: data for output in cell.outputs for kind, data in output.get("data", {}).items()} for cell in notebook.cells]
            assert shown[3]["text/plain"] == "200.0"
            assert "price" in shown[4]["text/html"] and "`nobody`" in shown[4]["text/html"]
            rows = [{"total": 100.0, "rank": 1}, {"total": None, "rank": None}, {"total": 10.0, "rank": 0}]
            assert ast.literal_eval(shown[5]["text/plain"]) == rows
            assert notebook.cells[6].outputs[0]["text"] == "6.0\n"
            warned = "".join(output.get("text", "") for output in notebook.cells[4].outputs)
            # Python shows the same warning of the same line once.
            assert "ModelWarning" in warned and "`nobody`" in warned or run > 0


def test_a_model_is_shown_with_its_signature_and_its_warnings():
    with pytest.warns(cembra.ModelWarning) as warned:
        model = cembra.compile("input price: f64?, pieces: i64; let nobody = price; output total = price ?? 0.0; output twice = pieces * 2")
    shown = html.unescape(model._repr_html_())
    for part in ["price", "f64?", "pieces", "i64", "total", "twice", "let nobody = price"]:
        assert part in shown
    # The first line of a warning is `warning[code]: ` and the sentence.
    sentence = str(warned[0].message).splitlines()[0].partition(": ")[2]
    assert "`nobody`" in sentence and sentence in shown
    assert "`nobody`" not in cembra.compile("input x: f64; x")._repr_html_()


def test_foreign_text_in_a_model_is_escaped():
    script = "<script>alert('x' & \"y\")</script>"
    text = f"input {quoted(script)}: f64\n# {script}\nlet nobody = {quoted(script)}\noutput {quoted(script + '3')} = L[{quoted(script)}]"
    with pytest.warns(cembra.ModelWarning):
        model = cembra.compile(text, name=script)
    shown = model._repr_html_()
    assert "<script" not in shown and "</script" not in shown and "&lt;script&gt;" in shown
    # Nothing is lost or escaped twice. Every `&` begins one of HTML's names for a sign.
    assert html.unescape(shown).count("<script>alert('x' & ") >= 4 and "&amp;lt;" not in shown
    assert all(part.split(";")[0] in ("amp", "lt", "gt", "quot", "#39", "#x27") for part in shown.split("&")[1:])


def quoted(name):
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
