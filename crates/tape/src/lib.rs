//! Tapes: small typed programs without branches. The lowering rules of operators record them, and backends run them on
//! many rows or inline them.
//!
//! A tape is self-contained: it declares its inputs, its outputs, and which of its instructions they need. A tape has
//! no loads, stores, blocks or loops; the backend adds these. This crate is independent of operators and code
//! generators.

mod arithmetic;
mod bits;
mod cell;
mod cost;
mod expansion;
mod instr;
mod lanes;
mod loops;
mod print;
mod stretch;
mod tape;

pub use bits::Outcome;
pub use cell::{Cell, Datum, Presence};
pub use expansion::{scaling, splitting};
pub use instr::{Bin, Cmp, Instr, Mask, Output, Shift, Un, Val};
pub use lanes::{
    BitColumns, Body, ColumnId, KernelReason, KernelSegment, LaneColumn, LaneFault, LaneProgram, Load, MemoSegment,
    MemoStore, Origin, OutputColumns, Segment, Source, Store, TapeSegment, ValuePart,
};
pub use loops::{CanPlay, Port, TapeLoop};
pub use stretch::SkippableRangeFault;
pub use tape::Tape;
