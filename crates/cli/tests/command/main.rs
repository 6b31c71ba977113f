//! Tests of the command as its users run it: the real binary, in a folder of its own.

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
