//! The kinds of tensor errors, for programs. The error itself is [`Error`](crate::Error).

use crate::Code;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// The kind of a tensor error, stable across versions.
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
    /// Extents that differ although neither is 1.
    Broadcast = "broadcast";
    /// The maximum or minimum of no elements.
    EmptyReduction = "empty-reduction";
    /// Sizes that differ: of the uses of a label, of the parts of a concatenation, or of a shape and its elements.
    SizeMismatch = "size-mismatch";
    /// A wrong number of axes, or more axes than a tensor may have.
    RankMismatch = "rank-mismatch";
    /// An axis that does not exist, or that is named twice.
    Axis = "axis";
    /// An index outside of its axis.
    Index = "index";
    /// Element types that an operator does not accept.
    ElementType = "element-type";
    /// A view to be written in which two indices map to one element.
    OverlappingTarget = "overlapping-target";
    /// A text that is not a statement, or not a list of labels.
    Syntax = "bad-syntax";
    /// A literal for which an operator cannot be compiled.
    Literal = "bad-literal";
    /// A text that is not a label.
    BadLabel = "bad-label";
    /// An output label that no operand has.
    UnknownOutputLabel = "unknown-output-label";
    /// An output label that occurs twice.
    RepeatedOutputLabel = "repeated-output-label";
    /// A number of operands that differs from the number of label lists.
    OperandCount = "operand-count";
    /// A label of one factor only that the target does not have.
    FreeLabel = "free-label-not-in-target";
    /// A label of an addend that the target does not have.
    ImplicitReduction = "implicit-reduction";
    /// A label that occurs twice in the target.
    RepeatedTargetLabel = "repeated-target-label";
    /// A label of the target that no operand has.
    UnboundTargetLabel = "target-label-unbound";
    /// A name that does not stand for a tensor.
    UnknownName = "unknown-name";
    /// An operator without a derivative, between the result and the variable of a derivative.
    NotDifferentiable = "not-differentiable";
    /// Boundaries of tiles that do not ascend, or tiles of size 0.
    Tiling = "bad-tiling";
    /// A negative norm of a tile, a negative threshold of norms, or a list of norms whose tiles do not ascend.
    Norm = "bad-norm";
    /// A file of tensors that is damaged, of another version or missing, or that cannot be written.
    File = "bad-file";
    /// A limit that a tensor or a graph exceeds.
    Limit = "limit";
    /// An element that could not be computed.
    Evaluation = "evaluation";
    /// A run that was cancelled.
    Cancelled = "cancelled";
    /// A run that exceeded its time.
    Deadline = "deadline";
    /// Ranks that compute together were given different programs, tilings, shapes or options.
    RanksDisagree = "ranks-disagree";
    /// A message between ranks that is damaged, of another version, of another plan, or not the expected one.
    Message = "bad-message";
    /// A message between ranks that did not arrive in time.
    Stalled = "stalled";
    /// A failed connection between ranks: a missing or wrong library, or a rank that is gone.
    Link = "no-link";
}

impl fmt::Display for TensorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TensorErrorKind {
    /// The code of an error of this kind.
    #[must_use]
    pub const fn code(self) -> Code {
        use TensorErrorKind as Kind;
        match self {
            Kind::Broadcast
            | Kind::EmptyReduction
            | Kind::SizeMismatch
            | Kind::RankMismatch
            | Kind::Axis
            | Kind::Index
            | Kind::Tiling
            | Kind::Norm => Code::Shape,
            Kind::BadLabel
            | Kind::UnknownOutputLabel
            | Kind::RepeatedOutputLabel
            | Kind::FreeLabel
            | Kind::ImplicitReduction
            | Kind::RepeatedTargetLabel
            | Kind::UnboundTargetLabel => Code::Labels,
            Kind::ElementType => Code::TypeMismatch,
            Kind::OperandCount => Code::Arguments,
            Kind::File => Code::Wire,
            Kind::UnknownName => Code::UnknownName,
            Kind::NotDifferentiable => Code::Derivative,
            Kind::Limit => Code::Limit,
            Kind::Evaluation => Code::Evaluation,
            Kind::Syntax => Code::Syntax,
            Kind::Literal => Code::Literal,
            Kind::RanksDisagree => Code::RanksDisagree,
            Kind::Message | Kind::Stalled | Kind::Link => Code::Link,
            Kind::OverlappingTarget | Kind::Cancelled | Kind::Deadline => Code::Tensors,
        }
    }
}
