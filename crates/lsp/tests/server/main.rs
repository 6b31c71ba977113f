//! Tests of the language server: its grammar for editors, and its answers after random edits.

mod grammar;
mod random;
