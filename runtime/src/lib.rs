//! The runtime of compiled cembra models: types and their layouts, frames and slots, optionals and texts, the
//! evaluation context with its fault record, the functions that generated code calls, and the memory for
//! generated code.
//!
//! This crate knows no expression, no operator and no compiler; everything else in the workspace is built on it.

mod arena;
mod c_interface;
mod calendar;
mod cancellation;
mod chains;
mod code_memory;
mod column;
pub mod compare;
mod context;
mod duration;
mod excerpt;
mod fault;
mod flag;
mod frame;
mod functions;
mod interface;
mod kernel;
mod layout;
mod listing;
mod machine_type;
pub mod math;
mod memory;
mod months;
mod object_model;
mod optional;
mod pass;
mod preserving;
mod qtype;
pub mod quantile;
pub mod quotient;
mod room;
mod scalar;
#[cfg(feature = "serde")]
mod serialized;
mod slack;
mod standalone;
mod sync;
mod tally;
mod text;
mod time_limit;
mod timed_runs;
mod timer;
mod transfer;
mod type_names;
mod unix;

pub use arena::Arena;
pub use calendar::{Date, TimeTextError, Timestamp};
pub use cancellation::Cancellation;
pub use chains::{
    Addition, CHAINS, ChainFold, ChainFolds, Chains, Combine, FoldTarget, SUM_BLOCK, append_block, chain_of,
    fold_whole, is_in_order, sum_blocks,
};
pub use code_memory::{CodeMemory, CodeMemoryError, CodePages, live_code_bytes, live_code_limit, set_live_code_limit};
pub use column::{
    BareFunction, BatchFunction, Column, ColumnForm, DataForm, Dictionary, DictionaryIndices, FailedRows,
    FunctionColumns, LINE, LONG_STRIP_ROWS, LoopEntry, PAST_CACHES, PresenceForm, STRIP_ROWS, Scratch, ScratchLayout,
    drain_past_caches, prefetch,
};
pub use context::{Context, FaultRecord};
pub use duration::{Duration, DurationFault};
pub use excerpt::{Excerpt, visible, visible_lines};
pub use fault::{Fault, FaultKind, STATUS_FAULT, STATUS_OK};
pub use frame::{Frame, FrameLayout, FramePtr, Slot, TypedSlot};
pub use functions::RuntimeFn;
pub use interface::{INTERFACE_REVISION, interface, interface_fingerprint};
pub use kernel::{Call, Kernel, KernelCall, KernelChain, RawFunction, RegisterResult};
pub use layout::Layout;
pub use listing::{LineKind, Listing, ListingLine};
pub use machine_type::MachineType;
pub use months::CalendarUnit;
pub use object_model::ObjectModel;
pub use optional::Optional;
pub use pass::RowsPass;
pub use qtype::{
    ArrayKind, EdgeType, Extent, FieldOffset, Fields, Form, InFrame, MOST_AXES, NameError, Names, QType, ShapeType,
    TableForm,
};
pub use room::{advise_huge_pages, byte_length, has_room, word_length};
pub use scalar::{Plain, Scalar};
pub use slack::UnusedMemoryCounter;
pub use standalone::{Evaluator, ModelFault, ObjectFileModel, Refusal};
pub use tally::{Evaluations, Tally};
pub use text::{Bytes, Text};
pub use time_limit::TimeLimit;
pub use transfer::Transfer;
pub use type_names::{DICT_WORD, EDGE_WORD, TENSOR_WORD, TypeName, TypeSpelling};
pub use unix::UnixUnit;
