//! The perf map: a text file with a line for each function, `START SIZE NAME`, numbers in hexadecimal.

use super::Sink;
use cembra_runtime::CodePages;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// An open map.
pub(super) struct PerfMap(File);

impl PerfMap {
    /// Makes `perf-PID.map`.
    pub(super) fn create(directory: &Path) -> io::Result<(PerfMap, PathBuf)> {
        let path = directory.join(format!("perf-{}.map", std::process::id()));
        Ok((PerfMap(super::create(&path)?), path))
    }
}

impl Sink for PerfMap {
    fn add(&mut self, name: &str, code: &CodePages) -> io::Result<()> {
        // One write for each line: a profiler may read the file at any time.
        let line = format!("{:x} {:x} {name}\n", code.as_ptr() as usize, code.size());
        self.0.write_all(line.as_bytes())
    }
}
