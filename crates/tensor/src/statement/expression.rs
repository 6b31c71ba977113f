//! Expressions over labelled tensors, such as `a("i,k") * b("k,j")`, built one operation at a time. Tensors are given
//! as nodes of a graph, without names.

use super::FullReduction;
use super::labels::RequiredLabels;
use super::lower::Lowering;
use super::tree::{self, Positions, Tree};
use crate::{ElementOperator, TensorErrorKind, TensorGraph, TensorNodeId};
use cembra_value::Error;
use cembra_value::Span;

/// A part of a labelled expression: a tensor, a number or an operation. A part can be an operand of only one other
/// part, because that other part decides which labels the value of this part has. A value that is needed twice must be
/// built twice.
#[derive(PartialEq, Eq, Debug)]
pub struct Subexpression(u32);

/// An expression over labelled tensors, with the labels of the target that the expression is assigned to. The part that
/// is added last is the root of the expression.
///
/// ```
/// use cembra_runtime::Scalar;
/// use cembra_tensor::{Expression, TensorGraph};
/// use cembra_value::Span;
///
/// let mut g = TensorGraph::standard();
/// let a = g.leaf("a", Scalar::Float64, &[2, 3])?;
/// let b = g.leaf("b", Scalar::Float64, &[3, 4])?;
/// let here = Span::default();
/// let mut e = Expression::new("i,j", here)?;
/// let (a, b) = (e.tensor(a, "i,k", here)?, e.tensor(b, "k,j", here)?);
/// e.product(a, b, here)?;
/// let product = e.lower(&mut g)?;
/// assert_eq!(g.extents(product), [2, 4]);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    tree: Tree,
    known_labels: Positions,
    target_labels: Vec<u32>,
    target_span: Span,
    nodes: Vec<TensorNodeId>,
}

impl Expression {
    /// The most parts that an expression may have.
    const MOST_PARTS: usize = 1 << 20;

    /// Begins an expression for a target with the labels `target`, such as `i,j`. `span` is the location of these
    /// labels in the source text.
    ///
    /// # Errors
    /// If a text between the commas of `target` is not a label.
    pub fn new(target: &str, span: Span) -> Result<Expression, Error> {
        let (mut tree, mut known_labels) = (Tree::default(), Positions::new());
        // The labels of the target have the first numbers, which is the order of axes.
        let target_labels = tree.read_labels(&mut known_labels, target).map_err(|error| error.at(span))?;
        Ok(Expression { tree, known_labels, target_labels, target_span: span, nodes: Vec::new() })
    }

    /// Checks that an expression may have `parts` parts.
    ///
    /// # Errors
    /// If it would have too many parts.
    pub fn check_room(parts: usize) -> Result<(), Error> {
        if parts <= Self::MOST_PARTS {
            return Ok(());
        }
        Err(Error::tensors(
            TensorErrorKind::Limit,
            format!("a labelled expression has more than {} parts, which is the limit", Self::MOST_PARTS),
        ))
    }

    /// Appends a part, whose operands must be parts of this expression.
    fn push(&mut self, part: tree::ExpressionNode, span: Span) -> Result<Subexpression, Error> {
        Self::check_room(self.tree.parts.len() + 1).map_err(|error| error.at(span))?;
        if part.operands().iter().any(|operand| *operand as usize >= self.tree.parts.len()) {
            return Err(
                Error::tensors(TensorErrorKind::UnknownName, "an operand is a part of another expression").at(span)
            );
        }
        Ok(Subexpression(self.tree.push(part, span)))
    }

    /// Adds a tensor to the expression: a node of the graph, with a label for each of its axes. `labels` are separated
    /// by commas. A label that occurs twice selects a diagonal.
    ///
    /// # Errors
    /// If a text between the commas of `labels` is not a label, or there are too many parts.
    pub fn tensor(&mut self, node: TensorNodeId, labels: &str, span: Span) -> Result<Subexpression, Error> {
        let labels = self.tree.read_labels(&mut self.known_labels, labels).map_err(|error| error.at(span))?;
        self.nodes.push(node);
        self.push(tree::ExpressionNode::Tensor(self.nodes.len() as u32 - 1, labels), span)
    }

