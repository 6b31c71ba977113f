//! Sends messages between processes (ranks) through MPI: [`from_environment`] returns a [`Link`], over which several
//! processes compute tiled matrices together. The MPI library is found and loaded at run time. So building needs no MPI
//! library, and one program runs with Open MPI, MPICH and libraries with the standard interface of MPI 5.
//!
//! This crate uses MPI only to transport bytes: reductions are computed elsewhere, and no call blocks. Only the thread
//! that made a link may use the link; a call on another thread is an error. Messages above 1 GiB are split.
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

/// Returns a link to the other ranks of the program that started this process; `None` if there is neither an MPI launcher
/// nor `CEMBRA_MPI`.
///
/// The library is the one at the path `CEMBRA_MPI`; else one that this process has loaded and initialised; else one that fits
/// the launcher (Open MPI or MPICH). If the library is not initialised yet, this function initialises it. In this case the
/// library is finalised when the link and all its requests are dropped.
///
/// # Errors
/// If there is no such library, if it cannot be loaded or initialised, or if the library's ranks differ from the launcher's,
/// because the library belongs to another MPI than the launcher. Some libraries end the process themselves if another MPI's
/// launcher started it.
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
        _ => Err(cembra_tiles::link::no_link("ranks as processes are supported on Unix only")),
    }
}

/// Returns a link to the ranks of a communicator of the caller's program. It uses a duplicate of the communicator, so messages
/// do not mix. The argument is the value of the communicator's `MPI_Comm` handle: an integer with MPICH, an address with other
/// libraries. The library is the one at the path `CEMBRA_MPI`, else the one that this process has loaded and initialised. All
/// ranks of the communicator must call this function.
///
/// # Errors
/// If there is no such library, or if the library is not initialised for calls on this thread.
///
/// # Safety
/// `communicator` must be the handle of an intracommunicator of the library described above, and must be valid until this
/// function returns (rule MPI-HANDLE in `docs/safety.md`).
#[cfg(unix)]
pub unsafe fn from_communicator(communicator: usize) -> Result<Arc<dyn Link>, Error> {
    let path = std::env::var_os("CEMBRA_MPI").filter(|path| !path.is_empty());
    // SAFETY: MPI-HANDLE: the caller promises it.
    unsafe { find::of_communicator(communicator, path.as_deref()) }
}
