//! The kinds of tensor errors, for programs. The error itself is [`Error`](crate::Error).

use crate::Code;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal;)*) => {
        /// The kind of a tensor error, stable across versions, for programs that handle it.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum TensorErrorKind { $($(#[$doc])* $kind,)* }

        impl TensorErrorKind {
            /// All kinds of tensor errors.
            pub const ALL: &[TensorErrorKind] = &[$(TensorErrorKind::$kind),*];

            /// The kind of the tensor error as text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(TensorErrorKind::$kind => $name,)* }
            }
        }
    };
}

kinds! {
    /// Extents of operands differ although neither is 1, so the operands cannot be broadcast.
    Broadcast = "broadcast";
    /// The maximum or minimum of no elements was requested.
    EmptyReduction = "empty-reduction";
    /// Sizes differ: of the uses of a label, of the parts of a concatenation, or of a shape and its elements.
    SizeMismatch = "size-mismatch";
    /// A tensor has a wrong number of axes, or more axes than it may have.
    RankMismatch = "rank-mismatch";
    /// An axis does not exist, or is named twice.
    Axis = "axis";
    /// An index is outside of the range of its axis.
    Index = "index";
    /// An operator on tensors does not accept the types of its operands' elements.
    ElementType = "element-type";
    /// Two indices of a view that is written map to one element.
    OverlappingTarget = "overlapping-target";
    /// A text is not a statement, or not a list of labels.
    Syntax = "bad-syntax";
    /// An operator on tensors cannot be compiled for the literal that it is given.
    Literal = "bad-literal";
    /// A text is not a label.
    BadLabel = "bad-label";
    /// A label of the output occurs in no operand.
    UnknownOutputLabel = "unknown-output-label";
    /// A label occurs twice in the output.
    RepeatedOutputLabel = "repeated-output-label";
    /// The number of operands differs from the number of label lists.
    OperandCount = "operand-count";
    /// A label occurs in one factor only, and not in the target.
    FreeLabel = "free-label-not-in-target";
    /// A label of an addend does not occur in the target.
    ImplicitReduction = "implicit-reduction";
    /// A label occurs twice in the target.
    RepeatedTargetLabel = "repeated-target-label";
    /// A label of the target occurs in no operand.
    UnboundTargetLabel = "target-label-unbound";
    /// A name does not stand for a tensor.
    UnknownName = "unknown-name";
    /// An operator between the result and the variable of a derivative has no derivative.
    NotDifferentiable = "not-differentiable";
    /// Boundaries of tiles do not ascend, or tiles have size 0.
    Tiling = "bad-tiling";
    /// A norm of a tile or a threshold of norms is negative, or a list of norms has tiles that do not ascend.
    Norm = "bad-norm";
    /// A file of tensors is damaged, of another version or missing, or cannot be written.
    File = "bad-file";
    /// A tensor or a graph exceeds a limit.
    Limit = "limit";
    /// An element of a tensor could not be computed.
    Evaluation = "evaluation";
    /// A run on tensors was cancelled by its token.
    Cancelled = "cancelled";
    /// A run on tensors exceeded its time limit.
    Deadline = "deadline";
    /// Ranks that compute together were given different programs, tilings, shapes or options.
    RanksDisagree = "ranks-disagree";
    /// A message between ranks is damaged, of another version, of another plan, or not the expected one.
    Message = "bad-message";
    /// A message between ranks did not arrive in time.
    Stalled = "stalled";
    /// A connection between ranks failed: the library is missing or wrong, or a rank is gone.
    Link = "no-link";
}

impl fmt::Display for TensorErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl TensorErrorKind {
    /// The code of errors that have this kind.
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
