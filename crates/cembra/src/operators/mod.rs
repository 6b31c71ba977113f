//! The registry of operators, and user-defined operators: a Rust function ([`UserFunction`]), or an operator whose native code is built by appending
//! instructions to a [`Tape`] ([`UserOperator`]). Also rewrites of the typed graph ([`Extension`]). [`reference`](mod@reference) has the list of
//! operators as text.

pub mod reference;

pub use cembra_ops::{Fallible, Reason, Registry, UserFunction, UserOperator, limits, time_zones};
pub use cembra_prepare::{Extension, Id, Mode, Rewriter};
pub use cembra_runtime::{Context, Evaluations, MachineType, RuntimeFn, STATUS_OK};
pub use cembra_tape::{Bin, Cell, Cmp, Datum, Presence, Shift, Tape, Un, Val};
