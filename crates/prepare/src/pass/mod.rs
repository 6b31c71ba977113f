//! The ordered list of passes, and what goes through it.

mod cast;
mod check;
mod extend;
mod fold;
mod lower;
mod optimise;
mod options;
mod rewrite;
mod select;
mod types;
mod wheres;

pub(crate) use cast::bind;
pub use optimise::{Rewrite, rewrites};
pub use options::{Mode, Options};

use crate::{Id, RegionId, RegionTree, TypedGraph};
use cembra_expr::Program;
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::Diagnostics;
use std::sync::Arc;

/// A prepared model, or one on its way through the passes.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The operators.
    pub registry: &'static Registry,
    /// The nodes.
    pub graph: TypedGraph,
    /// Name and type of each leaf, in the order of the program's inputs.
    pub leaves: Vec<(Arc<str>, QType)>,
    /// Name and node of each output, the main one first.
    pub outputs: Vec<(Arc<str>, Id)>,
    /// The region of each node, after the `where` pass.
    pub regions: Vec<RegionId>,
    /// The tree of regions, after the `where` pass.
    pub tree: RegionTree,
    /// For each lazy conditional, the regions of its branches; by position of the node.
    pub branches: rustc_hash::FxHashMap<Id, [RegionId; 2]>,
    /// For each loop, the region of its rounds.
    pub loops: rustc_hash::FxHashMap<Id, RegionId>,
    /// True if code of the user took part: what is made of the graph is verified, in release builds too.
    pub rewritten: bool,
}

impl std::fmt::Display for Prepared {
    /// The nodes that outputs need, one a line, then the outputs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let needed = self.graph.reachable(self.outputs.iter().map(|(_, id)| *id));
        self.graph.write_nodes(f, self.registry, &needed)?;
        for (name, id) in &self.outputs {
            writeln!(f, "{name} = %{}", id.index())?;
        }
        Ok(())
    }
}

/// A pass: a name, what it does, and the function.
pub struct Pass {
    /// The name used by options and `explain`.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// True if it can be left out.
    pub optional: bool,
    run: fn(&mut Prepared, &Program, &Options) -> Result<(), Diagnostics>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The passes in order.
pub static PASSES: &[Pass] = &[
    Pass { name: "types", summary: "resolve names, infer types", optional: false, run: types::run },
    Pass { name: "lower", summary: "replace composite operators", optional: false, run: lower::run },
    Pass { name: "cast", summary: "write out implicit casts", optional: false, run: cast::run },
    Pass { name: "fold", summary: "evaluate operators on literals", optional: true, run: fold::run },
    Pass { name: "optimise", summary: "apply peephole rules", optional: true, run: optimise::run },
    Pass { name: "extensions", summary: "apply user rewrites", optional: true, run: extend::run },
    Pass { name: "where", summary: "decide what each branch evaluates", optional: false, run: wheres::run },
    Pass { name: "select", summary: "compute both branches where they are cheap", optional: true, run: select::run },
];

/// Prepares a program for leaves of these types.
///
/// `leaf_type` is asked for every leaf the outputs need; it returns the type of the data, if there is some, and
/// must agree with what the program declares. `observe` sees the result of every pass.
///
/// # Errors
/// Options that name what there is not; problems with names, types or limits, as many as could be found.
pub fn prepare(
    program: &Program,
    leaf_type: &dyn Fn(&str) -> Option<QType>,
    options: &Options,
    observe: &mut dyn FnMut(&Pass, &Prepared),
) -> Result<Prepared, Diagnostics> {
    options.check()?;
    let leaves = types::leaves(program, leaf_type, options.budget.limits())?;
    let names: Vec<Arc<str>> = leaves.iter().map(|(name, _)| name.clone()).collect();
    let mut prepared = Prepared {
        registry: options.registry,
        graph: TypedGraph::new(names.into(), program.graph.len()),
        leaves,
        outputs: Vec::new(),
        regions: Vec::new(),
        tree: RegionTree::default(),
        branches: rustc_hash::FxHashMap::default(),
        loops: rustc_hash::FxHashMap::default(),
        rewritten: false,
    };
    for pass in PASSES {
        options.budget.check_time()?;
        if !(pass.optional && options.without.iter().any(|name| name == pass.name)) {
            (pass.run)(&mut prepared, program, options)?;
            debug_assert_eq!(check::invariants(&prepared), None, "after pass {}", pass.name);
        }
        observe(pass, &prepared);
        if options.stop_after.as_deref() == Some(pass.name) {
            break;
        }
    }
    Ok(prepared)
}
