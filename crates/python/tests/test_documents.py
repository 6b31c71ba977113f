"""Tests of the pages about Python: the code blocks and the tables of expressions must give the results that the pages show. The table of the types of
output columns is made here. With `CEMBRA_REWRITE=1` in the environment, it is written to the page."""

import datetime
import doctest
import os
import pathlib

import numpy as np
import pytest

import cembra

pa = pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

DOCS = pathlib.Path(__file__).parents[3] / "docs"
README = pathlib.Path(__file__).parents[1] / "README.md"
# What a page needs beside pyarrow and Polars.
NEEDS = {"from/arolla.md": "arolla", "from/pandas.md": "pandas"}
PAGES = ["guide/python.md", "guide/python-frames.md", "guide/python-expressions.md", "guide/python-operators.md", "guide/python-sessions.md", "from/arolla.md", "from/jax.md", "from/numpy.md", "from/pandas.md"]


def blocks(page):
    """Returns the Python code blocks of a page."""
    return [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]


def test_the_readme_gives_what_it_shows():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for block in blocks(README):
        runner.run(parser.get_doctest(block, {}, "README", README.name, 0))
    assert runner.summarize(verbose=False).failed == 0 and runner.tries > 4


@pytest.mark.parametrize("documented", [cembra, cembra.function, cembra.operator], ids=["cembra", "function", "operator"])
def test_docstrings_give_what_they_show(documented):
    test = doctest.DocTestParser().get_doctest(documented.__doc__, {"cembra": cembra, "np": np, "L": cembra.L}, documented.__name__, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0 and runner.tries > 1


def test_the_licences_of_the_package_are_those_of_the_repository():
    for name in ["LICENSE-APACHE", "LICENSE-MIT"]:
        assert (README.parent / name).read_bytes() == (DOCS.parent / name).read_bytes()


def rows(page, heading):
    """Returns the cells of a table, without the backticks of code."""
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
    """Returns the outputs of a model text for NumPy columns, as Python lists, or the message of its error."""
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
    """Returns a column as a list, with `None` for a missing element. A number is returned unchanged."""
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
        third = plain(model(pl.Series(columns["x"]))) if of_all_rows else plain(model.table(frame)["result"])
        # Polars gives a number as a column of one row.
        if [first, second if isinstance(expected, list) else second[0], third] != [expected] * 3:
            wrong.append((text, first, second, third))
    assert not wrong
    assert len(table) > 15


ZONE = "Europe/Zurich"
MOMENTS = [datetime.datetime(2024, 2, 29, 12), datetime.datetime(2024, 3, 1, 6, 30)]
DAYS = [datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)]
LENGTHS = [datetime.timedelta(hours=1), datetime.timedelta(days=2)]
LISTS = [[1.5, 2.5], []]
# What is computed of a column, by the type that the model finds for it.
COMPUTED = {
    "i32": "x + 1",
    "i64": "x + 1",
    "u64": "x ?? u64{0}",
    "f32": "x * 2.0",
    "f64": "x * 2.0",
    "bool": "not x",
    "text": 'x + "!"',
    "bytes": 'strings.join(x, b"!")',
    "date": "x + 1",
    "timestamp": "x + duration{1h}",
    "duration": "x + duration{1h}",
    "[f64]": "x * 2.0",
}


def numpy_columns():
    yield from ((str(np.dtype(name)), np.array([1, 2], name)) for name in ["?", "i2", "i8", "u4", "u8", "f4", "f8"])
    yield "int64, masked", np.ma.MaskedArray([1, 2], [False, True])
    yield "strings (`StringDType` is refused)", np.array(["a", "b"])
    yield "objects that are `str`", np.array(["a", "b"], object)
    yield "datetime64[D]", np.array(DAYS, "M8[D]")
    yield "datetime64[s]", np.array(MOMENTS, "M8[s]")
    yield "timedelta64[s]", np.array(LENGTHS, "m8[s]")


def pandas_columns():
    pd = pytest.importorskip("pandas")
    for name in ["bool", "int16", "int64", "uint64", "float32", "float64"]:
        yield name, pd.Series([1, 2], dtype=name)
    yield "str", pd.Series(["a", "b"], dtype="str")
    yield "category", pd.Series(["a", "b"], dtype="category")
    yield "objects that are `date`", pd.Series(DAYS, dtype=object)
    yield "datetime64[us]", pd.Series(MOMENTS, dtype="datetime64[us]")
    yield f"datetime64[us, {ZONE}]", pd.Series(MOMENTS, dtype="datetime64[us]").dt.tz_localize(ZONE)
    yield "timedelta64[s]", pd.Series(LENGTHS, dtype="timedelta64[s]")
    for name in ["boolean", "Int16", "Int64", "UInt64", "Float64"]:
        yield name, pd.Series([1, 0]).astype(name)
    yield "string", pd.Series(["a", "b"], dtype="string")
    for of, values in [
        (pa.int16(), [1, 2]),
        (pa.int64(), [1, 2]),
        (pa.float64(), [1.5, 2.5]),
        (pa.string(), ["a", "b"]),
        (pa.binary(), [b"a", b"b"]),
        (pa.date32(), DAYS),
        (pa.timestamp("us", tz=ZONE), MOMENTS),
        (pa.list_(pa.float64()), LISTS),
    ]:
        yield f"{of}[pyarrow]", pd.Series(pd.array(pa.array(values, of), dtype=pd.ArrowDtype(of)))


