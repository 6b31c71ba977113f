//! What goes through the passes and what comes out. Before places are found a model is a typed graph with its leaves and
//! outputs; afterwards it is that and the region of every node. A plan is built of the latter only, so that it cannot be
//! built of half a preparation.

use crate::{Id, RegionId, RegionTree, TypedGraph};
use cembra_ops::Registry;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Diagnostics};
use rustc_hash::FxHashMap;
use std::fmt;
use std::sync::Arc;

/// A typed model: what passes rewrite.
#[derive(Clone, Debug)]
pub struct TypedModel {
    /// The operators.
    pub registry: &'static Registry,
    /// The nodes.
    pub graph: TypedGraph,
    /// Name and type of each leaf, in the order of the program's inputs.
    pub leaves: Vec<(Arc<str>, QType)>,
    /// Name and node of each output, the main one first.
    pub outputs: Vec<(Arc<str>, Id)>,
    /// True if code of the user took part: what is made of the graph is verified, in release builds too.
    pub rewritten: bool,
}

impl TypedModel {
    /// Which nodes the outputs need, by position.
    #[must_use]
    pub fn needed(&self) -> Vec<bool> {
        self.graph.reachable(self.outputs.iter().map(|(_, id)| *id))
    }

    /// True if some value lives beside frames: then there is no one plan of the model.
    #[must_use]
    pub fn has_arrays(&self) -> bool {
        let needed = self.needed();
        self.graph.ids().any(|id| needed[id.index()] && !self.graph.qtype(id).is_framed())
    }

    /// Writes the nodes that outputs need, one a line, then the outputs.
    fn write(&self, f: &mut fmt::Formatter<'_>, is_lazy: &dyn Fn(Id) -> bool) -> fmt::Result {
        self.graph.write_nodes(f, self.registry, &self.needed(), is_lazy)?;
        for (name, id) in &self.outputs {
            writeln!(f, "{name} = %{}", id.index())?;
        }
        Ok(())
    }
}

/// Where the nodes of a graph are evaluated.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// The region of each node, by position; the top one for nodes that nobody needs.
    pub of_nodes: Vec<RegionId>,
    /// The tree of regions.
    pub tree: RegionTree,
    /// For each conditional that evaluates only the branch that is chosen, the regions of its branches.
    pub branches: FxHashMap<Id, [RegionId; 2]>,
    /// For each loop, the region of its rounds.
    pub loops: FxHashMap<Id, RegionId>,
}

/// A model that is prepared as far as plans need: every node has its place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The model.
    pub model: TypedModel,
    /// The places.
    pub regions: Regions,
}

impl Placed {
    /// Where a node is evaluated.
    #[must_use]
    pub fn region(&self, id: Id) -> RegionId {
        self.regions.of_nodes[id.index()]
    }
}

/// What preparation came to, or has come to so far.
#[derive(Clone, Debug)]
pub enum Prepared {
    /// No places are found yet.
    Typed(TypedModel),
    /// Every node has its place.
    Placed(Placed),
}

impl Prepared {
    /// The model, with or without places.
    #[must_use]
    pub fn model(&self) -> &TypedModel {
        match self {
            Prepared::Typed(model) => model,
            Prepared::Placed(placed) => &placed.model,
        }
    }

    /// The model with the places of its nodes.
    ///
    /// # Errors
    /// The options said to stop before there are any.
    pub fn placed(self) -> Result<Placed, Diagnostics> {
        match self {
            Prepared::Typed(_) => {
                let message = "the model is not fully prepared: a plan needs every pass up to the last one";
                Err(Diagnostic::new(Code::Unprepared, message).into())
            }
            Prepared::Placed(placed) => Ok(placed),
        }
    }
}

impl fmt::Display for Prepared {
    /// The nodes that outputs need, one a line, then the outputs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prepared::Typed(model) => model.write(f, &|id| model.graph.is_always_lazy(id)),
            Prepared::Placed(Placed { model, regions }) => model.write(f, &|id| regions.branches.contains_key(&id)),
        }
    }
}
