//! The binary interfaces of MPI libraries: the types of their handles, and the few constants that this crate needs. MPI
//! functions have the same names and arguments in all interfaces.

use std::ffi::{c_int, c_void};

/// The type of an MPI library's handles, which refer to communicators, data types and error handlers. All handles of a library have the same size.
pub(crate) trait Handle: Copy + Send + Sync + 'static {
    /// Converts the value of an `MPI_Comm`, as the caller's program stores it, to a handle.
    fn of_value(value: usize) -> Self;
}

/// A handle that is an address, as in Open MPI and in the standard interface of MPI 5.
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

/// The handles and integers that the binary interface of an MPI library defines as constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants<H> {
    pub(crate) world: H,
    pub(crate) byte: H,
    pub(crate) errors_return: H,
    /// The address that stands for `MPI_STATUS_IGNORE`, passed where the caller wants no status.
    pub(crate) no_status: usize,
    /// The constant `MPI_THREAD_FUNNELED`, which says that only the main thread calls MPI. The field `serialized` is
    /// `MPI_THREAD_SERIALIZED`, which says that any thread may call MPI, but only one at a time.
    pub(crate) funneled: c_int,
    pub(crate) serialized: c_int,
}

/// The constants of MPICH and compatible libraries, whose handles are 32-bit integers.
pub(crate) const MPICH: Constants<c_int> = Constants {
    world: 0x4400_0000,
    byte: 0x4c00_010d,
    errors_return: 0x5400_0001,
    no_status: 1,
    funneled: 1,
    serialized: 2,
};

/// Returns the constants of the standard interface of MPI 5.
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

/// Returns the constants of Open MPI, whose handles are the addresses of variables in the library.
pub(crate) const fn open_mpi(world: Address, byte: Address, errors_return: Address) -> Constants<Address> {
    Constants { world, byte, errors_return, no_status: 0, funneled: 1, serialized: 2 }
}
