//! Arrow arrays in and out of models.

mod arrays;
mod conversions;
mod lists;
mod structs;
