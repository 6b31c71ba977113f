"""cembra beside NumPy, Numba, JAX, torch, numexpr, Polars, DuckDB and Arolla, on the same data in one run.

    python benches/python/peers.py
    python benches/python/peers.py --workloads B5 A3 --turns 7 --largest 1000000

Packages take turns, and the least time of the turns is printed. A package that is not installed is named, and left out. Results are compared with
NumPy's before anything is timed. Each package has its data in its own form before the clock runs, and its result stays in its own form.
"""

import argparse
import os
import platform
import sys
import time

# One thread each: the process may use one processor, and packages are told so. Both before they are imported.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import numpy as np
import subjects
from subjects import Groups

import cembra

SIZES = {
    **dict.fromkeys(["B1", "B4", "B5"], [1_000_000, 10_000_000]),
    **dict.fromkeys([f"A{at}" for at in range(1, 9)], [1_000, 100_000, 10_000_000]),
    "logistic": [10_000],
    "MLP": [256],
}
# How far a result may be from NumPy's, as a part of the largest of the results: sums are made in other orders, and f32 is coarser.
TOLERANCE = {"A7": 1e-5, "MLP": 1e-5}
# Workloads whose unit is one run, not one row.
STEPS = ("logistic", "MLP")
FIRST_ROWS = 1_000
# Results of Arolla become arrays of NumPy slowly: larger ones are not looked at.
MOST_COMPARED = 1_000_000
# A call that takes longer has two turns.
LONG = 1.0


class NumPy:
    """NumPy, and what is said of every package: how it takes inputs, what it runs, and how its result is read.

    Making one imports the package and runs something small, so that the first workload does not wait for its start.
    """

    name = "NumPy"

    def __init__(self):
        self.version = np.__version__

    def take(self, inputs):
        """The arguments of a call; a missing number is a NaN."""
        return [value.filled(np.nan) if isinstance(value, np.ma.MaskedArray) else value for value in inputs.values()]

    def build(self, workload, inputs):
        """What is called with the arguments; none if the package cannot express the workload."""
        return getattr(subjects, f"numpy_{workload.lower()}")

    def read(self, result, inputs):
        """The results as arrays of NumPy, NaN where one is missing."""
        return [np.asarray(one, "f8") for one in (result if isinstance(result, tuple) else (result,))]


class Cembra(NumPy):
    """Texts of cembra, on arrays of NumPy; masked ones where values are missing."""

    name = "cembra"

    def __init__(self):
        self.version = cembra.__version__
        cembra.compile("x + 1.0")(np.zeros(4))

    def take(self, inputs):
        return [edge(value) if isinstance(value, Groups) else value for value in inputs.values()]

    def build(self, workload, inputs):
        return cembra.compile(subjects.text(workload))

    def read(self, result, inputs):
        return [np.ma.filled(np.ma.asarray(one, "f8"), np.nan) for one in (result if isinstance(result, tuple) else (result,))]


def edge(groups):
    """The groups as an edge of cembra."""
    if groups.points is not None:
        return cembra.Edge.from_split_points(groups.points)
    return cembra.Edge.from_mapping(np.ma.MaskedArray(groups.ids, groups.ids < 0), groups.count)


class Numba(NumPy):
    """Loops under `numba.njit`, with neither `fastmath` nor `parallel`."""

    name = "Numba"

    def __init__(self):
        import numba

        self.version, self.compile = numba.__version__, numba.njit
        self.compile(lambda x: x + 1.0)(np.zeros(4))

    def take(self, inputs):
        made = []
        for value in super().take(inputs):
            if not isinstance(value, Groups):
                made.append(value)
            elif value.points is None:
                made += [value.ids, value.count]
            else:
                made.append(value.points)
        return made

    def build(self, workload, inputs):
        found = getattr(subjects, f"numba_{workload.lower()}", None)
        return found and self.compile(found)


class Jax(NumPy):
    """Functions under `jax.jit`, with 64 bits. A call ends when its result is there."""

    name = "JAX"

    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.version = jax, jax.__version__
        self.jax.jit(lambda x: x + 1.0)(np.zeros(4)).block_until_ready()

    def take(self, inputs):
        return [self.jax.device_put(value) for value in super().take(inputs)]

    def build(self, workload, inputs):
        function = getattr(subjects, f"jax_{workload.lower()}")

        def whole(*arguments):
            return function(*(one._replace(count=inputs["by"].count) if isinstance(one, Groups) else one for one in arguments))

        compiled = self.jax.jit(whole)
        return lambda *arguments: self.jax.block_until_ready(compiled(*arguments))


