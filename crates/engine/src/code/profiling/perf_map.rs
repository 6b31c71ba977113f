//! The perf map: a text file with a line `START SIZE NAME` for each machine-code function. The address and the size are hexadecimal.

use super::Sink;
use cembra_runtime::CodePages;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A perf map file that is being written.
pub(super) struct PerfMap(File);

impl PerfMap {
    /// Creates the empty file `perf-PID.map` in `directory`. Returns the file and its path.
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
