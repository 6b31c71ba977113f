//! Rewriting: a graph is replaced by a graph that computes the same results with less work. All nodes of a graph are
//! rewritten once, operands before their users. Rules on elementwise operators are entries of a table, and user-defined
//! rules are entries like those of the library.
//!
//! Two results are the same if they are equal bit for bit, where all NaNs are equal. Each kind of rule that may change
//! results must be allowed explicitly.

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

/// The ways in which a rewrite rule may change results, from no change to other roundings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Exactness {
    /// The rule changes no bit of a result, except that a NaN may be another NaN.
    Exact,
    /// The rule may change the sign of zeros.
    SignedZeros,
    /// The rule may change results that are computed from infinities and NaN.
    FiniteOnly,
    /// The rule may change the rounding of ordinary numbers: sums and products are computed in another order, or quotients as products.
    Reassociate,
    /// The rule may change the rounding of ordinary numbers, and overflow: a function and its inverse, applied one after the other, are left out.
    Inverses,
}

impl Exactness {
    /// All ways in which a rule may change results, without `Exact`.
    pub const ALL: [Exactness; 4] =
        [Exactness::SignedZeros, Exactness::FiniteOnly, Exactness::Reassociate, Exactness::Inverses];
}

/// Rewrites graphs by rules: user-defined rules first, then those of the library.
#[derive(Clone, Debug)]
pub struct Rewriter {
    of_user: Vec<Arc<Compiled>>,
    allowed: Vec<Exactness>,
}

/// The rules of the library, by the position of their pattern's outermost operator in the registry. They are parsed
/// once per process, because every registry begins with the operators of the language, at the same positions.
fn library() -> &'static FxHashMap<u16, Vec<Compiled>> {
    /// Has at most the rules of the table.
    static LIBRARY: OnceLock<FxHashMap<u16, Vec<Compiled>>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut by_root: FxHashMap<u16, Vec<Compiled>> = FxHashMap::default();
        for rule in rules().iter().filter_map(|rule| Compiled::new(rule, Registry::standard()).ok()) {
            by_root.entry(rule.root()).or_default().push(rule);
        }
        by_root
    })
}

/// The result of rewriting a graph: the new graph and its outputs.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The new graph: the rewritten nodes that the outputs need, and all leaves.
    pub graph: TensorGraph,
    /// The rewritten outputs, as nodes of the new graph.
    pub outputs: Vec<TensorNodeId>,
    /// For each rule, by its name, the number of nodes that it created and that the outputs still need.
    pub applied: BTreeMap<Arc<str>, usize>,
}

/// The most rules that are applied for one node of the old graph.
const MOST_APPLIED: usize = 64;

impl Default for Rewriter {
    /// The rules of the library that are exact.
    fn default() -> Rewriter {
        Rewriter { of_user: Vec::new(), allowed: vec![Exactness::Exact] }
    }
}

impl Rewriter {
    /// Also allows the rules that change results in the way `exactness`.
    #[must_use]
    pub fn allow(mut self, exactness: Exactness) -> Rewriter {
        self.allowed.push(exactness);
        self
    }

    /// Adds a user-defined rule to the list of rewrite rules. The rule is tried before the rules that were added so
    /// far.
    ///
    /// # Errors
    /// If the rule's pattern or replacement is not valid, or names an operator that does not exist.
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

    /// Rewrites the nodes that `outputs` need, and returns a new graph. The new graph is for dense tensors only: an operation that places a slice
    /// among zeros no longer has the operand from which its result takes the tiles (blocks).
    ///
    /// # Errors
    /// If the new graph has too many nodes, an operator fails on constants, or [`elements.go_on`](Elements::go_on) ends the rewriting.
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
            let mut node = node.without_tiling_only_operands();
            for operand in &mut node.operands {
                *operand = new[operand.index()].unwrap_or(*operand);
            }
            run.left = MOST_APPLIED;
            run.made.set_span(graph.span(id));
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

/// The state while one graph is rewritten: the new graph, the rules, and the number of uses of each new node.
pub(crate) struct Rewriting<'r> {
    pub(crate) made: TensorGraph,
    rules: &'r Rewriter,
    elements: &'r dyn Elements,
    /// The rules that made a node, in the order in which they were applied.
    names: FxHashMap<TensorNodeId, SmallVec<[Arc<str>; 1]>>,
    /// For each new node, the number of uses of the old nodes that became it.
    uses: FxHashMap<TensorNodeId, u32>,
    /// The number of rules that may still be applied for the current node.
    left: usize,
}

