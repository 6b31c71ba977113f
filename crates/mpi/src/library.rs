//! A loaded MPI library: its functions, with the types that the standard gives them, and its error texts. It stays loaded
//! until the process ends, as MPI requires.

use crate::abi::{Address, Constants, Handle, MPICH, open_mpi, standard};
use cembra_tiles::link::{Error, no_link};
use libloading::os::unix::{Library as Loaded, RTLD_GLOBAL, RTLD_NOW, Symbol};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

/// Memory for an MPI request handle of any library: a 32-bit integer or an address.
pub(crate) type RequestStorage = u64;

/// The bytes of memory for an error text, more than any library writes.
const TEXT_BYTES: usize = 1 << 14;

/// Declares MPI functions by their names in the MPI standard.
macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        /// The functions of an MPI library. Each returns 0 for success, else an error code. The rule MPI-LIBRARY in
        /// `docs/safety.md` says how they must be called.
        struct Functions<H> { $($name: unsafe extern "C" fn($($argument),*) -> c_int,)* }

        impl<H: Handle> Functions<H> {
            fn of(library: &Loaded) -> Result<Functions<H>, Error> {
                Ok(Functions { $(
                    // SAFETY: MPI-LIBRARY: the function of this name, with the arguments of the standard.
                    $name: unsafe { symbol(library, $symbol)? },
                )* })
            }
        }
    };
}

functions! {
    init_thread = "MPI_Init_thread": fn(*mut c_int, *mut c_void, c_int, *mut c_int);
    initialized = "MPI_Initialized": fn(*mut c_int);
    finalized = "MPI_Finalized": fn(*mut c_int);
    query_thread = "MPI_Query_thread": fn(*mut c_int);
    is_thread_main = "MPI_Is_thread_main": fn(*mut c_int);
    comm_dup = "MPI_Comm_dup": fn(H, *mut H);
    comm_rank = "MPI_Comm_rank": fn(H, *mut c_int);
    comm_size = "MPI_Comm_size": fn(H, *mut c_int);
    comm_free = "MPI_Comm_free": fn(*mut H);
    comm_set_errhandler = "MPI_Comm_set_errhandler": fn(H, H);
    isend = "MPI_Isend": fn(*const c_void, c_int, H, c_int, c_int, H, *mut RequestStorage);
    irecv = "MPI_Irecv": fn(*mut c_void, c_int, H, c_int, c_int, H, *mut RequestStorage);
    test = "MPI_Test": fn(*mut RequestStorage, *mut c_int, *mut c_void);
    abort = "MPI_Abort": fn(H, c_int);
    error_string = "MPI_Error_string": fn(c_int, *mut c_char, *mut c_int);
    finalize = "MPI_Finalize": fn();
}

/// Looks up a symbol of a library.
///
/// # Safety
/// MPI-LIBRARY: the symbol must have the type `T`.
unsafe fn symbol<T: Copy>(library: &Loaded, name: &str) -> Result<T, Error> {
    // SAFETY: MPI-LIBRARY: the caller promises it. The library is never unloaded, so the symbol outlives this.
    let found: Symbol<T> = unsafe { library.get(name.as_bytes()) }
        .map_err(|error| no_link(format!("the library has no {name}: {error}")))?;
    Ok(*found)
}

/// The peer, the tag and the communicator of a stream of messages between two ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<H> {
    pub(crate) peer: c_int,
    pub(crate) tag: c_int,
    pub(crate) communicator: H,
}

/// A loaded MPI library whose handles have type `H`.
pub(crate) struct Library<H> {
    functions: Functions<H>,
    pub(crate) constants: Constants<H>,
    pub(crate) name: String,
}

/// A loaded MPI library. The variant tells the type of the library's handles: addresses or 32-bit integers.
pub(crate) enum Interface {
    Addresses(Library<Address>),
    Numbers(Library<c_int>),
}

impl Interface {
    /// Loads the MPI library at `path` and never unloads it.
    pub(crate) fn open(path: &OsStr) -> Result<Interface, Error> {
        let name = path.to_string_lossy().into_owned();
        // SAFETY: MPI-LIBRARY: loading an MPI library runs the same initialisers as in every program with MPI.
        let loaded = unsafe { Loaded::open(Some(path), RTLD_NOW | RTLD_GLOBAL) };
        Interface::of(loaded.map_err(|error| no_link(format!("{name} cannot be loaded: {error}")))?, name)
    }

    /// Returns the MPI library whose symbols are visible in the whole process; `None` if there is none.
    pub(crate) fn of_process() -> Option<Interface> {
        let this = Loaded::this();
        // SAFETY: MPI-LIBRARY: the symbol is only looked for.
        let is_there = unsafe { symbol::<*mut c_void>(&this, "MPI_Init_thread") }.is_ok();
        is_there.then(|| Interface::of(this, "the MPI of this process".to_owned()).ok()).flatten()
    }

