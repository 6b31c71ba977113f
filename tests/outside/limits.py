"""Limits times doors: the peak of resident memory, and the time, of hostile models and data, each in a process of its own.

A case has a limit of bytes (`array_bytes`, `--most-bytes`), of seconds (`compile_time`, a deadline), or both. It fails if its process does not end by itself
with status 0 or 1, or if the peak of its memory is more than 1.25 times the limit of bytes and 200 MB. It is late if it takes more than its limit of seconds
and one second, on the wall and of processors: builds without all optimisation may be. After ten times as long it is ended. A case without a limit of bytes
may have 1 GB; one without a limit of seconds may take 20 seconds.

How to run it, with a command that is built in release, and a Python that has cembra, NumPy and pyarrow:

    target/doors/bin/python tests/outside/limits.py target/release/cembra [LIBRARY OF THE C INTERFACE]
"""

import ctypes
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

MEGABYTE = 1_000_000
# The machine survives a case that fails.
MOST_ADDRESSES = 14_000 * MEGABYTE
GROUPS = 268_435_456


def constants():
    """Models of a few bytes: constant operators on edges of many groups, or of one long group."""
    mapping, sizes = f"edge.from_mapping([0, 1], {GROUPS})", f"edge.from_sizes([{GROUPS}])"
    for name in ("sum", "max", "mean", "median", "prod"):
        yield f"math.{name}([1.0, 2.0], into={mapping})"
    yield f'strings.agg_join(["a", "b"], into={mapping})'
    yield f"math.cum_sum([1.0, 2.0], over={mapping})"
    yield f"array.count([1.0, 2.0], into={mapping})"
    yield f"edge.mapping({sizes})"
    yield f"edge.sizes({mapping})"
    yield f"array.expand([1.0], over={sizes})"


def doubled_maps(steps):
    lines = ["input l: [{x: i64}]", "let l0 = l"]
    lines += [f"let l{i} = map(fn(v) = {{a: v, b: v}}, l{i - 1})" for i in range(1, steps)]
    return "\n".join([*lines, f"output n = array.size(l{steps - 1})"])


def wide_map(fields):
    names = ", ".join(f"f{i}: i64" for i in range(fields))
    return f"input l: [{{{names}}}]\noutput n = array.size(map(fn(i) = i, l))"


def gradients(count):
    names = [f"x{i}" for i in range(count)]
    head = "input " + ", ".join(names) + ": tensor[f64, 1]"
    each = [f"output g{i} = tensor.grad(s, {name})" for i, name in enumerate(names)]
    return "\n".join([head, "let s = tensor.sum(" + " * ".join(names) + ")", *each])


def failing_tests(count):
    tests = (f'test "t{i}" {{ x = "{"a" * 1000}" }} => {{ y = "b" }}' for i in range(count))
    return "\n".join(["input x: text; output y = x", *tests])


def wide_struct(fields, scalar="i64"):
    return "input l: {" + ", ".join(f"f{i}: {scalar}?" for i in range(fields)) + "}\noutput n = l.f7\n"


def wide_table(fields, rows):
    names = ", ".join(f"f{i}: f64" for i in range(fields))
    lines = [",".join(["k", *(f"f{i}" for i in range(fields))]), *(",".join([str(k), *["1"] * fields]) for k in range(rows))]
    return f'table t: i64 -> {{{names}}} = "t.csv"\ninput k: i64\noutput x = lookup(k, t).f1 ?? 0.0\n', "\n".join(lines)


class Bench:
    """The processes, the folder with their files, and how many failed."""

    def __init__(self, command, library, folder):
        self.command, self.library, self.folder = command, library, pathlib.Path(folder)
        self.files = self.failed = 0

    def file(self, content, ending=".cem"):
        self.files += 1
        path = self.folder / f"f{self.files}{ending}"
        path.write_text(content)
        return str(path)

    def run(self, name, door, arguments, most_bytes=None, seconds=None):
        """Runs a process to its end, and prints its line of the table."""
        bytes_allowed = 1_000 * MEGABYTE if most_bytes is None else 1.25 * most_bytes + 200 * MEGABYTE
        seconds_allowed = 20.0 if seconds is None else seconds + 1.0
        begun = time.monotonic()
        child = subprocess.Popen(
            [str(one) for one in arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES)),
        )
        hang = threading.Timer(10 * seconds_allowed, child.kill)
        hang.start()
        said = child.stderr.read().decode(errors="replace")
        _, status, used = os.wait4(child.pid, 0)
        hang.cancel()
        took = min(time.monotonic() - begun, used.ru_utime + used.ru_stime)
        peak, code = used.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)
        passes = code in (0, 1) and "panic" not in said.lower() and peak <= bytes_allowed
        self.failed += not passes
        limit = " ".join([*([f"{most_bytes // MEGABYTE} MB"] if most_bytes else []), *([f"{seconds} s"] if seconds else [])])
        outcome = next((line for line in said.splitlines() if "error" in line.lower()), "value" if code == 0 else said[-60:])
        cells = [name[:60], door, limit or "default", f"{peak / MEGABYTE:.0f}", f"{took:.1f}", str(code), outcome[:70], "FAILS" if not passes else "late" if took > seconds_allowed else ""]
        print("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |", flush=True)

    def on_command(self, name, verb, model, *more, limits=None, most_bytes=None, seconds=None):
        sets = [f"--set-limit={key}={value}" for key, value in (limits or {}).items()]
        self.run(name, verb, [self.command, verb, model, *sets, *more], most_bytes, seconds)

    def on_python(self, name, code, *arguments, most_bytes=None, seconds=None):
        self.run(name, "Python", [sys.executable, "-c", code, *arguments], most_bytes, seconds)

    def on_c(self, name, model, limits, most_bytes=None, seconds=None):
        if self.library is not None:
            sets = [f"{key}={value}" for key, value in limits.items()]
            self.run(name, "C", [sys.executable, __file__, "--c", self.library, model, *sets], most_bytes, seconds)


