//! Models over many rows and over arrays through the library.

mod array_fields;
mod array_threads;
mod arrays;
mod attacks;
mod batch;
mod batch_requests;
mod dictionaries;
mod json_columns;
mod json_requests;
mod lists;
mod reductions;
mod short_lists;
mod strings;
mod struct_columns;
mod structs;
mod sums;
mod tables;
mod wide;
