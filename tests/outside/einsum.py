"""Runs tests of other einsums on cembra: those of NumPy and of opt_einsum, as they are installed.

    python -m venv outside && outside/bin/pip install numpy opt_einsum pytest hypothesis
    cargo build --workspace --bin einsum
    outside/bin/python tests/outside/einsum.py numpy target/debug/einsum
    outside/bin/python tests/outside/einsum.py opt_einsum target/debug/einsum

`numpy.einsum` is replaced before the suite is imported; so is `opt_einsum.contract`, which then asks for all of a product at once,
while what opt_einsum keeps to itself, its expressions above all, asks for two factors at a time. Every product goes to cembra in each way
that it has (node by node, planned, and as one product of two), and each answer is compared with NumPy's own. What cembra has no elements
for is passed on to NumPy, and counted by its reason. Nothing of the suites is in this repository.
"""

import collections
import ctypes
import json
import subprocess
import sys

import numpy as np
import pytest

own_einsum = np.einsum
own_contract = None

# How far an answer may be from NumPy's, of the largest element: orders of sums differ.
TYPES = {
    "i32": (">i4", 0.0),
    "i64": (">i8", 0.0),
    "f16": (">f2", 2e-3),
    "f32": (">f4", 1e-4),
    "f64": (">f8", 1e-10),
}
NAMES = {np.dtype(dtype).newbyteorder("="): name for name, (dtype, _) in TYPES.items()}
COUNTS = collections.Counter()
PASSED_ON = collections.Counter()
WRONG = []

# Tests that ask where a result lies in NumPy's memory, or in which order: cembra's answers are compared, but they get NumPy's own.
BESIDE = {"test_einsum_views", "test_output_order"}
is_beside = False

# Tests that are about something else than what comes of a product.
SKIPPED = {
    "test_einsum_object_errors": "objects of Python as elements",
    "test_object_loop": "objects of Python as elements",
    "test_einsum_sorting_behavior": "calls einsum_path alone",
    "test_einsum_errors[einsum_path-True]": "calls einsum_path alone",
    "test_einsum_errors[einsum_path-False]": "calls einsum_path alone",
    "test_printing": "opt_einsum's own description of a path",
}
SKIPPED_CLASSES = {"TestEinsumPath": "calls einsum_path alone"}


class PassOn(Exception):
    """What cembra does not do, and why."""


class Cembra:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, spec, arrays):
        request = {"spec": spec, "operands": [encoded(array) for array in arrays]}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"cembra ended at {spec} of {[array.shape for array in arrays]}")
        return json.loads(line)


