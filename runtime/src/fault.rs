//! Faults: the ways in which an operator can fail at run time, each with its number, its name and its message. Also the
//! layout of a fault in the C interface.

use crate::layout::layout;
use crate::{Excerpt, Scalar, Text};

/// The status of an evaluation that finished.
pub const STATUS_OK: i32 = 0;
/// The status of an evaluation that stopped at a fault; the context's record says which.
pub const STATUS_FAULT: i32 = 1;

/// The ways an operator can fail at run time. The list is exhaustive, so that the compiler reports a new kind to every `match`.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FaultKind {
    /// A floor division or a modulus by zero.
    DivisionByZero = 1,
    /// A cast of a value that the target type cannot hold; the operand is the value.
    CastRange = 2,
    /// An operator requires a value, and the value is missing.
    MissingValue = 3,
    /// An assertion does not hold; the operand is the message, a view of a text.
    Assertion = 4,
    /// An evaluation makes more strings than its arena may hold; the operand is the limit in bytes.
    ArenaLimit = 5,
    /// An argument is outside of an operator's domain; the operands are a view of a text with the reason, or zeros.
    Invalid = 6,
    /// A text cannot be parsed, because it does not have the required form; the operand is the text.
    Parse = 7,
    /// The evaluation's token was cancelled. Not the fault of any operator.
    Cancelled = 8,
    /// The loops of an evaluation run more rounds than allowed; the operand is the limit.
    IterationLimit = 9,
    /// An index is outside of a sequence; the operands are the index and the sequence's size.
    IndexRange = 10,
    /// An evaluation does more work on strings than it may; the operand is the limit. Any operator that reads strings can end with this fault, and
    /// none of them causes it.
    WorkLimit = 11,
    /// Arrays that belong together have different sizes; the operands are two of these sizes.
    SizeMismatch = 12,
    /// The deadline of the evaluation's token has passed. Not the fault of any operator.
    Deadline = 13,
    /// A computed date or timestamp is outside of the years 1 to 9999, or a computed duration does not fit in 64 bits; the operand is the value
    /// from which it is computed.
    TimeRange = 14,
}

impl FaultKind {
    /// Returns true if this kind is a fault of the whole evaluation, not of the operator that noticed it.
    #[must_use]
    pub const fn is_of_evaluation(self) -> bool {
        matches!(self, FaultKind::WorkLimit) || self.is_of_token()
    }

    /// Returns true if this kind is the fault of a token that ended the evaluation: the token was cancelled, or its deadline has passed.
    #[must_use]
    pub const fn is_of_token(self) -> bool {
        matches!(self, FaultKind::Cancelled | FaultKind::Deadline)
    }

    /// The kinds of faults, in the order of their numbers.
    pub const ALL: [FaultKind; 14] = [
        FaultKind::DivisionByZero,
        FaultKind::CastRange,
        FaultKind::MissingValue,
        FaultKind::Assertion,
        FaultKind::ArenaLimit,
        FaultKind::Invalid,
        FaultKind::Parse,
        FaultKind::Cancelled,
        FaultKind::IterationLimit,
        FaultKind::IndexRange,
        FaultKind::WorkLimit,
        FaultKind::SizeMismatch,
        FaultKind::Deadline,
        FaultKind::TimeRange,
    ];

    /// Returns the kind with this number; `None` if no kind has it.
    #[must_use]
    pub fn from_number(number: u32) -> Option<FaultKind> {
        FaultKind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }

