"""The correlation energy of coupled cluster with double excitations (CCD) by PySCF, of a ring of Hubbard sites with an electron for each: what
`docs/examples/tiles/doubles.rs` is compared with. PySCF solves the equations of single and double excitations; the single ones are set to zero.
On a ring they are zero by themselves, since they would change the momentum. PySCF is installed by `pip install pyscf`.

    python benches/python/doubles.py [SITES [REPULSION]]
"""

import sys

import numpy as np
import pyscf
from pyscf import ao2mo, gto, scf
from pyscf.cc import rccsd


class Doubles(rccsd.RCCSD):
    def update_amps(self, t1, t2, eris):
        t1, t2 = super().update_amps(t1, t2, eris)
        return np.zeros_like(t1), t2


def main():
    sites = int(sys.argv[1]) if len(sys.argv) > 1 else 14
    repulsion = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0
    at = np.arange(sites)
    hops = np.zeros((sites, sites))
    hops[at, (at + 1) % sites] = hops[(at + 1) % sites, at] = -1.0
    repulsions = np.zeros((sites,) * 4)
    repulsions[at, at, at, at] = repulsion
    molecule = gto.M(verbose=0)
    molecule.nelectron = sites
    molecule.incore_anyway = True
    field = scf.RHF(molecule)
    field.get_hcore = lambda *_: hops
    field.get_ovlp = lambda *_: np.eye(sites)
    field._eri = ao2mo.restore(8, repulsions, sites)
    field.conv_tol = 1e-13
    # The levels of the hops alone are filled in the field, too.
    filled = np.linalg.eigh(hops)[1][:, : sites // 2]
    field.kernel(dm0=2.0 * filled @ filled.T)
    doubles = Doubles(field)
    doubles.conv_tol, doubles.conv_tol_normt, doubles.max_cycle = 1e-14, 1e-13, 200
    doubles.kernel()
    assert field.converged and doubles.converged
    print(f"PySCF {pyscf.__version__}: {doubles.e_corr:.12f}")


if __name__ == "__main__":
    main()
