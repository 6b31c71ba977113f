//! Rewriting: a graph becomes one with less to compute, whose results are the same. It is done once for a whole graph, operands before what
//! uses them; every rule is an entry of a table, those that users add are like those that are there.
//!
//! What is the same is meant bit for bit, any NaN being any other. Rules that are not exact in this sense need a switch each.

mod pattern;
mod rules;
mod views;

pub use pattern::RuleMatch;
pub use rules::{RewriteRule, rules};

use crate::body::{Body, Elements, LOOKED_AT};
use crate::node::{Labels, Node, Operation, Reduction};
use crate::{Data, ElementOperator, Tensor, TensorGraph, TensorNodeId};
use cembra_ops::{Law, OpId, Registry};
use cembra_value::Error;
use pattern::{Compiled, Match};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What a rule may change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Exactness {
    /// Nothing.
    Exact,
    /// The sign of zeros.
    SignedZeros,
    /// What becomes of infinities and NaN.
    FiniteOnly,
    /// The rounding of ordinary numbers: sums and products are taken in another order, or quotients as products.
    Reassociate,
    /// The rounding of ordinary numbers, and overflow: functions that undo each other.
    Inverses,
}

impl Exactness {
    /// Everything that is not exact.
    pub const ALL: [Exactness; 4] =
        [Exactness::SignedZeros, Exactness::FiniteOnly, Exactness::Reassociate, Exactness::Inverses];
}

/// Rewrites graphs by rules: those of the library, and before them those of the user.
#[derive(Clone, Debug)]
pub struct Rewriter {
    of_user: Vec<Arc<Compiled>>,
    allowed: Vec<Exactness>,
}

/// The rules of the library by the position of the operator that their pattern begins with. They are read once for a process: every
/// registry begins with the operators of the language, at the same positions.
fn library() -> &'static FxHashMap<u16, Vec<Compiled>> {
    /// At most the rules of the table.
    static LIBRARY: OnceLock<FxHashMap<u16, Vec<Compiled>>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut by_root: FxHashMap<u16, Vec<Compiled>> = FxHashMap::default();
        for rule in rules().iter().filter_map(|rule| Compiled::new(rule, Registry::standard()).ok()) {
            by_root.entry(rule.root()).or_default().push(rule);
        }
        by_root
    })
}

/// A graph that was rewritten.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The graph: what its outputs need, and its leaves.
    pub graph: TensorGraph,
    /// The outputs in it.
    pub outputs: Vec<TensorNodeId>,
    /// How often each rule made a node that is still needed.
    pub applied: BTreeMap<Arc<str>, usize>,
}

/// The most rules that are applied to what one node of the graph becomes.
const MOST_APPLIED: usize = 64;

impl Default for Rewriter {
    /// The rules of the library, of which those apply that are exact.
    fn default() -> Rewriter {
        Rewriter { of_user: Vec::new(), allowed: vec![Exactness::Exact] }
    }
}

impl Rewriter {
    /// With the rules of the library that change what this says, too.
    #[must_use]
    pub fn allow(mut self, exactness: Exactness) -> Rewriter {
        self.allowed.push(exactness);
        self
    }

    /// With a rule of the user, which is tried before those that are there.
    ///
    /// # Errors
    /// It is not of the form of rules, or names an operator that there is not.
    pub fn rule(mut self, rule: &RewriteRule<'_>, graph: &TensorGraph) -> Result<Rewriter, Error> {
        self.of_user.insert(0, Arc::new(Compiled::new(rule, graph.registry())?));
        Ok(self)
    }

    /// The rules that are allowed for an operator, in the order in which they are tried.
    fn of(&self, op: OpId) -> impl Iterator<Item = &Compiled> {
        let root = op.index() as u16;
        let of_user = self.of_user.iter().map(Arc::as_ref).filter(move |rule| rule.root() == root);
        let rules = of_user.chain(library().get(&root).into_iter().flatten());
        rules.filter(|rule| self.allowed.contains(&rule.exactness))
    }

