//! Statements over labelled tensors, `c("i,j") = a("i,k") * b("k,j")`, as text: a grammar of its own, beside the language of models.
//! What is wrong with labels alone is found when a text is read, before there are tensors; the rest when a statement is made a graph.

mod expression;
mod labels;
mod lower;
mod syntax;

pub use expression::{Expression, Part};
pub use syntax::Assign;

use crate::{Error, Graph, NodeId};
use cembra_runtime::Scalar;
use cembra_value::Span;
use syntax::Tree;

/// Statements, to be run one after the other.
///
/// ```
/// use cembra_tensor::{ErrorKind, Program};
///
/// let program = Program::parse(r#"c("i,j") = 2.0 * a("i,k") * b("k,j") - d("j,i")"#)?;
/// assert_eq!(program.statements()[0].target(), "c");
/// assert_eq!(program.statements()[0].names().collect::<Vec<_>>(), ["a", "b", "d"]);
/// let wrong = Program::parse(r#"c("i,j") = a("i,k") * b("k,l")"#).unwrap_err();
/// assert_eq!(wrong.kind(), ErrorKind::FreeLabel);
/// # Ok::<(), cembra_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    statements: Vec<Statement>,
}

/// A statement: what is assigned to what.
#[derive(Clone, Debug)]
pub struct Statement {
    target: String,
    target_span: Span,
    /// The labels of the target's axes; numbers of the tree's labels.
    target_labels: Vec<u32>,
    assign: Assign,
    tree: Tree,
}

/// A statement on tensors whose element types and extents are known.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The graph. Its leaves are called as the tensors that they stand for.
    pub graph: Graph,
    /// What the target is to be.
    pub value: NodeId,
}

impl Program {
    /// Reads statements, each on a line of its own or behind a `;`.
    ///
    /// # Errors
    /// The first text that is no statement, or whose labels cannot be.
    pub fn parse(text: &str) -> Result<Program, Error> {
        let statements = syntax::parse(text)?;
        statements.iter().try_for_each(labels::check)?;
        Ok(Program { statements })
    }

    /// The statements in their order.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }
}

impl Statement {
    /// The name of what is assigned to.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// How it is assigned.
    #[must_use]
    pub const fn assign(&self) -> Assign {
        self.assign
    }

    /// The names that stand in the expression, each once, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tree.names.iter().map(String::as_str)
    }

    /// The statement as a graph, for tensors of the types and extents that `find` tells of their names. The target need not be among
    /// them if it is only written.
    ///
    /// # Errors
    /// A name that stands for no tensor, or tensors that do not fit the labels.
    pub fn graph<'t>(
        &self,
        graph: Graph,
        find: impl Fn(&str) -> Option<(Scalar, &'t [usize])>,
    ) -> Result<Assignment, Error> {
        lower::lower(self, graph, &find)
    }
}