impl Rewriting<'_> {
    /// Returns the node by which the rules replace `node`, or `node` itself if no rule applies. The number of rules
    /// that are applied for one node is limited.
    pub(crate) fn node(&mut self, mut node: Node) -> Result<TensorNodeId, Error> {
        self.order_operands(&mut node);
        if let Some(folded) = self.folded(&node)? {
            return Ok(folded);
        }
        if let Some((name, replaced)) = self.replaced(&node)? {
            // A replacement has the node's type. If its extents are smaller, it is the same for all indices.
            let fitted = self.made.broadcast(replaced, &node.extents)?;
            let names = self.names.entry(fitted).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
            return Ok(fitted);
        }
        self.made.intern(node)
    }

    /// Returns true if a node has several users. If it were replaced for one user only, both the node and its replacement would be computed.
    pub(crate) fn is_shared(&self, node: TensorNodeId) -> bool {
        self.uses.get(&node).is_some_and(|uses| *uses > 1)
    }

    /// Sorts the operands of commutative operators, constants first: so `x + y` and `y + x` are one node.
    fn order_operands(&self, node: &mut Node) {
        if let Operation::Map(op) = &node.operation
            && node.operands.len() == 2
            && self.made.registry().get(op.id()).laws.contains(&Law::Commutative)
        {
            let key = |id: &TensorNodeId| (!matches!(self.made.node(*id).operation, Operation::Constant(_)), *id);
            node.operands.sort_by_key(key);
        }
    }

    /// Returns the value of an operator whose operands are all constants, as a constant; `None` if an operand is not a
    /// constant.
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

    /// The replacement of a node by the first rule that applies, with the rule's name; `None` if no rule does.
    fn replaced(&mut self, node: &Node) -> Result<Option<(Arc<str>, TensorNodeId)>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Operation::Map(op) = &node.operation {
            for rule in self.rules.of(op.id()) {
                let Some(found) = Match::of(rule, &self.made, node) else { continue };
                self.left -= 1;
                let made = self.build(rule, &found, node)?;
                // A rule that gives the node itself changes nothing.
                if self.made.node(made).scalar == node.scalar && self.made.node(made) != node {
                    return Ok(Some((rule.name.clone(), made)));
                }
            }
        }
        let Some((name, made)) = views::replaced(self, node)? else { return Ok(None) };
        self.left = self.left.saturating_sub(1);
        Ok(Some((name.into(), made)))
    }

    /// Builds the replacement of a rule. The nodes of the replacement are rewritten like other nodes.
    fn build(&mut self, rule: &Compiled, found: &Match, like: &Node) -> Result<TensorNodeId, Error> {
        let incomplete = || {
            Error::tensors(crate::TensorErrorKind::Syntax, "a replacement must be built from the parts of its pattern")
        };
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

    /// Applies an elementwise operator to rewritten nodes, and rewrites the new node.
    pub(crate) fn map(
        &mut self,
        op: impl Into<ElementOperator>,
        operands: &[TensorNodeId],
    ) -> Result<TensorNodeId, Error> {
        // The node as it would be made has the type and extents.
        let plain = self.made.map(op, operands)?;
        let node = self.made.node(plain).clone();
        if matches!(node.operation, Operation::Map(_)) && self.left > 0 { self.node(node) } else { Ok(plain) }
    }

    /// Adds a product by labels to the new graph, and rewrites the product.
    pub(crate) fn contract(&mut self, labels: Labels, operands: &[TensorNodeId]) -> Result<TensorNodeId, Error> {
        let plain = self.made.contract(labels, operands)?;
        self.again(plain)
    }

    /// Adds a reduction to the new graph, and rewrites the reduction.
    pub(crate) fn reduce(
        &mut self,
        reduction: Reduction,
        operand: TensorNodeId,
        axes: &[usize],
    ) -> Result<TensorNodeId, Error> {
        let plain = self.made.reduce(reduction, operand, axes)?;
        self.again(plain)
    }

    /// Rewrites a node that was made without rules.
    fn again(&mut self, plain: TensorNodeId) -> Result<TensorNodeId, Error> {
        let node = self.made.node(plain).clone();
        if self.left > 0 { self.node(node) } else { Ok(plain) }
    }
}
