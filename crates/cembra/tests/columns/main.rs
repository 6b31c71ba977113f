//! Tests, through the library's public interface, of models on many rows and of models with arrays.

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
