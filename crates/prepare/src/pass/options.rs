//! Options for preparing a program, such as the passes to leave out.

use crate::Extension;
use cembra_ops::Registry;
use cembra_value::Budget;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The set of rewrites that the optimiser may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Only rewrites that keep every bit of every result are used.
    #[default]
    Strict,
    /// Arolla's rewrites are used too, some of which change the sign of a zero, a NaN or a rounding.
    Compat,
}

/// The options of a preparation: the operators, the rewrites and passes to use, and the limits.
#[derive(Clone, Debug)]
pub struct Options {
    /// The registry of the operators that the program may use.
    pub registry: &'static Registry,
    /// The set of rewrites that the optimiser uses, strict or compat.
    pub mode: Mode,
    /// True if outputs that are weak floats keep their type; otherwise they become FLOAT64.
    pub keep_weak_outputs: bool,
    /// The names of passes to leave out. [`PASSES`](super::PASSES) tells which passes are optional.
    pub without: Vec<String>,
    /// The names of optimiser rewrites to leave out.
    pub without_rewrites: Vec<String>,
    /// The name of the last pass to run; `None` for all passes.
    pub stop_after: Option<String>,
    /// The rewrites that users added, in the order in which they are applied.
    pub extensions: Vec<Arc<dyn Extension>>,
    /// The names of inputs for which no value will be given, so that these inputs always have their defaults. Names that are not inputs are ignored.
    pub absent: BTreeSet<String>,
    /// The limits of the preparation, and the time at which it started.
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
