"""The density matrix of a disordered chain by purification: cembra beside DBCSR, where that and MPI are installed (see `tiles.py`). Both begin with
the same matrix and end when `p p` is `p` to 1e-6. The energy of a run with a threshold of 1e-14 says how large the error of each is.

    cargo build --release -p cembra --features tensor,tiles --example purify
    python benches/python/purify.py [SITES [TILE]]
"""

import sys
import tempfile

from tiles import ROOT, compiled, of_program

# Norms of tiles are divided by their elements, those of DBCSR's blocks are not.
THRESHOLDS = (1e-8, 1e-10)


def main():
    sites = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    tile = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    program = ROOT / "target/release/examples/purify"
    with tempfile.TemporaryDirectory() as folder:
        peer = compiled("dbcsr_purify.cpp", folder)

        def by_cembra(threshold, threads):
            return of_program([program, sites, tile, threshold, threads], threads)

        def by_dbcsr(threshold, threads):
            return of_program([peer, sites, tile, threshold * tile * tile], threads)

        exact = float(by_cembra(1e-14, 2)[3])
        subjects = {"cembra": by_cembra, **({"DBCSR": by_dbcsr} if peer else {})}
        print(f"{sites} sites, tiles of {tile}: seconds, steps, part of tiles, error of the energy, distance of p p from p")
        for threads in (1, 2):
            for threshold in THRESHOLDS:
                for name, run in subjects.items():
                    seconds, steps, filled, energy, distance = min((run(threshold, threads) for _ in range(3)), key=lambda made: float(made[0]))
                    error = abs(float(energy) - exact)
                    print(f"  {threads} threads, {threshold:g}: {name} {seconds} s, {steps}, {filled}, {error:.1e}, {distance}", flush=True)


if __name__ == "__main__":
    main()
