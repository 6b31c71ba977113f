//! Models over many rows: columns and slices of structs go in, columns come out. Rows are divided among threads, and then into strips (blocks of
//! rows). A strip is evaluated by a `cembra_runtime::BatchFunction`. If rows of a strip fail, the interpreter runs these rows again and finds the
//! failing row and its error.
//!
//! This module depends on no code generator and on no file format.

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
pub use grown::ColumnBuilder;
pub use input::{ColumnValue, InputColumn, WriteField};
pub use keys::{KeyType, Keys};
pub use lanes::{LaneFunction, facts, ports};
pub use line::{LineCall, LineLayout, LineMut, LineStart, ResultTarget};
pub use lists::ListOffsets;
pub use output::{ColumnMut, OutputColumn, OutputParts, ReadField};
pub use run::{ColumnLayouts, EndReason, Job, Player, RowPlan, RowsResult, RunRejection};
pub use strings::{OutputRoom, column_bytes, element_bytes};
pub use strips::{BoundLineFunction, Lines, PrefetchHint, line_forms};

use cembra_runtime::QType;

/// The reason why a column does not fit an input or output, such as another type or another number of rows.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Misfit {
    /// The column has another type than its input or output.
    #[error("is {found}")]
    Type {
        /// The type of the column's values.
        found: QType,
    },
    /// A value of the column has another type than the input.
    #[error("is {found} in row {row}")]
    Value {
        /// The index of the first row whose value has another type.
        row: usize,
        /// The type of the value in that row.
        found: QType,
    },
    /// The column has another number of rows than the run.
    #[error("has {found} rows where there are {expected}")]
    Rows {
        /// The number of rows that the column has.
        found: usize,
        /// The number of rows that the run has.
        expected: usize,
    },
    /// A value of the column is missing, but the type of the input is not optional.
    #[error("is missing in row {row}")]
    Missing {
        /// The index of the first row whose value is missing.
        row: usize,
    },
    /// A key of the dictionary column is not the index of a value.
    #[error("has a key in row {row} that is not in the dictionary")]
    Key {
        /// The index of the first row whose key is not the index of a value.
        row: usize,
    },
    /// The values of a dictionary are not a column of numbers or strings: they are a dictionary, one shared value, or values of any type.
    #[error("is a dictionary, but its values are not a column of numbers or strings")]
    Dictionary,
    /// A row of a column of lists refers to elements that the column of elements does not have.
    #[error("has more elements in row {row} than its column of elements")]
    Elements {
        /// The index of the first row that refers to elements that do not exist.
        row: usize,
    },
    /// The elements of a column of lists are not a column of scalars: they are lists, one shared value, or values of any type.
    #[error("has lists, but their elements are not a column of scalars")]
    Lists,
    /// The columns of a struct are not the columns that the input's type has.
    #[error(
        "must have the columns of its type: one for each scalar and each field of a list, and a mask before the columns of an optional struct"
    )]
    Structs,
    /// The fields of a list of structs are lists with different numbers of elements.
    #[error("has a list in row {row} whose fields have different lengths")]
    Sizes {
        /// The index of the first row whose lists have different numbers of elements.
        row: usize,
    },
    /// The column reads the memory of an output, but the caller gave that output no memory, or memory that cannot be read.
    #[error("reads the memory of output {at}, but no memory that can be read was given for that output")]
    Output {
        /// The index of the output whose memory the column reads.
        at: usize,
    },
    /// The caller gave memory for an output of a model with arrays. Such outputs are always new columns.
    #[error("must not be given memory: a model with arrays makes new columns for its outputs")]
    Memory,
    /// There is not enough memory for a new column of `rows` rows.
    #[error("needs a column of {rows} rows, for which there is not enough memory")]
    Room {
        /// The number of rows that the column would have.
        rows: usize,
    },
    /// The caller's memory for an output has no presence bits or bytes, but rows of the output may be missing.
    #[error("must have memory that marks the present rows")]
    Presence,
}
