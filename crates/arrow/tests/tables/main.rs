//! Arrow arrays in and out of models.

mod arrays;
mod lists;
mod structs;