class Torch(NumPy):
    """Calls of torch, one by one, on tensors that share the memory of NumPy's arrays."""

    name = "torch"

    def __init__(self):
        import torch
        import torch_subjects

        torch.set_num_threads(1)
        self.torch, self.subjects, self.version = torch, torch_subjects, torch.__version__
        torch.zeros(4) + 1.0

    def take(self, inputs):
        def tensor(value):
            if isinstance(value, Groups):
                return value._replace(ids=tensor(value.ids), points=None if value.points is None else tensor(value.points))
            return self.torch.as_tensor(value)

        return [tensor(value) for value in super().take(inputs)]

    def build(self, workload, inputs):
        return getattr(self.subjects, workload.lower())

    def read(self, result, inputs):
        return [one.numpy().astype("f8") for one in (result if isinstance(result, tuple) else (result,))]


class NumExpr(NumPy):
    """Texts of numexpr."""

    name = "numexpr"

    def __init__(self):
        import numexpr

        self.version, self.evaluate = numexpr.__version__, numexpr.evaluate
        self.evaluate("x + 1.0", {"x": np.zeros(4)})

    def build(self, workload, inputs):
        text, names = subjects.NUMEXPR.get(workload), list(inputs)
        return text and (lambda *arguments: self.evaluate(text, dict(zip(names, arguments))))


class Polars(NumPy):
    """Expressions of Polars on a frame; a missing value is a null."""

    name = "Polars"

    def __init__(self):
        import polars

        self.version, self.package = polars.__version__, polars
        polars.DataFrame({"x": [1.0]}).select(polars.col("x") + 1.0)

    def take(self, inputs):
        return [self.package.from_arrow(table(inputs))]

    def build(self, workload, inputs):
        return None if workload in STEPS else subjects.polars_workload(workload)

    def read(self, result, inputs):
        return columns(result.to_arrow(), inputs)


class DuckDB(Polars):
    """Queries of DuckDB on a table in memory; the result is a table of Arrow."""

    name = "DuckDB"

    def __init__(self):
        import duckdb

        self.version = duckdb.__version__
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1").fetchall()
        self.connection.sql("SELECT 1").to_arrow_table()

    def take(self, inputs):
        self.connection.register("given", table(inputs))
        self.connection.execute("CREATE OR REPLACE TABLE rows AS SELECT * FROM given").fetchall()
        self.connection.unregister("given")
        return []

    def build(self, workload, inputs):
        query = subjects.DUCKDB.get(workload)
        return query and (lambda: self.connection.sql(query).to_arrow_table())

    def read(self, result, inputs):
        return columns(result, inputs)


def table(inputs):
    """The inputs with a value for each row as a table of Arrow, with the number of the row as `i`."""
    import pyarrow

    made = {}
    for name, value in inputs.items():
        if isinstance(value, Groups):
            made[name] = pyarrow.array(value.ids, mask=value.ids < 0)
        elif np.ndim(value) == 1:
            made[name] = pyarrow.array(np.ma.getdata(value), mask=np.ma.getmaskarray(value))
    return pyarrow.table(made | {"i": np.arange(len(next(iter(made.values()))))})


def columns(result, inputs):
    """The columns of a result in the order of rows or groups. A group without rows, which queries leave out, has a total and a count of 0."""
    found = {name: np.asarray(result.column(name).to_numpy(), "f8") for name in result.column_names}
    if "i" in found:
        order = np.argsort(found.pop("i"))
        return [column[order] for column in found.values()]
    if "by" not in found:
        return list(found.values())
    ids = found.pop("by")
    is_group, made = ~np.isnan(ids), []
    for name, column in found.items():
        every = np.full(inputs["by"].count, np.nan if name == "average" else 0.0)
        every[ids[is_group].astype(int)] = column[is_group]
        made.append(every)
    return made


class Arolla(NumPy):
    """Compiled expressions of Arolla on its dense arrays."""

    name = "Arolla"

    def __init__(self):
        import importlib.metadata

        from arolla import arolla

        self.version, self.arolla = importlib.metadata.version("arolla"), arolla
        self.eval = arolla.eval
        self.eval(arolla.L.x + 1.0, x=1.0)

    def take(self, inputs):
        return [self.value(value) for value in inputs.values()]

    def value(self, given):
        """One input as a value of Arolla."""
        L, M, dense = self.arolla.L, self.arolla.M, self.arolla.dense_array
        if isinstance(given, Groups) and given.points is not None:
            return self.eval(M.edge.from_split_points(L.x), x=dense(given.points))
        if isinstance(given, Groups):
            ids = self.eval(L.x & (L.x >= 0), x=dense(given.ids))
            return self.eval(M.edge.from_mapping(L.x, L.n), x=ids, n=self.arolla.int64(given.count))
        if isinstance(given, np.ma.MaskedArray):
            return self.eval(L.x & ~M.math.is_nan(L.x), x=dense(given.filled(np.nan)))
        return self.arolla.float32(float(given)) if np.ndim(given) == 0 else dense(given)

    def build(self, workload, inputs):
        expression = None if workload in STEPS else subjects.arolla_workload(workload)
        if expression is None:
            return None
        names, compiled = list(inputs), {}

        def call(*arguments):
            if not compiled:
                types = {name: value.qtype for name, value in zip(names, arguments)}
                compiled["it"] = self.arolla.abc.CompiledExpr(expression, types)
            return compiled["it"](*arguments)

        return call

    def read(self, result, inputs):
        parts = result if result.qtype.name.startswith("tuple") else (result,)
        return [np.array([np.nan if one is None else one for one in np.atleast_1d(self.listed(part))], "f8") for part in parts]

    def listed(self, value):
        """The elements of a result, or the result itself."""
        return np.array(value.py_value(), dtype=object)


