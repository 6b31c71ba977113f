//! The language server on grammars and random edits.

mod grammar;
mod random;
