//! Tests of the library's effects on its process: memory, mappings, allocations and files; and of code that must not
//! compile. These tests measure the whole process, so they run one at a time.

#[path = "../../../ops/tests/counting/mod.rs"]
mod counting;

#[cfg(feature = "json")]
mod allocation;
#[cfg(target_os = "linux")]
mod bounds;
mod code_cache;
mod code_limit;
mod code_memory;
#[cfg(target_os = "linux")]
mod folded;
mod footprint;
#[cfg(target_os = "linux")]
mod forks;
mod mapped;
mod memory;
mod profiles;
mod refused;
mod registries;
#[cfg(feature = "tiles")]
mod tiled_memory;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Returns the lock that each test of this program holds while it runs.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of the process, in kibibytes.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    status("VmRSS:")
}

/// Returns the highest resident memory of the process so far, in kibibytes.
#[cfg(target_os = "linux")]
fn peak() -> usize {
    status("VmHWM:")
}

#[cfg(target_os = "linux")]
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line for it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}
