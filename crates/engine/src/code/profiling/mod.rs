//! Names for machine code in the profiler `perf`: files in which `perf` looks up the function of an address. The files are written for the whole
//! process, because `perf` records whole processes.

#[cfg(target_os = "linux")]
mod jitdump;
mod perf_map;

use cembra_native::Tier;
use cembra_runtime::CodePages;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A file format from which `perf` learns the names of machine-code functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Profile {
    /// `perf-PID.map`: a line of address, size and name for each model. `perf` reads this file in `/tmp` and nowhere else. The file has no times:
    /// an address that was used again has the name of its last function.
    PerfMap,
    /// `jit-PID.dump`: names, times and the code itself, so that `perf annotate` shows instructions. Record with
    /// `perf record -k mono` and pass the result through `perf inject --jit`. On Linux only.
    Jitdump,
}

/// A profile file that is open for writing. It gets a record for each function that is compiled.
trait Sink: Send {
    /// Appends a record of the function `name` to the profile file.
    fn add(&mut self, name: &str, code: &CodePages) -> io::Result<()>;
}

/// The open profile file of a format; `None` before the file is opened and after a write failed.
type SinkCell = OnceLock<Mutex<Option<Box<dyn Sink>>>>;

static PERF_MAP: SinkCell = OnceLock::new();
static JITDUMP: SinkCell = OnceLock::new();

/// Records each function of machine code that is made from now on in a file of the format `profile` in `directory`, and returns the file's path. The
/// name of a function in the profile is `Options::name`, followed by the tier, or by the backend for many rows (`avx512`).
///
/// ```
/// use cembra::metrics::{Profile, profile_code};
/// use cembra::{Backend, Model, Options};
///
/// let path = profile_code(Profile::PerfMap, &std::env::temp_dir())?;
/// let options = Options::default().name("price").backend(Backend::Native);
/// let executor = Model::parse("input x: f64; x * 2.0")?.compile(&options)?;
/// let map = std::fs::read_to_string(&path)?;
/// assert!(map.ends_with(" cembra::price::optimised\n"));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If a later write fails, nothing more is written, and [`Event::ProfileFailed`](crate::Event::ProfileFailed) is recorded.
///
/// # Errors
/// If the file cannot be created (`Jitdump` also needs a directory from which the system may map code); if this system does not support the format
/// (`Unsupported`); or if a file of this format is being written already, or another file has the name (`AlreadyExists`). The name is predictable and
/// others may write to the directory, so links are not followed and nothing is overwritten. Only a file that an earlier process of this user with the
/// same process ID left is removed.
pub fn profile_code(profile: Profile, directory: &Path) -> io::Result<PathBuf> {
    let place = match profile {
        Profile::PerfMap => &PERF_MAP,
        Profile::Jitdump => &JITDUMP,
    };
    let place = place.get_or_init(Mutex::default);
    let mut sink = place.lock().unwrap_or_else(PoisonError::into_inner);
    if sink.is_some() {
        return Err(io::Error::from(ErrorKind::AlreadyExists));
    }
    let (opened, path) = open(profile, directory)?;
    *sink = Some(opened);
    Ok(path)
}

fn open(profile: Profile, directory: &Path) -> io::Result<(Box<dyn Sink>, PathBuf)> {
    match profile {
        Profile::PerfMap => {
            let (map, path) = perf_map::PerfMap::create(directory)?;
            Ok((Box::new(map), path))
        }
        #[cfg(target_os = "linux")]
        Profile::Jitdump => {
            let (dump, path) = jitdump::Jitdump::create(directory)?;
            Ok((Box::new(dump), path))
        }
        #[cfg(not(target_os = "linux"))]
        Profile::Jitdump => Err(io::Error::from(ErrorKind::Unsupported)),
    }
}

/// Creates the profile file `path`, whose name is predictable, in a directory that others may write to.
fn create(path: &Path) -> io::Result<File> {
    // Creates a new file or fails: an existing file is not opened, and a link is not followed.
    let new = || OpenOptions::new().read(true).write(true).create_new(true).open(path);
    match new() {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            new()
        }
        made => made,
    }
}

/// Returns true if `path` is a regular file whose owner is the effective user of this process.
#[cfg(target_os = "linux")]
fn is_left_behind(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let ours = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|about| about.is_file() && about.uid() == ours)
}

#[cfg(not(target_os = "linux"))]
fn is_left_behind(_: &Path) -> bool {
    false
}

/// Writes the machine code of a model into all open profile files. `kind` is the tier of the code, or the backend for many rows. A file that cannot
/// be written is closed, and `failed` gets the reason.
pub(crate) fn write(model: &str, kind: &str, code: &CodePages, failed: &dyn Fn(&io::Error)) {
    for place in [&PERF_MAP, &JITDUMP] {
        let Some(place) = place.get() else { continue };
        let mut sink = place.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &mut *sink else { continue };
        if let Err(error) = open.add(&symbol(model, kind), code) {
            *sink = None;
            drop(sink);
            failed(&error);
        }
    }
}

/// The name of a function in profile files. It has no line break and no zero byte, because these end names in the files.
fn symbol(model: &str, kind: &str) -> String {
    let model: String = model.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("cembra::{model}::{kind}")
}

/// The name of a tier. In profile files it is the last part of a function's name, as in `cembra::MODEL::quick`.
pub const fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Quick => "quick",
        _ => "optimised",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_end_lines_or_records() {
        assert_eq!(symbol("a\nb\0c d", "quick"), "cembra::a b c d::quick");
    }
}
