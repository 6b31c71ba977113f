//! What is known of the values beside tensors while a program that has both is sorted: their types, and which of them tensors take.

use super::made::Whole;
use super::type_of_input;
use crate::compile_options::CompileOptions;
use cembra_expr::{NodeId, Program};
use cembra_runtime::QType;
use std::collections::BTreeMap;

/// What is known of values beside tensors while a program is sorted.
#[derive(Debug)]
pub(super) struct Apart<'p> {
    program: &'p Program,
    options: &'p CompileOptions,
    /// Which nodes are computed from a tensor, by position.
    pub(super) depends: Vec<bool>,
    /// Which nodes make a tuple with a tensor with axes in it, by position.
    pub(super) tuples_with_axes: Vec<bool>,
    /// The types of nodes that are not; found when the first is asked for.
    types: Option<Vec<Option<QType>>>,
    /// The values that tensors take from the other side, with the types that they have there.
    pub(super) imports: BTreeMap<NodeId, (QType, Whole)>,
    /// The nodes that are arrays of a tensor, with the type of the array.
    pub(super) arrays: BTreeMap<NodeId, QType>,
    /// A node without a type that a tensor was to take.
    pub(super) untyped: Option<NodeId>,
}

impl<'p> Apart<'p> {
    pub(super) fn new(program: &'p Program, options: &'p CompileOptions) -> Self {
        let depends = vec![false; program.graph.len()];
        let (tuples_with_axes, types, untyped) = (depends.clone(), None, None);
        let (imports, arrays) = (BTreeMap::new(), BTreeMap::new());
        Apart { program, options, depends, tuples_with_axes, types, imports, arrays, untyped }
    }

    /// True if a node is computed from a tensor.
    pub(super) fn depends(&self, node: NodeId) -> bool {
        self.depends[node.index()]
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
