//! Facts about the values that are not tensors, while a program with both is sorted: their types, and which of them tensors
//! take.

use super::made::LoweredTensor;
use super::tilings::is_tiled;
use super::type_of_input;
use crate::options::compile_options::CompileOptions;
use cembra_expr::{NodeId, Program};
use cembra_runtime::QType;
use std::collections::BTreeMap;

/// The dependence of a node on tensors.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stages {
    /// True if the node is computed from a tensor.
    pub(super) depends: bool,
    /// True if the node is computed from a tensor by operators that tensors do not have. A tensor made from such a node is
    /// computed by the last part of the program, which is sorted again.
    pub(super) is_later: bool,
}

/// The facts about values that are not tensors, while a program is sorted.
#[derive(Debug)]
pub(super) struct Apart<'p> {
    program: &'p Program,
    options: &'p CompileOptions,
    /// The dependence of each node on tensors, by position.
    stages: Vec<Stages>,
    /// For each node, whether it makes a tuple that contains a tensor with axes, by position.
    pub(super) tuples_with_axes: Vec<bool>,
    /// The types of nodes that do not depend on tensors; found when the first is needed.
    types: Option<Vec<Option<QType>>>,
    /// The values that tensors take from other parts, each with its type there and its tensor.
    pub(super) imports: BTreeMap<NodeId, (QType, LoweredTensor)>,
    /// The nodes that convert a tensor to an array, with the type of the array.
    pub(super) arrays: BTreeMap<NodeId, QType>,
    /// A node without a type that was used as a tensor.
    pub(super) untyped: Option<NodeId>,
    /// True if the program cuts tensors into tiles.
    pub(super) is_tiled: bool,
}

impl<'p> Apart<'p> {
    pub(super) fn new(program: &'p Program, options: &'p CompileOptions) -> Self {
        let (stages, tuples_with_axes) =
            (vec![Stages::default(); program.graph.len()], vec![false; program.graph.len()]);
        let (imports, arrays, is_tiled) = (BTreeMap::new(), BTreeMap::new(), is_tiled(program));
        Apart { program, options, stages, tuples_with_axes, types: None, imports, arrays, untyped: None, is_tiled }
    }

    /// Returns true if a node is computed from a tensor.
    pub(super) fn depends(&self, node: NodeId) -> bool {
        self.stages[node.index()].depends
    }

    /// Returns true if a node is computed from a tensor by operators that tensors do not have.
    pub(super) fn is_later(&self, node: NodeId) -> bool {
        self.stages[node.index()].is_later
    }

    /// Records the dependence of a node on tensors.
    pub(super) fn set_stages(&mut self, node: NodeId, stages: Stages) {
        self.stages[node.index()] = stages;
    }

    /// The type of a node that does not depend on tensors; `None` if it has none.
    pub(super) fn type_of(&mut self, node: NodeId) -> Option<QType> {
        let Apart { program, options, types, .. } = self;
        let types = types.get_or_insert_with(|| {
            let given = |name: &str| options.input_types.get(name).cloned();
            // There, an input that is a tensor is an error, and only some errors are kept.
            let mut others = Program::clone(program);
            others.inputs.retain(|input| !matches!(type_of_input(input, options), Some(QType::Tensor(..))));
            cembra_prepare::node_types(&others, &given, &options.prepare)
        });
        types.get(node.index()).cloned().flatten()
    }
}
