"""A product of two matrices of which a share of the tiles is present, at random: cembra beside a loop of NumPy over tiles, SciPy's BSR, and DBCSR
where that and MPI are installed (Debian: `libdbcsr-dev`, `libopenmpi-dev`, `libopenblas-dev`, `gfortran`). Each draws its own tiles of the same share,
so billions of operations a second are compared, by the clock.

    cargo build --release -p cembra-tiles --example rates
    python benches/python/tiles.py [N [SHARE]]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TURNS = 3


def by_numpy(n, tile, share, threads):
    import numpy as np

    random = np.random.default_rng(1)
    count = n // tile
    present = random.random((2, count, count)) < share
    a, b = ({(i, j): random.random((tile, tile)) for i, j in zip(*np.nonzero(one))} for one in present)
    columns = [np.nonzero(present[1][k])[0] for k in range(count)]
    least, products = float("inf"), 0
    for _ in range(TURNS):
        start, c, products = time.perf_counter(), {}, 0
        for i, k in a:
            for j in columns[k]:
                products += 1
                if (i, j) in c:
                    c[i, j] += a[i, k] @ b[k, j]
                else:
                    c[i, j] = a[i, k] @ b[k, j]
        least = min(least, time.perf_counter() - start)
    return products, least


def by_scipy(n, tile, share, threads):
    import numpy as np
    from scipy import sparse

    random = np.random.default_rng(1)
    count = n // tile

    def matrix():
        present = random.random((count, count)) < share
        starts = np.concatenate([[0], present.sum(axis=1).cumsum()])
        tiles = random.random((int(present.sum()), tile, tile))
        return present, sparse.bsr_matrix((tiles, np.nonzero(present)[1], starts), shape=(n, n))

    (left, a), (right, b) = matrix(), matrix()
    products = int((left.astype(np.int64) @ right.astype(np.int64)).sum())
    least = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        a @ b
        least = min(least, time.perf_counter() - start)
    return products, least


def of_program(command, threads):
    """The words that a program prints."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    command = [str(part) for part in command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()


def by_cembra(n, tile, share, threads):
    program = ROOT / "target/release/examples/rates"
    products, seconds = of_program([program, "alone", n, tile, share, threads, TURNS], threads)
    return int(products), float(seconds)


def compiled(source, folder):
    """A program that calls DBCSR, or nothing where it cannot be compiled."""
    if not shutil.which("mpicxx"):
        return None
    program, source = Path(folder) / Path(source).stem, ROOT / "benches/python" / source
    libraries = ["-ldbcsr_c", "-ldbcsr", "-lmpi_mpifh", "-lmpi_usempif08", "-lgfortran", "-lgomp", "-lopenblas"]
    made = subprocess.run(["mpicxx", "-O2", "-o", program, source, *libraries], capture_output=True, text=True)
    if made.returncode:
        print(made.stderr, file=sys.stderr)
        return None
    return program


def dbcsr(folder):
    """A function that measures DBCSR, or nothing where it cannot be compiled."""
    program = compiled("dbcsr.cpp", folder)

    def run(n, tile, share, threads):
        products, seconds = of_program([program, n, tile, share, TURNS], threads)[-2:]
        return int(products), float(seconds)

    return run if program else None


def main():
    # One thread of BLAS, as it is read when NumPy is imported; with two the loop of NumPy is shared out within a tile.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    share = float(sys.argv[2]) if len(sys.argv) > 2 else 0.1
    with tempfile.TemporaryDirectory() as folder:
        subjects = {"cembra": by_cembra, "DBCSR": dbcsr(folder), "NumPy's loop": by_numpy, "SciPy BSR": by_scipy}
        print(f"{share:g} of tiles, n = {n}: GF/s, and cembra's times those")
        for tile in (32, 64, 128):
            for threads in (1, 2):
                rates = {}
                for name, run in subjects.items():
                    # Those in Python have one thread.
                    if run is None or (threads == 2 and run in (by_numpy, by_scipy)):
                        continue
                    products, seconds = run(n, tile, share, threads)
                    rates[name] = 2.0 * products * tile**3 / seconds / 1e9
                shown = (f"{name} {rate:.1f} ({rates['cembra'] / rate:.2f})" for name, rate in rates.items())
                print(f"  tiles of {tile}, {threads} threads: " + ", ".join(shown), flush=True)


if __name__ == "__main__":
    main()
