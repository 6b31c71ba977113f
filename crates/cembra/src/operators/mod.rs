//! The registry of operators, and operators of one's own: a function of Rust ([`UserFunction`]), an operator with a lowering to native code
//! ([`UserOperator`]) that appends instructions to a [`Tape`], and rewrites of the typed graph ([`Extension`]). [`reference`](mod@reference) has the list of operators
//! as text.

pub mod reference;

pub use cembra_ops::{Fallible, Reason, Registry, UserFunction, UserOperator, limits, time_zones};
pub use cembra_prepare::{Extension, Id, Mode, Rewriter};
pub use cembra_runtime::{Context, Evaluations, MachineType, RuntimeFn, STATUS_OK};
pub use cembra_tape::{Bin, Cell, Cmp, Datum, Presence, Shift, Tape, Un, Val};
