//! Graphs of operators over tensors, index labels, and what is known of a graph before it is run. What a tensor is, is said by
//! `cembra-value`. This crate knows neither backends nor how expressions of elements are evaluated: [`Elements`] is what does that.

mod access;
mod body;
mod composite;
mod constant;
mod contraction;
mod custom;
mod custom_gradient;
mod einsum;
mod gradient;
mod graph;
mod held;
mod maps;
mod node;
mod plan;
mod product;
mod reference;
mod residuals;
mod rewrite;
mod statement;
mod sums;
mod taken;
mod walk;

pub use access::Reader;
pub use body::{
    Body, BodyStep, Elements, InputLine, Line, LineKernel, OneLine, OneTarget, Operand, Single, Soon, SumKernel, Task,
};
pub use cembra_runtime::MOST_AXES;
pub use cembra_value::tensor::{
    CopiedAxis, Data, DataMut, Element, Extents, Half, HalfTensor, Layout, Slice, Strides, Tensor,
    TensorError as Error, TensorErrorKind as ErrorKind, TensorMut, bf16, check_bytes, f16,
};
pub use constant::ConstantTensor;
pub use contraction::{ProductClass, ProductOrder};
pub use custom::{Custom, ElementForm, Meta, TensorOp, Wanted};
pub use custom_gradient::CustomVjp;
pub use einsum::MOST_LABELS;
pub use graph::{Graph, MOST_FACTORS};
pub use maps::{ElementOperator, MapOperand};
pub use node::{Axes, Axis, Labels, Leaf, Node, NodeId, Operation, Reduction};
pub use plan::{BoundPlan, KeptPlan, Plan, PlanCounters, pieces};
pub use product::{
    Counters, Kernel, MatrixLayout, MatrixProduct, Multiplication, Places, PlainProduct, PlannedProduct, Preparation,
    ProductPlan, Products, Run, contract,
};
pub use reference::{evaluate, same_bits};
pub use residuals::Residuals;
pub use rewrite::{Exactness, Found, Rewriter, Rewritten, Rule, rules};
pub use statement::{Expression, Part, Whole};