COMPILE = """
import sys, cembra
limits = {name: float(value) if "." in value else int(value) for name, value in (set.split("=") for set in sys.argv[2:])}
try:
    model = cembra.compile(open(sys.argv[1]).read(), limits=limits)
    if not model.inputs and "array_bytes" in limits: model()
except cembra.Error as error:
    sys.exit(f"error: {error}"[:200])
"""

DICTIONARY = """
import sys, cembra, numpy as np, pyarrow as pa
rows, length, limit, door = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "i4")), pa.array(["x" * length]))
try:
    model = cembra.compile("input x: text; output y = strings.upper(x)", limits={"array_bytes": limit})
    if door == "run": model.run({"x": column})
    elif door == "call": model(x=column)
    else: model.table(pa.table({"x": column}))
except (cembra.Error, MemoryError) as error:
    sys.exit(f"error: {error}"[:200])
"""

PRODUCT = 'tile i, j, k = 1\ninput a: tiled[f64, "i,k"], b: tiled[f64, "k,j"]\nc("i,j") = a("i,k") * b("k,j")\noutput s = tensor.sum(c)\n'
SUM = 'tile i, j = 1\ninput a: tiled[f64, "i,j"]\nc("i,j") = a("i,j") + a("i,j")\noutput s = tensor.sum(c)\n'


def models(bench):
    """Models of a few bytes, on every door that compiles."""
    for limit in (64 * MEGABYTE, 512 * MEGABYTE):
        limits = {"array_bytes": limit}
        for text in constants():
            model = bench.file(text)
            for verb in ("check", "explain", "eval"):
                bench.on_command(text, verb, model, limits=limits, most_bytes=limit)
            bench.on_python(text, COMPILE, model, f"array_bytes={limit}", most_bytes=limit)
            bench.on_c(text, model, limits, most_bytes=limit)
    many = "\n".join(f"output y{i} = math.sum([1.0, {i}.0], into=edge.from_mapping([0, 1], 30000000))" for i in range(60))
    for name, text in (("60 sums into 3e7 groups", many), ("15 doubled maps", doubled_maps(15)), ("18 doubled maps", doubled_maps(18)),
                       ("a map over 8,000 fields", wide_map(8_000)), ("a map over 30,000 fields", wide_map(30_000)),
                       ("5,000 gradients", gradients(5_000))):
        model = bench.file(text)
        for seconds in (1, 3):
            limits = {"compile_time": seconds}
            bench.on_command(name, "check", model, limits=limits, seconds=seconds)
            bench.on_python(name, COMPILE, model, f"compile_time={seconds}", seconds=seconds)
            bench.on_c(name, model, limits, seconds=seconds)
    model, table = wide_table(100_000, 2)
    (bench.folder / "t.csv").write_text(table)
    bench.on_command("a table of 100,000 fields", "check", bench.file(model), limits={"compile_time": 1}, seconds=1)
    for count in (1_000, 4_000, 10_000):
        bench.on_command(f"{count} failing tests", "test", bench.file(failing_tests(count)), "--time-limit=1", seconds=1)


