//! The interfaces of the libraries: what their handles are, and the values of the few constants that are needed. Functions have the same names and
//! arguments in all of them.

use std::ffi::{c_int, c_void};

/// What a library has handles of: communicators, types and error handlers are all of one size.
pub(crate) trait Handle: Copy + Send + Sync + 'static {
    /// The handle with this value, as a caller knows it.
    fn of_value(value: usize) -> Self;
}

/// Addresses, in Open MPI and in the standard interface.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Address(pub(crate) *mut c_void);

// SAFETY: MPI-HANDLE: an address that only the library looks behind; where it may be used is the library's rule.
unsafe impl Send for Address {}
// SAFETY: MPI-HANDLE: an address that only the library looks behind, and nothing is written through it.
unsafe impl Sync for Address {}

impl Handle for Address {
    fn of_value(value: usize) -> Address {
        Address(std::ptr::with_exposed_provenance_mut(value))
    }
}

impl Handle for c_int {
    fn of_value(value: usize) -> c_int {
        // The upper half of a register that has an integer of 32 bits means nothing.
        (value as u32).cast_signed()
    }
}

/// The constants of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants<H> {
    pub(crate) world: H,
    pub(crate) byte: H,
    pub(crate) errors_return: H,
    /// The address that says that no status is wanted.
    pub(crate) no_status: usize,
    /// Levels of threads: only the main thread calls, one thread at a time calls.
    pub(crate) funneled: c_int,
    pub(crate) serialized: c_int,
}

/// Those of MPICH and libraries that are like it, of 32 bits.
pub(crate) const MPICH: Constants<c_int> = Constants {
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    no_status: 1,
    funneled: 1,
    serialized: 2,
};

/// Those of the standard interface of MPI 5.
pub(crate) fn standard() -> Constants<Address> {
    Constants {
        world: Address::of_value(0x101),
        byte: Address::of_value(0x247),
        errors_return: Address::of_value(0x143),
        no_status: 0,
        funneled: 1024,
        serialized: 2048,
    }
}

/// Those of Open MPI, whose handles are the addresses of variables of the library.
pub(crate) const fn open_mpi(world: Address, byte: Address, errors_return: Address) -> Constants<Address> {
    Constants { world, byte, errors_return, no_status: 0, funneled: 1, serialized: 2 }
}
