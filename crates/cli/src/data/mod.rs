//! What is said about data whatever its form: how values are spelled, what is wrong with them and how that is worded, where
//! results go. Batches of rows, and the forms of files, are in `table`.

pub(crate) mod error;
pub(crate) mod numpy;
pub(crate) mod objects;
pub(crate) mod output;
pub(crate) mod scalar;
pub(crate) mod schema;