def data(bench):
    """Rows of files that become more than they are."""
    for limit in (64 * MEGABYTE, 256 * MEGABYTE):
        limits = {"array_bytes": limit}
        for fields, scalar in ((20_000, "i64"), (2_000, "text"), (2_000, "i64")):
            model = bench.file(wide_struct(fields, scalar))
            rows = bench.file('{"l": {}}\n' * 60_000, ".jsonl")
            array = bench.file("[" + ",".join(['{"l": {}}'] * 60_000) + "]", ".json")
            name = f"60,000 rows without {fields} fields of {scalar}"
            for file in (rows, array):
                bench.on_command(name, "eval", model, file, "--time-limit=2", limits=limits, most_bytes=limit, seconds=2)
        model = bench.file("input l: {" + ", ".join(f"f{i}: text?" for i in range(2_000)) + "}?\noutput n = l.f7\n")
        rows = bench.file('{"l": null}\n' * 60_000, ".jsonl")
        bench.on_command("60,000 missing structs", "eval", model, rows, "--time-limit=2", limits=limits, most_bytes=limit, seconds=2)
        model = bench.file("\n".join(f"input c{i}: f64?" for i in range(20_000)) + "\noutput n = c7\n")
        rows = bench.file("c7\n" + "1\n" * 200_000, ".csv")
        bench.on_command("200,000 rows of 20,000 inputs", "eval", model, rows, "--time-limit=2", limits=limits, most_bytes=limit, seconds=2)
        for count, length in ((10_000, 100_000), (100_000, 1_000_000), (1_000_000, 1_000)):
            for door in ("run", "call", "table"):
                name = f"{door}: {count} rows of one text of {length}"
                bench.on_python(name, DICTIONARY, count, length, limit, door, most_bytes=limit)


def tiles(bench):
    """Plans of tiles."""
    product, added = bench.file(PRODUCT), bench.file(SUM)
    header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2000, 2000), }"
    npy = bench.folder / "A.npy"
    npy.write_bytes(b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117).encode() + b"\n" + b"\0\0\0\0\0\0\xf0\x3f" * (2000 * 2000))
    for megabytes in (100, 500):
        most = {"most_bytes": megabytes * MEGABYTE}
        for extent in (1_000, 3_000, 10_000, 1_000_000):
            extents = [f"--extents={label}={extent}" for label in "ijk"]
            bench.on_command(f"product of {extent} x {extent} tiles", "explain", product, *extents, f"--most-bytes={megabytes}M", **most)
        sparse = [f"--extents={label}=10000" for label in "ijk"] + ["--fill=a=1e-9", "--fill=b=1e-9"]
        bench.on_command("product, almost empty", "explain", product, *sparse, f"--most-bytes={megabytes}M", **most)
        bench.on_command("product of 2,000", "eval", product, f"--input=a={npy}", f"--input=b={npy}", f"--most-bytes={megabytes}M", **most)
        bench.on_command("sum of 2,000", "eval", added, f"--input=a={npy}", f"--most-bytes={megabytes}M", **most)


def on_c(library, model, sets):
    """Compiles a model by the C interface. Evaluates it if it has no inputs, and its arrays have a limit."""
    cembra = ctypes.CDLL(library)

    class Text(ctypes.Structure):
        _fields_ = [("data", ctypes.c_char_p), ("len", ctypes.c_size_t)]

    pointer = ctypes.c_void_p
    for name in ("cembra_options_new", "cembra_options_set_limit", "cembra_compile", "cembra_session_new", "cembra_session_evaluate"):
        getattr(cembra, name).restype = pointer
    cembra.cembra_error_message.restype, cembra.cembra_program_input_count.restype = Text, ctypes.c_size_t
    cembra.cembra_program_output_count.restype = ctypes.c_size_t

    def check(error):
        if error is not None:
            message = cembra.cembra_error_message(pointer(error))
            sys.exit("error: " + message.data[: message.len].decode()[:200])

    def text(of):
        return Text(of.encode(), len(of.encode()))

    options = pointer(cembra.cembra_options_new())
    for name, value in (one.split("=") for one in sets):
        check(cembra.cembra_options_set_limit(options, text(name), ctypes.c_uint64(int(value))))
    program, session = pointer(), pointer()
    check(cembra.cembra_compile(text(pathlib.Path(model).read_text()), options, ctypes.byref(program)))
    if cembra.cembra_program_input_count(program) == 0 and any(one.startswith("array_bytes=") for one in sets):
        check(cembra.cembra_session_new(program, ctypes.byref(session)))
        outputs = cembra.cembra_program_output_count(program)
        values = (ctypes.c_uint64 * (3 * outputs))()
        check(cembra.cembra_session_evaluate(session, None, ctypes.c_size_t(0), values, ctypes.c_size_t(outputs)))


def main():
    if sys.argv[1] == "--c":
        return on_c(sys.argv[2], sys.argv[3], sys.argv[4:])
    library = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    print("| case | door | limit | MB | s | status | outcome | |\n|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(pathlib.Path(sys.argv[1]).resolve(), library, folder)
        models(bench)
        data(bench)
        tiles(bench)
    if bench.failed:
        sys.exit(f"{bench.failed} cases are beyond their limits")


if __name__ == "__main__":
    main()
