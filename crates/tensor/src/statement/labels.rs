//! Determines which labels the value of every part of a labelled expression must have. The target requires its own
//! labels. A sum, or any other elementwise operator, requires from each operand the labels that the operand has, and
//! repeats the operand along the remaining labels. A factor of a product keeps a label if the label is required, or if
//! another factor has it too. A label of two factors that is not required is summed over, so parentheses around
//! products change nothing.

use super::tree::{ExpressionNode, Tree};
use super::whole::{FullReduction, check_trace};
use crate::{MOST_AXES, TensorErrorKind};
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::Error;
use cembra_value::Span;
use smallvec::SmallVec;

/// A set of axis labels, one bit per label.
pub(super) type Set = u128;

/// The result of resolving labels. For each part of a labelled expression: the labels that it has, and the labels that its value must have.
#[derive(Debug)]
pub(super) struct RequiredLabels {
    /// For each part of the expression, the set of labels that it has.
    pub(super) own: Vec<Set>,
    /// For each part of the expression, the set of labels that its value must have.
    pub(super) wanted: Vec<Set>,
    /// For each part of the expression, true if the part is computed as a separate value. A product or negation inside a larger product is merged
    /// into that product instead.
    pub(super) is_delivered: Vec<bool>,
}

/// A chain: a product with all its factors. The factors of products that are operands of the product are included, even
/// inside parentheses and negations.
#[derive(Default, Debug)]
pub(super) struct Chain {
    /// The factors of the product that are not numbers, in the order of the text.
    pub(super) factors: SmallVec<[u32; 4]>,
    /// The numbers by which the product is multiplied or divided, including signs, in the order of the text.
    scales: SmallVec<[Scale; 4]>,
}

/// A number by which a product is multiplied or divided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Scale {
    Times(f64),
    Over(f64),
}

impl Chain {
    /// Collects the factors and numbers of the part `product` of `tree`.
    pub(super) fn of(tree: &Tree, product: u32) -> Chain {
        let mut chain = Chain::default();
        // Parts, and the scales that come after them.
        let mut open: Vec<Result<u32, Scale>> = vec![Ok(product)];
        while let Some(next) = open.pop() {
            let part = match next {
                Ok(part) => part,
                Err(scale) => {
                    chain.scales.push(scale);
                    continue;
                }
            };
            match &tree.parts[part as usize] {
                ExpressionNode::Product(a, b) => open.extend([Ok(*b), Ok(*a)]),
                ExpressionNode::Negated(of) => open.extend([Err(Scale::Times(-1.0)), Ok(*of)]),
                ExpressionNode::Quotient(of, by) => open.extend([Err(Scale::Over(*by)), Ok(*of)]),
                ExpressionNode::Number(number) => chain.scales.push(Scale::Times(*number)),
                _ => chain.factors.push(part),
            }
        }
        chain
    }

    /// The product of all factors that are numbers.
    pub(super) fn number(&self) -> f64 {
        self.scales(Scalar::Float64).into_iter().fold(1.0, |number, scale| match scale {
            Scale::Times(by) => number * by,
            Scale::Over(by) => number / by,
        })
    }

    /// The numbers by which a product with elements of type `scalar` is scaled: the product of all factors that are
    /// numbers, and the product of all divisors. If one of these two is outside the range of the type, the single
    /// numbers are returned instead, because each may be within the range.
    pub(super) fn scales(&self, scalar: Scalar) -> SmallVec<[Scale; 4]> {
        let rounded = |number: f64| if scalar == Scalar::Float32 { f64::from(number as f32) } else { number };
        let (mut number, mut divisor) = (1.0, 1.0);
        for scale in &self.scales {
            match scale {
                Scale::Times(by) => number = rounded(number * by),
                Scale::Over(by) => divisor = rounded(divisor * by),
            }
        }
        let least = if scalar == Scalar::Float32 { f32::MIN_POSITIVE.into() } else { f64::MIN_POSITIVE };
        let has_zero =
            self.scales.iter().any(|scale| matches!(scale, Scale::Times(by) | Scale::Over(by) if *by == 0.0));
        let is_within = |product: f64| product.is_finite() && (product.abs() >= least || has_zero);
        if !scalar.is_float() || is_within(number) && is_within(divisor) {
            let both = [Scale::Times(number), Scale::Over(divisor)];
            return both.into_iter().filter(|scale| !scale.changes_nothing()).collect();
        }
        self.scales.clone()
    }

    /// The labels that more than one factor of the product has.
    pub(super) fn shared(&self, own: &[Set]) -> Set {
        let mut met = [0, 0];
        for factor in &self.factors {
            let labels = own[*factor as usize];
            met[1] |= met[0] & labels;
            met[0] |= labels;
        }
        met[1]
    }
}

impl Scale {
    fn changes_nothing(self) -> bool {
        matches!(self, Scale::Times(by) | Scale::Over(by) if by.to_bits() == 1.0_f64.to_bits())
    }
}

/// If `part` is the sum of all elements of a product, returns the product, which need not be computed before it is
/// summed. `None` if `part` is anything else.
pub(super) fn summed_product(tree: &Tree, part: u32) -> Option<Chain> {
    let ExpressionNode::FullReduction(FullReduction::Sum, of) = tree.parts[part as usize] else { return None };
    matches!(tree.parts[of as usize], ExpressionNode::Product(..)).then(|| Chain::of(tree, of))
}

/// The labels of a list as a set.
fn set(labels: &[u32]) -> Set {
    labels.iter().fold(0, |set, label| set | 1 << label)
}

