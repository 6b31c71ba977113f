//! Aggregations that a loop computes together with the elements, without storing the elements: sums, counts and
//! extremes are part of the loop's state.
//!
//! Such a loop adds floats in the order of the elements. A sum over a stored array adds them in the same order only for
//! lists of up to [`CHAINS`](cembra_runtime::CHAINS) elements; for longer lists that sum uses several accumulators. So
//! a loop with a float sum also stores the elements, and the sum of a longer list is computed by the code for stored
//! arrays in `cembra_ops::column`.

use super::LoopFailure;
use super::nodes::Nodes;
use crate::{Step, ValueId};
use cembra_expr::NodeId;
use cembra_ops::{Finish, Fold, Quantity, id};
use cembra_prepare::{Id, Kind};
use cembra_runtime::{QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// The kind of state that a loop keeps for a fold (aggregation).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FoldKind {
    /// A sum of integers.
    Sum,
    /// A sum in FLOAT64. The order of the elements determines how it is rounded.
    FloatSum,
    /// The least element, or the greatest if `is_max`.
    Best { is_max: bool },
    /// No sum or extreme, only the number of present elements.
    Count,
}

impl FoldKind {
    /// The kind of `fold` over elements of type `scalar`; `None` if a loop cannot compute it as part of its state.
    fn of(fold: Fold, scalar: Scalar) -> Option<FoldKind> {
        let is_number = matches!(scalar, Scalar::Int32 | Scalar::Int64 | Scalar::Float32 | Scalar::Float64);
        Some(match fold.gathers.of(scalar) {
            Quantity::Count | Quantity::Missing => FoldKind::Count,
            _ if !is_number => return None,
            Quantity::Sum if scalar.is_integer() => FoldKind::Sum,
            Quantity::Sum | Quantity::FloatSum => FoldKind::FloatSum,
            Quantity::Min => FoldKind::Best { is_max: false },
            Quantity::Max => FoldKind::Best { is_max: true },
            _ => return None,
        })
    }
}

/// Returns true if the elements that a fold (aggregation) reads, of type `scalar`, must be stored as an array. This is
/// so if a loop cannot compute the fold, or can compute it only for short lists, such as a sum of floats.
pub(super) fn reads_column(fold: Fold, scalar: Scalar) -> bool {
    FoldKind::of(fold, scalar).is_none_or(|kind| kind == FoldKind::FloatSum)
}

/// A fold (aggregation) that a loop computes. The fold's state is part of the loop's state, at the indices `value` and
/// `count`.
#[derive(Debug)]
pub(super) struct LoopFold {
    /// The array that the fold aggregates.
    pub(super) array: ValueId,
    /// The value of the program that is the fold's result.
    pub(super) out: ValueId,
    fold: Fold,
    kind: FoldKind,
    element: QType,
    /// The position of the sum or the extreme in the loop's state; `None` for a count.
    value: Option<usize>,
    /// The position of the number of present elements in the loop's state; `None` if no element can be missing.
    count: Option<usize>,
    origin: NodeId,
}

impl LoopFold {
    /// Makes the fold (aggregation) for `step`, and appends the initial values of its state to `first`. Returns `None` if a
    /// loop cannot compute a fold of this kind.
    pub(super) fn begin(
        nodes: &mut Nodes,
        (step, fold): (&Step, Fold),
        (array, element): (ValueId, QType),
        first: &mut Vec<Id>,
    ) -> Option<LoopFold> {
        let scalar = element.scalar()?;
        let kind = FoldKind::of(fold, scalar)?;
        let mut part = |value: ScalarValue| {
            first.push(nodes.literal(Value::Scalar(value)));
            first.len() - 1
        };
        let value = match kind {
            FoldKind::Count => None,
            FoldKind::Sum => Some(part(ScalarValue::zero(scalar))),
            FoldKind::FloatSum => Some(part(0.0_f64.into())),
            FoldKind::Best { is_max } => Some(part(worst(scalar, is_max)?)),
        };
        let count = element.is_optional().then(|| part(0_i64.into()));
        Some(LoopFold { array, out: step.outs[0], fold, kind, element, value, count, origin: step.origin })
    }

