//! Limits of single operators, such as the greatest length of a regular expression. They are constants in kernels, so
//! they are the same for every model. The limits that a host can set are in `cembra_value::Limits`.

/// The greatest width, and the greatest precision, of a field of `strings.printf` and `strings.format`, in characters
/// or bytes.
pub const FIELD_WIDTH: usize = 1_000;
/// The greatest length of a regular expression in bytes.
pub const PATTERN_BYTES: usize = 64 << 10;
/// The most bytes of memory for a compiled regular expression, and for the automaton that matching builds.
pub const PATTERN_MEMORY: usize = 1 << 20;
/// The greatest length in bytes of a text that a regular expression is matched with.
pub const MATCHED_BYTES: usize = 1 << 20;
/// The most work for matching one text with a regular expression's NFA, in the units of `Limits::string_work`.
pub const MATCHING_WORK: usize = 128 << 20;

pub use cembra_value::time_format::TIME_FORMAT_BYTES;

/// The most elements of an array whose length is computed from numbers (a range, a repetition), not taken from an input
/// array. A longer array is the fault `arena-limit`.
pub const ARRAY_ELEMENTS: usize = 1 << 28;

/// The limits of this module by name, as `docs/limits.md` lists them.
pub const ALL: &[(&str, usize)] = &[
    ("FIELD_WIDTH", FIELD_WIDTH),
    ("PATTERN_BYTES", PATTERN_BYTES),
    ("PATTERN_MEMORY", PATTERN_MEMORY),
    ("MATCHED_BYTES", MATCHED_BYTES),
    ("MATCHING_WORK", MATCHING_WORK),
    ("TIME_FORMAT_BYTES", TIME_FORMAT_BYTES),
    ("ARRAY_ELEMENTS", ARRAY_ELEMENTS),
];
