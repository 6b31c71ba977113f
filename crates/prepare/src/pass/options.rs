//! Options of preparing a program.

use crate::Extension;
use cembra_ops::Registry;
use cembra_value::Budget;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Which rewrites the optimiser may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Only those that keep every bit of every result.
    #[default]
    Strict,
    /// Arolla's too, some of which change the sign of a zero, a NaN or a rounding.
    Compat,
}

/// How to prepare.
#[derive(Clone, Debug)]
pub struct Options {
    /// The operators.
    pub registry: &'static Registry,
    /// Which rewrites to use.
    pub mode: Mode,
    /// Outputs that are still weak floats stay so; otherwise they become FLOAT64.
    pub keep_weak_outputs: bool,
    /// The names of passes to leave out. [`PASSES`](super::PASSES) says which of them are optional.
    pub without: Vec<String>,
    /// Rewrites of the optimiser to leave out, by name.
    pub without_rewrites: Vec<String>,
    /// The last pass to run, by name.
    pub stop_after: Option<String>,
    /// User rewrites.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// Inputs with defaults that nobody gives: each is its default. Other names are ignored.
    pub absent: BTreeSet<String>,
    /// The limits, and since when the time runs.
    pub budget: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            registry: Registry::standard(),
            mode: Mode::Strict,
            keep_weak_outputs: false,
            without: Vec::new(),
            without_rewrites: Vec::new(),
            stop_after: None,
            extensions: Vec::new(),
            absent: BTreeSet::new(),
            budget: Budget::default(),
        }
    }
}