    /// Opens the MPI library `name` if the process has already loaded it; else returns `None`.
    pub(crate) fn loaded_already(name: &str) -> Option<Interface> {
        /// From `dlfcn.h`: do not load anything.
        const RTLD_NOLOAD: c_int = if cfg!(target_os = "linux") { 4 } else { 0x10 };
        // SAFETY: MPI-LIBRARY: nothing is loaded, so nothing runs.
        let loaded = unsafe { Loaded::open(Some(name), RTLD_NOW | RTLD_NOLOAD) }.ok()?;
        Interface::of(loaded, name.to_owned()).ok()
    }

    /// Determines the binary interface of a library.
    fn of(loaded: Loaded, name: String) -> Result<Interface, Error> {
        let loaded = ManuallyDrop::new(loaded);
        // SAFETY: MPI-LIBRARY: variables of Open MPI, whose addresses are its handles; nothing is read there.
        let variable = |name: &str| unsafe { symbol::<*mut c_void>(&loaded, name) }.map(Address);
        if let Ok(world) = variable("ompi_mpi_comm_world") {
            let constants = open_mpi(world, variable("ompi_mpi_byte")?, variable("ompi_mpi_errors_return")?);
            return Ok(Interface::Addresses(Library { functions: Functions::of(&loaded)?, constants, name }));
        }
        // MPI-LIBRARY: the function takes two pointers to integers.
        type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
        let mut version = [-1, -1];
        // SAFETY: MPI-LIBRARY: the function of this name, which may be called at any time.
        if let Ok(standard) = unsafe { symbol::<Version>(&loaded, "MPI_Abi_get_version") } {
            let [major, minor] = &mut version;
            // SAFETY: MPI-LIBRARY: two integers that it writes.
            unsafe { standard(major, minor) };
        }
        // A library whose interface is not the standard one says -1.
        if version[0] >= 1 {
            return Ok(Interface::Addresses(Library {
                functions: Functions::of(&loaded)?,
                constants: standard(),
                name,
            }));
        }
        Ok(Interface::Numbers(Library { functions: Functions::of(&loaded)?, constants: MPICH, name }))
    }

    /// Returns true if this MPI library was initialised, and was not finalised since.
    pub(crate) fn is_running(&self) -> bool {
        match self {
            Interface::Addresses(library) => library.is_running(),
            Interface::Numbers(library) => library.is_running(),
        }
    }
}