def polars_columns():
    for of in [pl.Boolean, pl.Int16, pl.Int64, pl.UInt64, pl.Float64]:
        yield str(of), pl.Series([1, 2], dtype=of, strict=False)
    yield "String", pl.Series(["a", "b"])
    yield "Categorical", pl.Series(["a", "b"], dtype=pl.Categorical)
    yield "Binary", pl.Series([b"a", b"b"])
    yield "Date", pl.Series(DAYS)
    yield "Datetime('us')", pl.Series(MOMENTS, dtype=pl.Datetime("us"))
    yield f"Datetime('us', '{ZONE}')", pl.Series(MOMENTS, dtype=pl.Datetime("us")).dt.replace_time_zone(ZONE)
    yield "Duration('us')", pl.Series(LENGTHS)
    yield "List(Float64)", pl.Series(LISTS, dtype=pl.List(pl.Float64))


def arrow_columns():
    for of, values in [
        (pa.bool_(), [True, False]),
        (pa.int16(), [1, 2]),
        (pa.int64(), [1, 2]),
        (pa.uint64(), [1, 2]),
        (pa.float64(), [1.5, 2.5]),
        (pa.string(), ["a", "b"]),
        (pa.binary(), [b"a", b"b"]),
        (pa.date32(), DAYS),
        (pa.timestamp("s"), MOMENTS),
        (pa.timestamp("us", tz=ZONE), MOMENTS),
        (pa.duration("s"), LENGTHS),
        (pa.list_(pa.float64()), LISTS),
    ]:
        yield str(of), pa.array(values, of)
    yield "dictionary of string", pa.array(["a", "b"]).dictionary_encode()


def type_shown(made):
    """Returns the type of a column as its package writes it."""
    shown = str(made.type if isinstance(made, (pa.Array, pa.ChunkedArray)) else made.dtype)
    shown = shown.replace("large_", "").replace("dictionary<values=string, indices=int32, ordered=0>", "dictionary of string")
    for unit in ["us", "ns", "ms"]:
        shown = shown.replace(f"Datetime(time_unit='{unit}', time_zone=None)", f"Datetime('{unit}')")
        shown = shown.replace(f"Datetime(time_unit='{unit}', time_zone=", f"Datetime('{unit}', ").replace(f"Duration(time_unit='{unit}')", f"Duration('{unit}')")
    return shown + (", masked" if isinstance(made, np.ma.MaskedArray) else "")


def returns():
    """Returns the rows of the table: a column, its type in the model, and the types of three outputs: the input itself, an output that is computed from
    it, and a computed output that is missing in a row."""
    of_packages = {"NumPy": numpy_columns, "pandas": pandas_columns, "Polars": polars_columns, "pyarrow": arrow_columns}
    for package, columns in of_packages.items():
        for name, column in columns():
            qtype = cembra.compile("x")
            qtype(column)
            qtype = qtype.signatures[0]["inputs"]["x"]
            plain = qtype.replace("?", "")
            computed = COMPUTED[plain]
            outputs = {"same": "x", "computed": computed} | ({} if plain == "[f64]" else {"gap": f"if keep then {computed} else missing"})
            text = "input x\ninput keep: bool\n" + "\n".join(f"output {key} = {text}" for key, text in outputs.items())
            made = cembra.compile(text)(column, np.array([True, False]))
            shown = [type_shown(output) for output in made]
            assert [len(output) for output in made] == [2] * len(outputs)
            yield [package, name if "`" in name else f"`{name}`", f"`{qtype}`", *(f"`{one}`" for one in shown), *[""] * (3 - len(shown))]


def test_the_table_of_what_comes_back_is_what_comes_back():
    head = "| package | a column of | in the model | the input as an output | computed | computed, with gaps |\n|---|---|---|---|---|---|\n"
    table = head + "".join(f"| {' | '.join(row)} |\n" for row in returns())
    page = DOCS / "guide/python-frames.md"
    before, _, rest = page.read_text(encoding="utf-8").partition("<!-- table: returns -->\n")
    block, _, after = rest.partition("<!-- end -->")
    if os.environ.get("CEMBRA_REWRITE") == "1":
        page.write_text(f"{before}<!-- table: returns -->\n{table}<!-- end -->{after}", encoding="utf-8")
        return
    assert after, "the page has no block for the table"
    assert block == table, "write the table again: CEMBRA_REWRITE=1 pytest crates/python/tests/test_documents.py"
