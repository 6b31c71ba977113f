//! The types that all stages share: values with their bits, the texts of a model and spans in them, the error of the
//! library and its rendering, the limits for models, and the thread pool for their runs.
//!
//! This crate has no expressions, operators or text language: how people write values is described in `cembra-expr`.

mod array;
mod cache_counters;
mod clock;
mod column;
mod compile_token;
mod diagnostic;
mod dict;
mod edge;
mod error;
mod guard;
mod lent;
mod limits;
mod lines;
mod mask;
mod near;
mod promise;
mod promotion;
mod rendering;
mod run_terms;
mod span;
mod strings;
mod structs;
pub mod tensor;
mod texts;
mod threads;
pub mod time_format;
mod value;
mod value_ref;
mod value_run;
mod warnings;
mod words;

pub use array::{Array, ArrayBuilder, ArrayData, Number};
pub use cache_counters::CacheCounters;
pub use column::ValueColumn;
pub use compile_token::{compile_until, is_compile_ended};
pub use diagnostic::{Code, Diagnostic, Diagnostics, Label, dashed_code};
pub use dict::{Dict, DictFault};
pub use edge::{Edge, EdgeFault, EdgeForm};
pub use error::{Error, EvaluationFault};
pub use guard::{guarded, guarded_values, words_of_panic};
pub use limits::{Budget, Limit, Limits};
pub use lines::Lines;
pub use mask::{MASK_HOLDS, mask_holds};
pub use near::near_names;
pub use promise::{BrokenPromise, Promise};
pub use promotion::{common_scalar, lossless_scalar};
pub use rendering::{Expression, Renderer, Source, UNNAMED};
pub use run_terms::{OnError, RunTerms};
pub use span::Span;
pub use strings::StringViews;
pub use structs::ListBuilder;
pub use tensor::{Tensor, TensorErrorKind};
pub use texts::{SourcePlace, Texts};
pub use threads::{ProcessPool, useful_threads};
pub use value::{ScalarValue, Value};
pub use value_ref::ValueRef;
pub use value_run::ValueRun;
pub use warnings::Warnings;
pub use words::Words;
