//! `docs/hostile-models.md` as text: what stands above the table, a line for each model, what stands below. The `hostile` command fills it
//! with what it measures; a test holds the page against it.

use std::fmt;

/// What stands above the table, with its first lines.
pub const HEAD: &str = "\
# Hostile models

What becomes of models made to exhaust the library, at the default [limits](limits.md): each is read, compiled and evaluated once, in a
process of its own. `ms` is the time a processor worked on it, `MiB` the most memory the process had, the source of the model included; a
dash is a figure that was not measured yet. The outcome `value` is a result; the others are codes of [errors](errors.md), behind `limit` the
limit that was exceeded. `cembra-tests` holds the models (`tests/src/hostile`), and its tests expect these outcomes.

This page is printed by a program:

```sh
cargo run --release -p cembra-tests --bin hostile -- --page > docs/hostile-models.md
```

Measured on 2 cores of a virtual machine that was busy with other work, x86-64 with AVX-512, Linux 6, rustc 1.95.

| model | outcome | ms | MiB |
|---|---|---|---|
";

/// What stands below the table.
pub const TAIL: &str = "
The longest are models of a million nodes and more, which take a few microseconds for each node: the time grows in proportion to the model.
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
