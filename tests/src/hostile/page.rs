//! `docs/hostile-models.md` as text: what stands above the table, a line for each model, what stands below. The `hostile` command fills it
//! with what it measures; a test holds the page against it.

use std::fmt;

/// What stands above the table, with its first lines.
pub const HEAD: &str = "\
# Hostile models

The models in this table try to exhaust the library, at the default [limits](limits.md). Each model is read, compiled and evaluated once, in a process
of its own.

* `outcome` is `value` if the model has a result, and otherwise an [error code](errors.md). After the code `limit` follows the name of the exceeded
  limit. Tests check the outcomes (`tests/src/hostile`).
* `ms` is the processor time in milliseconds. `MiB` is the largest memory of the process, including the source text of the model. A dash means that
  the figure was not measured.

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
The slowest models have at least a million nodes (operators, literals and inputs). They take a few microseconds per node, so the time is proportional
to the size of the model.
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
