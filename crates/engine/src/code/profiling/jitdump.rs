//! The jitdump: a binary file with a record for each function, in version 1 of the format that `perf inject --jit` reads. Numbers have the byte
//! order of the machine.

use super::Sink;
use cembra_runtime::CodePages;
use memmap2::{Mmap, MmapOptions};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The magic number at the start of the file: `JiTD`.
const MAGIC: u32 = 0x4a69_5444;
/// The version of the format.
const VERSION: u32 = 1;
/// The size of the header in bytes.
const HEADER: u32 = 40;
/// The kind of a record that announces a function.
const CODE_LOAD: u32 = 0;
/// The size of a `CODE_LOAD` record in bytes, without name and code.
const LOAD: u32 = 56;

/// The number of the processor in ELF.
const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// A jitdump file that is being written.
pub(super) struct Jitdump {
    file: File,
    /// A mapping of the file. The profiler records it with all other mappings, and so finds the file.
    #[expect(dead_code, reason = "the mapping must live as long as the file is written")]
    marker: Mmap,
    /// The number of functions in the file.
    functions: u64,
}

impl Jitdump {
    /// Creates the file `jit-PID.dump` in `directory`, and writes its header. Returns the file and its path.
    pub(super) fn create(directory: &Path) -> io::Result<(Jitdump, PathBuf)> {
        let path = directory.join(format!("jit-{}.dump", std::process::id()));
        let mut file = super::create(&path)?;
        file.write_all(&header())?;
        // SAFETY: MARKER-MAPPING.
        let marker = unsafe { MmapOptions::new().len(HEADER as usize).map_exec(&file)? };
        Ok((Jitdump { file, marker, functions: 0 }, path))
    }
}

impl Sink for Jitdump {
    fn add(&mut self, name: &str, code: &CodePages) -> io::Result<()> {
        let record = load(name, code.as_ptr() as u64, code.bytes(), self.functions)?;
        self.functions += 1;
        self.file.write_all(&record)
    }
}

/// The time in nanoseconds, by the clock that `perf record -k mono` uses.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// The bytes of the file's header.
fn header() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER as usize);
    // The machine is followed by a reserved number.
    for number in [MAGIC, VERSION, HEADER, MACHINE, 0, std::process::id()] {
        bytes.extend(number.to_ne_bytes());
    }
    // The time, then the flags; none is set.
    for number in [now(), 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes
}

/// The bytes of a record that announces the function `name`, whose code is at `address`.
fn load(name: &str, address: u64, code: &[u8], index: u64) -> io::Result<Vec<u8>> {
    let size = LOAD as usize + name.len() + 1 + code.len();
    let total = u32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = Vec::with_capacity(size);
    bytes.extend(CODE_LOAD.to_ne_bytes());
    bytes.extend(total.to_ne_bytes());
    bytes.extend(now().to_ne_bytes());
    bytes.extend(std::process::id().to_ne_bytes());
    bytes.extend(gettid().as_raw_nonzero().get().to_ne_bytes());
    // The address twice: the address that the code is linked for, and the one where it is.
    for number in [address, address, code.len() as u64, index] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(name.as_bytes());
    bytes.push(0);
    bytes.extend(code);
    Ok(bytes)
}