    /// Appends to `next` the state of the fold (aggregation) after one more element.
    pub(super) fn advance(
        &self,
        nodes: &mut Nodes,
        state: &[Id],
        element: Id,
        next: &mut Vec<Id>,
    ) -> Result<(), LoopFailure> {
        if let Some(at) = self.value {
            let before = state[at];
            let after = match self.kind {
                FoldKind::Best { is_max } => {
                    let pair = if is_max { [before, element] } else { [element, before] };
                    let (further, is_nan) =
                        (nodes.apply(id::LESS, &pair)?, nodes.apply(id::NOT_EQUAL, &[element, element])?);
                    let is_better = nodes.apply(id::PRESENCE_OR, &[further, is_nan])?;
                    let there = self.or(nodes, element, before)?;
                    let qtype = nodes.qtype(before);
                    nodes.add(Kind::Where { overload: None }, &[is_better, there, before], &qtype)
                }
                _ => {
                    let wide = self.widen(nodes, element)?;
                    let sum = nodes.apply(id::ADD, &[before, wide])?;
                    self.or(nodes, sum, before)?
                }
            };
            next.push(after);
        }
        if let Some(at) = self.count {
            let (one, zero, has) = (nodes.number(1), nodes.number(0), nodes.apply(id::HAS, &[element])?);
            let one = nodes.apply(id::PRESENCE_AND, &[one, has])?;
            let one = nodes.apply(id::PRESENCE_OR, &[one, zero])?;
            next.push(nodes.apply(id::ADD, &[state[at], one])?);
        }
        Ok(())
    }

    /// Returns the fold's result, computed from the state after the loop and from `len`, the number of elements.
    pub(super) fn finish(&self, nodes: &mut Nodes, state: &[Id], len: Id) -> Result<Id, LoopFailure> {
        nodes.origin = self.origin;
        let count = self.count.map_or(len, |at| state[at]);
        let zero = nodes.number(0);
        let scalar = self.element.scalar().unwrap_or(Scalar::Unit);
        let value = self.value.map_or(count, |at| state[at]);
        Ok(match self.fold.finish {
            Finish::Count => count,
            Finish::Any => nodes.apply(id::LESS, &[zero, count])?,
            Finish::None => nodes.apply(id::EQUAL, &[count, len])?,
            Finish::Total => self.narrow(nodes, value, scalar)?,
            Finish::Sparse => {
                let (value, is_any) = (self.narrow(nodes, value, scalar)?, nodes.apply(id::LESS, &[zero, count])?);
                nodes.apply(id::PRESENCE_AND, &[value, is_any])?
            }
            Finish::Mean => {
                let mut parts = [value, count];
                let to = if scalar == Scalar::Float64 { id::TO_FLOAT64 } else { id::TO_FLOAT32 };
                for part in &mut parts {
                    *part = nodes.apply(to, &[*part])?;
                }
                let (mean, is_any) = (nodes.apply(id::DIVIDE, &parts)?, nodes.apply(id::LESS, &[zero, count])?);
                nodes.apply(id::PRESENCE_AND, &[mean, is_any])?
            }
        })
    }

    /// Returns true if the fold is a sum of floats, which depends on the order of the additions. A sum over a stored
    /// array adds in the same order only up to [`CHAINS`](cembra_runtime::CHAINS) elements.
    pub(super) fn depends_on_order(&self) -> bool {
        self.kind == FoldKind::FloatSum
    }

    /// Adds the node `value ?? other` to the graph: `value`, or `other` where `value` is missing. Returns `value`
    /// itself if no element can be missing.
    fn or(&self, nodes: &mut Nodes, value: Id, other: Id) -> Result<Id, LoopFailure> {
        if self.element.is_optional() { nodes.apply(id::PRESENCE_OR, &[value, other]) } else { Ok(value) }
    }

    /// Converts an element to the type of the sum. Integers become FLOAT32 before they become FLOAT64.
    fn widen(&self, nodes: &mut Nodes, element: Id) -> Result<Id, LoopFailure> {
        match self.element.scalar() {
            _ if self.kind != FoldKind::FloatSum => Ok(element),
            Some(Scalar::Float64) => Ok(element),
            Some(Scalar::Float32) => nodes.apply(id::TO_FLOAT64, &[element]),
            _ => {
                let single = nodes.apply(id::TO_FLOAT32, &[element])?;
                nodes.apply(id::TO_FLOAT64, &[single])
            }
        }
    }

    /// Converts a sum back to the type of the elements.
    fn narrow(&self, nodes: &mut Nodes, sum: Id, scalar: Scalar) -> Result<Id, LoopFailure> {
        let is_wide = self.kind == FoldKind::FloatSum && scalar == Scalar::Float32;
        if is_wide { nodes.apply(id::TO_FLOAT32, &[sum]) } else { Ok(sum) }
    }
}

/// The initial value of a maximum (`is_max`) or a minimum: the least or the greatest value of the type. `None` for
/// types that are not numbers.
fn worst(scalar: Scalar, is_max: bool) -> Option<ScalarValue> {
    Some(match (scalar, is_max) {
        (Scalar::Int32, true) => i32::MIN.into(),
        (Scalar::Int32, false) => i32::MAX.into(),
        (Scalar::Int64, true) => i64::MIN.into(),
        (Scalar::Int64, false) => i64::MAX.into(),
        (Scalar::Float32, true) => f32::NEG_INFINITY.into(),
        (Scalar::Float32, false) => f32::INFINITY.into(),
        (Scalar::Float64, true) => f64::NEG_INFINITY.into(),
        (Scalar::Float64, false) => f64::INFINITY.into(),
        _ => return None,
    })
}
