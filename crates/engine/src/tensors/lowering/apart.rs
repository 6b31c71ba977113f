//! What is known of the values beside tensors while a program that has both is sorted: their types, and which of them tensors take.

use super::made::LoweredTensor;
use super::tilings::is_tiled;
use super::type_of_input;
use crate::options::compile_options::CompileOptions;
use cembra_expr::{NodeId, Program};
use cembra_runtime::QType;
use std::collections::BTreeMap;

/// How far behind the inputs a node is computed.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Stages {
    /// True if it is computed from a tensor.
    pub(super) depends: bool,
    /// True if it is computed from a tensor by operators that tensors do not have. A tensor of it is computed by the last part, which is sorted
    /// again.
    pub(super) is_later: bool,
}

/// What is known of values beside tensors while a program is sorted.
#[derive(Debug)]
pub(super) struct Apart<'p> {
    program: &'p Program,
    options: &'p CompileOptions,
    /// How far behind the inputs each node is computed, by position.
    stages: Vec<Stages>,
    /// Which nodes make a tuple with a tensor with axes in it, by position.
    pub(super) tuples_with_axes: Vec<bool>,
    /// The types of nodes that are not; found when the first is asked for.
    types: Option<Vec<Option<QType>>>,
    /// The values that tensors take from the other side, with the types that they have there.
    pub(super) imports: BTreeMap<NodeId, (QType, LoweredTensor)>,
    /// The nodes that are arrays of a tensor, with the type of the array.
    pub(super) arrays: BTreeMap<NodeId, QType>,
    /// A node without a type that a tensor was to take.
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

    /// True if a node is computed from a tensor.
    pub(super) fn depends(&self, node: NodeId) -> bool {
        self.stages[node.index()].depends
    }

    /// True if a node is computed from a tensor by operators that tensors do not have.
    pub(super) fn is_later(&self, node: NodeId) -> bool {
        self.stages[node.index()].is_later
    }

    pub(super) fn set_stages(&mut self, node: NodeId, stages: Stages) {
        self.stages[node.index()] = stages;
    }

    /// The type of a node that is computed from no tensor.
    pub(super) fn type_of(&mut self, node: NodeId) -> Option<QType> {
        let Apart { program, options, types, .. } = self;
        let types = types.get_or_insert_with(|| {
            let given = |name: &str| options.input_types.get(name).cloned();
            // A tensor is a problem there, and only some problems are kept.
            let mut others = Program::clone(program);
            others.inputs.retain(|input| !matches!(type_of_input(input, options), Some(QType::Tensor(..))));
            cembra_prepare::node_types(&others, &given, &options.prepare)
        });
        types.get(node.index()).cloned().flatten()
    }
}
