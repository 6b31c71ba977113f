//! The operators of the language and their registry. Each operator is defined once: its types, its meaning as a plain
//! Rust function, and the rule that records it as instructions on a tape for code generation. All code that needs
//! information about operators uses this registry: preparation, both backends, the parser's vocabulary, the
//! documentation, the fuzzer.

mod annotation;
mod array;
mod bitwise;
mod calendar;
mod call;
pub mod column;
mod comparison;
mod compound;
mod data_moments;
mod declared;
mod definition;
mod derivative;
mod derived;
mod dict;
mod direct;
mod effects;
mod external;
mod function;
pub mod id;
mod kernel;
mod lift;
mod list;
mod logic;
mod named_tuple;
mod operator_id;
mod presence;
mod qtype;
mod registry;
mod resolution;
mod scalars;
mod sequence;
mod shorthand;
mod standard;
mod structure;
mod tensor;
mod tuple;
mod typing;
mod user;
mod whole_tensors;
mod work;

mod cast;
mod math;
mod random;
mod strings;

pub use array::strip::{
    Accumulator, Finish, Fold, Grouping, Quantity, Scan, Scanner, Strip, StripData, StripMethod, StripValues,
    accumulator, divide_by_groups, expand, scanner,
};
pub use array::{ArrayForm, ArrayOperands, ArrayOperator, FullRule, MOST_ELEMENTS};
pub use calendar::zones::time_zones;
pub use call::{call, call_within};
pub use cembra_runtime::Kernel;
pub use cembra_value::time_format::TimeFormatError;
pub use compound::optional_field;
pub use data_moments::{LocalClock, MomentForm};
pub use declared::becomes_declared;
pub use declared::numbers::becomes_wide;
pub use definition::{
    Compile, CompiledLiteral, Example, Expansion, ExpansionError, Instantiation, KernelData, Law, Lower, Meaning,
    MemoryAccess, NodeHandle, OpDef, OperandType, OverArrays, Overload, PresenceRule, Round, Rule, Structure, Typing,
};
pub use derivative::{Cotangent, Cotangents, Derivative, DerivativeCall};
pub use direct::RegisterFn;
pub use effects::Effects;
pub use lift::record;
pub use operator_id::OpId;
pub use qtype::compare_types;
pub use registry::Registry;
pub use sequence::Sequence;
pub use strings::limits;
pub use structure::structs;
pub use typing::{Argument, Promotion, ResolvedCall, Signature, TypeFault, common_type, list_types};
pub use user::{Arguments, Fallible, Reason, Recording, UserArgument, UserFunction, UserOperator, UserResult};