impl<H: Handle> Library<H> {
    /// Returns an error unless `code` is 0.
    fn check(&self, code: c_int, what: &str) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        let mut text = vec![0_u8; TEXT_BYTES];
        let mut length = 0;
        // SAFETY: MPI-LIBRARY: there is room for more than any library writes.
        let known = unsafe { (self.functions.error_string)(code, text.as_mut_ptr().cast(), &raw mut length) };
        text.truncate(if known == 0 { usize::try_from(length).unwrap_or(0) } else { 0 });
        let text = String::from_utf8_lossy(&text);
        Err(no_link(format!("{what} of {} failed with code {code}: {text}", self.name)))
    }

    /// Calls `call` with the address of an integer, which the MPI function writes, and returns the integer. `what` is
    /// the name of the MPI function, for the error if the function fails.
    fn number(&self, what: &str, call: impl FnOnce(*mut c_int) -> c_int) -> Result<c_int, Error> {
        let mut number = 0;
        self.check(call(&raw mut number), what)?;
        Ok(number)
    }

    /// Returns true if this MPI library was initialised, and was not finalised since.
    pub(crate) fn is_running(&self) -> bool {
        self.has_begun() && !self.has_ended()
    }

    fn has_begun(&self) -> bool {
        let functions = &self.functions;
        // SAFETY: MPI-LIBRARY: it may be called at any time.
        self.number("MPI_Initialized", |flag| unsafe { (functions.initialized)(flag) }).is_ok_and(|flag| flag != 0)
    }

    fn has_ended(&self) -> bool {
        let functions = &self.functions;
        // SAFETY: MPI-LIBRARY: it may be called at any time.
        self.number("MPI_Finalized", |flag| unsafe { (functions.finalized)(flag) }).is_ok_and(|flag| flag != 0)
    }

    /// Initialises MPI so that this thread may call it.
    pub(crate) fn initialise(&self) -> Result<(), Error> {
        let (functions, wanted) = (&self.functions, self.constants.funneled);
        if self.has_ended() {
            // The library would end the process.
            return Err(no_link(format!(
                "{} was finalised already, and cannot be initialised again in this process",
                self.name
            )));
        }
        let nothing = std::ptr::null_mut();
        // SAFETY: MPI-LIBRARY: there are no arguments of a command line; MPI was not initialised.
        let level = self.number("MPI_Init_thread", |level| unsafe {
            (functions.init_thread)(nothing, std::ptr::null_mut(), wanted, level)
        })?;
        if level < wanted {
            return Err(no_link(format!("{} does not support programs with threads", self.name)));
        }
        Ok(())
    }

    /// Returns an error if this thread may not call the MPI library, which other code initialised.
    pub(crate) fn check_thread(&self) -> Result<(), Error> {
        let functions = &self.functions;
        // SAFETY: MPI-LIBRARY: MPI is running.
        let level = self.number("MPI_Query_thread", |level| unsafe { (functions.query_thread)(level) })?;
        // SAFETY: MPI-LIBRARY: MPI is running.
        let is_main = self.number("MPI_Is_thread_main", |flag| unsafe { (functions.is_thread_main)(flag) })?;
        if is_main == 0 && level < self.constants.serialized {
            return Err(no_link(format!("only the thread that initialised {} may call it", self.name)));
        }
        Ok(())
    }

    /// Duplicates the communicator `of`, and makes MPI calls with the duplicate return errors to their caller. Returns the
    /// duplicate, this process's rank in the duplicate, and the number of ranks.
    ///
    /// # Safety
    /// `of` must be the handle of an intracommunicator. MPI must be running, and this thread must be allowed to call MPI (rule
    /// MPI-HANDLE in `docs/safety.md`).
    pub(crate) unsafe fn duplicate(&self, of: H) -> Result<(H, usize, usize), Error> {
        let functions = &self.functions;
        let mut own = of;
        // SAFETY: MPI-HANDLE: the caller promises it; so the duplicate is one too.
        let (rank, size) = unsafe {
            self.check((functions.comm_dup)(of, &raw mut own), "MPI_Comm_dup")?;
            let errors = self.constants.errors_return;
            self.check((functions.comm_set_errhandler)(own, errors), "MPI_Comm_set_errhandler")?;
            let rank = self.number("MPI_Comm_rank", |rank| (functions.comm_rank)(own, rank))?;
            (rank, self.number("MPI_Comm_size", |size| (functions.comm_size)(own, size))?)
        };
        let [rank, size] = [rank, size].map(|number| usize::try_from(number).unwrap_or(0));
        if rank >= size {
            return Err(no_link(format!("{} says that this is rank {rank} of {size}", self.name)));
        }
        Ok((own, rank, size))
    }

    /// Starts to send bytes if `is_sent`, else to receive bytes, without waiting for the end of the transfer.
    ///
    /// # Safety
    /// The bytes and the request must stay at their addresses until a test reports that the request has completed. Until then,
    /// bytes to send must stay unchanged, and nothing else may use the memory for bytes to receive (rule MPI-MESSAGE in
    /// `docs/safety.md`). The communicator must be one of this library, and this thread must be allowed to call the library
    /// (rule MPI-HANDLE).
    pub(crate) unsafe fn begin(
        &self,
        is_sent: bool,
        place: *mut u8,
        bytes: c_int,
        stream: Stream<H>,
        request: *mut RequestStorage,
    ) -> Result<(), Error> {
        let Stream { peer, tag, communicator } = stream;
        let (Functions { isend, irecv, .. }, byte) = (&self.functions, self.constants.byte);
        // SAFETY: MPI-MESSAGE, MPI-HANDLE: the caller promises it.
        let (code, what) = unsafe {
            match is_sent {
                true => (isend(place.cast_const().cast(), bytes, byte, peer, tag, communicator, request), "MPI_Isend"),
                false => (irecv(place.cast(), bytes, byte, peer, tag, communicator, request), "MPI_Irecv"),
            }
        };
        self.check(code, what)
    }

    /// Returns true if the send or receive of `request` has completed.
    ///
    /// # Safety
    /// The request must have been started by `begin`, and no earlier test may have reported that it has completed (rule
    /// MPI-MESSAGE in `docs/safety.md`). This thread must be allowed to call the library (rule MPI-HANDLE).
    pub(crate) unsafe fn test(&self, request: *mut RequestStorage) -> Result<bool, Error> {
        let no_status = std::ptr::without_provenance_mut(self.constants.no_status);
        // SAFETY: MPI-MESSAGE, MPI-HANDLE: the caller promises it.
        let flag = self.number("MPI_Test", |flag| unsafe { (self.functions.test)(request, flag, no_status) })?;
        Ok(flag != 0)
    }

    /// Ends all processes of the program, with the exit code `code`.
    ///
    /// # Safety
    /// The communicator must be one of this library (rule MPI-HANDLE in `docs/safety.md`).
    pub(crate) unsafe fn abort(&self, communicator: H, code: c_int) {
        // SAFETY: MPI-HANDLE: the caller promises it.
        unsafe { (self.functions.abort)(communicator, code) };
    }

    /// Frees `communicator`, and finalises MPI if `is_ours` is set.
    ///
    /// # Safety
    /// The communicator must be a duplicate that nothing uses any more, and this thread must be allowed to call the library
    /// (rule MPI-HANDLE in `docs/safety.md`).
    pub(crate) unsafe fn close(&self, mut communicator: H, is_ours: bool) {
        // SAFETY: MPI-HANDLE: the caller promises it. Error codes are ignored, because nothing could be done about them
        // here.
        unsafe {
            (self.functions.comm_free)(&raw mut communicator);
            if is_ours {
                (self.functions.finalize)();
            }
        }
    }
}
