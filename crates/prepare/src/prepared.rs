//! The data that passes of preparation take and return. Before regions (the parts of a model in which nodes are evaluated) are assigned, a model is a
//! typed graph with its leaves and outputs. Afterwards it also has the region of every node. Plans are built only from a model with regions, so that
//! they cannot be built from an incomplete preparation.

use crate::{Id, RegionId, RegionTree, TypedGraph};
use cembra_ops::Registry;
use cembra_runtime::{LineKind, Listing, QType};
use cembra_value::{Code, Diagnostic, Diagnostics};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// A model whose nodes have types: its graph, leaves and outputs. Passes rewrite such a model.
#[derive(Clone, Debug)]
pub struct TypedModel {
    /// The registry of the operators in the graph.
    pub registry: &'static Registry,
    /// The graph of typed nodes of the model.
    pub graph: TypedGraph,
    /// The name and the type of each leaf, in the order of the program's inputs.
    pub leaves: Vec<(Arc<str>, QType)>,
    /// The name and the node of each output, the main one first.
    pub outputs: Vec<(Arc<str>, Id)>,
    /// True if rewrites that a user added changed the graph. The plan is then verified, in release builds too.
    pub rewritten: bool,
}

impl TypedModel {
    /// Returns one flag per node, by index: true if the outputs need the node.
    #[must_use]
    pub fn needed(&self) -> Vec<bool> {
        self.graph.reachable(self.outputs.iter().map(|(_, id)| *id))
    }

    /// Returns true if the model needs a value that is not stored in frames, such as an array. Such a model has no
    /// single plan.
    #[must_use]
    pub fn has_arrays(&self) -> bool {
        let needed = self.needed();
        self.graph.ids().any(|id| needed[id.index()] && !self.graph.qtype(id).is_framed())
    }

    /// Lists the nodes that outputs need, one per line, then the outputs.
    fn listing(&self, is_lazy: &dyn Fn(Id) -> bool) -> Listing {
        let mut listing = self.graph.listing(self.registry, &self.needed(), is_lazy);
        for (name, id) in &self.outputs {
            listing.push(LineKind::Output, [], format_args!("{name} = %{}", id.index()));
        }
        listing
    }
}

/// For each node of a graph, its region: the part of the model in which the node is evaluated. Also the tree of these regions.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// The region (branch, loop body or top) of each node, by index; the top region for nodes that are not needed.
    pub of_nodes: Vec<RegionId>,
    /// The tree of the model's regions. Every region is inside of its parent.
    pub tree: RegionTree,
    /// For each lazy conditional, the region in which each of its two branches is evaluated.
    pub branches: FxHashMap<Id, [RegionId; 2]>,
    /// For each loop, the region in which its body is evaluated.
    pub loops: FxHashMap<Id, RegionId>,
}

/// A model that is ready for planning: every node has a region, the branch or loop in which it is evaluated.
#[derive(Clone, Debug)]
pub struct RegionModel {
    /// The typed model: its graph, leaves and outputs.
    pub model: TypedModel,
    /// The region of each node of the model: the branch or loop in which it is evaluated.
    pub regions: Regions,
}

impl RegionModel {
    /// The region (branch, loop body or top) in which the node `id` is evaluated.
    #[must_use]
    pub fn region(&self, id: Id) -> RegionId {
        self.regions.of_nodes[id.index()]
    }
}

/// The result of preparation: a typed model, or one whose nodes also have regions.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// A typed model whose nodes have no regions yet: it is not known which branches are lazy.
    Typed(TypedModel),
    /// A model in which every node has its region, the branch or loop in which it is evaluated.
    Placed(RegionModel),
}

impl Prepared {
    /// The typed model, without the regions of its nodes.
    #[must_use]
    pub fn model(&self) -> &TypedModel {
        match self {
            Prepared::Typed(model) => model,
            Prepared::Placed(placed) => &placed.model,
        }
    }

    /// Returns the model with the regions (branch, loop body or top) of its nodes.
    ///
    /// # Errors
    /// If the options stopped preparation before regions were assigned.
    pub fn placed(self) -> Result<RegionModel, Diagnostics> {
        match self {
            Prepared::Typed(_) => {
                let message = "the model is not fully prepared: a plan needs every pass up to the last one";
                Err(Diagnostic::new(Code::Unprepared, message).into())
            }
            Prepared::Placed(placed) => Ok(placed),
        }
    }

    /// Lists the nodes that outputs need, one per line, then the outputs. The origins of a line are the nodes of the program that it comes from, by index.
    #[must_use]
    pub fn listing(&self) -> Listing {
        match self {
            Prepared::Typed(model) => model.listing(&|id| model.graph.is_always_lazy(id)),
            Prepared::Placed(RegionModel { model, regions }) => model.listing(&|id| regions.branches.contains_key(&id)),
        }
    }
}

impl fmt::Display for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listing().fmt(f)
    }
}
