//! What is wrong with tensors, or with what is asked of them: a kind that programs look at, a sentence for people.

use crate::Span;
use cembra_runtime::{Excerpt, FaultKind};
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// The kind of an [`TensorError`], stable across versions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum TensorErrorKind { $($(#[$doc])* $kind,)* }

        impl TensorErrorKind {
            /// Every kind.
            pub const ALL: &[TensorErrorKind] = &[$(TensorErrorKind::$kind),*];

            /// The kind as text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(TensorErrorKind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Extents that differ where neither is 1.
    Broadcast = "broadcast";
    /// The largest or smallest of no elements.
    EmptyReduction = "empty-reduction";
    /// Uses of a label, parts of a concatenation or a shape and its elements whose sizes differ.
    SizeMismatch = "size-mismatch";
    /// Another number of axes than the tensor has, or more than a tensor may have.
    RankMismatch = "rank-mismatch";
    /// An axis that there is not, or one named twice.
    Axis = "axis";
    /// A position outside of its axis.
    Index = "index";
    /// Element types that an operator does not take.
    ElementType = "element-type";
    /// A view that maps two indices to one element, where it is to be written.
    OverlappingTarget = "overlapping-target";
    /// A text that is no statement, or no list of labels.
    Syntax = "bad-syntax";
    /// A literal that an operator cannot be compiled from.
    Literal = "bad-literal";
    /// What is no label.
    BadLabel = "bad-label";
    /// An output label that no operand has.
    UnknownOutputLabel = "unknown-output-label";
    /// An output label that stands twice.
    RepeatedOutputLabel = "repeated-output-label";
    /// Another number of operands than of lists of labels.
    OperandCount = "operand-count";
    /// A label of one factor alone, which the target does not have.
    FreeLabel = "free-label-not-in-target";
    /// A label of an addend, which the target does not have.
    ImplicitReduction = "implicit-reduction";
    /// Addends whose labels differ.
    AddendLabels = "addend-label-mismatch";
    /// A label of a target that stands twice.
    RepeatedTargetLabel = "repeated-target-label";
    /// A label of a target that no operand has.
    UnboundTargetLabel = "target-label-unbound";
    /// A name that stands for no tensor.
    UnknownName = "unknown-name";
    /// An operator without a derivative, on the way from what is differentiated.
    NotDifferentiable = "not-differentiable";
    /// A limit that a tensor or a graph exceeds.
    Limit = "limit";
    /// An element that could not be computed.
    Evaluation = "evaluation";
    /// A run that somebody ended.
    Cancelled = "cancelled";
    /// A run whose time was over.
    Deadline = "deadline";
}

impl fmt::Display for TensorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is wrong with tensors, or with what is asked of them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TensorError(Box<Problem>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Problem {
    kind: TensorErrorKind,
    message: String,
    hint: Option<String>,
    span: Option<Span>,
    fault: Option<ElementFault>,
}

/// Why an element could not be computed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct ElementFault {
    kind: FaultKind,
    /// The operator that failed; none if a run was ended.
    operator: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl TensorError {
    /// An error with no place yet. A long message is cut.
    #[must_use]
    #[cold]
    pub fn new(kind: TensorErrorKind, message: impl Into<String>) -> Self {
        let message = Excerpt::of_message(message.into());
        TensorError(Box::new(Problem { kind, message, hint: None, span: None, fault: None }))
    }

    /// Says what to try.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(Excerpt::of_message(hint.into()));
        self
    }

    /// Says which fault of an evaluation it was, and of which operator.
    #[must_use]
    pub fn of_fault(mut self, kind: FaultKind, operator: Option<&str>) -> Self {
        self.0.fault = Some(ElementFault { kind, operator: operator.map(str::to_owned) });
        self
    }

    /// Says where in the text, unless that is known already. The default span, of nothing at the beginning, says that there is no text.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        if span != Span::default() {
            self.0.span.get_or_insert(span);
        }
        self
    }

    /// What kind of problem it is.
    #[must_use]
    pub fn kind(&self) -> TensorErrorKind {
        self.0.kind
    }

    /// The fault, if an evaluation failed.
    #[must_use]
    pub fn fault_kind(&self) -> Option<FaultKind> {
        self.0.fault.as_ref().map(|fault| fault.kind)
    }

    /// The name of the operator of a fault, if it is known.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        self.0.fault.as_ref()?.operator.as_deref()
    }

    /// What to try, if anything is known.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Where in the text, if there is one.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.0.span
    }
}
