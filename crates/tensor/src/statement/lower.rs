//! Builds the graph nodes of labelled expressions. Labels are numbered, and the labels of the target have the first numbers. The node of a part has
//! an axis for each label of the part, in the order of the label numbers, so the parts fit each other without transpositions.

use super::labels::{Chain, RequiredLabels, Scale, Set, summed_product};
use super::tree::{ExpressionNode, Tree};
use crate::node::{Labels, Operation};
use crate::{Axis, ElementOperator, Extents, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_ops::{OpId, id};
use cembra_runtime::{Excerpt, Scalar};
use cembra_value::Error;
use cembra_value::Span;
use smallvec::SmallVec;

/// The state of building the graph nodes of a labelled expression.
pub(super) struct Lowering<'s> {
    tree: &'s Tree,
    demands: RequiredLabels,
    graph: &'s mut TensorGraph,
    /// The graph nodes of the expression's tensors.
    leaves: &'s [TensorNodeId],
    /// The extent of each label; `None` until it is known.
    extents: Vec<Option<usize>>,
    /// The node of each part that is computed as a value of its own; `None` until it is built.
    made: Vec<Option<TensorNodeId>>,
}

fn labels_of(set: Set) -> impl Iterator<Item = u32> {
    (0..Set::BITS).filter(move |label| set >> label & 1 != 0)
}

impl<'s> Lowering<'s> {
    pub(super) fn new(
        tree: &'s Tree,
        demands: RequiredLabels,
        graph: &'s mut TensorGraph,
        leaves: &'s [TensorNodeId],
    ) -> Self {
        let (extents, made) = (vec![None; tree.labels.len()], vec![None; tree.parts.len()]);
        Lowering { tree, demands, graph, leaves, extents, made }
    }

    /// Builds the node of the complete expression.
    pub(super) fn value(&mut self) -> Result<TensorNodeId, Error> {
        for part in 0..self.tree.parts.len() {
            if self.demands.is_delivered[part] {
                let span = self.tree.spans[part];
                if span != Span::default() {
                    self.graph.set_span(Some(span));
                }
                let made = self.part(part as u32).map_err(|error| error.at(span))?;
                self.made[part] = Some(made);
            }
        }
        self.node(self.tree.root())
    }

    /// Builds the node of the complete expression, as an operand that is combined with a target of the given labels and
    /// extents. The node broadcasts along labels that no part has.
    pub(super) fn value_beside(&mut self, target: &[u32], extents: &[usize]) -> Result<TensorNodeId, Error> {
        for (label, extent) in target.iter().zip(extents) {
            self.meet(*label, *extent)?;
        }
        let (node, root) = (self.value()?, self.tree.root());
        if self.demands.wanted[root as usize] == 0 {
            return Ok(node);
        }
        self.beside(root, target.iter().fold(0, |labels, label| labels | 1 << label))
    }

    /// The node of a part, which was built before.
    fn node(&self, part: u32) -> Result<TensorNodeId, Error> {
        self.made[part as usize]
            .ok_or_else(|| Error::tensors(TensorErrorKind::Syntax, "a part of the expression has no value"))
    }

    fn part(&mut self, at: u32) -> Result<TensorNodeId, Error> {
        let tree = self.tree;
        Ok(match &tree.parts[at as usize] {
            ExpressionNode::Tensor(name, labels) => self.tensor(self.leaves[*name as usize], labels)?,
            // A number alone. Numbers in products belong to their chains.
            ExpressionNode::Number(number) => self.graph.constant(Scalar::Float64, *number)?,
            ExpressionNode::Negated(of) => self.graph.map(id::NEG, &[self.node(*of)?])?,
            ExpressionNode::Quotient(of, by) => self.with_number(id::DIVIDE, *of, *by)?,
            ExpressionNode::Sum(a, b) => self.combined(id::ADD, [*a, *b], self.demands.wanted[at as usize])?,
            ExpressionNode::Difference(a, b) => {
                self.combined(id::SUBTRACT, [*a, *b], self.demands.wanted[at as usize])?
            }
            ExpressionNode::Product(..) => self.product(&Chain::of(tree, at), self.demands.wanted[at as usize])?,
            ExpressionNode::Map(op, of) => self.mapped(op, of, self.demands.wanted[at as usize])?,
            ExpressionNode::FullReduction(whole, of) => match summed_product(tree, at) {
                Some(chain) => self.product(&chain, 0)?,
                None => whole.of(self.graph, self.node(*of)?)?,
            },
        })
    }

