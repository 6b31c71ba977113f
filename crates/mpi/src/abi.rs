//! The binary interfaces of MPI libraries: the types of their handles, and the few constants that are needed. Functions
//! have the same names and arguments in all of them.

use std::ffi::{c_int, c_void};

/// A handle of a communicator, a type or an error handler; in one library all have the same size.
pub(crate) trait Handle: Copy + Send + Sync + 'static {
    /// The handle with this value, as the caller's program stores it.
    fn of_value(value: usize) -> Self;
}

/// A handle that is an address, as in Open MPI and in the standard interface.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub(crate) struct Address(pub(crate) *mut c_void);

// SAFETY: MPI-HANDLE: only the library dereferences the address; the library's rules say which thread may use it.
unsafe impl Send for Address {}
// SAFETY: MPI-HANDLE: only the library dereferences the address, and nothing is written through it.
unsafe impl Sync for Address {}

impl Handle for Address {
    fn of_value(value: usize) -> Address {
        Address(std::ptr::with_exposed_provenance_mut(value))
    }
}

impl Handle for c_int {
    fn of_value(value: usize) -> c_int {
        // The upper half of a register is undefined for an integer of 32 bits.
        (value as u32).cast_signed()
    }
}

/// The constants of a binary interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants<H> {
    pub(crate) world: H,
    pub(crate) byte: H,
    pub(crate) errors_return: H,
    /// The address that is passed where no status is wanted.
    pub(crate) no_status: usize,
    /// The level of thread support at which only the main thread calls MPI; `serialized` is the level at which one thread
    /// at a time does.
    pub(crate) funneled: c_int,
    pub(crate) serialized: c_int,
}

/// The constants of MPICH and compatible libraries, whose handles are integers of 32 bits.
pub(crate) const MPICH: Constants<c_int> = Constants {
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    no_status: 1,
    funneled: 1,
    serialized: 2,
};

/// The constants of the standard interface of MPI 5.
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

/// The constants of Open MPI, whose handles are the addresses of variables of the library.
pub(crate) const fn open_mpi(world: Address, byte: Address, errors_return: Address) -> Constants<Address> {
    Constants { world, byte, errors_return, no_status: 0, funneled: 1, serialized: 2 }
}
