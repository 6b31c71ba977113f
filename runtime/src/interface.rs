//! The agreement between machine code, object files and this crate: the numbers of the functions in the table, the offsets of fields that several of
//! them read, and the results of the mathematical functions. Code that outlives its process may only run with a crate of the same agreement.
//!
//! Only [`layout!`](crate::layout) gives offsets to code generators, and its constants are part of the agreement. If [`facts`] lacks the layout of a
//! type, a constant of that type is unused, which is a compile error.

use crate::fault::FaultView;
use crate::object_model::{LiteralText, Site};
use crate::{
    Bytes, Column, Context, FaultKind, KernelCall, ObjectModel, QType, RegisterResult, RuntimeFn, STATUS_FAULT,
    STATUS_OK, Scalar, math,
};
use std::sync::OnceLock;

/// The revision of everything that this crate and machine code agree on. It must be raised with every change of [`interface`]. People tell
/// agreements apart by the revision, programs by [`interface_fingerprint`].
pub const INTERFACE_REVISION: u32 = 13;

/// A fact of the agreement between machine code and this crate: its name, and its number.
pub(crate) type Fact = (String, u64);

/// The agreement between machine code and this crate as text: one line per function, offset, layout and fault, each with its number.
#[must_use]
pub fn interface() -> String {
    text(&facts())
}

/// A hash of the text of [`interface`]. Object files contain this hash.
#[must_use]
pub fn interface_fingerprint() -> u64 {
    static OWN: OnceLock<u64> = OnceLock::new();
    *OWN.get_or_init(|| fingerprint(&interface()))
}

/// Collects the facts of the agreement between machine code and this crate, in the order in which [`interface`] lists them.
pub(crate) fn facts() -> Vec<Fact> {
    let mut facts: Vec<Fact> = vec![
        ("revision".to_owned(), INTERFACE_REVISION.into()),
        ("mathematics".to_owned(), math::MATHEMATICS.into()),
        ("status of a success".to_owned(), STATUS_OK as u64),
        ("status of a fault".to_owned(), STATUS_FAULT as u64),
        ("status of a missing result".to_owned(), RegisterResult::STATUS_MISSING as u64),
    ];
    let layouts = [
        Context::LAYOUT,
        Column::LAYOUT,
        KernelCall::LAYOUT,
        RegisterResult::LAYOUT,
        Bytes::LAYOUT,
        ObjectModel::LAYOUT,
        LiteralText::LAYOUT,
        Site::LAYOUT,
        FaultView::LAYOUT,
    ];
    facts.extend(layouts.concat().into_iter().map(|(part, number)| (part.to_owned(), number)));
    for scalar in Scalar::ALL {
        let (plain, optional) = (QType::Scalar(scalar), QType::Optional(scalar));
        for qtype in [&plain, &optional] {
            facts.push((format!("{}.size", qtype.name()), qtype.layout().size.into()));
            facts.push((format!("{}.align", qtype.name()), qtype.layout().align.into()));
        }
        facts
            .extend(optional.optional_value_offset().map(|value| (format!("{}.value", optional.name()), value.into())));
    }
    facts.extend(RuntimeFn::ALL.iter().enumerate().map(|(number, function)| {
        let (arguments, result) = function.signature();
        let context = if function.takes_context() { " context" } else { "" };
        (format!("function {}{context} {arguments:?} {result:?}", function.symbol()), number as u64)
    }));
    let preserving = "function call_preserving: addresses of a function and of its words";
    facts.push((preserving.to_owned(), RuntimeFn::CALL_PRESERVING as u64));
    // The names keep the spelling that the first files had.
    facts.extend(FaultKind::ALL.map(|kind| (format!("fault {}", kind.name().replace('-', "_")), kind as u64)));
    facts
}

/// Formats an agreement between machine code and this crate as text, one fact per line.
pub(crate) fn text(facts: &[Fact]) -> String {
    facts.iter().map(|(what, number)| format!("{what} {number}\n")).collect()
}

/// Returns the FNV-1a hash of `text` in 64 bits. The hash protects against accidents only, not against attacks.
pub(crate) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
