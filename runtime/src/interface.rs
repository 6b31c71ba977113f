//! What machine code and this crate agree on: the numbers of the functions in the table, and where the parts of a context
//! lie. Code that outlives the process that made it is only run by a crate of the same revision.

use crate::{Context, FaultKind, KernelCall, RuntimeFn};
use std::fmt::Write as _;

/// The revision of all this crate and machine code agree on, raised with every change of [`interface`].
pub const INTERFACE_REVISION: u32 = 3;

/// The agreement as text: the revision, and a line for each function, offset and fault.
#[must_use]
pub fn interface() -> String {
    let mut text = format!("revision {INTERFACE_REVISION}\n");
    let offsets = [
        ("functions", Context::FUNCTIONS_OFFSET),
        ("calls", Context::CALLS_OFFSET),
        ("cancel", Context::CANCEL_OFFSET),
        ("iterations", Context::ITERATIONS_OFFSET),
        ("work left", Context::WORK_LEFT_OFFSET),
        ("fault site", Context::FAULT_SITE_OFFSET),
        ("fault kind", Context::FAULT_KIND_OFFSET),
        ("fault operands", Context::FAULT_OPERANDS_OFFSET),
        ("call size", KernelCall::SIZE),
        ("call function", KernelCall::FUNCTION_OFFSET),
        ("call of a kernel", KernelCall::CALL_OFFSET),
        ("call data", KernelCall::DATA_OFFSET),
    ];
    for (name, offset) in offsets {
        let _ = writeln!(text, "{name} {offset}");
    }
    for (number, function) in RuntimeFn::ALL.iter().enumerate() {
        let (arguments, result) = function.signature();
        let context = if function.takes_context() { " context" } else { "" };
        let _ = writeln!(text, "function {number} {}{context} {arguments:?} {result:?}", function.symbol());
    }
    let _ = writeln!(
        text,
        "function {} call_preserving: addresses of a function and of its words",
        RuntimeFn::CALL_PRESERVING
    );
    for kind in FaultKind::ALL {
        let _ = writeln!(text, "fault {} {}", kind as u32, kind.name());
    }
    text
}