    /// Returns the name of this kind of fault, as in the documentation and in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::DivisionByZero => "div-by-zero",
            FaultKind::CastRange => "cast-range",
            FaultKind::MissingValue => "missing-value",
            FaultKind::Assertion => "assertion",
            FaultKind::ArenaLimit => "arena-limit",
            FaultKind::Invalid => "invalid",
            FaultKind::Parse => "parse",
            FaultKind::Cancelled => "cancelled",
            FaultKind::IterationLimit => "iteration-limit",
            FaultKind::IndexRange => "index-range",
            FaultKind::WorkLimit => "work-limit",
            FaultKind::SizeMismatch => "size-mismatch",
            FaultKind::Deadline => "deadline",
            FaultKind::TimeRange => "time-range",
        }
    }

    /// Describes the fault in words. `operand` is the operand as it is written for people, if it is known. `result` is the type of the operator's
    /// result. `text` is the text that the fault's operands refer to, for the kinds that have one. Long texts are cut.
    #[must_use]
    pub fn describe(self, operand: Option<&str>, result: &str, text: &str) -> String {
        match (self, operand) {
            (FaultKind::DivisionByZero, _) => "division by zero".to_owned(),
            (FaultKind::CastRange, Some(operand)) => format!("{operand} does not fit into {result}"),
            (FaultKind::CastRange, None) => format!("the value does not fit into {result}"),
            (FaultKind::MissingValue, _) => "expects a present value, got missing".to_owned(),
            (FaultKind::Assertion, _) => format!("assertion failed: {}", Excerpt::message(text)),
            (FaultKind::ArenaLimit, _) if text.is_empty() => {
                "the strings of one evaluation exceed the limit `arena_bytes`".to_owned()
            }
            (FaultKind::ArenaLimit, _) => Excerpt::message(text).to_string(),
            (FaultKind::IterationLimit, _) => {
                "the loops of one evaluation run more rounds than the limit `loop_iterations`".to_owned()
            }
            (FaultKind::WorkLimit, _) => {
                "one evaluation does more work on strings than the limit `string_work`".to_owned()
            }
            (FaultKind::IndexRange, Some(operand)) => format!("the sequence has no element {operand}"),
            (FaultKind::IndexRange, None) => "the sequence has no such element".to_owned(),
            (FaultKind::Invalid, _) if text.is_empty() => "an argument is outside of the operator's domain".to_owned(),
            (FaultKind::Invalid, _) => Excerpt::message(text).to_string(),
            (FaultKind::Parse, Some(operand)) => format!("cannot parse {operand}"),
            (FaultKind::Parse, None) => format!("cannot parse {}", Excerpt::quoted(text).literal()),
            (FaultKind::SizeMismatch, _) => format!("argument sizes mismatch: {text}"),
            (FaultKind::Cancelled, _) => "the evaluation was cancelled".to_owned(),
            (FaultKind::Deadline, _) => "the time limit of the evaluation is over".to_owned(),
            (FaultKind::TimeRange, operand) => {
                let what = match operand {
                    Some(operand) => format!("the {result} made of {operand}"),
                    None => format!("the {result}"),
                };
                // A duration has no year.
                match [Scalar::Date, Scalar::Timestamp].iter().any(|moment| result.starts_with(moment.short_name())) {
                    true => format!("{what} is outside the years 1 to 9999"),
                    false => format!("{what} does not fit into 64 bits of microseconds"),
                }
            }
        }
    }
}

/// A failure of one operator: its kind, and up to 16 bytes about it (the bits of operands, or the address and length of a text).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind of the operator's failure.
    pub kind: FaultKind,
    /// The bits of the fault's operands, zero-extended; or a view of a text, as address and length.
    pub operands: [u64; 2],
}

impl Fault {
    /// Makes a fault without operands.
    #[must_use]
    pub const fn new(kind: FaultKind) -> Self {
        Fault { kind, operands: [0; 2] }
    }

    /// Makes a fault with the bits of one operand.
    #[must_use]
    pub const fn with(kind: FaultKind, bits: u64) -> Self {
        Fault { kind, operands: [bits, 0] }
    }
}

/// A fault in the layout of the C interface. Its texts are valid until the evaluator is used again.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct FaultView {
    pub(crate) kind: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) unused: u32,
    pub(crate) operands: [u64; 2],
    pub(crate) operator_name: Text<'static>,
    pub(crate) message: Text<'static>,
}

layout! {
    FaultView: u32 {
        KIND_OFFSET = (offset of kind);
        START_OFFSET = (offset of start);
        END_OFFSET = (offset of end);
        OPERANDS_OFFSET = (offset of operands);
        OPERATOR_NAME_OFFSET = (offset of operator_name);
        MESSAGE_OFFSET = (offset of message);
        SIZE = (size);
    }
}
