"""The blocks of the guide's chapters give what they show."""

import doctest
import pathlib

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("polars")

DOCS = pathlib.Path(__file__).parents[3] / "docs"


def blocks(chapter):
    text, found = chapter.read_text(), []
    for part in text.split("```python\n")[1:]:
        found.append(part.split("```")[0])
    return found


@pytest.mark.parametrize("chapter", ["guide/python.md", "guide/python-expressions.md", "guide/python-sessions.md", "from/arolla.md"])
def test_the_chapter_gives_what_it_shows(chapter):
    if chapter == "from/arolla.md":
        pytest.importorskip("arolla")
    parser, runner, known = doctest.DocTestParser(), doctest.DocTestRunner(), {}
    for at, block in enumerate(blocks(DOCS / chapter)):
        example = parser.get_doctest(block, known, f"block {at + 1}", chapter, 0)
        runner.run(example, clear_globs=False)
        known = example.globs
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 7
