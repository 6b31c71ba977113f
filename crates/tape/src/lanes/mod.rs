//! Lane programs: models for many rows at once. A program is a list of segments that run on a strip (a block of rows)
//! at a time. A segment runs a tape on arrays, calls a kernel row by row, or runs another program once for each value
//! of a dictionary. A value that one segment computes and another segment reads is stored in columns: one for each part
//! of the value, such as its presence and its number. This module is independent of operators and code generators.

mod bits;
mod print;
mod program;
mod scratch;
mod verify;

pub use bits::BitColumns;
pub use program::{
    Body, ColumnId, KernelReason, KernelSegment, LaneColumn, LaneProgram, Load, MemoSegment, MemoStore, Origin,
    OutputColumns, Segment, Source, Store, TapeSegment, ValuePart,
};
pub use verify::LaneFault;