PACKAGES = [Cembra, NumPy, Numba, Jax, Torch, NumExpr, Polars, DuckDB, Arolla]


def installed():
    """The packages that there are; the others are named."""
    found = []
    for package in PACKAGES:
        try:
            found.append(package())
        except ImportError as error:
            print(f"{package.name} is left out: {error}")
    print()
    return found


def compare(workload, package, found, expected):
    """Fails unless the results are those of NumPy."""
    assert len(found) == len(expected), (workload, package.name, len(found))
    for one, wanted in zip(found, expected):
        one, wanted = np.squeeze(one), np.squeeze(wanted)
        assert one.shape == wanted.shape, (workload, package.name, one.shape, wanted.shape)
        allowed = TOLERANCE.get(workload, 1e-9) * max(1.0, np.nanmax(np.abs(wanted)))
        np.testing.assert_allclose(one, wanted, rtol=0.0, atol=allowed, err_msg=f"{workload}, {package.name}")


def seconds(call, arguments, count):
    """The seconds of one of some calls."""
    start = time.perf_counter()
    for _ in range(count):
        call(*arguments)
    return (time.perf_counter() - start) / count


def first_results(workload, packages):
    """Seconds from nothing to the first result on few rows, for each package that has the workload."""
    rows = min(FIRST_ROWS, *SIZES[workload])
    inputs = subjects.data(workload, rows, np.random.default_rng(1))
    found = {}
    for package in packages:
        if not package.build(workload, inputs):
            continue
        arguments = package.take(inputs)
        start = time.perf_counter()
        package.build(workload, inputs)(*arguments)
        found[package.name] = time.perf_counter() - start
    return found


def measure(workload, rows, packages, turns):
    """The least seconds of a call for each package that has the workload, packages taking turns."""
    inputs = subjects.data(workload, rows, np.random.default_rng(2))
    expected, ready = None, []
    for package in [*(one for one in packages if one.name == "NumPy"), *(one for one in packages if one.name != "NumPy")]:
        call = package.build(workload, inputs)
        if not call:
            continue
        arguments = package.take(inputs)
        result = call(*arguments)
        if rows <= MOST_COMPARED or package.name != "Arolla":
            found = package.read(result, inputs)
            expected = found if expected is None else expected
            compare(workload, package, found, expected)
        del result
        once = seconds(call, arguments, 1)
        ready.append((package.name, call, arguments, max(1, int(0.02 / once)), 2 if once > LONG else turns))
    times = {}
    for turn in range(turns):
        for name, call, arguments, count, most in ready:
            if turn < most:
                times[name] = min(times.get(name, float("inf")), seconds(call, arguments, count))
    return times


def written(value):
    """A number with three digits that say something."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def print_table(title, lines, packages):
    """A table of Markdown: a line for each workload, a column for each package, the least of a line bold."""
    names = [package.name for package in packages]
    print(f"| {title} | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for label, values in lines:
        least = min(values.values())
        cells = [written(values[name]) if name in values else "" for name in names]
        bold = [f"**{cell}**" if values.get(name) == least else cell for name, cell in zip(names, cells)]
        print(f"| {label} | {' | '.join(bold)} |")
    print()


def main():
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--largest", type=int, default=10_000_000, help="sizes above it are left out")
    given = parser.parse_args()
    packages = installed()
    print(f"Python {platform.python_version()}, " + ", ".join(f"{package.name} {package.version}" for package in packages) + "\n")
    first, rows_of, steps = [], [], []
    for workload in given.workloads:
        print(f"{workload} ..", file=sys.stderr)
        first.append((workload, {name: 1e3 * value for name, value in first_results(workload, packages).items()}))
        for rows in (rows for rows in SIZES[workload] if rows <= given.largest):
            found = measure(workload, rows, packages, given.turns)
            if workload in STEPS:
                steps.append((workload, {name: 1e6 * value for name, value in found.items()}))
            else:
                rows_of.append((f"{workload}, {rows:,} rows", {name: 1e9 * value / rows for name, value in found.items()}))
    for title, lines in [("ns a row", rows_of), ("µs a step", steps), ("ms to the first result", first)]:
        if lines:
            print_table(title, lines, packages)


if __name__ == "__main__":
    main()