impl RequiredLabels {
    /// Determines the labels that each part must have, for a target with the labels `target_labels`, which stand at `target_span`.
    pub(super) fn of(tree: &Tree, target_labels: &[u32], target_span: Span) -> Result<RequiredLabels, Error> {
        if tree.labels.len() > Set::BITS as usize {
            let message = format!("an expression has {} labels; the limit is {}", tree.labels.len(), Set::BITS);
            return Err(Error::tensors(TensorErrorKind::Limit, message).at(target_span));
        }
        let target = set(target_labels);
        let is_again = |at: &usize| target_labels[..*at].contains(&target_labels[*at]);
        if target.count_ones() as usize != target_labels.len()
            && let Some(at) = (0..target_labels.len()).find(is_again)
        {
            let message = format!("the target has the label `{}` twice", name(tree, target_labels[at]));
            return Err(Error::tensors(TensorErrorKind::RepeatedTargetLabel, message).at(target_span));
        }
        let mut own: Vec<Set> = Vec::with_capacity(tree.parts.len());
        for part in &tree.parts {
            own.push(match part {
                ExpressionNode::Tensor(_, labels) => set(labels),
                ExpressionNode::FullReduction(..) => 0,
                part => part.operands().into_iter().fold(0, |all, operand| all | own[operand as usize]),
            });
        }
        let root = tree.root() as usize;
        let mut wanted: Vec<Set> = vec![0; own.len()];
        let mut is_factor = vec![false; own.len()];
        let mut is_delivered = vec![false; own.len()];
        wanted[root] = target & own[root];
        is_delivered[root] = true;
        let demands = RequiredLabels { own, wanted: Vec::new(), is_delivered: Vec::new() };
        for part in (0..=tree.root()).rev().filter(|_| !tree.parts.is_empty()) {
            let at = part as usize;
            if !is_delivered[at] {
                continue;
            }
            let all = wanted[at];
            let mut demand = |operand: u32, labels: Set, factor: bool| {
                (wanted[operand as usize], is_factor[operand as usize]) = (labels, factor);
                is_delivered[operand as usize] = true;
            };
            match &tree.parts[at] {
                ExpressionNode::Tensor(..) | ExpressionNode::Number(_) => {
                    demands.check_leaf(tree, part, all, is_factor[at])?;
                }
                ExpressionNode::Product(..) => {
                    let chain = Chain::of(tree, part);
                    let shared = chain.shared(&demands.own);
                    for factor in chain.factors {
                        demand(factor, demands.own[factor as usize] & (all | shared), true);
                    }
                }
                // An operand without some of the labels is repeated along them.
                of @ (ExpressionNode::Negated(_)
                | ExpressionNode::Quotient(..)
                | ExpressionNode::Sum(..)
                | ExpressionNode::Difference(..)
                | ExpressionNode::Map(..)) => {
                    of.operands()
                        .iter()
                        .for_each(|operand| demand(*operand, demands.own[*operand as usize] & all, false));
                }
                ExpressionNode::FullReduction(whole, of) => {
                    let labels = demands.own[*of as usize];
                    if let Some(chain) = summed_product(tree, part) {
                        chain.factors.iter().for_each(|factor| demand(*factor, demands.own[*factor as usize], true));
                        continue;
                    }
                    if *whole == FullReduction::Trace {
                        check_trace(labels.count_ones() as usize).map_err(|error| error.at(tree.spans[at]))?;
                    }
                    demand(*of, labels, false);
                }
            }
        }
        if let Some(at) = wanted.iter().position(|labels| labels.count_ones() as usize > MOST_AXES) {
            let message = format!(
                "a part of the expression has {} labels; the limit for a tensor is {MOST_AXES} axes",
                wanted[at].count_ones()
            );
            return Err(Error::tensors(TensorErrorKind::Limit, message).at(tree.spans[at]));
        }
        Ok(RequiredLabels { wanted, is_delivered, ..demands })
    }

    /// Returns the error for a label of the target that no part has; `None` if each label of the target is in a part. Other errors are reported
    /// before this one, because a label that no part has is often a misspelling of another one.
    pub(super) fn unbound(&self, tree: &Tree, target_labels: &[u32]) -> Option<Error> {
        let label = first(set(target_labels) & !self.own[tree.root() as usize])?;
        let message = format!("the label `{}` of the target is in no part of the expression", name(tree, label));
        Some(Error::tensors(TensorErrorKind::UnboundTargetLabel, message))
    }

    /// Checks that all labels of a tensor or number are wanted, because nothing else sums over them.
    fn check_leaf(&self, tree: &Tree, part: u32, wanted: Set, is_factor: bool) -> Result<(), Error> {
        let own = self.own[part as usize];
        let Some(label) = first(own & !wanted) else { return Ok(()) };
        let label = name(tree, label);
        let (kind, message) = if is_factor {
            (TensorErrorKind::FreeLabel, format!("the label `{label}` is only in one factor, and not in the target"))
        } else {
            (TensorErrorKind::ImplicitReduction, format!("the label `{label}` is not in the target"))
        };
        Err(Error::tensors(kind, message).at(tree.spans[part as usize]).hint(
            "sum over the label before, by `tensor.sum` in a model and `einsum` in Rust, or add it to the target",
        ))
    }
}

fn first(labels: Set) -> Option<u32> {
    (labels != 0).then(|| labels.trailing_zeros())
}

fn name(tree: &Tree, label: u32) -> Excerpt<'_> {
    Excerpt::quoted(&tree.labels[label as usize])
}
