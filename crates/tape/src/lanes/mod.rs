//! Lane programs: what a model is for many rows at once. A program is a list of segments over a strip of rows; each plays one
//! tape on arrays, calls one kernel row by row, or plays a program once for each value of a dictionary. What crosses from one segment to another lies in columns, one for each
//! part of a value. No operator is known here, and no code generator.

mod bits;
mod print;
mod program;
mod scratch;
mod verify;

pub use bits::BitColumns;
pub use program::{
    Body, ColumnId, Cut, KernelSegment, LaneColumn, LaneProgram, Load, MemoSegment, MemoStore, Origin, OutputColumns,
    Segment, Source, Store, TapeSegment, ValuePart,
};
pub use verify::LaneFault;