def encoded(array):
    """An array as the memory that it sees, and the layout under which it does."""
    width = array.itemsize
    if array.size and all(stride % width == 0 for stride in array.strides):
        reach = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
        low = sum(min(distance, 0) for distance in reach)
        high = sum(max(distance, 0) for distance in reach) + width
        memory = ctypes.string_at(array.ctypes.data + low, high - low)
        strides, offset = [stride // width for stride in array.strides], -low // width
    else:
        array = np.ascontiguousarray(array)
        memory, strides, offset = array.tobytes(), [stride // width for stride in array.strides], 0
        if not array.size:
            strides = [0] * array.ndim
    elements = np.frombuffer(memory, dtype=array.dtype)
    digits = elements.astype(array.dtype.newbyteorder(">")).tobytes().hex()
    return {"dtype": NAMES[array.dtype], "shape": array.shape, "strides": strides, "offset": offset, "hex": digits}


def decoded(made):
    dtype, _ = TYPES[made["dtype"]]
    elements = np.frombuffer(bytes.fromhex(made["hex"]), dtype=dtype)
    return elements.reshape(made["shape"]).astype(np.dtype(dtype).newbyteorder("="))


def text_of_lists(arguments):
    """Operands and lists of labels in turns, as NumPy has them too, with a text of labels instead."""
    lists = list(arguments[1::2])
    operands = list(arguments[: len(lists) * 2 : 2])
    output = arguments[-1] if len(arguments) % 2 else None

    def letters(labels):
        made = ""
        for label in labels:
            if label is Ellipsis:
                made += "..."
                continue
            label = label.__index__()
            if not 0 <= label < 52:
                raise ValueError("a label that is no number from 0 to 51")
            made += chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)
        return made

    spec = ",".join(letters(labels) for labels in lists)
    return (spec if output is None else f"{spec}->{letters(output)}"), operands


def converted(operands, dtype, casting):
    """The operands as arrays of the one type that NumPy computes with."""
    arrays = [np.asanyarray(operand) for operand in operands]
    if not arrays:
        raise ValueError("no operands")
    for array in arrays:
        if array.dtype == object and array.ndim == 0 and array[()] is None:
            raise TypeError("an operand that is no array")
    common = np.dtype(dtype) if dtype is not None else np.result_type(*(array.dtype for array in arrays))
    if common not in NAMES:
        raise PassOn(f"elements of type {common}")
    for array in arrays:
        if not np.can_cast(array.dtype, common, casting):
            raise TypeError(f"no cast of {array.dtype} to {common} of the kind {casting!r}")
    return [array.astype(common, copy=False) for array in arrays]


def product(cembra, spec, operands, dtype, casting):
    """What cembra makes of a product, compared with what NumPy makes of it."""
    arrays = converted(operands, dtype, casting)
    answer = cembra.ask(spec, arrays)
    if "error" in answer:
        COUNTS["refused"] += 1
        try:
            own_einsum(spec, *arrays)
        except ValueError:
            pass
        else:
            if spec.isascii():
                WRONG.append(f"{spec} of {[array.shape for array in arrays]}: {answer['message']}")
        # NumPy's tests look for names in quotation marks.
        raise ValueError(answer["message"].replace("`", "'"))
    COUNTS["products"] += 1
    plain = spec
    if not spec.isascii():
        # NumPy has letters of ASCII alone.
        known = {}
        for letter in sorted(set(spec) - set(",->. ")):
            known[letter] = chr(ord("a") + len(known))
        plain = "".join(known.get(letter, letter) for letter in spec)
    expected = np.asarray(own_einsum(plain, *arrays, optimize=True))
    scale = np.asarray(own_einsum(plain, *(np.abs(array) for array in arrays), optimize=True))
    for way, made in answer["made"].items():
        COUNTS[way] += 1
        found = decoded(made)
        _, tolerance = TYPES[made["dtype"]]
        fits = found.dtype == expected.dtype and found.shape == expected.shape
        if not fits or not (np.abs(found - expected) <= tolerance * scale).all():
            WRONG.append(f"{spec} of {[array.shape for array in arrays]}, {way}: {found}, not {expected}")
    ways = answer["made"]
    return decoded(ways.get("plan"))


def answered(cembra, passed_on, arguments, place, dtype, casting, order):
    out, into = place
    if not arguments:
        raise ValueError("no operands")
    if isinstance(arguments[0], str):
        spec, operands = arguments[0], arguments[1:]
    elif len(arguments) == 1 or not hasattr(arguments[1], "__iter__"):
        raise TypeError("neither a text of labels nor lists of them")
    else:
        spec, operands = text_of_lists(arguments)
    if out is not None and not isinstance(out, np.ndarray):
        raise TypeError("out is no array")
    if order not in ("K", "A", "C", "F", "k", "a", "c", "f"):
        raise ValueError("an order that there is not")
    try:
        np.can_cast("i4", "i8", casting)
        made = product(cembra, spec, operands, dtype, casting)
    except PassOn as reason:
        PASSED_ON[str(reason)] += 1
        return passed_on()
    if is_beside:
        COUNTS["compared only"] += 1
        return passed_on()
    if out is None:
        return made if made.shape else made[()]
    if out.shape != made.shape:
        raise ValueError("out is of another shape")
    np.copyto(out, made, casting=into)
    return out


def replace(cembra):
    def einsum(*arguments, out=None, optimize=False, dtype=None, casting="safe", order="K"):
        if isinstance(optimize, (list, tuple)) and optimize and not isinstance(optimize[0], str):
            raise TypeError("a path that is none")
        keywords = {"out": out, "optimize": optimize, "casting": casting, "order": order}
        if dtype is not None:
            keywords["dtype"] = dtype
        passed_on = lambda: own_einsum(*arguments, **keywords)
        # Where NumPy looks for an order of products it writes to `out` whatever the types.
        into = "unsafe" if optimize else casting
        return answered(cembra, passed_on, arguments, (out, into), dtype, casting, order)

    def contract(
        *arguments,
        out=None,
        optimize=True,
        memory_limit=None,
        backend="auto",
        use_blas=True,
        dtype=None,
        casting="safe",
        order="K",
    ):
        from opt_einsum.parser import convert_interleaved_input

        asked = arguments
        if arguments and not isinstance(arguments[0], str):
            # Its lists may have any labels.
            spec, operands = convert_interleaved_input(list(arguments))
            asked = (spec, *operands)
        passed_on = lambda: own_contract(*arguments, out=out)
        return answered(cembra, passed_on, asked, (out, casting), dtype, casting, order)

    return einsum, contract


class Names:
    """What is done with tests by their names."""

    def pytest_runtest_setup(self, item):
        global is_beside
        is_beside = item.name.split("[")[0] in BESIDE

    def pytest_collection_modifyitems(self, items):
        for item in items:
            names = (item.name, item.name.split("[")[0])
            reason = next((SKIPPED[name] for name in names if name in SKIPPED), None)
            if item.cls is not None:
                reason = reason or SKIPPED_CLASSES.get(item.cls.__name__)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


def main():
    global own_contract
    suite, program = sys.argv[1], sys.argv[2]
    einsum, contract = replace(Cembra(program))
    np.einsum = einsum
    if suite == "numpy":
        modules = ["numpy._core.tests.test_einsum"]
    else:
        import opt_einsum

        own_contract = opt_einsum.contract
        opt_einsum.contract = contract
        names = ["test_contract", "test_edge_cases", "test_input", "test_blas"]
        modules = [f"opt_einsum.tests.{name}" for name in names]
    status = pytest.main(["-q", "-rs", "-p", "no:cacheprovider", "--pyargs", *modules, *sys.argv[3:]], plugins=[Names()])
    print("asked of cembra:", ", ".join(f"{count} {what}" for what, count in sorted(COUNTS.items())))
    for reason, count in sorted(PASSED_ON.items()):
        print(f"passed on to NumPy: {count} with {reason}")
    for wrong in WRONG:
        print("differs:", wrong)
    return int(status) or int(bool(WRONG))


if __name__ == "__main__":
    sys.exit(main())
