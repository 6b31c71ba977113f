//! Options for preparing a program.

use crate::Extension;
use cembra_ops::Registry;
use cembra_value::Budget;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The set of rewrites that the optimiser may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Only rewrites that keep every bit of every result.
    #[default]
    Strict,
    /// Also Arolla's rewrites, some of which change the sign of a zero, a NaN or a rounding.
    Compat,
}

/// The options of a preparation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The operators.
    pub registry: &'static Registry,
    /// The set of rewrites to use.
    pub mode: Mode,
    /// True if outputs that are weak floats keep their type; otherwise they become FLOAT64.
    pub keep_weak_outputs: bool,
    /// The names of passes to leave out. [`PASSES`](super::PASSES) says which of them are optional.
    pub without: Vec<String>,
    /// The names of rewrites to leave out.
    pub without_rewrites: Vec<String>,
    /// The name of the last pass to run; `None` for all passes.
    pub stop_after: Option<String>,
    /// Rewrites of the user, in order.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// The names of inputs with defaults for which no value will be given, so that they are always their
    /// defaults. Other names are ignored.
    pub absent: BTreeSet<String>,
    /// The limits, and the start of the time limit.
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
