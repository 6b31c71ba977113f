//! How to prepare: options, and what is said of those that name a pass or a rewrite there is not.

use super::{PASSES, rewrites};
use crate::Extension;
use cembra_ops::Registry;
use cembra_value::{Budget, Code, Diagnostic, Diagnostics};
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
    /// Passes to leave out, by name: some of those that [`PASSES`] says are optional.
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

impl Options {
    /// Checks the names in the options.
    ///
    /// # Errors
    /// A name that no pass or rewrite has, or that of a pass that cannot be left out.
    pub(super) fn check(&self) -> Result<(), Diagnostics> {
        let mut problems = Vec::new();
        let names = |optional: bool| {
            let passes = PASSES.iter().filter(|pass| pass.optional || !optional);
            passes.map(|pass| format!("`{}`", pass.name)).collect::<Vec<_>>().join(", ")
        };
        let is_pass = |name: &String| PASSES.iter().any(|pass| pass.name == name);
        for name in self.without.iter().chain(&self.stop_after).filter(|name| !is_pass(name)) {
            let problem = Diagnostic::new(Code::Option, format!("there is no pass `{name}`"));
            problems.push(problem.hint(format!("the passes are {}", names(false))));
        }
        for pass in PASSES.iter().filter(|pass| !pass.optional && self.without.iter().any(|name| name == pass.name)) {
            let problem = Diagnostic::new(Code::Option, format!("pass `{}` cannot be left out", pass.name));
            problems.push(problem.hint(format!("those that can be are {}", names(true))));
        }
        for name in self.without_rewrites.iter().filter(|name| rewrites().all(|rewrite| rewrite.name != **name)) {
            let problem = Diagnostic::new(Code::Option, format!("there is no rewrite `{name}`"));
            problems.push(problem.hint("`docs/rewrites.md` lists them"));
        }
        Diagnostics::check(problems)
    }
}
