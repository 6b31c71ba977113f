//! Graphs of operators over tensors, index labels, rewrites, derivatives, and plans of how a graph is computed. Tensors themselves are defined in
//! `cembra-value`. This crate evaluates graphs only by the slow reference ([`evaluate`]). Other crates implement [`Elements`], which evaluates
//! elementwise expressions, and the crate `engine` runs plans.

mod body;
mod composite;
mod constant;
mod contraction;
mod cotangent;
mod custom;
mod custom_gradient;
mod einsum;
mod gradient;
mod graph;
mod maps;
mod node;
pub mod plan;
mod product;
pub mod reference;
mod residuals;
mod reverse_pass;
mod rewrite;
mod statement;
pub mod sums;
mod taken;
mod tensor_bytes;
pub mod walk;

pub use body::{Body, BodyStep, Elements, Operand};
pub use cembra_runtime::MOST_AXES;
pub use cembra_value::tensor::{
    Buffer, CopiedAxis, Data, DataMut, Element, Extents, Half, HalfTensor, Layout, Slice, Strides, Tensor,
    TensorErrorKind, TensorMut, bf16, check_bytes, f16,
};
pub use constant::ConstantTensor;
pub use contraction::{LabelSet, ProductClass, ProductCost, ProductOrder};
pub use custom::{Custom, ElementForm, ElementReads, TensorOp, TensorType};
pub use custom_gradient::CustomVjp;
pub use einsum::MOST_LABELS;
pub use graph::{MOST_FACTORS, TensorGraph};
pub use maps::{ElementOperator, MapOperand};
pub use node::{Axes, Axis, Labels, Leaf, Node, Operation, Reduction, TensorNodeId};
pub use plan::{Plan, PlanCounters, pieces};
pub use product::{
    FusedLabels, Kernel, MatrixLayout, MatrixProduct, Multiplication, PlainProduct, Preparation, ProductPlan,
    ProductPositions, multiply_plainly,
};
pub use reference::{evaluate, same_bits};
pub use reverse_pass::ReversePass;
pub use rewrite::{Exactness, RewriteRule, Rewriter, Rewritten, RuleMatch, rules};
pub use statement::{Expression, FullReduction, Subexpression};
pub use taken::named_index;
pub use tensor_bytes::TensorBytes;
