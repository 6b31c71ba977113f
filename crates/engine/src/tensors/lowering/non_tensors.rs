//! Facts about the values that are not tensors, collected while a program with tensors and other values is split into parts: the types of these
//! values, and whether tensors are computed from them.

use super::made::LoweredTensor;
use super::tilings::is_tiled;
use super::type_of_input;
use crate::options::compile_options::CompileOptions;
use cembra_expr::{NodeId, Program};
use cembra_runtime::QType;
use std::collections::BTreeMap;

/// The dependence of a node on tensors: whether the node is computed from tensors, and whether operators that tensors
/// do not have are used for that.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct TensorDependence {
    /// True if the node is computed from a tensor.
    pub(super) depends: bool,
    /// True if the node is computed from a tensor by operators that tensors do not have. If a tensor is made from such a node, the last part of the
    /// program computes it, and that part is split again.
    pub(super) is_after_tensors: bool,
}

/// The facts that are collected about values that are not tensors, until a program is split into parts.
#[derive(Debug)]
pub(super) struct NonTensorFacts<'p> {
    program: &'p Program,
    options: &'p CompileOptions,
    /// The dependence of each node on tensors, by the node's index.
    stages: Vec<TensorDependence>,
    /// For each node, true if the node makes a tuple that contains a tensor with axes.
    pub(super) tuples_with_axes: Vec<bool>,
    /// The types of nodes that do not depend on tensors, computed when `type_of` is first called; `None` before.
    types: Option<Vec<Option<QType>>>,
    /// The values that tensors are computed from and that other parts of the program compute. For each value: its type in that part, and the tensor
    /// that it becomes.
    pub(super) imports: BTreeMap<NodeId, (QType, LoweredTensor)>,
    /// The nodes that convert a tensor to an array, each with the type of the array.
    pub(super) arrays: BTreeMap<NodeId, QType>,
    /// A node without a type that was used as a tensor; `None` if no such node was found.
    pub(super) untyped: Option<NodeId>,
    /// True if the program's text cuts tensors into tiles.
    pub(super) is_tiled: bool,
}

impl<'p> NonTensorFacts<'p> {
    pub(super) fn new(program: &'p Program, options: &'p CompileOptions) -> Self {
        let (stages, tuples_with_axes) =
            (vec![TensorDependence::default(); program.graph.len()], vec![false; program.graph.len()]);
        let (imports, arrays, is_tiled) = (BTreeMap::new(), BTreeMap::new(), is_tiled(program));
        NonTensorFacts {
            program,
            options,
            stages,
            tuples_with_axes,
            types: None,
            imports,
            arrays,
            untyped: None,
            is_tiled,
        }
    }

    /// Returns true if `node` is computed from a tensor.
    pub(super) fn depends(&self, node: NodeId) -> bool {
        self.stages[node.index()].depends
    }

    /// Returns true if `node` is computed from a tensor by operators that tensors do not have.
    pub(super) fn is_after_tensors(&self, node: NodeId) -> bool {
        self.stages[node.index()].is_after_tensors
    }

    /// Records how `node` depends on tensors.
    pub(super) fn set_stages(&mut self, node: NodeId, stages: TensorDependence) {
        self.stages[node.index()] = stages;
    }

    /// The type of `node`, which must not depend on tensors; `None` if it has no type.
    pub(super) fn type_of(&mut self, node: NodeId) -> Option<QType> {
        let NonTensorFacts { program, options, types, .. } = self;
        let types = types.get_or_insert_with(|| {
            let given = |name: &str| options.input_types.get(name).cloned();
            // For `node_types`, an input that is a tensor is an error. Only some errors are kept, so such inputs are
            // left out.
            let mut others = Program::clone(program);
            others.inputs.retain(|input| !matches!(type_of_input(input, options), Some(QType::Tensor(..))));
            cembra_prepare::node_types(&others, &given, &options.prepare)
        });
        types.get(node.index()).cloned().flatten()
    }
}
