//! Tests of the command as users run it: each test runs the binary in a new folder.

mod advice;
mod arrays;
mod build;
mod diagnostics;
mod documents;
mod edges;
mod editor;
mod eval;
mod files;
mod formats;
mod formatted;
mod hostile;
mod inferred;
mod moments;
mod options;
mod others;
mod ranks;
mod repl;
mod shell;
mod tables;
mod tensors;
mod tested;
mod usage;
mod used;
