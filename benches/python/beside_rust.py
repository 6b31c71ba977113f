"""Sessions and columns of the package beside those of the library, which use their memory again in both: nanoseconds a row, and ratios.

    cargo build --release --manifest-path benches/Cargo.toml
    python benches/python/beside_rust.py --versus target/release/versus

Programs take turns: some rounds of `versus`, then as many of the package, on data of the same distributions. The least of all turns is printed.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# One thread each, on the same processor.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np
import subjects
from peers import Cembra

import cembra

# The subject of `versus` that does what the package does.
SUBJECTS = {"B": ("batch", "native-batch"), "A": ("arrays", "cembra")}
WORKLOADS = [f"B{at}" for at in range(1, 6)] + [f"A{at}" for at in range(1, 9)]
# The names of the workloads there, where they are others.
NAMES = {"B4": "B4f64"}


def of_rust(versus, workload, rows, rounds):
    """The least nanoseconds a row of the library."""
    command, subject = SUBJECTS[workload[0]]
    workload = NAMES.get(workload, workload)
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "records.json"
        arguments = ["--workload", workload, "--rounds", str(rounds), "--most-rows", str(rows), "--json", str(file)]
        subprocess.run([versus, command, *arguments], check=True, stdout=subprocess.DEVNULL)
        metric = f"ns_per_row_1e{len(str(rows)) - 1}"
        records = json.loads(file.read_text())
    return min(one["min"] for one in records if one["subject"].startswith(subject) and one["metric"] == metric)


def data(workload, rows):
    """The inputs of a workload by their names."""
    rng = np.random.default_rng(2)
    if workload == "B2":
        a, b, c = (rng.uniform(low, high, rows) for low, high in [(0.5, 2.0), (-4.0, 4.0), (-1.0, 2.0)])
        return {"a": a.astype("f4"), "b": b, "c": c}
    if workload == "B3":
        values = (rng.uniform(-1.0, 4.0, rows).astype("f4") for _ in range(10))
        return {f"x{at}": np.ma.MaskedArray(value, rng.random(rows) < 0.3) for at, value in enumerate(values)}
    return subjects.data(workload, rows, rng)


def prepared(workload, rows):
    """A call of the package without arguments, whose outputs are in memory that was used before."""
    inputs = data(workload, rows)
    model = cembra.compile(subjects.text({"B2": "S2", "B3": "S3"}.get(workload, workload)))
    arguments = Cembra().take(inputs)
    if workload[0] == "A":
        session = model.session()
        return lambda: session(*arguments)
    made = model.run(dict(zip(inputs, arguments)))[0]
    made = made if isinstance(made, tuple) else (made,)
    out = dict(zip(model.outputs, made))
    named = dict(zip(inputs, arguments))
    return lambda: model.run(named, out=out)


def main():
    """Reads the command line, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--versus", required=True, help="the program of the library's benchmarks")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(f"cembra {cembra.__version__}, {given.rows} rows, Python {sys.version.split()[0]}\n")
    print("| workload | Rust, ns a row | Python | ratio |\n|---|---:|---:|---:|")
    for workload in given.workloads:
        call = prepared(workload, given.rows)
        call()
        rust = python = float("inf")
        for _ in range(given.turns):
            rust = min(rust, of_rust(given.versus, workload, given.rows, given.rounds))
            call()
            for _ in range(given.rounds):
                start = time.perf_counter()
                call()
                python = min(python, (time.perf_counter() - start) / given.rows * 1e9)
        print(f"| {workload} | {rust:.2f} | {python:.2f} | {python / rust:.2f} |", flush=True)


if __name__ == "__main__":
    main()
