//! Finds the MPI library: the one at the given path; else the one that this process has initialised; else one that fits
//! the launcher, Open MPI or MPICH.

use crate::abi::Handle;
use crate::library::{Interface, Library};
use crate::talk::MpiLink;
use cembra_tiles::link::{Error, Family, Launch, Link, no_link};
use std::ffi::OsStr;
use std::sync::Arc;

#[cfg(not(target_vendor = "apple"))]
mod names {
    pub(super) const STANDARD: &str = "libmpi_abi.so.1";
    pub(super) const OPEN_MPI: &str = "libmpi.so.40";
    pub(super) const MPICH: [&str; 2] = ["libmpich.so.12", "libmpi.so.12"];
}
#[cfg(target_vendor = "apple")]
mod names {
    pub(super) const STANDARD: &str = "libmpi_abi.1.dylib";
    pub(super) const OPEN_MPI: &str = "libmpi.40.dylib";
    pub(super) const MPICH: [&str; 2] = ["libmpich.12.dylib", "libmpi.12.dylib"];
}

/// The file names of a family's libraries, in the order in which they are tried.
const fn names_of(family: Family) -> &'static [&'static str] {
    match family {
        // Open MPI 6 is planned to have the standard interface too.
        Family::OpenMpi => &[names::OPEN_MPI, names::STANDARD],
        Family::Mpich => &[names::STANDARD, names::MPICH[0], names::MPICH[1]],
    }
}

/// The MPI library that this process has already loaded and initialised; `None` if there is none.
fn running() -> Option<Interface> {
    let names = [names::STANDARD, names::OPEN_MPI, names::MPICH[0], names::MPICH[1]];
    let known = std::iter::once_with(Interface::of_process).chain(names.into_iter().map(Interface::loaded_already));
    known.flatten().find(Interface::is_running)
}

/// Opens the MPI library for a launcher's family (Open MPI or MPICH): of the family's file names, the first that can be
/// loaded.
fn of_family(family: Family) -> Result<Interface, Error> {
    let mut reasons = Vec::new();
    for name in names_of(family) {
        match Interface::open(OsStr::new(name)) {
            Ok(found) => return Ok(found),
            Err(error) => reasons.push(error.message()),
        }
    }
    let message = format!("an MPI library for the launcher was not found: {}", reasons.join("; "));
    Err(no_link(message).hint("set `CEMBRA_MPI` to the path of the launcher's library"))
}

/// Opens a link to the ranks that an MPI launcher started. `path` is the library to use; without it, the library is one
/// that this process has initialised, or one that fits the launcher. `None` if there is neither a launcher nor a
/// `path`.
pub(crate) fn open(launch: Option<&Launch>, path: Option<&OsStr>) -> Result<Option<Arc<dyn Link>>, Error> {
    let found = match (path, launch) {
        (Some(path), _) => Interface::open(path)?,
        (None, None) => return Ok(None),
        (None, Some(launch)) => running().map_or_else(|| of_family(launch.family), Ok)?,
    };
    fn world<H: Handle>(library: Library<H>, launch: Option<&Launch>) -> Result<Arc<dyn Link>, Error> {
        let is_ours = !library.is_running();
        if is_ours {
            library.initialise()?;
        } else {
            library.check_thread()?;
        }
        let world = library.constants.world;
        // SAFETY: MPI-HANDLE: the world is a communicator once MPI is running.
        let link = unsafe { MpiLink::new(library, world, is_ours)? };
        if let Some(launch) = launch {
            launch.check(link.rank(), link.size(), link.library())?;
        }
        Ok(Arc::new(link))
    }
    match found {
        Interface::Addresses(library) => world(library, launch),
        Interface::Numbers(library) => world(library, launch),
    }
    .map(Some)
}

/// Opens a link to the ranks of `communicator`, through the library at `path`, or else the one that this process has
/// initialised.
///
/// # Safety
/// `communicator` must be the handle of an intracommunicator of the MPI library (rule MPI-HANDLE in `docs/safety.md`).
pub(crate) unsafe fn of_communicator(communicator: usize, path: Option<&OsStr>) -> Result<Arc<dyn Link>, Error> {
    let found = match path {
        Some(path) => Interface::open(path)?,
        None => running().ok_or_else(|| no_link("MPI is not initialised in this process"))?,
    };
    /// # Safety
    /// MPI-HANDLE: `communicator` must be the handle of an intracommunicator of `library`.
    unsafe fn link<H: Handle>(library: Library<H>, communicator: usize) -> Result<Arc<dyn Link>, Error> {
        if !library.is_running() {
            return Err(no_link(format!("{} is not initialised", library.name)));
        }
        library.check_thread()?;
        // SAFETY: MPI-HANDLE: the caller promises it.
        Ok(Arc::new(unsafe { MpiLink::new(library, H::of_value(communicator), false)? }))
    }
    // SAFETY: MPI-HANDLE: the caller promises it.
    unsafe {
        match found {
            Interface::Addresses(library) => link(library, communicator),
            Interface::Numbers(library) => link(library, communicator),
        }
    }
}
