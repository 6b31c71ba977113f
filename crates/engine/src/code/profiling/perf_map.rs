//! The perf map: a text file with a line `START SIZE NAME` for each function. The numbers are hexadecimal.

use super::Sink;
use cembra_runtime::CodePages;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// An open perf map.
pub(super) struct PerfMap(File);

impl PerfMap {
    /// Creates `perf-PID.map`, which is empty.
    pub(super) fn create(directory: &Path) -> io::Result<(PerfMap, PathBuf)> {
        let path = directory.join(format!("perf-{}.map", std::process::id()));
        Ok((PerfMap(super::create(&path)?), path))
    }
}

impl Sink for PerfMap {
    fn add(&mut self, name: &str, code: &CodePages) -> io::Result<()> {
        // Each line is written at once, because a profiler may read the file at any time.
        let line = format!("{:x} {:x} {name}\n", code.as_ptr() as usize, code.size());
        self.0.write_all(line.as_bytes())
    }
}