    /// Rewrites what outputs of a graph need. The result is for dense tensors: a slice among zeros has lost the node that says how it is tiled.
    ///
    /// # Errors
    /// The graph that is made has too many nodes, or a constant fails.
    pub fn rewrite(
        &self,
        graph: &TensorGraph,
        outputs: &[TensorNodeId],
        elements: &dyn Elements,
    ) -> Result<Rewritten, Error> {
        let mut run = Rewriting {
            made: graph.successor(),
            rules: self,
            elements,
            names: FxHashMap::default(),
            uses: FxHashMap::default(),
            left: 0,
        };
        // All leaves stay, in their order: inputs are given by position.
        let needed = graph.needed_for_gradients(outputs);
        let mut uses = vec![0_u32; graph.len()];
        let operands = graph.nodes().filter(|(id, _)| needed[id.index()]).flat_map(|(_, node)| node.kept());
        for id in operands.chain(outputs) {
            uses[id.index()] += 1;
        }
        let mut new: Vec<Option<TensorNodeId>> = vec![None; graph.len()];
        for leaf in graph.leaves() {
            let node = graph.node(leaf.node);
            new[leaf.node.index()] = Some(run.made.leaf(&leaf.name, node.scalar, &node.extents)?);
        }
        for (id, node) in graph.nodes().filter(|(id, _)| needed[id.index()]) {
            if new[id.index()].is_some() {
                continue;
            }
            if id.index().is_multiple_of(LOOKED_AT) {
                elements.go_on()?;
            }
            let mut node = node.without_cuts();
            for operand in &mut node.operands {
                *operand = new[operand.index()].unwrap_or(*operand);
            }
            run.left = MOST_APPLIED;
            let made = run.node(node)?;
            *run.uses.entry(made).or_default() += uses[id.index()];
            new[id.index()] = Some(made);
        }
        let outputs: Vec<TensorNodeId> = outputs.iter().filter_map(|output| new[output.index()]).collect();
        let needed = run.made.needed(&outputs);
        let mut applied = BTreeMap::new();
        for (_, names) in run.names.iter().filter(|(node, _)| needed[node.index()]) {
            for name in names {
                *applied.entry(name.clone()).or_insert(0) += 1;
            }
        }
        Ok(Rewritten { graph: run.made, outputs, applied })
    }
}

/// One rewriting.
pub(crate) struct Rewriting<'r> {
    pub(crate) made: TensorGraph,
    rules: &'r Rewriter,
    elements: &'r dyn Elements,
    /// The rules that made a node, the last one last.
    names: FxHashMap<TensorNodeId, SmallVec<[Arc<str>; 1]>>,
    /// How often the nodes are used that became one.
    uses: FxHashMap<TensorNodeId, u32>,
    /// How many rules may still be applied.
    left: usize,
}