    /// Builds the node of a tensor with its labels in order. Axes with the same label are a diagonal.
    fn tensor(&mut self, leaf: TensorNodeId, labels: &[u32]) -> Result<TensorNodeId, Error> {
        let extents: Extents = self.graph.extents(leaf).into();
        if extents.len() != labels.len() {
            let message = format!("{} labels are given for a tensor of {} axes", labels.len(), extents.len());
            let error = Error::tensors(TensorErrorKind::RankMismatch, message);
            return Err(if labels.is_empty() {
                error.hint("write the labels of its axes after it: `a(\"i,j\")`")
            } else {
                error
            });
        }
        for (label, extent) in labels.iter().zip(&extents) {
            self.meet(*label, *extent)?;
        }
        let mut order: SmallVec<[u32; 8]> = labels.into();
        order.sort_unstable();
        order.dedup();
        let to: SmallVec<[usize; 8]> = labels.iter().map(|label| order.binary_search(label).unwrap_or(0)).collect();
        if to.iter().enumerate().all(|(axis, to)| axis == *to) { Ok(leaf) } else { self.graph.with_axes(leaf, &to) }
    }

    /// Records the extent of a label. Returns an error if another extent of the label is recorded already.
    fn meet(&mut self, label: u32, extent: usize) -> Result<(), Error> {
        let known = *self.extents[label as usize].get_or_insert(extent);
        if known == extent {
            return Ok(());
        }
        let name = Excerpt::quoted(&self.tree.labels[label as usize]);
        Err(Error::tensors(
            TensorErrorKind::SizeMismatch,
            format!("the label `{name}` has {known} indices in one place and {extent} in another"),
        ))
    }

    /// Builds a sum or a difference of two parts, which broadcast along labels that they lack.
    fn combined(&mut self, op: OpId, [a, b]: [u32; 2], wanted: Set) -> Result<TensorNodeId, Error> {
        match [a, b].map(|part| self.tree.parts[part as usize].clone()) {
            [_, ExpressionNode::Number(number)] => self.with_number(op, a, number),
            [ExpressionNode::Number(number), _] => {
                let number = self.graph.constant(self.graph.scalar(self.node(b)?), number)?;
                self.graph.map(op, &[number, self.node(b)?])
            }
            _ => {
                let both = [self.beside(a, wanted)?, self.beside(b, wanted)?];
                self.graph.map(op, &both)
            }
        }
    }

    /// Applies an operator to a part of the labelled expression and to a number. The number gets the type of the part.
    fn with_number(&mut self, op: OpId, part: u32, number: f64) -> Result<TensorNodeId, Error> {
        let node = self.node(part)?;
        let number = self.graph.constant(self.graph.scalar(node), number)?;
        self.graph.map(op, &[node, number])
    }

    /// Builds a product, including the numbers among its factors.
    fn product(&mut self, chain: &Chain, wanted: Set) -> Result<TensorNodeId, Error> {
        let made = match chain.factors.as_slice() {
            [] => return self.graph.constant(Scalar::Float64, chain.number()),
            factors => self.multiplied(factors, wanted)?,
        };
        self.scaled(made, chain)
    }

