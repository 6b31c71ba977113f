"""The blocks of the pages on Python give what they show, and so do the tables of expressions."""

import datetime
import doctest
import pathlib

import numpy as np
import pytest

import cembra

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

DOCS = pathlib.Path(__file__).parents[3] / "docs"
# What a page needs beside pyarrow and Polars.
NEEDS = {"from/arolla.md": "arolla", "from/pandas.md": "pandas"}
PAGES = ["guide/python.md", "guide/python-expressions.md", "guide/python-sessions.md", "from/arolla.md", "from/jax.md", "from/numpy.md", "from/pandas.md"]


def blocks(page):
    """The blocks of Python on a page."""
    return [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]


def rows(page, heading):
    """The cells of a table, without the marks of code."""
    _, table = (DOCS / page).read_text().split(heading)
    lines = table.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in lines]


@pytest.mark.parametrize("page", PAGES)
def test_the_page_gives_what_it_shows(page):
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    parser, runner, known = doctest.DocTestParser(), doctest.DocTestRunner(), {}
    for at, block in enumerate(blocks(DOCS / page)):
        example = parser.get_doctest(block, known, f"block {at + 1}", page, 0)
        runner.run(example, clear_globs=False)
        known = example.globs
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 7


def outcome(text, columns):
    """What a text gives for columns of NumPy, as lists of Python, or why it fails."""
    model = cembra.compile(text)
    try:
        made = model(**{name: columns[name] for name in model.inputs})
    except cembra.EvaluationError as error:
        return f"fails: {error.message}"
    return repr(made.tolist() if isinstance(made, np.ndarray) else made)


def test_expressions_of_numpy_and_of_cembra_give_what_the_table_says():
    columns = {"x": np.array([1.0, -4.0, 2.5]), "h": np.array([0.5, 1.5, 2.5]), "n": np.array([7, -7, 8])}
    wrong, table = [], rows("from/numpy.md", "| NumPy | gives | cembra | gives |")
    for of_numpy, gives, text, expected in table:
        with np.errstate(all="ignore"):
            found = of_numpy and repr(eval(of_numpy, {"np": np} | columns).tolist())
        if (found, outcome(text, columns)) != (gives, expected):
            wrong.append((of_numpy, found, text, outcome(text, columns)))
    assert not wrong
    assert len(table) > 20


def plain(values):
    """A column as a list, with `None` for what is missing; a number as it is."""
    if not hasattr(values, "to_list"):
        return values
    return [None if value is None or value != value else value for value in values.to_list()]


def test_expressions_of_pandas_polars_and_cembra_give_what_the_table_says():
    pd = pytest.importorskip("pandas")
    days = [datetime.date(2024, 2, 29), datetime.date(2025, 12, 31), datetime.date(2026, 1, 1)]
    columns = {"x": [1.5, None, 4.0], "k": [1, 2, 3], "s": ["a", "Bc", None], "d": days}
    df, frame = pd.DataFrame(columns | {"d": pd.to_datetime(days)}), pl.DataFrame(columns)
    wrong, table = [], rows("from/pandas.md", "| pandas | Polars | cembra | gives |")
    for of_pandas, of_polars, text, gives in table:
        expected, model = eval(gives), cembra.compile(text)
        of_all_rows = text.startswith("input x: [")
        first = plain(eval(of_pandas, {"df": df, "pd": pd}))
        second = plain(frame.select(eval(of_polars, {"pl": pl})).to_series())
        third = model(pa.array(columns["x"])) if of_all_rows else plain(model.table(frame)["result"])
        # Polars gives a number as a column of one row.
        if [first, second if isinstance(expected, list) else second[0], third] != [expected] * 3:
            wrong.append((text, first, second, third))
    assert not wrong
    assert len(table) > 15
