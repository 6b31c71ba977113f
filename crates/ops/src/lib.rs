//! The operator registry: every operator defined once, with its types, its meaning in plain Rust (`eval`), and the rule
//! that lowers it onto the tape. Everything that needs to know operators walks this registry: preparation, both
//! backends, the parser's vocabulary, the documentation, the fuzzer.
//!
//! No code generator and no columnar format is known here; players of tapes live in the backends.

mod call;
mod cell;
mod comparison;
mod definition;
mod kernel;
mod lift;
mod logic;
mod presence;
mod registry;
mod structure;
mod tape;
mod typing;

mod cast;
mod math;

pub use call::call;
pub use cell::{Cell, Datum, Presence};
pub use definition::{
    Arg, Example, Expansion, Kernel, Law, Meaning, OpDef, Operand, Overload, PresenceRule, Rule, Structure, Typing,
};
pub use lift::lower;
pub use registry::{OpId, Registry, id};
pub use tape::{Bin, Cmp, Instr, Mask, Outcome, Shift, Tape, Un, Val};
pub use typing::{Argument, Promotion, Resolved, Signature, TypeFault, common_type};
