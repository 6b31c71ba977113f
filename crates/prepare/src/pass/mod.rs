//! The ordered list of the passes of preparation, and the functions that run them.

mod ask;
mod cast;
mod check;
mod expand;
mod extend;
mod fold;
mod optimise;
mod options;
mod rewrite;
mod select;
mod types;
mod wheres;

pub use ask::{OnDemandLeaves, OnDemandValue, ask_for, is_askable};
pub(crate) use fold::evaluate_constant;
pub use optimise::{Rewrite, rewrites};
pub use options::{Mode, Options};

pub use types::node_types;

use crate::{Prepared, RegionModel, TypedModel};
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics};

/// A pass of preparation: it rewrites the model, or assigns regions (the parts of the model in which nodes are evaluated) to its nodes.
pub struct Pass {
    /// The name of the pass, as options and `explain` use it.
    pub name: &'static str,
    /// The task of the pass, described in one sentence.
    pub summary: &'static str,
    /// True if the options of a preparation can leave the pass out.
    pub optional: bool,
    run: PassAction,
}

/// The function that runs a pass. The variants differ in whether the nodes of its model have regions before and after the pass.
enum PassAction {
    /// The pass rewrites the graph of the model.
    Graph(fn(&mut TypedModel, &Program, &Options) -> Result<(), Diagnostics>),
    /// The pass assigns a region (the top, a branch or a loop) to every node.
    Place(fn(TypedModel, &Program, &Options) -> Result<RegionModel, Diagnostics>),
    /// The pass changes the regions that are assigned to nodes.
    Places(fn(&mut RegionModel, &Program, &Options) -> Result<(), Diagnostics>),
}

impl Pass {
    const fn is_of_graphs(&self) -> bool {
        matches!(self.run, PassAction::Graph(_))
    }

