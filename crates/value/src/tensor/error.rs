//! The kinds of errors of tensors, which programs look at. The error itself is [`Error`](crate::Error).

use crate::Code;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// The kind of an error of tensors, stable across versions.
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
    /// A label of a target that stands twice.
    RepeatedTargetLabel = "repeated-target-label";
    /// A label of a target that no operand has.
    UnboundTargetLabel = "target-label-unbound";
    /// A name that stands for no tensor.
    UnknownName = "unknown-name";
    /// An operator without a derivative, on the way from what is differentiated.
    NotDifferentiable = "not-differentiable";
    /// Boundaries of tiles that do not ascend, or tiles of size 0.
    Tiling = "bad-tiling";
    /// A norm of a tile, or a threshold of norms, that is negative, or a list of norms whose tiles do not ascend.
    Norm = "bad-norm";
    /// A file of tensors that is damaged, of another version or not there, or that cannot be written.
    File = "bad-file";
    /// A limit that a tensor or a graph exceeds.
    Limit = "limit";
    /// An element that could not be computed.
    Evaluation = "evaluation";
    /// A run that somebody ended.
    Cancelled = "cancelled";
    /// A run whose time was over.
    Deadline = "deadline";
    /// Ranks that compute together were given different programs, tilings, shapes or options.
    RanksDisagree = "ranks-disagree";
    /// A message between ranks that is damaged, of another version, of another plan, or not the one that was awaited.
    Message = "bad-message";
    /// A message between ranks that did not come within the time there is to wait for it.
    Stalled = "stalled";
    /// No way between ranks: no library for it, or a wrong one, or a rank that is gone.
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