    /// Adds a number to the expression. The number gets the element type of the part that it is combined with.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn number(&mut self, number: f64, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Number(number), span)
    }

    /// Adds a part to the expression: the negation of the part `of`.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn negated(&mut self, of: Subexpression, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Negated(of.0), span)
    }

    /// Adds a part to the expression: the sum of two parts. Each part is repeated along the labels that only the other
    /// part has.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn sum(&mut self, a: Subexpression, b: Subexpression, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Sum(a.0, b.0), span)
    }

    /// Adds a part to the expression: the difference of two parts. Each part is repeated along the labels that only the
    /// other part has.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn difference(&mut self, a: Subexpression, b: Subexpression, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Difference(a.0, b.0), span)
    }

    /// Adds a part to the expression: the product of two parts. If both parts have a label, the product is summed over
    /// it, unless the target or the enclosing parts need the label.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn product(&mut self, a: Subexpression, b: Subexpression, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Product(a.0, b.0), span)
    }

    /// Adds a part to the expression: the quotient `of / by` of two parts: a division by a number, or a division
    /// element by element.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn quotient(&mut self, of: Subexpression, by: Subexpression, span: Span) -> Result<Subexpression, Error> {
        match self.tree.parts.get(by.0 as usize) {
            Some(tree::ExpressionNode::Number(by)) => {
                let by = *by;
                self.push(tree::ExpressionNode::Quotient(of.0, by), span)
            }
            _ => self.map(cembra_ops::id::DIVIDE, [of, by], span),
        }
    }

    /// Adds a part to the expression: an elementwise operator, with its string literals, on parts. A part without some
    /// of the labels that the other parts have is repeated along these labels.
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn map(
        &mut self,
        op: impl Into<ElementOperator>,
        parts: impl IntoIterator<Item = Subexpression>,
        span: Span,
    ) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::Map(op.into(), parts.into_iter().map(|part| part.0).collect()), span)
    }

    /// Adds a part to the expression: the reduction of all elements of the part `of` to one number, which has no
    /// labels.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{Expression, TensorGraph, FullReduction};
    /// use cembra_value::Span;
    ///
    /// let mut g = TensorGraph::standard();
    /// let [a, b] = [("a", [2, 3]), ("b", [3, 2])].map(|(name, extents)| g.leaf(name, Scalar::Float64, &extents));
    /// let here = Span::default();
    /// let mut e = Expression::new("", here)?;
    /// let (a, b) = (e.tensor(a?, "i,k", here)?, e.tensor(b?, "k,j", here)?);
    /// let product = e.product(a, b, here)?;
    /// e.whole(FullReduction::Sum, product, here)?;
    /// let sum = e.lower(&mut g)?;
    /// assert!(g.extents(sum).is_empty());
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are too many parts.
    pub fn whole(&mut self, whole: FullReduction, of: Subexpression, span: Span) -> Result<Subexpression, Error> {
        self.push(tree::ExpressionNode::FullReduction(whole, of.0), span)
    }

    /// Builds the node of the expression, with an axis for each label of the target.
    ///
    /// # Errors
    /// If labels contradict each other or do not fit the tensors, or the expression has no parts.
    pub fn lower(&self, graph: &mut TensorGraph) -> Result<TensorNodeId, Error> {
        if self.tree.parts.is_empty() {
            return Err(Error::tensors(TensorErrorKind::Syntax, "an expression has no parts").at(self.target_span));
        }
        let demands = RequiredLabels::of(&self.tree, &self.target_labels, self.target_span)?;
        if let Some(unbound) = demands.unbound(&self.tree, &self.target_labels) {
            return Err(unbound.at(self.target_span));
        }
        Lowering::new(&self.tree, demands, graph, &self.nodes).value()
    }

    /// Builds the node of the expression, as an operand that is combined with the target's own elements, for example in
    /// `target += expression`. `extents` are the extents of the target's axes. The node broadcasts along labels of the target
    /// that no part has.
    ///
    /// ```
    /// use cembra_runtime::Scalar;
    /// use cembra_tensor::{Expression, TensorGraph};
    /// use cembra_value::Span;
    ///
    /// let mut g = TensorGraph::standard();
    /// let e = g.leaf("e", Scalar::Float64, &[3])?;
    /// let here = Span::default();
    /// let mut rows = Expression::new("i,j", here)?;
    /// rows.tensor(e, "j", here)?;
    /// assert!(rows.lower(&mut g).is_err());
    /// let row = rows.lower_beside(&mut g, &[2, 3])?;
    /// assert_eq!(g.extents(row), [1, 3]);
    /// # Ok::<(), cembra_value::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the target does not have one label per extent, labels contradict each other or do not fit the extents or the tensors, or the expression has
    /// no parts.
    pub fn lower_beside(&self, graph: &mut TensorGraph, extents: &[usize]) -> Result<TensorNodeId, Error> {
        if self.tree.parts.is_empty() {
            return Err(Error::tensors(TensorErrorKind::Syntax, "an expression has no parts").at(self.target_span));
        }
        if extents.len() != self.target_labels.len() {
            let message =
                format!("{} labels are given for a target with {} axes", self.target_labels.len(), extents.len());
            return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
        }
        let demands = RequiredLabels::of(&self.tree, &self.target_labels, self.target_span)?;
        Lowering::new(&self.tree, demands, graph, &self.nodes).value_beside(&self.target_labels, extents)
    }
}