    fn run(&self, prepared: Prepared, program: &Program, options: &Options) -> Result<Prepared, Diagnostics> {
        Ok(match (&self.run, prepared) {
            (PassAction::Graph(run), Prepared::Typed(mut model)) => {
                run(&mut model, program, options)?;
                Prepared::Typed(model)
            }
            (PassAction::Place(run), Prepared::Typed(model)) => Prepared::Placed(run(model, program, options)?),
            (PassAction::Places(run), Prepared::Placed(mut placed)) => {
                run(&mut placed, program, options)?;
                Prepared::Placed(placed)
            }
            // A pass takes what the one before it gives; a test checks the order.
            (_, prepared) => prepared,
        })
    }
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The passes of preparation, in the order in which they run.
pub static PASSES: &[Pass] = &[
    Pass {
        name: "types",
        summary: "resolve names, infer types, write out casts",
        optional: false,
        run: PassAction::Graph(types::run),
    },
    Pass {
        name: "expand",
        summary: "replace composite operators",
        optional: false,
        run: PassAction::Graph(expand::run),
    },
    Pass { name: "fold", summary: "evaluate operators on literals", optional: true, run: PassAction::Graph(fold::run) },
    Pass { name: "optimise", summary: "apply peephole rules", optional: true, run: PassAction::Graph(optimise::run) },
    Pass { name: "extensions", summary: "apply user rewrites", optional: true, run: PassAction::Graph(extend::run) },
    Pass {
        name: "where",
        summary: "decide what each branch evaluates",
        optional: false,
        run: PassAction::Place(wheres::run),
    },
    Pass {
        name: "select",
        summary: "compute both branches where they are cheap",
        optional: true,
        run: PassAction::Places(select::run),
    },
];

/// Prepares a program, given the types of its leaves.
///
/// `leaf_type` is called with the name of every input. If there are data for the input, `leaf_type` returns their type, which must agree with the
/// declaration in the program; otherwise it returns `None`. `observe` is called with the result of every pass. The result is not a [`RegionModel`] if
/// the options stop preparation before nodes have regions.
///
/// # Errors
/// If a name in the options is unknown, or if there are problems with names, types or limits in the program. The error has as many problems as could
/// be found.
pub fn prepare(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    options: &Options,
    observe: &mut dyn FnMut(&Pass, &Prepared),
) -> Result<Prepared, Diagnostics> {
    prepare_with(program, leaf_type, options, &PASSES.iter().collect::<Vec<_>>(), observe)
}

/// Prepares a program as [`prepare`] does, but stops before regions (branches, loop bodies and the top) are assigned to nodes. The function [`place`]
/// assigns them.
///
/// # Errors
/// The errors of `prepare`.
pub fn prepare_graph(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    options: &Options,
) -> Result<Prepared, Diagnostics> {
    let passes: Vec<&Pass> = PASSES.iter().filter(|pass| pass.is_of_graphs()).collect();
    prepare_with(program, leaf_type, options, &passes, &mut |_, _| {})
}

fn prepare_with(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    options: &Options,
    passes: &[&Pass],
    observe: &mut dyn FnMut(&Pass, &Prepared),
) -> Result<Prepared, Diagnostics> {
    check_names(options)?;
    let leaves = types::leaves(program, leaf_type, options.budget.limits())?;
    let mut prepared = Prepared::Typed(types::model_of_leaves(leaves, program, options));
    for pass in passes {
        options.budget.check_time()?;
        if !(pass.optional && options.without.iter().any(|name| name == pass.name)) {
            prepared = pass.run(prepared, program, options)?;
            debug_assert_eq!(check::invariants(prepared.model()), None, "after pass {}", pass.name);
        }
        observe(pass, &prepared);
        if options.stop_after.as_deref() == Some(pass.name) {
            break;
        }
    }
    Ok(prepared)
}

/// Checks the names of passes and rewrites in options.
///
/// # Errors
/// If there is no pass or rewrite of a name in the options, or if the options leave out a pass that is not optional.
fn check_names(options: &Options) -> Result<(), Diagnostics> {
    let mut problems = Vec::new();
    let names = |optional: bool| {
        let passes = PASSES.iter().filter(|pass| pass.optional || !optional);
        passes.map(|pass| format!("`{}`", pass.name)).collect::<Vec<_>>().join(", ")
    };
    let is_pass = |name: &String| PASSES.iter().any(|pass| pass.name == name);
    for name in options.without.iter().chain(&options.stop_after).filter(|name| !is_pass(name)) {
        let problem = Diagnostic::new(Code::Option, format!("there is no pass `{name}`"));
        problems.push(problem.hint(format!("the passes are {}", names(false))));
    }
    for pass in PASSES.iter().filter(|pass| !pass.optional && options.without.iter().any(|name| name == pass.name)) {
        let problem = Diagnostic::new(Code::Option, format!("pass `{}` cannot be left out", pass.name));
        problems.push(problem.hint(format!("leave out only these: {}", names(true))));
    }
    for name in options.without_rewrites.iter().filter(|name| rewrites().all(|rewrite| rewrite.name != **name)) {
        let problem = Diagnostic::new(Code::Option, format!("there is no rewrite `{name}`"));
        problems.push(problem.hint("use a name from `docs/rewrites.md`"));
    }
    Diagnostics::check(problems)
}

/// Prepares a part of a typed model that was split: the function that is applied to one element of arrays, or the operators on scalars of a model
/// with arrays.
///
/// # Errors
/// If a composite operator cannot be expanded, or a limit is exceeded.
pub fn prepare_part(model: TypedModel, program: &Program, options: &Options) -> Result<RegionModel, Diagnostics> {
    let is_run = |pass: &Pass| !["types", "extensions"].contains(&pass.name);
    if options.mode == Mode::Strict {
        return run_passes(model, program, options, is_run);
    }
    // Rewrites that change bits were applied to the whole model already. They must not be applied to a part, because the split depends on
    // the backend, and bits must not.
    run_passes(model, program, &Options { mode: Mode::Strict, ..options.clone() }, is_run)
}

/// Prepares a model that is typed already: the function that is applied to one element of tensors.
///
/// # Errors
/// If a composite operator cannot be expanded, the result of an extension is not valid, or a limit is exceeded.
pub fn prepare_typed(model: TypedModel, program: &Program, options: &Options) -> Result<RegionModel, Diagnostics> {
    run_passes(model, program, options, |pass| pass.name != "types")
}

/// Assigns regions (the parts of the model in which nodes are evaluated) to the nodes of a graph that [`prepare_graph`] made.
///
/// # Errors
/// If a limit is exceeded, or options stop before there are regions.
pub fn place(model: TypedModel, program: &Program, options: &Options) -> Result<RegionModel, Diagnostics> {
    let is_last = |pass: &&Pass| options.stop_after.as_deref() == Some(pass.name);
    if PASSES.iter().find(is_last).is_some_and(Pass::is_of_graphs) {
        return Prepared::Typed(model).placed();
    }
    debug_assert_eq!(check::invariants(&model), None, "before places");
    run_passes(model, program, options, |pass| !pass.is_of_graphs())
}

/// Runs the passes for which `is_run` is true, except those that options leave out.
fn run_passes(
    model: TypedModel,
    program: &Program,
    options: &Options,
    is_run: impl Fn(&Pass) -> bool,
) -> Result<RegionModel, Diagnostics> {
    let mut prepared = Prepared::Typed(model);
    for pass in PASSES.iter().filter(|pass| is_run(pass)) {
        options.budget.check_time()?;
        if !(pass.optional && options.without.iter().any(|name| name == pass.name)) {
            prepared = pass.run(prepared, program, options)?;
        }
    }
    prepared.placed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_get_places_once_the_graph_is_final() {
        let order = |pass: &Pass| match pass.run {
            PassAction::Graph(_) => 0,
            PassAction::Place(_) => 1,
            PassAction::Places(_) => 2,
        };
        assert!(PASSES.is_sorted_by_key(order));
        let placing: Vec<&Pass> = PASSES.iter().filter(|pass| order(pass) == 1).collect();
        assert!(matches!(placing[..], [Pass { optional: false, .. }]), "{placing:?}");
    }
}
