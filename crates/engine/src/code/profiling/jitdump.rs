//! The jitdump: a binary file with a record for each function, in version 1 of the format that `perf inject --jit` reads. Numbers
//! are in the byte order of the machine.

use super::Sink;
use cembra_runtime::CodePages;
use memmap2::{Mmap, MmapOptions};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// `JiTD` as the number that a file begins with.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// The header in bytes.
const HEADER: u32 = 40;
/// The kind of a record that says that a function was made.
const CODE_LOAD: u32 = 0;
/// Such a record in bytes, without name and code.
const LOAD: u32 = 56;

/// The processor, as ELF numbers them.
const MACHINE: u32 = if cfg!(target_arch = "aarch64") { 183 } else { 62 };

/// An open dump.
pub(super) struct Jitdump {
    file: File,
    /// By this mapping, which is recorded with all others, the profiler learns that there is the file.
    #[expect(dead_code, reason = "lives as long as the file is written")]
    marker: Mmap,
    /// How many functions there are in the file.
    functions: u64,
}

impl Jitdump {
    /// Makes `jit-PID.dump`.
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

/// The clock of `perf record -k mono`, in nanoseconds.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn header() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER as usize);
    // After the machine comes a number that is kept free.
    for number in [MAGIC, VERSION, HEADER, MACHINE, 0, std::process::id()] {
        bytes.extend(number.to_ne_bytes());
    }
    // The time, and flags of which there are none.
    for number in [now(), 0] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes
}

fn load(name: &str, address: u64, code: &[u8], index: u64) -> io::Result<Vec<u8>> {
    let size = LOAD as usize + name.len() + 1 + code.len();
    let total = u32::try_from(size).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    let mut bytes = Vec::with_capacity(size);
    bytes.extend(CODE_LOAD.to_ne_bytes());
    bytes.extend(total.to_ne_bytes());
    bytes.extend(now().to_ne_bytes());
    bytes.extend(std::process::id().to_ne_bytes());
    bytes.extend(gettid().as_raw_nonzero().get().to_ne_bytes());
    // The address twice: where the code is linked to, and where it is.
    for number in [address, address, code.len() as u64, index] {
        bytes.extend(number.to_ne_bytes());
    }
    bytes.extend(name.as_bytes());
    bytes.push(0);
    bytes.extend(code);
    Ok(bytes)
}
