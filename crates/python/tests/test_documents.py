"""The blocks of the guide's chapter give what they show."""

import doctest
import pathlib

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("polars")

CHAPTER = pathlib.Path(__file__).parents[3] / "docs/guide/python.md"


def blocks():
    text, found = CHAPTER.read_text(), []
    for part in text.split("```python\n")[1:]:
        found.append(part.split("```")[0])
    return found


def test_the_chapter_gives_what_it_shows():
    parser, runner, known = doctest.DocTestParser(), doctest.DocTestRunner(), {}
    for at, block in enumerate(blocks()):
        example = parser.get_doctest(block, known, f"block {at + 1}", str(CHAPTER), 0)
        runner.run(example, clear_globs=False)
        known = example.globs
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 15