impl Rewriting<'_> {
    /// A node as what rules make of it. Replacements are of bounded depth, and their number is bounded too.
    pub(crate) fn node(&mut self, mut node: Node) -> Result<TensorNodeId, Error> {
        self.order_operands(&mut node);
        if let Some(folded) = self.folded(&node)? {
            return Ok(folded);
        }
        if let Some((name, replaced)) = self.replaced(&node)? {
            // What stands for a node has its type, and its extents: where it is smaller it is the same for all indices.
            let fitted = self.made.broadcast(replaced, &node.extents)?;
            let names = self.names.entry(fitted).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
            return Ok(fitted);
        }
        self.made.intern(node)
    }

    /// True if a node is used more than once, so that what is made in its place may be made beside it.
    pub(crate) fn is_shared(&self, node: TensorNodeId) -> bool {
        self.uses.get(&node).is_some_and(|uses| *uses > 1)
    }

    /// Operands of what is commutative in one order, constants first: so `x + y` and `y + x` are one node.
    fn order_operands(&self, node: &mut Node) {
        if let Operation::Map(op) = &node.operation
            && node.operands.len() == 2
            && self.made.registry().get(op.id()).laws.contains(&Law::Commutative)
        {
            let key = |id: &TensorNodeId| (!matches!(self.made.node(*id).operation, Operation::Constant(_)), *id);
            node.operands.sort_by_key(key);
        }
    }

    /// The value of an operator on constants.
    fn folded(&mut self, node: &Node) -> Result<Option<TensorNodeId>, Error> {
        let Operation::Map(op) = &node.operation else { return Ok(None) };
        let types = self.made.operand_types(op.id(), &node.operands);
        let mut operands = Vec::with_capacity(node.operands.len());
        for (operand, (scalar, literal)) in node.operands.iter().zip(&types) {
            let Operation::Constant(bits) = self.made.node(*operand).operation else { return Ok(None) };
            if literal.is_none() {
                operands.push(Tensor::of_data(&[], Data::of_bits(*scalar, bits)?)?);
            }
        }
        let body = Body::of_operator(op, &types, node.scalar);
        let made = self.elements.map(&body, &operands, &[])?;
        match made.first() {
            Some(data) if !data.is_empty() => self.made.constant_bits(node.scalar, data.bits(0)).map(Some),
            _ => Ok(None),
        }
    }

    /// What a rule makes of a node.
    fn replaced(&mut self, node: &Node) -> Result<Option<(Arc<str>, TensorNodeId)>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Operation::Map(op) = &node.operation {
            for rule in self.rules.of(op.id()) {
                let Some(found) = Match::of(rule, &self.made, node) else { continue };
                self.left -= 1;
                let made = self.build(rule, &found, node)?;
                // A rule that gives the node itself has nothing to say here.
                if self.made.node(made).scalar == node.scalar && self.made.node(made) != node {
                    return Ok(Some((rule.name.clone(), made)));
                }
            }
        }
        let Some((name, made)) = views::replaced(self, node)? else { return Ok(None) };
        self.left = self.left.saturating_sub(1);
        Ok(Some((name.into(), made)))
    }

    /// Builds the replacement of a rule; its parts are rewritten like all others.
    fn build(&mut self, rule: &Compiled, found: &Match, like: &Node) -> Result<TensorNodeId, Error> {
        let incomplete =
            || Error::tensors(crate::TensorErrorKind::Syntax, "a replacement that is not made of its pattern");
        let mut parts: Vec<TensorNodeId> = Vec::with_capacity(rule.replacement.len());
        for part in &rule.replacement {
            let made = match part {
                pattern::PatternNode::Variable(variable) | pattern::PatternNode::Constant(variable) => {
                    found.node(*variable).ok_or_else(incomplete)?
                }
                pattern::PatternNode::Number(number) => self.made.constant(found.scalar(&self.made, like), *number)?,
                pattern::PatternNode::Apply(op, operands) => {
                    let operands: SmallVec<[TensorNodeId; 2]> = operands.iter().map(|at| parts[*at]).collect();
                    self.map(*op, &operands)?
                }
            };
            parts.push(made);
        }
        parts.last().copied().ok_or_else(incomplete)
    }

    /// An operator on nodes that were rewritten.
    pub(crate) fn map(
        &mut self,
        op: impl Into<ElementOperator>,
        operands: &[TensorNodeId],
    ) -> Result<TensorNodeId, Error> {
        // The node as it would be made tells its type and extents.
        let plain = self.made.map(op, operands)?;
        let node = self.made.node(plain).clone();
        if matches!(node.operation, Operation::Map(_)) && self.left > 0 { self.node(node) } else { Ok(plain) }
    }

    /// A product by labels, rewritten.
    pub(crate) fn contract(&mut self, labels: Labels, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let plain = self.made.contract(labels, operands)?;
        self.again(plain)
    }

    /// A reduction, rewritten.
    pub(crate) fn reduce(
        &mut self,
        reduction: Reduction,
        operand: TensorNodeId,
        axes: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let plain = self.made.reduce(reduction, operand, axes)?;
        self.again(plain)
    }

    /// A node that was made as it is, rewritten.
    fn again(&mut self, plain: TensorNodeId) -> Result<TensorNodeId, Error> {
        let node = self.made.node(plain).clone();
        if self.left > 0 { self.node(node) } else { Ok(plain) }
    }
}