    /// Multiplies or divides a node by the numbers of its product.
    fn scaled(&mut self, mut made: TensorNodeId, chain: &Chain) -> Result<TensorNodeId, Error> {
        let scalar = self.graph.scalar(made);
        for scale in chain.scales(scalar) {
            made = match scale {
                Scale::Times(by) if by.to_bits() == (-1.0_f64).to_bits() => self.graph.map(id::NEG, &[made])?,
                Scale::Times(by) => {
                    let number = self.graph.constant(scalar, by)?;
                    self.graph.map(id::MULTIPLY, &[number, made])?
                }
                Scale::Over(by) => {
                    let divisor = self.graph.constant(scalar, by)?;
                    self.graph.map(id::DIVIDE, &[made, divisor])?
                }
            };
        }
        Ok(made)
    }

    /// Builds the product of `factors`, summed over the labels that are not in `wanted`.
    fn multiplied(&mut self, factors: &[u32], wanted: Set) -> Result<TensorNodeId, Error> {
        let delivered = |factor: &u32| self.demands.wanted[*factor as usize];
        let all = factors.iter().fold(0, |all, factor| all | delivered(factor));
        if all == wanted {
            return self.elementwise(factors, wanted);
        }
        let numbers: Vec<u32> = labels_of(all).collect();
        let number = |label: u32| numbers.iter().position(|known| *known == label).unwrap_or(0) as Axis;
        let mut labels = Labels { operands: Vec::new(), output: labels_of(wanted).map(number).collect() };
        let mut nodes = Vec::with_capacity(factors.len());
        for factor in factors {
            nodes.push(self.node(*factor)?);
            labels.operands.push(labels_of(self.demands.wanted[*factor as usize]).map(number).collect());
        }
        self.graph.contract(labels, &nodes)
    }

    /// Builds the product of factors element by element, where nothing is summed.
    fn elementwise(&mut self, factors: &[u32], wanted: Set) -> Result<TensorNodeId, Error> {
        let mut product = None;
        for factor in factors {
            let node = self.beside(*factor, wanted)?;
            product = Some(match product {
                Some(product) => self.graph.map(id::MULTIPLY, &[product, node])?,
                None => node,
            });
        }
        product.ok_or_else(|| Error::tensors(TensorErrorKind::OperandCount, "a product of nothing"))
    }

    /// Reshapes a part to an axis for each label of `wanted`. Labels that it lacks are axes of extent 1, which broadcast.
    fn beside(&mut self, part: u32, wanted: Set) -> Result<TensorNodeId, Error> {
        let own = self.demands.wanted[part as usize];
        let node = self.node(part)?;
        let mut axes = self.graph.extents(node).iter().copied();
        let extents: Extents =
            labels_of(wanted).map(|label| if own >> label & 1 == 0 { 1 } else { axes.next().unwrap_or(1) }).collect();
        self.graph.reshape(node, &extents)
    }

    /// Applies an operator to the elements of parts. Parts that are numbers get the common type of the other parts.
    fn mapped(&mut self, op: &ElementOperator, parts: &[u32], wanted: Set) -> Result<TensorNodeId, Error> {
        let mut nodes: SmallVec<[TensorNodeId; 3]> = SmallVec::new();
        let mut numbers: SmallVec<[(usize, f64); 3]> = SmallVec::new();
        for (at, part) in parts.iter().enumerate() {
            if let ExpressionNode::Number(number) = self.tree.parts[*part as usize] {
                numbers.push((at, number));
            }
            let node = self.node(*part)?;
            // A literal needs no axes, because it broadcasts to everything.
            let is_literal = matches!(self.graph.node(node).operation, Operation::Constant(_));
            nodes.push(if is_literal { node } else { self.beside(*part, wanted)? });
        }
        let others: SmallVec<[TensorNodeId; 3]> = (nodes.iter().enumerate())
            .filter(|(at, _)| numbers.iter().all(|(number, _)| number != at))
            .map(|(_, node)| *node)
            .collect();
        for (at, number) in numbers {
            nodes[at] = self.graph.number(number, &others)?;
        }
        self.graph.map(op.clone(), &nodes)
    }
}
