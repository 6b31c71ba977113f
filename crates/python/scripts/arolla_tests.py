"""Runs the operator tests of a checkout of Arolla on cembra. Prints which tests passed, which failed, and which operators the other tests need.

    python crates/python/scripts/arolla_tests.py ../arolla
    python crates/python/scripts/arolla_tests.py ../arolla --only "math_.*" --eval cembra.arolla.eval_interpreted

The version of the checkout must be close to that of the installed package `arolla`, because its tests use the package's operators. The script also
needs `absl-py`. A test counts as unsupported if cembra raised `Unsupported` in it, even if the test caught the exception. A test that fails is run
again with `arolla.eval`, because the checkout may be newer than the package. Tests that fail there too are listed separately, and so are tests that
fail only because they expect another message of an error.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import importlib
import multiprocessing
import pathlib
import re
import sys
import time
import unittest

import arolla
import cembra.arolla

# What cembra lacked in the current test (operators, types, values), and the number of its evaluations; one test runs at a time.
unsupported: list[str] = []
evaluations = 0
evaluate = cembra.arolla.eval


def counted(expr, /, **leaf_values):
    """Evaluates an expression for Arolla's tests, and counts the evaluation."""
    global evaluations
    evaluations += 1
    try:
        return evaluate(expr, **leaf_values)
    except cembra.arolla.Unsupported as error:
        unsupported.append(error.what)
        raise
    except cembra.arolla.EvaluationError as error:
        if error.code == "arena-limit":
            unsupported.append("memory for what is missing in a sparse array")
        raise


def same(got, want):
    """Returns true if two values have the same type and are equal up to a relative error of 1e-5, where all NaNs are equal."""
    if got.fingerprint == want.fingerprint:
        return True
    if got.qtype != want.qtype:
        return False
    if arolla.arolla.is_namedtuple_qtype(want.qtype):
        names = arolla.arolla.types.get_namedtuple_field_names(want.qtype)
        return all(same(got[name], want[name]) for name in names)
    if arolla.arolla.is_tuple_qtype(want.qtype):
        return all(map(same, got, want))
    if want.qtype in (arolla.arolla.DENSE_ARRAY_EDGE, arolla.arolla.ARRAY_EDGE):
        return got.parent_size == want.parent_size and same(got.mapping(), want.mapping())
    try:
        arolla.arolla.testing.assert_qvalue_allclose(got, want, rtol=1e-5)
    except (AssertionError, TypeError):
        return False
    return True


def both(original):
    """Returns `original`, which is `arolla.eval`, with a check that cembra gives the same value for each expression."""

    def compared(expr, /, **leaf_values):
        want = original(expr, **leaf_values)
        if not isinstance(expr, arolla.arolla.abc.Expr):
            return want
        try:
            got = counted(expr, **leaf_values)
        except cembra.arolla.Unsupported:
            return want
        if not same(got, want):
            raise AssertionError(f"{expr} is {got} with cembra, {want} with Arolla")
        return want

    return compared


class Result(unittest.TestResult):
    """The tests of a run, grouped by their outcome."""

    def __init__(self):
        super().__init__()
        self.passed = 0
        self.needs = collections.Counter()
        self.failed = []
        self.words = []

    def startTest(self, test):
        super().startTest(test)
        unsupported.clear()
        self._subtest_failed = False

    def addSuccess(self, test):
        if unsupported:
            self.needs[unsupported[0]] += 1
        else:
            self.passed += 1

    def _failed(self, test, error):
        if unsupported:
            self.needs[unsupported[0]] += 1
            return
        said = str(error[1]).strip()
        first = (said.splitlines() or [""])[0]
        is_other_words = re.search("(does not match|not found in|Actual:) [\"']error\\[", said) is not None
        kept = self.words if is_other_words else self.failed
        kept.append((test, error[0].__name__, first[:200]))

    def addError(self, test, err):
        self._failed(test, err)

    def addFailure(self, test, err):
        self._failed(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._failed(subtest, err)


@dataclasses.dataclass
class Found:
    """The outcomes of the tests of one file."""

    tests: int = 0
    evaluations: int = 0
    passed: int = 0
    with_arolla: int = 0
    words: int = 0
    needs: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    failed: list = dataclasses.field(default_factory=list)


def run(file, options):
    """Runs the tests of one file in a process of its own, because some test modules replace the evaluation function for later modules."""
    global evaluate
    module, _, name = options.eval.rpartition(".")
    evaluate = getattr(importlib.import_module(module), name)
    # The tests are modules of the package `arolla`, but its wheel does not have them.
    arolla.__path__.append(str(options.checkout / "py/arolla"))
    from absl import flags

    importlib.import_module("arolla.operator_tests.backend_test_base")
    flags.FLAGS(["arolla_tests", f"--eval_fn={__name__}.counted"])
    original = arolla.arolla.eval
    if options.direct:
        arolla.arolla.eval = both(original)
    try:
        tests = importlib.import_module(f"arolla.operator_tests.{file}")
    except Exception as error:
        print(f"{file}: not loaded: {error}", file=sys.stderr)
        return Found(needs=collections.Counter([f"a newer package arolla: {type(error).__name__}"]))
    result = Result()
    unittest.defaultTestLoader.loadTestsFromModule(tests).run(result)
    print(f"{file}: {result.testsRun} tests, {len(result.failed)} failed", file=sys.stderr)
    evaluate = arolla.arolla.eval = original
    again = {}
    for test, *_ in result.failed:
        whole = getattr(test, "test_case", test)
        if whole.id() not in again:
            once = unittest.TestResult()
            whole.run(once)
            again[whole.id()] = once.wasSuccessful()
    failed = [(test.id(), *said) for test, *said in result.failed if again[getattr(test, "test_case", test).id()]]
    with_arolla = len(result.failed) - len(failed)
    return Found(result.testsRun, evaluations, result.passed, with_arolla, len(result.words), result.needs, failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkout", type=pathlib.Path, help="the folder of Arolla's repository")
    parser.add_argument("--only", default=".*", help="a regular expression for names of tests' files")
    parser.add_argument("--direct", action="store_true", help="what tests evaluate with arolla.eval is evaluated by both, and compared")
    parser.add_argument("--eval", default="cembra.arolla.eval", help="the function that evaluates")
    options = parser.parse_args()
    folder = options.checkout / "py/arolla/operator_tests"
    if not folder.is_dir():
        parser.error(f"{folder} is no folder")
    files = sorted(path.stem for path in folder.glob("*_test.py") if re.fullmatch(options.only, path.stem))
    began, all_found = time.monotonic(), []
    for file in files:
        with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            try:
                all_found.append(process.submit(run, file, options).result())
            except concurrent.futures.process.BrokenProcessPool as error:
                all_found.append(Found(failed=[(file, type(error).__name__, str(error))]))
    total = {field.name: sum(getattr(found, field.name) for found in all_found) for field in dataclasses.fields(Found)[:5]}
    needs = sum((found.needs for found in all_found), collections.Counter())
    failed = [of for found in all_found for of in found.failed]
    print(f"{len(files)} files, {total['tests']} tests, {total['evaluations']} evaluations, {time.monotonic() - began:.0f} s")
    print(f"passed       {total['passed']}")
    print(f"failed       {len(failed)}")
    print(f"with Arolla  {total['with_arolla']} (fail with arolla.eval too)")
    print(f"words        {total['words']} (the same error, said otherwise)")
    print(f"unsupported  {sum(needs.values())}")
    for what, count in needs.most_common():
        print(f"  {count:6}  {what}")
    for test, error, message in failed:
        print(f"FAILED {test}: {error}: {message}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
