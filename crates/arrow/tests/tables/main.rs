//! Tests of the conversion between Arrow arrays and the values of models.

mod arrays;
mod conversions;
mod lists;
mod structs;
