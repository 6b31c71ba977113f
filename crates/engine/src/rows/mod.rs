//! Models over many rows: columns and slices of structs go in, columns come out. Rows are shared out to threads and cut into
//! strips; whatever evaluates a strip is known by one contract (`cembra_runtime::BatchFunction`), and rows that fail there are
//! run again by the interpreter, which says which row it was, and why.
//!
//! No code generator is known here, and no file format.

mod bitmap;
mod elements;
mod grown;
mod input;
mod keys;
mod lanes;
mod line;
mod lists;
mod numbering;
mod output;
pub(crate) mod plan_rows;
pub(crate) mod players;
mod reference;
mod run;
mod slice;
mod source;
mod strings;
mod strip;
mod strips;
pub(crate) mod structs;
mod target;
pub(crate) mod threads;

pub use bitmap::{Bitmap, BitmapMut};
pub use elements::{ArrayView, array_of_optionals, elements, optional_elements};
pub use grown::GrowingColumn;
pub use input::{ColumnValue, InputColumn, WriteField};
pub use keys::{KeyType, Keys};
pub use lanes::{LaneFunction, facts, ports};
pub use line::{LineCall, LineMut, Pace, Sink, Start};
pub use lists::ListOffsets;
pub use output::{ColumnMut, OutputColumn, OutputParts, ReadField};
pub use run::{Finished, Forms, Job, Player, Refused, RowPlan, Stop};
pub use strings::{OutputRoom, column_bytes, element_bytes};
pub use strips::{Ahead, Lines, Strips, line_forms};

use cembra_runtime::QType;

/// Why a column is not what an input or output asks for.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The column is of another type.
    #[error("is {found}")]
    Type {
        /// The type of its values.
        found: QType,
    },
    /// A value is of another type.
    #[error("is {found} in row {row}")]
    Value {
        /// The row.
        row: usize,
        /// The value's type.
        found: QType,
    },
    /// The column is of another length.
    #[error("has {found} rows where there are {expected}")]
    Rows {
        /// How many rows it has.
        found: usize,
        /// How many there are.
        expected: usize,
    },
    /// A value is missing that may not be.
    #[error("is missing in row {row}")]
    Missing {
        /// The first such row.
        row: usize,
    },
    /// A number is of no value of the dictionary.
    #[error("has no value of the dictionary in row {row}")]
    Key {
        /// The first such row.
        row: usize,
    },
    /// The values of a dictionary are a dictionary themselves, one value for all, or values of any type.
    #[error("is a dictionary whose values are no column of numbers or strings")]
    Dictionary,
    /// A row of lists has elements that the column of elements has not.
    #[error("has elements in row {row} that are not there")]
    Elements {
        /// The first such row.
        row: usize,
    },
    /// The elements of lists are lists themselves, one value for all, or values of any type.
    #[error("has lists whose elements are no column of scalars")]
    Lists,
    /// The columns of a struct are others than those of the input's type.
    #[error(
        "has not the columns of its type: one for each scalar and each field of a list, and a mask before those of an optional struct"
    )]
    Structs,
    /// The fields of a list of structs are lists of unlike sizes.
    #[error("has a list in row {row} whose fields are lists of unlike sizes")]
    Sizes {
        /// The first such row.
        row: usize,
    },
    /// The column is what is in an output's memory, and there is none, or none that can be read.
    #[error("is what is in the memory of output {at}, which has none that can be read")]
    Output {
        /// Which.
        at: usize,
    },
    /// The outputs of models with arrays go to columns of their own.
    #[error("is of a model with arrays, whose outputs are columns of their own")]
    Memory,
    /// There is no memory for a column of so many rows.
    #[error("is a column of {rows} rows, for which there is no memory")]
    Room {
        /// How many there are.
        rows: usize,
    },
    /// There is no place for what says which rows are missing.
    #[error("has no place for which rows are present")]
    Presence,
}
