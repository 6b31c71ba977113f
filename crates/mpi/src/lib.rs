//! Ranks as processes: a [`Link`] through MPI. The library of MPI is found and loaded when the program runs, so building
//! needs none, and one program runs with each of Open MPI, MPICH and libraries with the standard interface of MPI 5.
//!
//! MPI carries bytes and nothing else: no number is added by it, and no call waits. The thread that made the link talks; a call on another one is an
//! error. Messages above 1 GiB are cut.
//!
//! ```no_run
//! use cembra_tiles::link::Ranks;
//!
//! // Not started by a launcher of MPI, there is no link, and no library is needed.
//! if let Some(link) = cembra_mpi::from_environment()? {
//!     let ranks = Ranks::new(link)?;
//!     assert_eq!(ranks.all_gather(b"here".to_vec())?.len(), ranks.link().size());
//! }
//! # Ok::<(), cembra_tiles::link::Error>(())
//! ```

#[cfg(unix)]
mod abi;
#[cfg(unix)]
mod find;
#[cfg(unix)]
mod library;
#[cfg(unix)]
mod talk;

use cembra_tiles::link::{Error, Launch, Link};
use std::sync::Arc;

/// The way to the other ranks of the program that started this process; none if no launcher of MPI did.
///
/// The library is the one that `CEMBRA_MPI` has the path of; else one that this process has loaded and initialised; else one of the launcher's
/// family. It is initialised unless it is already, and then finalised when the link and all its requests are dropped.
///
/// # Errors
/// There is no such library, it cannot be loaded or initialised, or it knows other ranks than the launcher: then it is that of another MPI.
/// Some libraries end the process themselves where a launcher of another family started it.
pub fn from_environment() -> Result<Option<Arc<dyn Link>>, Error> {
    let launch = Launch::of(|name| std::env::var(name).ok())?;
    let path = std::env::var_os("CEMBRA_MPI").filter(|path| !path.is_empty());
    #[cfg(unix)]
    {
        find::open(launch.as_ref(), path.as_deref())
    }
    #[cfg(not(unix))]
    match (launch, path) {
        (None, None) => Ok(None),
        _ => Err(cembra_tiles::link::no_link("ranks as processes are for systems of the Unix family")),
    }
}

/// The way to the ranks of a communicator of the caller's program: a duplicate of it, so that messages do not mix. The number is the value of its
/// handle, of type `MPI_Comm`: an integer with MPICH, an address with others. The library is the one that `CEMBRA_MPI` has the path of, else the one
/// that this process has loaded and initialised. All ranks of the communicator call this.
///
/// # Errors
/// There is no such library, or it is not initialised for calls on this thread.
///
/// # Safety
/// MPI-HANDLE: the number is the handle of an intracommunicator of that library, which lives until this returns.
#[cfg(unix)]
pub unsafe fn from_communicator(communicator: usize) -> Result<Arc<dyn Link>, Error> {
    let path = std::env::var_os("CEMBRA_MPI").filter(|path| !path.is_empty());
    // SAFETY: MPI-HANDLE: the caller promises it.
    unsafe { find::of_communicator(communicator, path.as_deref()) }
}
