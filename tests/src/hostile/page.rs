//! `docs/hostile-models.md` as text: what stands above the table, a line for each model, what stands below. The `hostile` command fills it
//! with what it measures; a test holds the page against it.

use std::fmt;

/// What stands above the table, with its first lines.
pub const HEAD: &str = "\
# Hostile models

These models try to exhaust the library, at the default [limits](limits.md). Each is read, compiled and evaluated once, in its own process.

* `outcome` is `value` if the model has a result, or else an [error code](errors.md). After `limit` comes the exceeded limit. Tests expect these
  outcomes (`tests/src/hostile`).
* `ms` is the processor time in milliseconds. `MiB` is the process's most memory, including the model's source. A dash means not measured.

A program prints this page:

```sh
cargo run --release -p cembra-tests --bin hostile -- --page > docs/hostile-models.md
```

Measured on 2 cores of a busy virtual machine, x86-64 with AVX-512, Linux 6, rustc 1.95.

| model | outcome | ms | MiB |
|---|---|---|---|
";

/// What stands below the table.
pub const TAIL: &str = "
The slowest models have at least a million nodes. They take a few microseconds per node, so time is proportional to size.
";

/// A line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The model.
    pub name: &'static str,
    /// What became of it.
    pub outcome: String,
    /// Milliseconds, or a dash.
    pub time: String,
    /// Mebibytes, or a dash.
    pub memory: String,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} | {} | {} | {} |", self.name.replace('|', "\\|"), self.outcome, self.time, self.memory)
    }
}

/// The page.
#[must_use]
pub fn page(rows: impl Iterator<Item = Row>) -> String {
    let rows: String = rows.map(|row| row.to_string()).collect();
    format!("{HEAD}{rows}{TAIL}")
}
