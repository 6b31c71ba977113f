"""Ranks against threads: one product of tiled matrices by one process of two threads, by two and four ranks of one thread as threads of one process, and
by as many processes of each launcher of MPI. All take turns, and the least seconds of each count.

    cargo build --release -p cembra-mpi --example ranks
    python benches/python/ranks.py [--launcher PATH[=LIBRARY]].. [--turns 3] [--ranks target/release/examples/ranks]

A line has the matrices, then for each way the ratio of the seconds of one process of two threads to its own. Two ranks that are as fast have 1. Hashes of
all results are compared. Bytes are those that all ranks sent for a product: beside the least that the grid of ranks has to send for dense matrices, and
beside sending each tile to all ranks.
"""

import argparse
import os
import subprocess

MATRICES = [(4096, 256, 1.0), (8192, 128, 0.1)]


def run(command, environment):
    """Seconds, operations, bytes that were sent, the least bytes, all bytes, and the hash."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds, operations, sent, least, everything, digest = done.stdout.split()
    return float(seconds), float(operations), int(sent), int(least), int(everything), digest


def ways(program, launchers, matrices):
    """The commands, by name, with their environments."""
    n, tile, part = (str(number) for number in matrices)
    base = dict(os.environ)
    found = {"1 process": ([program, n, tile, part, "2"], base)}
    for ranks in (2, 4):
        found[f"{ranks} as threads"] = ([program, n, tile, part, "1", str(ranks)], base)
    for launcher in launchers:
        path, _, library = launcher.partition("=")
        environment = dict(base, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if library:
            environment["CEMBRA_MPI"] = library
        version = subprocess.run([path, "--version"], env=environment, capture_output=True, text=True).stdout
        is_open = "Open MPI" in version or "prterun" in version
        name = "Open MPI" if is_open else "MPICH"
        for ranks in (2, 4):
            command = [path, *(["--oversubscribe"] if is_open else []), "-n", str(ranks), program, n, tile, part, "1"]
            found[f"{ranks} by {name}"] = (command, environment)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="target/release/examples/ranks")
    parser.add_argument("--launcher", action="append", default=[])
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    for matrices in MATRICES:
        commands = ways(os.path.abspath(arguments.ranks), arguments.launcher, matrices)
        best, facts = {}, {}
        for _ in range(arguments.turns):
            for name, (command, environment) in commands.items():
                found = run(command, environment)
                best[name] = min(best.get(name, float("inf")), found[0])
                facts[name] = found
        one = best["1 process"]
        n, tile, part = matrices
        print(f"n = {n}, tiles of {tile}, {part:.0%} of them: {one:.3f} s, {facts['1 process'][1] / one / 1e9:.1f} GF/s")
        for name, (_, _, sent, least, everything, digest) in facts.items():
            line = f"  {name:14} {one / best[name]:5.2f}"
            if least:
                line += f"  sent {sent / least:.3f} of the grid's least, {sent / everything:.3f} of all to all"
            print(line, "" if digest == facts["1 process"][5] else "  ANOTHER HASH", flush=True)


if __name__ == "__main__":
    main()
